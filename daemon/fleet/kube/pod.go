package kube

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/kubeobject"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/tunnel"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

// podENI is the name of branch ENIs, as a resource and as a pod's annotation.
const podENI = "vpc.amazonaws.com/pod-eni"

// container is the part of a container's spec that is used of any pod.
type container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	Env   []struct {
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
	Ports []struct {
		HostPort int `json:"hostPort"`
	} `json:"ports"`
	Resources struct {
		Limits   map[string]json.RawMessage `json:"limits"`
		Requests struct {
			CPU string `json:"cpu"`
		} `json:"requests"`
	} `json:"resources"`
}

// podObject is the part of a pod that is used.
type podObject struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		NodeName           string                `json:"nodeName"`
		Affinity           affinity              `json:"affinity"`
		HostNetwork        bool                  `json:"hostNetwork"`
		ServiceAccountName string                `json:"serviceAccountName"`
		NodeSelector       map[string]string     `json:"nodeSelector"`
		Tolerations        []evidence.Toleration `json:"tolerations"`
		Containers         []container           `json:"containers"`
		InitContainers     []container           `json:"initContainers"`
	} `json:"spec"`
	Status kubeobject.PodStatus `json:"status"`
}

func (p *podObject) name() evidence.Pod { return evidence.PodOf(p.Metadata.Namespace, p.Metadata.Name) }

// node returns the pod's node or, for a pod of a DaemonSet that is not bound yet, the one that it is made for.
func (p *podObject) node() string {
	for _, term := range p.Spec.Affinity.Node.Required.Terms {
		for _, f := range term.Fields {
			if f.Key == "metadata.name" && f.Operator == "In" && len(f.Values) == 1 && p.Spec.NodeName == "" {
				return f.Values[0]
			}
		}
	}
	return p.Spec.NodeName
}

func (p *podObject) ready() *bool { return kubeobject.Is(p.Status.Conditions, "Ready") }

// phase returns the pod's phase, or Unknown if that is invalid.
func (p *podObject) phase() string {
	if slices.Contains([]string{"Pending", "Running", "Succeeded", "Failed"}, p.Status.Phase) {
		return p.Status.Phase
	}
	return "Unknown"
}

// readPod reads a pod.
func readPod(raw []byte) (evidence.KubePod, error) {
	p, err := decodeObject[podObject](raw)
	if err != nil {
		return evidence.KubePod{}, err
	}
	return p.evidence(), nil
}

// evidence returns what the doctor knows of any pod.
func (p *podObject) evidence() evidence.KubePod {
	trouble, ready := p.Status.Trouble(), p.ready()
	if ready == nil {
		ready = new(false) // no condition is set yet
	}
	out := evidence.KubePod{
		Pod: p.name(), Phase: p.phase(), Ready: ready, HostNetwork: p.Spec.HostNetwork, IPs: []netip.Addr{},
		CreatedAt: p.Metadata.created(), StartedAt: evidence.Moment(p.Status.StartTime),
		Reason: trouble.Reason, Message: scrub.Line(trouble.Message),
		ServiceAccount: p.Spec.ServiceAccountName, Labels: orNone(p.Metadata.Labels),
		Annotations:  p.Metadata.annotations(awsDomains...),
		NodeSelector: orNone(p.Spec.NodeSelector), Tolerations: append([]evidence.Toleration{}, p.Spec.Tolerations...),
		Containers: []evidence.Container{},
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
		k := evidence.Container{Name: c.Name, Limits: limits}
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				k.HostPorts = append(k.HostPorts, port.HostPort)
			}
		}
		out.Containers = append(out.Containers, k)
	}
	return out
}

// readPodEnv returns the environments of a pod's containers from its spec. Of values in other objects
// it has only the names of the pod and its node.
func readPodEnv(raw []byte) (map[string]map[string]string, error) {
	p, err := decodeObject[podObject](raw)
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

// readDaemonPod reads a pod of the DaemonSet.
func readDaemonPod(raw []byte, now time.Time) (evidence.DaemonPod, error) {
	p, err := decodeObject[podObject](raw)
	if err != nil {
		return evidence.DaemonPod{}, err
	}
	return p.ofDaemon(now), nil
}

// ofDaemon returns what the doctor knows of a pod of the DaemonSet.
func (p *podObject) ofDaemon(now time.Time) evidence.DaemonPod {
	trouble := p.Status.Trouble()
	out := evidence.DaemonPod{
		Pod: p.name(), Node: p.node(), Phase: p.phase(), CreatedAt: p.Metadata.created(),
		Reason: trouble.Reason, Message: scrub.Line(trouble.Message),
		Containers: []evidence.DaemonContainer{},
	}
	add := func(list []kubeobject.ContainerStatus, init bool) {
		for _, s := range list {
			c := evidence.DaemonContainer{Name: s.Name, Init: init, Ready: &s.Ready, Restarts: new(max(s.RestartCount, 0))}
			c.RestartsLastHour = restartsLastHour(s, evidence.Moment(p.Status.StartTime), now)
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
				c.LastState = &evidence.LastState{Reason: last.Reason, ExitCode: natural(last.ExitCode), FinishedAt: evidence.Moment(last.FinishedAt)}
			}
			out.Containers = append(out.Containers, c)
		}
	}
	add(p.Status.InitContainerStatuses, true)
	add(p.Status.ContainerStatuses, false)
	return out
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
		ended = evidence.Moment(last.FinishedAt)
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

// readProxyPod reads a pod of kube-proxy.
func readProxyPod(raw []byte) (evidence.ProxyPod, error) {
	p, err := decodeObject[podObject](raw)
	if err != nil {
		return evidence.ProxyPod{}, err
	}
	trouble := p.Status.Trouble()
	return evidence.ProxyPod{Pod: p.name(), Node: p.node(), Phase: p.phase(), Ready: p.ready(),
		Reason: trouble.Reason, Message: scrub.Line(trouble.Message)}, nil
}

// pod returns what is shown of any pod.
func (p *podObject) pod() Pod {
	out := Pod{
		PodRef: introspect.PodRef{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name},
		Node:   p.Spec.NodeName, Owner: p.Metadata.owner(),
		Phase: p.Status.Phase, HostNetwork: p.Spec.HostNetwork, PodENI: p.Metadata.Annotations[podENI],
		Reason: p.trouble(), StartedAt: p.Status.StartTime,
	}
	for _, ip := range p.Status.PodIPs {
		out.IPs = append(out.IPs, ip.IP)
	}
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		_, wants := c.Resources.Limits[podENI]
		out.Wants = out.Wants || wants
	}
	return out
}

