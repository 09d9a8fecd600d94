package reading

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/kubeobject"
	"cnictl/daemon/cluster"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

// decode reads an object of the API.
func decode[T any](raw []byte) (*T, error) {
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

func (m meta) created() time.Time { return moment(m.CreationTimestamp) }

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

// ofDaemon matches the images of aws-node, of either daemon, in any registry. Other images of a
// node would show what people run.
var ofDaemon = regexp.MustCompile(`/(aws-vpc-cni|amazon-k8s-cni|aws-network-policy-agent)`)

// Node reads a Node.
func Node(raw []byte) (evidence.KubeNode, error) {
	n, err := decode[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			ProviderID string           `json:"providerID"`
			Taints     []evidence.Taint `json:"taints"`
		} `json:"spec"`
		Status struct {
			Capacity    kubeobject.Resources   `json:"capacity"`
			Allocatable kubeobject.Resources   `json:"allocatable"`
			Conditions  []kubeobject.Condition `json:"conditions"`
			Images      []struct {
				Names []string `json:"names"`
			} `json:"images"`
			NodeInfo struct {
				KubeletVersion string `json:"kubeletVersion"`
				OSImage        string `json:"osImage"`
				KernelVersion  string `json:"kernelVersion"`
			} `json:"nodeInfo"`
		} `json:"status"`
	}](raw)
	if err != nil {
		return evidence.KubeNode{}, err
	}
	out := evidence.KubeNode{
		Name: n.Metadata.Name, InstanceType: kubeobject.InstanceType(n.Metadata.Labels), Zone: kubeobject.Zone(n.Metadata.Labels),
		Instance: kubeobject.InstanceID(n.Spec.ProviderID), Capacity: resources(n.Status.Capacity), Allocatable: resources(n.Status.Allocatable),
		Taints: append([]evidence.Taint{}, n.Spec.Taints...), Conditions: []evidence.Condition{},
		Labels: orNone(n.Metadata.Labels), Annotations: n.Metadata.annotations(),
		KubeletVersion: n.Status.NodeInfo.KubeletVersion, OSImage: n.Status.NodeInfo.OSImage, Kernel: n.Status.NodeInfo.KernelVersion,
		CreatedAt: n.Metadata.created(),
	}
	for _, c := range n.Status.Conditions {
		out.Conditions = append(out.Conditions, evidence.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Since: moment(c.LastTransitionTime)})
	}
	for _, image := range n.Status.Images {
		for _, name := range image.Names {
			if ofDaemon.MatchString(name) {
				out.Images = append(out.Images, name)
			}
		}
	}
	return out, nil
}

func resources(r kubeobject.Resources) evidence.NodeResources {
	return evidence.NodeResources{Pods: r.Pods.Value, PodENI: r.PodENI.Value}
}

// podObject is the part of a pod that is used.
type podObject struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		NodeName           string                `json:"nodeName"`
		HostNetwork        bool                  `json:"hostNetwork"`
		ServiceAccountName string                `json:"serviceAccountName"`
		NodeSelector       map[string]string     `json:"nodeSelector"`
		Tolerations        []evidence.Toleration `json:"tolerations"`
		Containers         []struct {
			Name      string `json:"name"`
			Resources struct {
				Limits map[string]json.RawMessage `json:"limits"`
			} `json:"resources"`
		} `json:"containers"`
	} `json:"spec"`
	Status kubeobject.PodStatus `json:"status"`
}

func (p *podObject) name() evidence.Pod { return podName(p.Metadata.Namespace, p.Metadata.Name) }

func (p *podObject) ready() *bool { return kubeobject.Is(p.Status.Conditions, "Ready") }

// phase returns the pod's phase, or Unknown if that is invalid.
func (p *podObject) phase() string {
	if slices.Contains([]string{"Pending", "Running", "Succeeded", "Failed"}, p.Status.Phase) {
		return p.Status.Phase
	}
	return "Unknown"
}

