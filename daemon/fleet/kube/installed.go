package kube

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// managedFields is what one program has set in an object.
type managedFields struct {
	Manager   string          `json:"manager"`
	Operation string          `json:"operation"`
	Time      *time.Time      `json:"time"` // when it last did
	FieldsV1  json.RawMessage `json:"fieldsV1"`
}

// readKubeObject reads the metadata of an object, with the annotations that show who made it.
func readKubeObject(kind string, raw []byte) (evidence.KubeObject, error) {
	o, err := decodeObject[struct {
		Metadata struct {
			meta
			ManagedFields []managedFields `json:"managedFields"`
		} `json:"metadata"`
	}](raw)
	if err != nil {
		return evidence.KubeObject{}, err
	}
	out := evidence.KubeObject{
		Name: kind + "/" + o.Metadata.Name, Labels: orNone(o.Metadata.Labels), Managers: []evidence.Manager{},
		Annotations: o.Metadata.annotations("meta.helm.sh", "helm.sh", "argocd.argoproj.io", "eks.amazonaws.com"),
	}
	for _, m := range o.Metadata.ManagedFields {
		if m.Operation != "Apply" {
			m.Operation = "Update"
		}
		out.Managers = append(out.Managers, evidence.Manager{
			Name: m.Manager, Operation: m.Operation, Env: append([]string{}, ownedEnv(m.FieldsV1, "f:containers", evidence.ContainerNode)...),
			InitEnv: ownedEnv(m.FieldsV1, "f:initContainers", evidence.ContainerInit),
		})
	}
	return out, nil
}

// ownedEnv returns the variables of a container in a set of managed fields, which nests them as
// f:spec, f:template, f:spec, f:containers, k:{"name":"aws-node"}, f:env, k:{"name":"X"}.
func ownedEnv(fields json.RawMessage, list, container string) []string {
	var out []string
	for _, step := range []string{"f:spec", "f:template", "f:spec", list, `k:{"name":"` + container + `"}`, "f:env"} {
		fields = members(fields)[step]
	}
	for key := range members(fields) {
		var named struct{ Name string }
		if rest, ok := strings.CutPrefix(key, "k:"); ok && json.Unmarshal([]byte(rest), &named) == nil && named.Name != "" {
			out = append(out, named.Name)
		}
	}
	slices.Sort(out)
	return out
}

func members(object json.RawMessage) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	_ = json.Unmarshal(object, &out) // no object: nothing is known of it
	return out
}

// readConflist reads the CNI configuration of the chart's value cniConfig: "10-aws.conflist" of a
// ConfigMap, as binary data or as text. It returns nil if there is none.
func readConflist(raw []byte) (*evidence.CNIConf, error) {
	const file = "10-aws.conflist"
	c, err := decodeObject[struct {
		Data       map[string]string `json:"data"`
		BinaryData map[string][]byte `json:"binaryData"`
	}](raw)
	if err != nil {
		return nil, err
	}
	text, ok := c.BinaryData[file]
	if !ok {
		plain, there := c.Data[file]
		if !there {
			return nil, nil
		}
		text = []byte(plain)
	}
	conf := reading.CNIConf(file, text)
	return &conf, nil
}

// readQuota returns the name of a quota that counts pods with the priority of aws-node, otherwise "".
func readQuota(raw []byte) (string, error) {
	q, err := decodeObject[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			Hard          map[string]json.RawMessage `json:"hard"`
			ScopeSelector struct {
				MatchExpressions []struct {
					ScopeName string   `json:"scopeName"`
					Operator  string   `json:"operator"`
					Values    []string `json:"values"`
				} `json:"matchExpressions"`
			} `json:"scopeSelector"`
		} `json:"spec"`
	}](raw)
	if err != nil {
		return "", err
	}
	for _, e := range q.Spec.ScopeSelector.MatchExpressions {
		if e.ScopeName != "PriorityClass" {
			return "", nil // for other pods
		}
		named := slices.Contains(e.Values, "system-node-critical")
		if e.Operator == "In" && !named || e.Operator == "NotIn" && named || e.Operator == "DoesNotExist" {
			return "", nil
		}
	}
	return q.Metadata.Name, nil
}

// reviewed holds the labels that webhooks select by: the DaemonSet's, its pods', their
// namespace's.
type reviewed struct{ DaemonSet, Pod, Namespace map[string]string }

// webhookRule is what a webhook reviews.
type webhookRule struct {
	APIGroups  []string `json:"apiGroups"`
	Operations []string `json:"operations"`
	Resources  []string `json:"resources"`
	Scope      string   `json:"scope"`
}

// covers reports whether the rule reviews one of the operations on a namespaced resource.
func (r webhookRule) covers(group, resource string, operations ...string) bool {
	of := func(list []string, names ...string) bool {
		return slices.ContainsFunc(append(names, "*"), func(name string) bool { return slices.Contains(list, name) })
	}
	return r.Scope != "Cluster" && of(r.APIGroups, group) && of(r.Resources, resource, "*/*") && of(r.Operations, operations...)
}

