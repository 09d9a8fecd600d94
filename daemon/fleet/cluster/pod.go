package cluster

import (
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/kubeobject"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/tunnel"
)

// podDoc is the decoded part of a pod.
type podDoc struct {
	Metadata struct {
		kubeobject.Meta
		Annotations struct {
			PodENI string `json:"vpc.amazonaws.com/pod-eni"`
		} `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		NodeName       string      `json:"nodeName"`
		HostNetwork    bool        `json:"hostNetwork"`
		Containers     []container `json:"containers"`
		InitContainers []container `json:"initContainers"`
	} `json:"spec"`
	Status kubeobject.PodStatus `json:"status"`
}

type container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	Env   []struct {
		Name      string    `json:"name"`
		Value     string    `json:"value"`
		ValueFrom *struct{} `json:"valueFrom"`
	} `json:"env"`
	EnvFrom   []struct{} `json:"envFrom"`
	Resources struct {
		Limits struct {
			PodENI *kubeobject.Quantity `json:"vpc.amazonaws.com/pod-eni"`
		} `json:"limits"`
	} `json:"resources"`
}

// pod returns what is shown of any pod.
func (p *podDoc) pod() Pod {
	out := Pod{
		PodRef: introspect.PodRef{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name},
		Node:   p.Spec.NodeName, Phase: p.Status.Phase, HostNetwork: p.Spec.HostNetwork, PodENI: p.Metadata.Annotations.PodENI,
		Reason: p.trouble(), StartedAt: p.Status.StartTime,
	}
	for _, ip := range p.Status.PodIPs {
		out.IPs = append(out.IPs, ip.IP)
	}
	for _, c := range append(p.Spec.Containers, p.Spec.InitContainers...) {
		out.Wants = out.Wants || c.Resources.Limits.PodENI != nil
	}
	return out
}

// trouble returns why a pod does not run, "" if it runs or the reason is unknown. The scheduler's
// reason says little without its message.
func (p *podDoc) trouble() string {
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

func (p *podDoc) daemon() daemonPod {
	d := daemonPod{
		DaemonPod: document.DaemonPod{
			Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, UID: p.Metadata.UID,
			Phase: p.Status.Phase, StartedAt: p.Status.StartTime,
		},
		node: p.Spec.NodeName, leaving: p.Metadata.DeletionTimestamp != nil, trouble: p.trouble(),
	}
	if ready := kubeobject.Is(p.Status.Conditions, "Ready"); ready != nil {
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