// Pod reads a pod.
func Pod(raw []byte) (evidence.KubePod, error) {
	p, err := decode[podObject](raw)
	if err != nil {
		return evidence.KubePod{}, err
	}
	trouble, ready := p.Status.Trouble(), p.ready()
	if ready == nil {
		ready = new(false) // no condition is set yet
	}
	out := evidence.KubePod{
		Pod: p.name(), Phase: p.phase(), Ready: ready, HostNetwork: p.Spec.HostNetwork, IPs: []netip.Addr{},
		CreatedAt: p.Metadata.created(), StartedAt: moment(p.Status.StartTime), Reason: trouble.Reason, Message: scrub.Line(trouble.Message),
		ServiceAccount: p.Spec.ServiceAccountName, Labels: orNone(p.Metadata.Labels),
		Annotations:  p.Metadata.annotations("vpc.amazonaws.com", "k8s.amazonaws.com", "eks.amazonaws.com"),
		NodeSelector: orNone(p.Spec.NodeSelector), Tolerations: append([]evidence.Toleration{}, p.Spec.Tolerations...), Containers: []evidence.Container{},
	}
	if p.Spec.NodeName != "" {
		out.Node = &p.Spec.NodeName
	}
	for _, ip := range p.Status.PodIPs {
		if a, err := introspect.ParseAddr(ip.IP); err == nil {
			out.IPs = append(out.IPs, a)
		}
	}
	for _, o := range p.Metadata.OwnerReferences {
		if o.Controller {
			out.Owner = o.Kind
		}
	}
	for _, c := range p.Spec.Containers {
		limits := map[string]string{}
		for name, value := range c.Resources.Limits {
			limits[name] = strings.Trim(string(value), `"`)
		}
		out.Containers = append(out.Containers, evidence.Container{Name: c.Name, Limits: limits})
	}
	return out, nil
}

// Event reads an event, and the node that it names as its source.
func Event(raw []byte) (e evidence.KubeEvent, node string, _ error) {
	o, err := decode[kubeobject.Event](raw)
	if err != nil {
		return evidence.KubeEvent{}, "", err
	}
	first, last, count := o.Times()
	return evidence.KubeEvent{
		At: moment(&last), First: moment(&first), Count: count, Type: o.Type, Reason: o.Reason, Message: scrub.Line(o.Message),
		Kind: o.InvolvedObject.Kind, Name: o.Object(), Source: o.Component(), Action: o.Action,
	}, o.Node(), nil
}

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

type containerSpec struct {
	Name  string   `json:"name"`
	Image string   `json:"image"`
	Args  []string `json:"args"`
	Ports []struct {
		Name string `json:"name"`
	} `json:"ports"`
	Env []struct {
		Name      string `json:"name"`
		Value     string `json:"value"`
		ValueFrom *struct {
			FieldRef struct {
				FieldPath string `json:"fieldPath"`
			} `json:"fieldRef"`
		} `json:"valueFrom"`
	} `json:"env"`
	EnvFrom []struct {
		ConfigMapRef struct {
			Name string `json:"name"`
		} `json:"configMapRef"`
		SecretRef struct {
			Name string `json:"name"`
		} `json:"secretRef"`
	} `json:"envFrom"`
	SecurityContext json.RawMessage `json:"securityContext"`
	LivenessProbe   probe           `json:"livenessProbe"`
	ReadinessProbe  probe           `json:"readinessProbe"`
	VolumeMounts    []struct {
		Name string `json:"name"`
	} `json:"volumeMounts"`
	Resources struct {
		Requests struct {
			CPU string `json:"cpu"`
		} `json:"requests"`
	} `json:"resources"`
}

// environment returns a container's variables. Variables that take their value from elsewhere are
// included only if they refer to one of the given fields of the pod.
func (c containerSpec) environment(fields map[string]string) map[string]string {
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
func (c containerSpec) unusual() (twice, elsewhere []string) {
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

// PodEnv returns the environments of a pod's containers from its spec. Of values in other objects
// it has only the names of the pod and its node.
func PodEnv(raw []byte) (map[string]map[string]string, error) {
	p, err := decode[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			NodeName       string          `json:"nodeName"`
			Containers     []containerSpec `json:"containers"`
			InitContainers []containerSpec `json:"initContainers"`
		} `json:"spec"`
	}](raw)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{"spec.nodeName": p.Spec.NodeName, "metadata.name": p.Metadata.Name, "metadata.namespace": p.Metadata.Namespace}
	out := map[string]map[string]string{}
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		out[c.Name] = c.environment(fields)
	}
	return out, nil
}