// whole returns a pod with all that the doctor knows of it.
func (c *Cluster) whole(p *podObject) Pod {
	out, object := p.pod(), p.evidence()
	out.Object = &object
	name, value, _ := strings.Cut(c.cfg.Selector, "=")
	if p.Metadata.Namespace == c.cfg.Namespace && p.Metadata.Labels[name] == value && value != "" {
		out.Daemon = new(p.ofDaemon(c.cfg.Now()))
	}
	return out
}

// podRow is a pod reduced to what lists show.
type podRow struct{ Pod }

// UnmarshalJSON reads a pod.
func (r *podRow) UnmarshalJSON(raw []byte) error {
	p, err := decodeObject[podObject](raw)
	if err == nil {
		r.Pod = p.pod()
	}
	return err
}

// trouble returns why a pod does not run, "" if it runs or the reason is unknown. The scheduler's
// reason says little without its message.
func (p *podObject) trouble() string {
	t := p.Status.Trouble()
	if p.Spec.NodeName != "" || t.Message == "" {
		return t.Reason
	}
	return t.Reason + ": " + t.Message
}

// daemonPod is what is kept of an aws-node pod.
type daemonPod struct {
	document.DaemonPod
	node     string
	created  time.Time
	leaving  bool   // it is being deleted
	trouble  string // why the daemon does not run
	settings settings
	pool     map[string]string // see fleet.Target.Env
}

// settings are the daemon settings that determine where it can be reached.
type settings struct {
	off  bool   // DISABLE_INTROSPECTION
	bind string // INTROSPECTION_BIND_ADDRESS, "" = the default
}

func (p *podObject) daemon() daemonPod {
	d := daemonPod{
		DaemonPod: document.DaemonPod{
			Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, UID: p.Metadata.UID,
			Phase: p.Status.Phase, StartedAt: p.Status.StartTime,
		},
		node: p.Spec.NodeName, leaving: p.Metadata.DeletionTimestamp != nil, trouble: p.trouble(),
	}
	if ready := p.ready(); ready != nil {
		d.Ready = *ready
	}
	if at := p.Metadata.CreationTimestamp; at != nil {
		d.created = *at
	}
	for _, s := range p.Status.ContainerStatuses {
		d.Restarts += s.RestartCount
	}
	for _, c := range p.Spec.Containers {
		if c.Name != DefaultContainer && len(p.Spec.Containers) > 1 {
			continue
		}
		d.Image, d.pool = c.Image, c.pool()
		for _, e := range c.Env {
			switch e.Name {
			case "DISABLE_INTROSPECTION":
				d.settings.off = isTrue(e.Value)
			case "INTROSPECTION_BIND_ADDRESS":
				d.settings.bind = e.Value
			}
		}
		break
	}
	return d
}

// pool returns the settings of the pool; nil if the values of some are kept elsewhere.
func (c *container) pool() map[string]string {
	if len(c.EnvFrom) > 0 {
		return nil
	}
	env := map[string]string{}
	for _, e := range c.Env {
		if !slices.Contains(fleet.PoolSettings, e.Name) {
			continue
		}
		if e.ValueFrom != nil {
			return nil
		}
		env[e.Name] = e.Value
	}
	return env
}

// isTrue parses a boolean as the daemon does.
func isTrue(s string) bool {
	switch strings.TrimSpace(s) {
	case "1", "t", "T", "true", "TRUE", "True":
		return true
	}
	return false
}

// runs reports whether the daemon's container may answer.
func (d *daemonPod) runs() bool { return d.Phase == "Running" && d.trouble == "" }

// where returns the daemon's pod as the target of a tunnel.
func (d *daemonPod) where() tunnel.Pod { return tunnel.Pod{Namespace: d.Namespace, Name: d.Name} }

// better reports whether this pod, rather than another one on the same node, is the one to ask.
func (d *daemonPod) better(than *daemonPod) bool {
	if than == nil {
		return true
	}
	if d.leaving != than.leaving {
		return !d.leaving
	}
	if d.runs() != than.runs() {
		return d.runs()
	}
	if !d.created.Equal(than.created) {
		return d.created.After(than.created)
	}
	return d.Name < than.Name
}
