package watched

import (
	"cmp"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/daemon/scrub"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// sampled returns what the newest sample of a node has. Old samples are ignored.
func sampled(n *store.Node, now time.Time) *evidence.Reading {
	r := evidence.Unread(now, evidence.MissingMode) // Kubernetes and the kernel show no more than what follows
	r.TakeAWS(evidence.Unread(now, evidence.MissingNotAsked))
	if lacking(r, evidence.MissingNotAsked); n.State != document.StateLive {
		lacking(r, reason(n.Error))
	} else {
		if n.Source == document.SourceV1 {
			ours(r, evidence.MissingAbsent)
		}
		if n.Source == document.SourceSummary && n.Summary != nil {
			r.Summary = evidence.Read(*n.Summary)
		}
		if n.NodeIPAM.ENIs != nil {
			r.ENIs = evidence.Read(reading.Datastore(n.NodeIPAM.ENIs))
		}
	}
	kind := ""
	if o := n.Object; o != nil {
		kind = o.InstanceType
		if o.Ready != nil && *o.Ready || len(o.Conditions) > 0 { // recordings of earlier versions do not say why a node is not ready
			r.Node = evidence.Read(object(n.Metadata.Name, o))
		}
		r.DaemonPods = daemonPods(n.Metadata.Name, o.Daemon)
	}
	if n.Summary != nil {
		kind = cmp.Or(n.Summary.InstanceType, kind)
	}
	if kind != "" {
		r.InstanceType = evidence.Read(reading.InstanceType(kind))
	}
	return r
}

// OfNode returns what a node's sample and documents say, without reading anything.
func OfNode(n *store.Node, d watch.Detail, scope evidence.Scope, now time.Time) *evidence.Evidence {
	first := sampled(n, now)
	documents(first, n, d)
	return &evidence.Evidence{
		At: now.UTC(), Mode: evidence.ModeLaptop, Scope: scope, Nodes: []evidence.Node{{Name: n.Metadata.Name, First: first}},
	}
}

// lacking records why a daemon's documents are unknown.
func lacking(r *evidence.Reading, missing string) {
	r.ENIs.Missing, r.Counters.Missing, r.Env.Missing, r.ENIConfig.Missing = missing, missing, missing, missing
	ours(r, missing)
}

// ours records it for the documents that upstream's daemon does not have.
func ours(r *evidence.Reading, missing string) {
	r.Summary.Missing, r.Config.Missing, r.Plan.Missing = missing, missing, missing
	r.Failures.Missing, r.Journal.Missing, r.PodViews.Missing = missing, missing, missing
}

func object(name string, o *document.NodeObject) evidence.KubeNode {
	n := evidence.KubeNode{
		Name: name, InstanceType: o.InstanceType, Zone: o.Zone, Instance: o.InstanceID, Labels: o.Labels, Annotations: o.Annotations,
		Capacity:       evidence.NodeResources{Pods: o.MaxPods, PodENI: o.BranchENIs},
		Allocatable:    evidence.NodeResources{Pods: o.AllocatablePods, PodENI: o.AllocatableBranchENIs},
		KubeletVersion: o.KubeletVersion, OSImage: o.OSImage, Kernel: o.Kernel, CreatedAt: evidence.Moment(o.CreatedAt),
	}
	for _, t := range o.Taints {
		n.Taints = append(n.Taints, evidence.Taint(t))
	}
	if o.Unschedulable && len(n.Taints) == 0 {
		n.Taints = []evidence.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}}
	}
	for _, k := range o.Conditions {
		n.Conditions = append(n.Conditions, evidence.Condition(k))
	}
	if o.Ready != nil && *o.Ready {
		n.Conditions = append(n.Conditions, evidence.Condition{Type: "Ready", Status: "True"})
	}
	return n
}

// daemonPods returns the daemon's pod on the node, or none. If the pod is not ready, it is
// unknown because of which container.
func daemonPods(node string, p *document.DaemonPod) evidence.Source[[]evidence.DaemonPod] {
	switch {
	case p == nil:
		return evidence.Read([]evidence.DaemonPod{})
	case !p.Ready:
		return evidence.Lacking[[]evidence.DaemonPod](evidence.MissingNotAsked)
	}
	aws := evidence.DaemonContainer{Name: "aws-node", Ready: &p.Ready, State: "running"}
	if p.Restarts == 0 { // otherwise it may be another container's
		aws.Restarts = &p.Restarts
	}
	return evidence.Read([]evidence.DaemonPod{{
		Pod: evidence.Pod(p.Namespace + "/" + p.Name), Node: node, Phase: p.Phase, Containers: []evidence.DaemonContainer{aws},
	}})
}