type daemonSet struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		Selector       labelSelector `json:"selector"`
		UpdateStrategy struct {
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

// DaemonSet reads the DaemonSet aws-node. Variables whose value is in another object
// are left out.
func DaemonSet(raw []byte) (*evidence.DaemonSet, error) {
	d, err := decode[daemonSet](raw)
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
		Selector: *d.Spec.Selector.labels(), PodLabels: orNone(d.Spec.Template.Metadata.Labels), MaxUnavailable: strings.Trim(string(d.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable), `"`),
		Strategy: d.Spec.UpdateStrategy.Type,
		Pods:     evidence.Rollout{Desired: natural(d.Status.Desired), Updated: natural(d.Status.Updated), Ready: natural(d.Status.Ready)},
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
		if c.Name == daemonContainer {
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

// applied returns the variables of a manifest that kubectl apply keeps in an annotation.
func applied(manifest string) map[string]map[string]string {
	d, err := decode[daemonSet]([]byte(manifest))
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
	for name, kind := range map[string]json.RawMessage{"preferred node affinity": a.Node.Preferred, "pod affinity": a.Pod, "pod anti-affinity": a.AntiPod} {
		if len(leaves(name, kind)) > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Containers of the DaemonSet.
const (
	daemonContainer = "aws-node"
	initContainer   = "aws-vpc-cni-init"
)

// DaemonPod reads a pod of the DaemonSet.
func DaemonPod(raw []byte, now time.Time) (evidence.DaemonPod, error) {
	p, err := decode[podObject](raw)
	if err != nil {
		return evidence.DaemonPod{}, err
	}
	out := evidence.DaemonPod{Pod: p.name(), Node: p.Spec.NodeName, Phase: p.phase(), Containers: []evidence.DaemonContainer{}}
	add := func(list []kubeobject.ContainerStatus, init bool) {
		for _, s := range list {
			c := evidence.DaemonContainer{Name: s.Name, Init: init, Ready: &s.Ready, Restarts: new(max(s.RestartCount, 0))}
			c.RestartsLastHour = restartsLastHour(s, moment(p.Status.StartTime), now)
			switch {
			case s.State.Running != nil:
				c.State = "running"
			case s.State.Terminated != nil:
				c.State, c.Reason = "terminated", s.State.Terminated.Reason
			default:
				c.State = "waiting"
				if s.State.Waiting != nil {
					c.Reason = s.State.Waiting.Reason
				}
			}
			if last := s.LastState.Terminated; last != nil {
				c.LastState = &evidence.LastState{Reason: last.Reason, ExitCode: natural(last.ExitCode), FinishedAt: moment(last.FinishedAt)}
			}
			out.Containers = append(out.Containers, c)
		}
	}
	add(p.Status.InitContainerStatuses, true)
	add(p.Status.ContainerStatuses, false)
	return out, nil
}

// restartsLastHour derives the number from what Kubernetes keeps: how often a container was
// restarted since its pod started, and when the last run ended. If the pod started within the
// hour, all restarts count; if the last run ended before it, none. Otherwise only the certain
// ones count: the last, and those that led to the back-off in which kubelet is now waiting, which
// doubles from 10 s with each restart and ends after 10 minutes without one.
func restartsLastHour(s kubeobject.ContainerStatus, started, now time.Time) *int {
	restarts := max(s.RestartCount, 0)
	hour := now.Add(-time.Hour)
	var ended time.Time
	if last := s.LastState.Terminated; last != nil {
		ended = moment(last.FinishedAt)
	}
	switch {
	case restarts == 0 || !ended.IsZero() && ended.Before(hour):
		return new(0)
	case started.After(hour):
		return &restarts
	case ended.IsZero():
		return nil
	}
	certain := 1
	if w := s.State.Waiting; w != nil {
		if _, text, ok := strings.Cut(w.Message, "back-off "); ok {
			text, _, _ = strings.Cut(text, " ")
			wait, _ := time.ParseDuration(text)
			for wait > 10*time.Second && certain < 6 {
				certain, wait = certain+1, wait/2
			}
		}
	}
	return new(min(certain, restarts))
}

// ENIConfig reads an ENIConfig. It is valid if a daemon would use it.
func ENIConfig(raw []byte) (evidence.ENIConfig, error) {
	c, err := decode[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			Subnet         string   `json:"subnet"`
			SecurityGroups []string `json:"securityGroups"`
		} `json:"spec"`
	}](raw)
	if err != nil {
		return evidence.ENIConfig{}, err
	}
	_, invalid := cluster.ParseENIConfig(c.Metadata.Name, c.Spec.Subnet, c.Spec.SecurityGroups)
	return evidence.ENIConfig{Name: c.Metadata.Name, Subnet: c.Spec.Subnet, SecurityGroups: append([]string{}, c.Spec.SecurityGroups...), Valid: invalid == nil}, nil
}

// CNINode reads a CNINode and its node's name.
func CNINode(raw []byte) (_ *evidence.CNINode, node string, _ error) {
	c, err := decode[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			Features []evidence.Feature `json:"features"`
		} `json:"spec"`
	}](raw)
	if err != nil {
		return nil, "", err
	}
	return &evidence.CNINode{Features: append([]evidence.Feature{}, c.Spec.Features...)}, c.Metadata.Name, nil
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

// SecurityGroupPolicy reads a SecurityGroupPolicy.
func SecurityGroupPolicy(raw []byte) (evidence.SecurityGroupPolicy, error) {
	p, err := decode[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			PodSelector            *labelSelector `json:"podSelector"`
			ServiceAccountSelector *labelSelector `json:"serviceAccountSelector"`
			SecurityGroups         struct {
				GroupIDs []string `json:"groupIds"`
			} `json:"securityGroups"`
		} `json:"spec"`
	}](raw)
	if err != nil {
		return evidence.SecurityGroupPolicy{}, err
	}
	return evidence.SecurityGroupPolicy{
		Name: string(podName(p.Metadata.Namespace, p.Metadata.Name)), PodSelector: p.Spec.PodSelector.labels(),
		ServiceAccountSelector: p.Spec.ServiceAccountSelector.labels(), GroupIDs: append([]string{}, p.Spec.SecurityGroups.GroupIDs...),
	}, nil
}

