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
		Name       string `json:"name"`
		Controller bool   `json:"controller"`
	} `json:"ownerReferences"`
}

// owner is the controller of a pod as KIND/NAME; "" if it has none. Those that a Deployment or a CronJob
// makes anew stand for it.
func (m meta) owner() string {
	for _, o := range m.OwnerReferences {
		if !o.Controller || o.Name == "" {
			continue
		}
		if name, ok := strings.CutSuffix(o.Name, "-"+m.Labels["pod-template-hash"]); ok && o.Kind == "ReplicaSet" && name != "" {
			return "Deployment/" + name
		}
		if i := strings.LastIndexByte(o.Name, '-'); o.Kind == "Job" && i > 0 && scheduled(o.Name[i+1:]) {
			return "CronJob/" + o.Name[:i]
		}
		return o.Kind + "/" + o.Name
	}
	return ""
}

// scheduled reports whether a CronJob gave its Job this end of its name: the time in minutes.
func scheduled(end string) bool {
	const digits = 8 // from 1989 to 2160
	return len(end) == digits && strings.Trim(end, "0123456789") == ""
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
