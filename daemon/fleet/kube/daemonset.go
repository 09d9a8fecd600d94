package kube

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

type probe struct {
	Exec struct {
		Command []string `json:"command"`
	} `json:"exec"`
	TimeoutSeconds      *int `json:"timeoutSeconds"`
	PeriodSeconds       *int `json:"periodSeconds"`
	InitialDelaySeconds *int `json:"initialDelaySeconds"`
	FailureThreshold    *int `json:"failureThreshold"`
}

func (p probe) evidence() evidence.HealthProbe {
	return evidence.HealthProbe{
		Command: p.Exec.Command, TimeoutSeconds: natural(p.TimeoutSeconds), PeriodSeconds: natural(p.PeriodSeconds),
		InitialDelaySeconds: natural(p.InitialDelaySeconds), FailureThreshold: natural(p.FailureThreshold),
	}
}

// natural returns nil for a negative number.
func natural(n *int) *int {
	if n != nil && *n < 0 {
		return nil
	}
	return n
}

// containerSpec is a container of the DaemonSet.
type containerSpec struct {
	container
	Args  []string `json:"args"`
	Ports []struct {
		Name string `json:"name"`
	} `json:"ports"`
	SecurityContext json.RawMessage `json:"securityContext"`
	LivenessProbe   probe           `json:"livenessProbe"`
	ReadinessProbe  probe           `json:"readinessProbe"`
	VolumeMounts    []struct {
		Name string `json:"name"`
	} `json:"volumeMounts"`
}

// environment returns a container's variables. Variables that take their value from elsewhere are
// included only if they refer to one of the given fields of the pod.
func (c *container) environment(fields map[string]string) map[string]string {
	out := map[string]string{}
	for _, e := range c.Env {
		value, known := e.Value, true
		if e.ValueFrom != nil {
			value, known = fields[e.ValueFrom.FieldRef.FieldPath]
		}
		if known {
			out[e.Name] = scrub.Setting(e.Name, value)
		}
	}
	return out
}

// ofPod are the pod fields that every release reads into variables.
var ofPod = []string{"spec.nodeName", "metadata.name", "metadata.namespace"}

// unusual returns the variables that the container has twice, and those whose value is elsewhere:
// in another object, or in a field of the pod that no release reads. Objects with whole
// environments are among the latter, as KIND/NAME.
func (c *container) unusual() (twice, elsewhere []string) {
	seen := map[string]bool{}
	for _, e := range c.Env {
		if seen[e.Name] && !slices.Contains(twice, e.Name) {
			twice = append(twice, e.Name)
		}
		seen[e.Name] = true
		if e.ValueFrom != nil && !slices.Contains(ofPod, e.ValueFrom.FieldRef.FieldPath) {
			elsewhere = append(elsewhere, e.Name)
		}
	}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef.Name != "" {
			elsewhere = append(elsewhere, "ConfigMap/"+from.ConfigMapRef.Name)
		}
		if from.SecretRef.Name != "" {
			elsewhere = append(elsewhere, "Secret/"+from.SecretRef.Name)
		}
	}
	return twice, elsewhere
}

