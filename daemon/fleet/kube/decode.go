package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/kubeobject"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

// decodeObject reads an object of the API.
func decodeObject[T any](raw []byte) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("read object of the API: %w", err)
	}
	return out, nil
}

// meta is an object's metadata, including what others write into it.
type meta struct {
	kubeobject.Meta
	Annotations     map[string]string `json:"annotations"`
	OwnerReferences []struct {
		Kind       string `json:"kind"`
		Controller bool   `json:"controller"`
	} `json:"ownerReferences"`
}

func (m meta) created() time.Time { return evidence.Moment(m.CreationTimestamp) }

// maxAnnotation bounds an annotation: longer ones are internal state of programs.
const maxAnnotation = 4 << 10

// annotations returns those that may leave the cluster: short ones, of the wanted domains if
// given.
func (m meta) annotations(wanted ...string) map[string]string {
	out := map[string]string{}
	for name, value := range m.Annotations {
		domain, _, _ := strings.Cut(name, "/")
		if len(value) > maxAnnotation || domain == "kubectl.kubernetes.io" || len(wanted) > 0 && !slices.Contains(wanted, domain) {
			continue
		}
		out[name] = scrub.Line(value)
	}
	return out
}

func orNone[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

// labelSelector is a label selector. An expression becomes a value that no label has: what it
// selects is unknown here, so nothing may follow from it.
type labelSelector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []selectorTerm    `json:"matchExpressions"`
}

// selectorTerm is an expression about labels.
type selectorTerm struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

func (s *labelSelector) labels() *map[string]string {
	if s == nil {
		return nil
	}
	out := map[string]string{}
	maps.Copy(out, s.MatchLabels)
	for _, e := range s.MatchExpressions {
		if out[e.Key] = e.Operator + " (" + strings.Join(e.Values, ", ") + ")"; e.Operator == "In" && len(e.Values) == 1 {
			out[e.Key] = e.Values[0]
		}
	}
	return &out
}