// Webhook reads a webhook configuration. Its policy is Fail if that of any webhook is. No object
// shows whether webhooks can be reached.
func Webhook(raw []byte) (evidence.Webhook, error) {
	c, err := decode[struct {
		Metadata meta `json:"metadata"`
		Webhooks []struct {
			FailurePolicy string `json:"failurePolicy"`
		} `json:"webhooks"`
	}](raw)
	if err != nil {
		return evidence.Webhook{}, err
	}
	out := evidence.Webhook{Name: c.Metadata.Name}
	for _, w := range c.Webhooks {
		if out.FailurePolicy != "Fail" {
			out.FailurePolicy = w.FailurePolicy
		}
	}
	return out, nil
}

// ConfigMap reads a ConfigMap.
func ConfigMap(raw []byte) (map[string]string, error) {
	c, err := decode[struct {
		Data map[string]string `json:"data"`
	}](raw)
	if err != nil {
		return nil, err
	}
	for name, value := range c.Data {
		c.Data[name] = scrub.Line(value)
	}
	return orNone(c.Data), nil
}

// ProxyMode returns the mode of kube-proxy from its DaemonSet's flags and its configuration, each
// nil if not read. The mode is "" if unknown.
func ProxyMode(daemonSetRaw []byte, config map[string]string) string {
	mode := ""
	if d, err := decode[daemonSet](daemonSetRaw); err == nil {
		for _, c := range d.Spec.Template.Spec.Containers {
			for _, arg := range c.Args {
				if value, ok := strings.CutPrefix(arg, "--proxy-mode="); ok {
					mode = value
				}
			}
		}
	}
	for _, text := range config {
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(line, "mode:"); ok {
				mode = strings.Trim(strings.TrimSpace(value), `"'`) // the file overrides the flag
			}
		}
	}
	switch {
	case slices.Contains([]string{"iptables", "ipvs", "nftables"}, mode):
		return mode
	case mode == "" && config != nil:
		return "iptables" // kube-proxy's default
	}
	return ""
}

// ProxyPod reads a pod of kube-proxy.
func ProxyPod(raw []byte) (evidence.ProxyPod, error) {
	p, err := decode[podObject](raw)
	if err != nil {
		return evidence.ProxyPod{}, err
	}
	return evidence.ProxyPod{Pod: p.name(), Node: p.Spec.NodeName, Phase: p.phase(), Ready: p.ready(), Reason: p.Status.Trouble().Reason}, nil
}

// ServiceAccount reads a ServiceAccount.
func ServiceAccount(raw []byte) (evidence.ServiceAccount, error) {
	a, err := decode[struct {
		Metadata meta `json:"metadata"`
	}](raw)
	if err != nil {
		return evidence.ServiceAccount{}, err
	}
	return evidence.ServiceAccount{Name: a.Metadata.Name, Annotations: a.Metadata.annotations()}, nil
}

// PolicyEndpoint reads a PolicyEndpoint.
func PolicyEndpoint(raw []byte) (evidence.PolicyEndpoint, error) {
	p, err := decode[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			Pods []struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"podSelectorEndpoints"`
		} `json:"spec"`
	}](raw)
	if err != nil {
		return evidence.PolicyEndpoint{}, err
	}
	out := evidence.PolicyEndpoint{Name: string(podName(p.Metadata.Namespace, p.Metadata.Name)), Pods: []evidence.Pod{}}
	for _, pod := range p.Spec.Pods {
		out.Pods = append(out.Pods, podName(pod.Namespace, pod.Name))
	}
	return out, nil
}
