package kube

import (
	"encoding/json"
	"fmt"
	"strings"

	"cnictl/daemon/api/kubeobject"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/lazy"
	"cnictl/doctor/evidence"
)

// ofDaemon matches the images of aws-node, of either daemon, in any registry. Other images of a
// node would show what people run.
var ofDaemon = lazy.Regexp(`/(aws-vpc-cni|amazon-k8s-cni|aws-network-policy-agent)`)

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
		Images   json.RawMessage `json:"images"` // see daemonImages
		NodeInfo struct {
			OperatingSystem string `json:"operatingSystem"`
			Architecture    string `json:"architecture"`
			KubeletVersion  string `json:"kubeletVersion"`
			OSImage         string `json:"osImage"`
			KernelVersion   string `json:"kernelVersion"`
		} `json:"nodeInfo"`
	} `json:"status"`
}

// daemonImages returns the images of aws-node among those that a node reports. They take long to read, and
// lists of nodes do not show them.
func daemonImages(text json.RawMessage) (of []string, _ error) {
	if len(text) == 0 {
		return nil, nil
	}
	var all []struct {
		Names []string `json:"names"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read images of a node: %w", err)
	}
	for _, image := range all {
		for _, name := range image.Names {
			if ofDaemon().MatchString(name) {
				of = append(of, name)
			}
		}
	}
	return of, nil
}

// readNode reads a Node.
func readNode(raw []byte) (evidence.KubeNode, error) {
	n, err := decodeObject[nodeObject](raw)
	if err != nil {
		return evidence.KubeNode{}, err
	}
	out := n.evidence(n.Metadata.annotations())
	out.Images, err = daemonImages(n.Status.Images)
	return out, err
}

// evidence returns what the doctor knows of a Node, except the images.
func (n *nodeObject) evidence(annotations map[string]string) evidence.KubeNode {
	out := evidence.KubeNode{
		Name: n.Metadata.Name, InstanceType: kubeobject.InstanceType(n.Metadata.Labels), Zone: kubeobject.Zone(n.Metadata.Labels),
		Instance: kubeobject.InstanceID(n.Spec.ProviderID), Capacity: resources(n.Status.Capacity), Allocatable: resources(n.Status.Allocatable),
		Taints: append([]evidence.Taint{}, n.Spec.Taints...), Conditions: []evidence.Condition{},
		Labels: orNone(n.Metadata.Labels), Annotations: annotations,
		KubeletVersion: n.Status.NodeInfo.KubeletVersion, OSImage: n.Status.NodeInfo.OSImage, Kernel: n.Status.NodeInfo.KernelVersion,
		CreatedAt: n.Metadata.created(),
	}
	for _, c := range n.Status.Conditions {
		out.Conditions = append(out.Conditions, evidence.Condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Since: evidence.Moment(c.LastTransitionTime),
		})
	}
	return out
}

func resources(r kubeobject.Resources) evidence.NodeResources {
	return evidence.NodeResources{Pods: r.Pods.Value, PodENI: r.PodENI.Value}
}

const (
	computeTypeLabel = "eks.amazonaws.com/compute-type"
	computeFargate   = "fargate"
	osWindows        = "windows"
)

// awsDomains are those of the annotations that the CNI reads or sets, by default.
var awsDomains = []string{"vpc.amazonaws.com", "k8s.amazonaws.com", "eks.amazonaws.com"}

// object returns what rows show of a Node, and what the doctor reads of it for screens and recordings. Of the
// conditions it has those that are not as they should be: thousands of nodes are kept.
func (n *nodeObject) object() *document.NodeObject {
	e := n.evidence(n.Metadata.annotations(awsDomains...))
	o := &document.NodeObject{
		Zone: e.Zone, InstanceType: e.InstanceType, InstanceID: e.Instance,
		OS: orElse(n.Status.NodeInfo.OperatingSystem, n.Metadata.Labels["kubernetes.io/os"]), Architecture: n.Status.NodeInfo.Architecture,
		CreatedAt: n.Metadata.CreationTimestamp, Ready: kubeobject.Is(n.Status.Conditions, "Ready"), Unschedulable: n.Spec.Unschedulable,
		MaxPods: e.Capacity.Pods, BranchENIs: e.Capacity.PodENI, Labels: n.Metadata.Labels,
		Annotations: e.Annotations, AllocatablePods: e.Allocatable.Pods, AllocatableBranchENIs: e.Allocatable.PodENI,
		KubeletVersion: e.KubeletVersion, OSImage: e.OSImage, Kernel: e.Kernel,
	}
	for _, t := range e.Taints {
		o.Taints = append(o.Taints, document.Taint(t))
	}
	for _, c := range e.Conditions {
		if sound := map[bool]string{true: "True", false: "False"}[strings.HasSuffix(c.Type, "Ready")]; c.Status != sound {
			o.Conditions = append(o.Conditions, document.Condition(c))
		}
	}
	for _, a := range n.Status.Addresses {
		if a.Type == "InternalIP" {
			o.InternalIP = a.Address
			break
		}
	}
	return o
}
