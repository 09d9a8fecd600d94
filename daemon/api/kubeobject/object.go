package kubeobject

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Meta is the metadata of an object.
type Meta struct {
	Namespace         string            `json:"namespace"`
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	CreationTimestamp *time.Time        `json:"creationTimestamp"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
	Labels            map[string]string `json:"labels"`
}

// Condition is a condition of a status.
type Condition struct {
	Type               string     `json:"type"`
	Status             string     `json:"status"`
	Reason             string     `json:"reason"`
	Message            string     `json:"message"`
	LastTransitionTime *time.Time `json:"lastTransitionTime"`
}

// Is is the status of a condition; nil: it is missing or unknown.
func Is(conditions []Condition, kind string) *bool {
	for _, c := range conditions {
		if c.Type == kind && (c.Status == "True" || c.Status == "False") {
			return new(c.Status == "True")
		}
	}
	return nil
}

// Quantity is a whole number as the API writes it: "58", seldom "1k".
type Quantity struct{ Value *int }

// UnmarshalJSON reads a number or a text.
func (q *Quantity) UnmarshalJSON(data []byte) error {
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
		q.Value = new(int(n))
	}
	return nil
}

// Resources are those that matter to pod networking.
type Resources struct {
	Pods   Quantity `json:"pods"`
	PodENI Quantity `json:"vpc.amazonaws.com/pod-eni"`
}

// Zone is the availability zone in the labels of a node, of before and after the label got
// its name.
func Zone(labels map[string]string) string {
	return first(labels, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
}

// InstanceType is the instance type in the labels of a node.
func InstanceType(labels map[string]string) string {
	return first(labels, "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
}

func first(labels map[string]string, names ...string) string {
	for _, name := range names {
		if v := labels[name]; v != "" {
			return v
		}
	}
	return ""
}

// InstanceID is the end of the provider id aws:///eu-west-1a/i-0123; Fargate's has another
// form.
func InstanceID(providerID string) string {
	if id := providerID[strings.LastIndexByte(providerID, '/')+1:]; strings.HasPrefix(id, "i-") {
		return id
	}
	return ""
}