// documents adds the documents of a node, or why they could not be read.
func documents(r *evidence.Reading, n *store.Node, d watch.Detail) {
	failed := func(w watch.Want) string {
		for several, e := range d.Errors {
			if several&w != 0 {
				return reason(&e)
			}
		}
		return evidence.MissingNotAsked
	}
	take(&r.Plan, d.Plan)
	take(&r.Journal, d.Events)
	take(&r.Failures, d.Failures)
	take(&r.Config, d.Config)
	if d.ENIs != nil && n.State == document.StateLive {
		r.ENIs = evidence.Read(reading.Datastore(d.ENIs))
	}
	if d.Pod != nil {
		r.PodViews = evidence.Read([]introspect.NodePod{*d.Pod})
	}
	if r.LogIPAMD.Missing = failed(watch.WantLogs); d.Logs != nil {
		r.LogIPAMD = reading.LogOfLines(d.Logs.Lines, d.Logs.Truncated, r.At)
	}
	if r.LogAWSNode.Missing = failed(watch.WantContainerLog); d.ContainerLog != nil {
		lines := make([]string, 0, len(d.ContainerLog.Lines))
		for _, l := range d.ContainerLog.Lines {
			lines = append(lines, l.Text)
		}
		log := reading.LogOfLines(lines, d.ContainerLog.Truncated, r.At)
		r.LogAWSNode = evidence.Source[map[string]evidence.Log]{Content: map[string]evidence.Log{d.ContainerLog.Container: log.Content},
			Missing: log.Missing}
	}
	if r.Pods.Missing = failed(watch.WantPods); d.Pods != nil {
		r.Pods = evidence.Read(pods(d.Pods, n.Metadata.Name))
		if daemons := daemonsOf(d.Pods); daemons != nil {
			r.DaemonPods = evidence.Read(daemons)
		}
	}
	if r.Events.Missing = failed(watch.WantKubeEvents); d.KubeEvents != nil {
		r.Events = evidence.Read(events(d.KubeEvents, d.Pods))
	}
}

// take keeps a document that was read; otherwise the source stays as the sample left it.
func take[T any](into *evidence.Source[T], doc *T) {
	if doc != nil {
		*into = evidence.Read(*doc)
	}
}

// daemonsOf returns the pods of the DaemonSet, nil if they are not known as such.
func daemonsOf(all []watch.Pod) (out []evidence.DaemonPod) {
	for _, p := range all {
		if p.Daemon != nil {
			out = append(out, *p.Daemon)
		}
	}
	return out
}

// pods takes what rows show of pods, and what is kept of their objects.
func pods(all []watch.Pod, node string) []evidence.KubePod {
	out := make([]evidence.KubePod, 0, len(all))
	for _, p := range all {
		pod := evidence.KubePod{}
		if p.Object != nil {
			pod = *p.Object
		}
		if pod.Pod == "" { // recordings keep only what rows lack
			row(&pod, p, &node)
		}
		out = append(out, pod)
	}
	return out
}

// row adds what a row shows to what else is known of a pod.
func row(pod *evidence.KubePod, p watch.Pod, node *string) {
	pod.Pod, pod.Phase, pod.Node, pod.HostNetwork = named(p), p.Phase, node, p.HostNetwork
	for _, ip := range p.IPs {
		if a, err := introspect.ParseAddr(ip); err == nil {
			pod.IPs = append(pod.IPs, a)
		}
	}
	pod.StartedAt = evidence.Moment(p.StartedAt)
	if p.PodENI != "" {
		pod.Annotations = map[string]string{podENI: p.PodENI}
	}
	if p.Object != nil {
		return
	}
	pod.Reason, pod.CreatedAt = p.Reason, pod.StartedAt                                                  // or some time before
	if p.Phase == "Pending" && len(p.IPs) == 0 && strings.Contains(p.Reason, "FailedCreatePodSandBox") { // of an event
		pod.Reason, pod.Message = "ContainerCreating", p.Reason
	}
	if p.Wants {
		pod.Containers = []evidence.Container{{Limits: map[string]string{podENI: "1"}}}
	}
}

// podENI is the name of a pod's branch ENI, as a resource and as an annotation.
const podENI = "vpc.amazonaws.com/pod-eni"

func named(p watch.Pod) evidence.Pod { return evidence.Pod(p.Namespace + "/" + p.Name) }

// events omits failed sandboxes of pods that run by now.
func events(all []watch.KubeEvent, pods []watch.Pod) []evidence.KubeEvent {
	runs := map[string]bool{}
	for _, p := range pods {
		runs[string(named(p))] = p.Phase == "Running"
	}
	out := make([]evidence.KubeEvent, 0, len(all))
	for _, e := range all {
		if e.Reason == "FailedCreatePodSandBox" && runs[e.Object] {
			continue
		}
		out = append(out, evidence.KubeEvent{
			At: e.At.UTC(), First: e.First, Count: max(e.Count, 1), Type: e.Type, Reason: e.Reason, Message: scrub.Line(e.Message),
			Kind: e.Kind, Name: e.Object, Source: e.Source, Action: e.Action,
		})
	}
	return out
}

// reason returns why something could not be read.
func reason(e *document.NodeError) string {
	if e == nil || e.Reason == introspect.ReasonNotServed { // by a recording
		return evidence.MissingNotAsked
	}
	return cmp.Or(reading.Missing(e), string(e.Reason))
}