type daemonSet struct {
	Metadata struct {
		meta
		ManagedFields []managedFields `json:"managedFields"`
	} `json:"metadata"`
	Spec struct {
		Selector        labelSelector `json:"selector"`
		MinReadySeconds int           `json:"minReadySeconds"`
		UpdateStrategy  struct {
			Type          string `json:"type"`
			RollingUpdate struct {
				MaxUnavailable json.RawMessage `json:"maxUnavailable"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
		Template struct {
			Metadata meta `json:"metadata"`
			Spec     struct {
				Containers       []containerSpec   `json:"containers"`
				InitContainers   []containerSpec   `json:"initContainers"`
				SecurityContext  json.RawMessage   `json:"securityContext"`
				NodeSelector     map[string]string `json:"nodeSelector"`
				Affinity         affinity          `json:"affinity"`
				ImagePullSecrets []struct {
					Name string `json:"name"`
				} `json:"imagePullSecrets"`
				Volumes []struct {
					Name     string `json:"name"`
					HostPath struct {
						Path string `json:"path"`
					} `json:"hostPath"`
				} `json:"volumes"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		Desired *int `json:"desiredNumberScheduled"`
		Updated *int `json:"updatedNumberScheduled"`
		Ready   *int `json:"numberReady"`
	} `json:"status"`
}

// readDaemonSet reads the DaemonSet aws-node. Variables whose value is in another object
// are left out.
func readDaemonSet(raw []byte) (*evidence.DaemonSet, error) {
	d, err := decodeObject[daemonSet](raw)
	if err != nil {
		return nil, err
	}
	spec := d.Spec.Template.Spec
	paths := map[string]string{}
	for _, v := range spec.Volumes {
		paths[v.Name] = v.HostPath.Path
	}
	out := &evidence.DaemonSet{
		Containers: []string{}, InitContainers: []string{}, Images: map[string]string{}, Env: map[string]map[string]string{},
		Args: map[string][]string{}, Mounts: map[string][]string{},
		Selector: *d.Spec.Selector.labels(), PodLabels: orNone(d.Spec.Template.Metadata.Labels),
		MaxUnavailable: strings.Trim(string(d.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable), `"`),
		Strategy:       d.Spec.UpdateStrategy.Type, MinReady: max(0, d.Spec.MinReadySeconds), ChangedAt: d.changed(),
		Pods: evidence.Rollout{Desired: natural(d.Status.Desired), Updated: natural(d.Status.Updated), Ready: natural(d.Status.Ready)},
	}
	for _, v := range spec.Volumes {
		out.Volumes = append(out.Volumes, v.Name)
	}
	for _, s := range spec.ImagePullSecrets {
		out.PullSecrets = append(out.PullSecrets, s.Name)
	}
	out.Affinity = spec.Affinity.demands(spec.NodeSelector)
	security := map[string][]string{"pod": leaves("", spec.SecurityContext)}
	for i, c := range slices.Concat(spec.Containers, spec.InitContainers) {
		security[c.Name] = leaves("", c.SecurityContext)
		if i < len(spec.Containers) {
			out.Containers = append(out.Containers, c.Name)
		} else {
			out.InitContainers = append(out.InitContainers, c.Name)
		}
		out.Images[c.Name] = c.Image
		out.Env[c.Name] = c.environment(nil)
		if len(c.Args) > 0 {
			out.Args[c.Name] = c.Args
		}
		for _, m := range c.VolumeMounts {
			if path := paths[m.Name]; path != "" {
				out.Mounts[c.Name] = append(out.Mounts[c.Name], path)
			}
		}
		if c.Name == evidence.ContainerNode {
			out.Liveness, out.Readiness, out.CPURequest = c.LivenessProbe.evidence(), c.ReadinessProbe.evidence(), c.Resources.Requests.CPU
			out.DuplicateEnv, out.EnvFrom = c.unusual()
			for _, p := range c.Ports {
				out.Ports = append(out.Ports, p.Name)
			}
		}
	}
	for name, fields := range security {
		if len(fields) > 0 {
			if out.Security == nil {
				out.Security = map[string][]string{}
			}
			out.Security[name] = fields
		}
	}
	out.Applied = applied(d.Metadata.Annotations["kubectl.kubernetes.io/last-applied-configuration"])
	return out, nil
}

// changed returns when someone last changed the spec, zero if the object does not say.
func (d *daemonSet) changed() (last time.Time) {
	for _, m := range d.Metadata.ManagedFields {
		if at := evidence.Moment(m.Time); at.After(last) && members(m.FieldsV1)["f:spec"] != nil {
			last = at
		}
	}
	return last
}

// applied returns the variables of a manifest that kubectl apply keeps in an annotation.
func applied(manifest string) map[string]map[string]string {
	d, err := decodeObject[daemonSet]([]byte(manifest))
	if err != nil {
		return nil
	}
	out := map[string]map[string]string{}
	for _, c := range slices.Concat(d.Spec.Template.Spec.Containers, d.Spec.Template.Spec.InitContainers) {
		out[c.Name] = c.environment(nil)
	}
	return out
}

// leaves returns the values within an object with their paths, such as capabilities.add=NET_RAW.
func leaves(path string, value json.RawMessage) (out []string) {
	var list []json.RawMessage
	switch object := members(value); {
	case len(value) == 0:
	case object != nil:
		for name, v := range object {
			out = append(out, leaves(strings.TrimPrefix(path+"."+name, "."), v)...)
		}
		slices.Sort(out)
	case json.Unmarshal(value, &list) == nil:
		for _, v := range list {
			out = append(out, leaves(path, v)...)
		}
	case path != "":
		out = append(out, path+"="+strings.Trim(string(value), `"`))
	}
	return out
}

// affinity is what a pod demands or prefers.
type affinity struct {
	Node struct {
		Required struct {
			Terms []struct {
				Expressions []selectorTerm `json:"matchExpressions"`
				Fields      []selectorTerm `json:"matchFields"`
			} `json:"nodeSelectorTerms"`
		} `json:"requiredDuringSchedulingIgnoredDuringExecution"`
		Preferred json.RawMessage `json:"preferredDuringSchedulingIgnoredDuringExecution"`
	} `json:"nodeAffinity"`
	Pod     json.RawMessage `json:"podAffinity"`
	AntiPod json.RawMessage `json:"podAntiAffinity"`
}

// demands returns the expressions about nodes, as KEY OPERATOR VALUES, and the names of the other
// kinds of affinity in use.
func (a affinity) demands(selector map[string]string) (out []string) {
	for name, value := range selector {
		out = append(out, name+" In "+value)
	}
	for _, term := range a.Node.Required.Terms {
		for _, e := range slices.Concat(term.Expressions, term.Fields) {
			out = append(out, strings.TrimSpace(e.Key+" "+e.Operator+" "+strings.Join(e.Values, ",")))
		}
	}
	for name, kind := range map[string]json.RawMessage{"preferred node affinity": a.Node.Preferred,
		"pod affinity": a.Pod, "pod anti-affinity": a.AntiPod} {
		if len(leaves(name, kind)) > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
