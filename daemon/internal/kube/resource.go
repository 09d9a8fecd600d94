package kube

import "cnictl/daemon/kubeclient"

// resource is a kind of objects, with the details that paths and errors need.
type resource struct {
	kubeclient.Kind
	singular   string // in errors
	namespaced bool
}

var (
	nodes      = resource{kubeclient.Nodes, "node", false}
	pods       = resource{kubeclient.Pods, "pod", true}
	eniConfigs = resource{kubeclient.ENIConfigs, "ENIConfig", false}
	cniNodes   = resource{kubeclient.CNINodes, "CNINode", false}
	events     = resource{kubeclient.Kind{Group: "events.k8s.io", Version: "v1", Plural: "events"}, "event", true}
)

// in returns the path of a namespace's objects.
func (r resource) in(namespace string) (string, error) {
	return r.Path(namespace), kubeclient.CheckName("namespace", namespace)
}

// object returns the path of one object; namespace is "" for cluster-scoped resources.
func (r resource) object(namespace, name string) (string, error) {
	if err := kubeclient.CheckName(r.singular, name); err != nil {
		return "", err
	}
	if r.namespaced {
		if err := kubeclient.CheckName("namespace", namespace); err != nil {
			return "", err
		}
	}
	return r.Path(namespace, name), nil
}
