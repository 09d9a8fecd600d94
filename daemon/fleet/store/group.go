package store

import "cnictl/daemon/fleet/document"

// groupLabels are the labels that name the group of a node, the first that is set.
var groupLabels = []string{"eks.amazonaws.com/nodegroup", KarpenterPool, "alpha.eksctl.io/nodegroup-name"}

// KarpenterPool is the label of nodes that Karpenter makes, and terminates once their Node is deleted.
const KarpenterPool = "karpenter.sh/nodepool"

// NodeGroup returns the label that names the group of a node, and the name; "" if it has none.
func NodeGroup(o *document.NodeObject) (label, name string) {
	if o == nil {
		return "", ""
	}
	for _, label := range groupLabels {
		if v := o.Labels[label]; v != "" {
			return label, v
		}
	}
	return "", ""
}
