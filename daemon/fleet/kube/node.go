package kube

import (
	"encoding/json"
	"regexp"

	"cnictl/daemon/api/kubeobject"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/evidence"
)

// ofDaemon matches the images of aws-node, of either daemon, in any registry. Other images of a
// node would show what people run.
var ofDaemon = regexp.MustCompile(`/(aws-vpc-cni|amazon-k8s-cni|aws-network-policy-agent)`)

// nodeObject is the part of a Node that is used.
type nodeObject struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		ProviderID    string           `json:"providerID"`
		Unschedulable bool             `json:"unschedulable"`
		Taints        []evidence.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Capacity    kubeobject.Resources   `json:"capacity"`
		Allocatable kubeobject.Resources   `json:"allocatable"`
		Conditions  []kubeobject.Condition `json:"conditions"`
		Addresses   []struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		} `json:"addresses"`
		Images   daemonImages `json:"images"`
		NodeInfo struct {
			OperatingSystem string `json:"operatingSystem"`
			Architecture    string `json:"architecture"`
			KubeletVersion  string `json:"kubeletVersion"`
			OSImage         string `json:"osImage"`
			KernelVersion   string `json:"kernelVersion"`
		} `json:"nodeInfo"`
	} `json:"status"`
}

// daemonImages are the images of aws-node among those that a node reports.
type daemonImages []string

func (d *daemonImages) UnmarshalJSON(text []byte) error {
	var all []struct {
		Names []string `json:"names"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for _, image := range all {
		for _, name := range image.Names {
			if ofDaemon.MatchString(name) {
				*d = append(*d, name)
			}
		}
	}
	return nil
}

// readNode reads a Node.
func readNode(raw []byte) (evidence.KubeNode, error) {
	n, err := decodeObject[nodeObject](raw)
	if err != nil {
		return evidence.KubeNode{}, err
	}
	out := evidence.KubeNode{
		Name: n.Metadata.Name, InstanceType: kubeobject.InstanceType(n.Metadata.Labels), Zone: kubeobject.Zone(n.Metadata.Labels),
		Instance: kubeobject.InstanceID(n.Spec.ProviderID), Capacity: resources(n.Status.Capacity), Allocatable: resources(n.Status.Allocatable),
		Taints: append([]evidence.Taint{}, n.Spec.Taints...), Conditions: []evidence.Condition{},
		Labels: orNone(n.Metadata.Labels), Annotations: n.Metadata.annotations(),
		KubeletVersion: n.Status.NodeInfo.KubeletVersion, OSImage: n.Status.NodeInfo.OSImage, Kernel: n.Status.NodeInfo.KernelVersion,
		CreatedAt: n.Metadata.created(), Images: n.Status.Images,
	}
	for _, c := range n.Status.Conditions {
		out.Conditions = append(out.Conditions, evidence.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Since: evidence.Moment(c.LastTransitionTime)})
	}
	return out, nil
}

func resources(r kubeobject.Resources) evidence.NodeResources {
	return evidence.NodeResources{Pods: r.Pods.Value, PodENI: r.PodENI.Value}
}

const (
	computeTypeLabel = "eks.amazonaws.com/compute-type"
	computeFargate   = "fargate"
	osWindows        = "windows"
)

// object returns what a row shows of a Node.
func (n *nodeObject) object() *document.NodeObject {
	o := &document.NodeObject{
		Zone: kubeobject.Zone(n.Metadata.Labels), InstanceType: kubeobject.InstanceType(n.Metadata.Labels),
		InstanceID: kubeobject.InstanceID(n.Spec.ProviderID),
		OS:         orElse(n.Status.NodeInfo.OperatingSystem, n.Metadata.Labels["kubernetes.io/os"]), Architecture: n.Status.NodeInfo.Architecture,
		CreatedAt: n.Metadata.CreationTimestamp, Ready: kubeobject.Is(n.Status.Conditions, "Ready"), Unschedulable: n.Spec.Unschedulable,
		MaxPods: n.Status.Capacity.Pods.Value, BranchENIs: n.Status.Capacity.PodENI.Value, Labels: n.Metadata.Labels,
	}
	for _, a := range n.Status.Addresses {
		if a.Type == "InternalIP" {
			o.InternalIP = a.Address
			break
		}
	}
	return o
}
