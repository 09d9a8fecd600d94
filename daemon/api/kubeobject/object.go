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

// Is returns the status of a condition, or nil if it is missing or unknown.
func Is(conditions []Condition, kind string) *bool {
	for _, c := range conditions {
		if c.Type == kind && (c.Status == "True" || c.Status == "False") {
			return new(c.Status == "True")
		}
	}
	return nil
}

// Quantity is a whole number in the API's form: "58", rarely "1k".
type Quantity struct{ Value *int }

// UnmarshalJSON reads a number or a string.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	// The parser in Kubernetes takes minutes for "1E-99999999".
	digits, thousands := strings.CutSuffix(text, "k")
	if n, err := strconv.ParseUint(digits, 10, 32); err == nil {
		if thousands {
			n *= 1000
		}
		q.Value = new(int(n))
	}
	return nil
}

// Resources are the resources that matter to pod networking.
type Resources struct {
	Pods   Quantity `json:"pods"`
	PodENI Quantity `json:"vpc.amazonaws.com/pod-eni"`
}

// Zone returns the availability zone from a node's labels, under the current or the old
// name of the label.
func Zone(labels map[string]string) string {
	return first(labels, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
}

// InstanceType returns the instance type from a node's labels.
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

// InstanceID returns the end of a provider id such as aws:///eu-west-1a/i-0123. Fargate's
// ids have another form.
func InstanceID(providerID string) string {
	if id := providerID[strings.LastIndexByte(providerID, '/')+1:]; strings.HasPrefix(id, "i-") {
		return id
	}
	return ""
}
