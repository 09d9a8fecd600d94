package cluster

import (
	"cnictl/daemon/api/kubeobject"
	"cnictl/daemon/fleet/document"
)

// nodeDoc is the decoded part of a Node.
type nodeDoc struct {
	Metadata kubeobject.Meta `json:"metadata"`
	Spec     struct {
		ProviderID    string `json:"providerID"`
		Unschedulable bool   `json:"unschedulable"`
	} `json:"spec"`
	Status struct {
		Capacity   kubeobject.Resources   `json:"capacity"`
		Conditions []kubeobject.Condition `json:"conditions"`
		Addresses  []struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		} `json:"addresses"`
		NodeInfo struct {
			OperatingSystem string `json:"operatingSystem"`
			Architecture    string `json:"architecture"`
		} `json:"nodeInfo"`
	} `json:"status"`
}

const (
	computeTypeLabel = "eks.amazonaws.com/compute-type"
	computeFargate   = "fargate"
	osWindows        = "windows"
)

// object returns what a row shows of a Node.
func (n *nodeDoc) object() *document.NodeObject {
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
