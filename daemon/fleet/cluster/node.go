package cluster

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
)

// meta is what is used of an object's metadata.
type meta struct {
	Namespace         string            `json:"namespace"`
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	CreationTimestamp *time.Time        `json:"creationTimestamp"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
	Labels            map[string]string `json:"labels"`
}

// nodeDoc is what is decoded of a Node.
type nodeDoc struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		ProviderID    string `json:"providerID"`
		Unschedulable bool   `json:"unschedulable"`
	} `json:"spec"`
	Status struct {
		Capacity struct {
			Pods   quantity `json:"pods"`
			PodENI quantity `json:"vpc.amazonaws.com/pod-eni"`
		} `json:"capacity"`
		Conditions []condition `json:"conditions"`
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

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// is tells a condition's status; null: it is not there, or unknown.
func is(conditions []condition, kind string) *bool {
	for _, c := range conditions {
		if c.Type == kind && (c.Status == "True" || c.Status == "False") {
			return new(c.Status == "True")
		}
	}
	return nil
}

// quantity is a whole number as the API writes it: "58", seldom "1k".
type quantity struct{ value *int }

func (q *quantity) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	// Kubernetes' own reader takes minutes for "1E-99999999".
	digits, thousands := strings.CutSuffix(text, "k")
	if n, err := strconv.ParseUint(digits, 10, 32); err == nil {
		if thousands {
			n *= 1000
		}
		q.value = new(int(n))
	}
	return nil // one that cannot be read is not known
}

// Labels of nodes, of before and after they got their names.
var (
	zoneLabels = []string{"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"}
	typeLabels = []string{"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"}
)

const (
	computeTypeLabel = "eks.amazonaws.com/compute-type"
	computeFargate   = "fargate"
	osWindows        = "windows"
)

// object is what a row shows of a Node.
func (n *nodeDoc) object() *introspect.NodeObject {
	o := &introspect.NodeObject{
		Zone: label(n.Metadata.Labels, zoneLabels), InstanceType: label(n.Metadata.Labels, typeLabels),
		InstanceID: instanceID(n.Spec.ProviderID),
		OS:         orElse(n.Status.NodeInfo.OperatingSystem, n.Metadata.Labels["kubernetes.io/os"]), Architecture: n.Status.NodeInfo.Architecture,
		CreatedAt: n.Metadata.CreationTimestamp, Ready: is(n.Status.Conditions, "Ready"), Unschedulable: n.Spec.Unschedulable,
		MaxPods: n.Status.Capacity.Pods.value, BranchENIs: n.Status.Capacity.PodENI.value, Labels: n.Metadata.Labels,
	}
	for _, a := range n.Status.Addresses {
		if a.Type == "InternalIP" {
			o.InternalIP = a.Address
			break
		}
	}
	return o
}

func label(labels map[string]string, names []string) string {
	for _, name := range names {
		if v := labels[name]; v != "" {
			return v
		}
	}
	return ""
}

// instanceID is the end of aws:///eu-west-1a/i-0123; Fargate's has another form.
func instanceID(providerID string) string {
	if id := providerID[strings.LastIndexByte(providerID, '/')+1:]; strings.HasPrefix(id, "i-") {
		return id
	}
	return ""
}