// readAdmission reads a webhook configuration: those webhooks that review changes of a DaemonSet, or
// its pods when they are replaced. Match conditions are not evaluated.
func readAdmission(raw []byte, of reviewed) ([]evidence.Admission, error) {
	c, err := decodeObject[struct {
		Metadata meta `json:"metadata"`
		Webhooks []struct {
			Name              string         `json:"name"`
			FailurePolicy     string         `json:"failurePolicy"`
			NamespaceSelector *labelSelector `json:"namespaceSelector"`
			ObjectSelector    *labelSelector `json:"objectSelector"`
			Rules             []webhookRule  `json:"rules"`
			ClientConfig      struct {
				Service struct {
					Namespace string `json:"namespace"`
					Name      string `json:"name"`
				} `json:"service"`
			} `json:"clientConfig"`
		} `json:"webhooks"`
	}](raw)
	if err != nil {
		return nil, err
	}
	var out []evidence.Admission
	for _, w := range c.Webhooks {
		decides := slices.ContainsFunc(w.Rules, func(r webhookRule) bool {
			return r.covers("", "pods", "CREATE", "DELETE") && !w.ObjectSelector.excludes(of.Pod) ||
				r.covers("apps", "daemonsets", "CREATE", "UPDATE") && !w.ObjectSelector.excludes(of.DaemonSet)
		})
		if !decides || w.NamespaceSelector.excludes(of.Namespace) {
			continue
		}
		a := evidence.Admission{Name: c.Metadata.Name + "/" + w.Name, FailurePolicy: cmp.Or(w.FailurePolicy, "Fail")}
		if s := w.ClientConfig.Service; s.Name != "" {
			a.Service = s.Namespace + "/" + s.Name
		}
		out = append(out, a)
	}
	return out, nil
}

// excludes reports whether the selector matches no object with these labels.
func (s *labelSelector) excludes(labels map[string]string) bool {
	if s == nil {
		return false
	}
	for name, value := range s.MatchLabels {
		if labels[name] != value {
			return true
		}
	}
	for _, e := range s.MatchExpressions {
		value, there := labels[e.Key]
		among := there && slices.Contains(e.Values, value)
		switch e.Operator {
		case "In":
			if !among {
				return true
			}
		case "NotIn":
			if among {
				return true
			}
		case "Exists":
			if !there {
				return true
			}
		case "DoesNotExist":
			if there {
				return true
			}
		}
	}
	return false
}

// readServiceSelector returns the label selector of a service's pods, empty if it has none.
func readServiceSelector(raw []byte) (string, error) {
	s, err := decodeObject[struct {
		Spec struct {
			Selector map[string]string `json:"selector"`
		} `json:"spec"`
	}](raw)
	if err != nil {
		return "", err
	}
	var out []string
	for name, value := range s.Spec.Selector {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return strings.Join(out, ","), nil
}

// readDaemonLabels reads the labels of a DaemonSet and of its pods.
func readDaemonLabels(raw []byte) (reviewed, error) {
	d, err := decodeObject[daemonSet](raw)
	if err != nil {
		return reviewed{}, err
	}
	return reviewed{DaemonSet: d.Metadata.Labels, Pod: d.Spec.Template.Metadata.Labels}, nil
}

// readMonitor reads a PodMonitor or a ServiceMonitor: what it selects, and the ports that it scrapes.
func readMonitor(kind string, raw []byte) (evidence.Monitor, error) {
	type endpoint struct {
		Port string `json:"port"`
	}
	m, err := decodeObject[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			Selector  *labelSelector `json:"selector"`
			Endpoints []endpoint     `json:"endpoints"`           // of a ServiceMonitor
			Pods      []endpoint     `json:"podMetricsEndpoints"` // of a PodMonitor
		} `json:"spec"`
	}](raw)
	if err != nil {
		return evidence.Monitor{}, err
	}
	out := evidence.Monitor{Name: kind + "/" + m.Metadata.Namespace + "/" + m.Metadata.Name, Selector: map[string]string{}, Ports: []string{}}
	if labels := m.Spec.Selector.labels(); labels != nil {
		maps.Copy(out.Selector, *labels)
	}
	for _, e := range slices.Concat(m.Spec.Endpoints, m.Spec.Pods) {
		if e.Port != "" {
			out.Ports = append(out.Ports, e.Port)
		}
	}
	return out, nil
}

// readNamespaceLabels reads the labels of a namespace.
func readNamespaceLabels(raw []byte) (map[string]string, error) {
	n, err := decodeObject[struct {
		Metadata meta `json:"metadata"`
	}](raw)
	if err != nil {
		return nil, err
	}
	return orNone(n.Metadata.Labels), nil
}
