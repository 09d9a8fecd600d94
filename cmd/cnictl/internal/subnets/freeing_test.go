package subnets

import (
	"slices"
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
)

// TestFreeing_Steps: a node is drained, then terminated by whoever made it; a name that a shell would
// read as more is not put into a command.
func TestFreeing_Steps(t *testing.T) {
	t.Parallel()
	labels := func(name string) map[string]string { return map[string]string{name: "blue"} }
	for name, x := range map[string]struct {
		node   string
		object *document.NodeObject
		drain  string
		last   string
	}{
		"of Karpenter": {
			"a", &document.NodeObject{InstanceID: "i-1", Labels: labels("karpenter.sh/nodepool")},
			"kubectl drain a --ignore-daemonsets --delete-emptydir-data", "kubectl delete node a",
		},
		"of a node group": {
			"a", &document.NodeObject{InstanceID: "i-1", Labels: labels("eks.amazonaws.com/nodegroup")},
			"kubectl drain a --ignore-daemonsets --delete-emptydir-data",
			"aws autoscaling terminate-instance-in-auto-scaling-group --instance-id i-1 --should-decrement-desired-capacity",
		},
		"without an owner": {
			"a", &document.NodeObject{InstanceID: "i-1"},
			"kubectl drain a --ignore-daemonsets --delete-emptydir-data", "aws ec2 terminate-instances --instance-ids i-1",
		},
		"hostile": {
			"a;reboot", &document.NodeObject{InstanceID: "$(reboot)"},
			"kubectl drain NODE --ignore-daemonsets --delete-emptydir-data", "aws ec2 terminate-instances --instance-ids INSTANCE",
		},
		"not known to Kubernetes": {
			"a", nil,
			"kubectl drain a --ignore-daemonsets --delete-emptydir-data", "aws ec2 terminate-instances --instance-ids INSTANCE",
		},
	} {
		n := &store.Node{NodeIPAM: document.NodeIPAM{Metadata: document.ObjectMeta{Name: x.node}, Object: x.object}}
		doc := freeing(inventory.SubnetDrain{Want: 1, Least: 1, Nodes: []*store.Node{n}}, func(*store.Node) int { return 0 })
		var commands, risks []string
		for _, s := range doc.Steps {
			commands, risks = append(commands, s.Command), append(risks, s.Risk)
		}
		if !slices.Equal(commands, []string{x.drain, x.last}) || !slices.Equal(risks, []string{"disruptive", "destructive"}) || !doc.Exact {
			t.Errorf("%s: %q, %q", name, commands, risks)
		}
	}
}
