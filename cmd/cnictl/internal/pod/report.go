package pod

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/causes"
	"cnictl/doctor/collect/watched"
	"cnictl/doctor/evidence"
	"cnictl/tui/show"
)

// Evidence is what was read about a pod.
type Evidence struct {
	Pod    introspect.PodRef
	Node   string     // that it is bound to; "" if none or unknown
	Kube   *watch.Pod // nil: Kubernetes was not asked, or has no such pod
	Asked  bool       // the daemon was read
	Events []kube.Event

	Interfaces []introspect.PodInterface // nil if unknown; for upstream without the wiring
	ENIs       []introspect.NodeENI
	Failures   []introspect.Failure     // of the node; nil if unknown
	Blocked    []introspect.BlockedCard // nil if unknown
	Plan       *introspect.NodePlan     // nil if unknown
	Summary    *introspect.Summary      // of the node; nil if unknown
	Daemon     []introspect.Event       // of the node
	Waiting    *int
	TrunkENI   string
	Errors     []document.NodeError
	At         time.Time
}

// Report makes the report from the evidence.
func Report(in Evidence) document.PodReport {
	r := document.PodReport{
		APIVersion: introspect.APIVersion, Kind: document.KindPodReport, Pod: in.Pod, Node: in.Node,
		Blocked: in.Blocked, Waiting: in.Waiting, Errors: in.Errors, Partial: len(in.Errors) > 0, SampledAt: in.At,
		Timeline: timeline(in),
	}
	if r.Errors == nil {
		r.Errors = []document.NodeError{}
	}
	if in.Interfaces != nil {
		r.Interfaces = []document.ReportedIface{}
	}
	for _, i := range in.Interfaces {
		r.Interfaces = append(r.Interfaces, document.ReportedIface{PodInterface: i, CIDR: cidrOf(in.ENIs, i)})
	}
	if in.Failures != nil {
		r.Failures = []introspect.Failure{}
	}
	for _, f := range in.Failures {
		if f.Pod == in.Pod {
			r.Failures = append(r.Failures, f)
		}
	}
	if p := in.Kube; p != nil {
		r.Kubernetes = &document.KubernetesPod{
			Phase: p.Phase, IPs: p.IPs, HostNetwork: p.HostNetwork, WantsBranch: p.Wants, Reason: p.Reason, StartedAt: p.StartedAt,
			PodENIText: p.PodENI,
		}
		r.Branch, r.Kubernetes.BranchReason = parseBranch(p.PodENI)
		if r.Branch != nil {
			r.Branch.TrunkENIID = in.TrunkENI
		}
	}
	r.State, r.Verdict = verdict(in, r)
	if f := in.finding(r.State); f != nil {
		r.Finding = f.Code
	}
	return r
}

// finding returns the doctor's finding about a pod without network, from what was read.
func (in Evidence) finding(state string) *document.Finding {
	if state != document.PodWaiting && state != document.PodUnknown {
		return nil
	}
	n := document.NodeIPAM{Metadata: document.ObjectMeta{Name: in.Node}, State: document.StateLive, Source: document.SourceSummary,
		SampledAt: &in.At, Summary: in.Summary}
	d := watch.Detail{Node: in.Node, At: in.At, ENIs: in.ENIs, Plan: in.Plan}
	if in.Failures != nil {
		d.Failures = &introspect.NodeFailures{Items: in.Failures}
	}
	if in.Daemon != nil {
		d.Events = &introspect.NodeEvents{Items: in.Daemon}
	}
	if in.Kube != nil {
		d.Pods = []watch.Pod{*in.Kube}
	}
	d.KubeEvents = in.Events
	pod := in.Pod.Namespace + "/" + in.Pod.Name
	return causes.OfPod(watched.OfNode(store.NewNode(n), d, evidence.Scope{Pod: evidence.Pod(pod)}, in.At), pod)
}

func cidrOf(enis []introspect.NodeENI, i introspect.PodInterface) (cidr netip.Prefix) {
	for _, e := range enis {
		for _, c := range e.CIDRs {
			if e.ID == i.ENIID && c.CIDR.Contains(i.Address) {
				return c.CIDR
			}
		}
	}
	return cidr
}

// verdict returns the pod's state, as a word and as a sentence.
func verdict(in Evidence, r document.PodReport) (state, sentence string) {
	p := in.Kube
	switch {
	case len(r.Interfaces) > 0:
		return document.PodHasAddress, assigned(in, r)
	case p == nil && len(r.Failures) > 0:
		return document.PodWaiting, "it has no address: " + r.Failures[0].Cause + ": " + cmp.Or(r.Failures[0].Detail, r.Failures[0].Title)
	case p == nil && in.Asked:
		return document.PodUnknown, "the daemon of " + in.Node + " holds no address for it"
	case p == nil:
		return document.PodUnknown, "no information about it"
	case p.HostNetwork:
		return document.PodHostNetwork, "it uses the address of its node, " + strings.Join(p.IPs, ", ") + ": the CNI is not involved"
	case p.Phase == "Succeeded" || p.Phase == "Failed":
		return document.PodEnded, "it has finished (" + p.Phase + "), and its address is back in the pool"
	case in.Node == "":
		return document.PodWaiting, "it has no address: it is not bound to a node yet" + because(p.Reason)
	case r.Branch != nil && r.Kubernetes.BranchReason == "":
		return document.PodBranch,
			fmt.Sprintf("%s is the address of its branch ENI %s, VLAN %d on the trunk of %s",
				cmp.Or(validText(r.Branch.IPv4), validText(r.Branch.IPv6)), r.Branch.ENIID, r.Branch.VLAN, in.Node)
	case p.PodENI != "":
		return document.PodWaiting, "its annotation vpc.amazonaws.com/pod-eni is invalid: " + r.Kubernetes.BranchReason
	case p.Wants:
		return document.PodWaiting, "it has no address: " + inventory.PendingBranch + because(p.Reason)
	case !in.Asked && len(p.IPs) > 0:
		return document.PodHasAddress, strings.Join(p.IPs, ", ") +
			" according to Kubernetes; its ENI is unknown because the daemon could not be read"
	case len(p.IPs) > 0:
		return document.PodUnknown, "Kubernetes reports " + strings.Join(p.IPs, ", ") + ", but the daemon holds no address for it"
	}
	return document.PodWaiting, "it has no address: " + in.reason(*p)
}

// reason is why a pod has no address, as the list of pods shows it.
func (in Evidence) reason(p watch.Pod) string {
	if in.Summary == nil {
		return inventory.WhyNone(in.Failures, in.Blocked, p)
	}
	n := store.NewNode(document.NodeIPAM{Metadata: document.ObjectMeta{Name: in.Node}, State: document.StateLive, SampledAt: &in.At,
		Summary: in.Summary, ENIs: in.ENIs})
	_, reason := inventory.PodReason(n, inventory.PodWhy{Failures: in.Failures, Blocked: in.Blocked}, p)
	return reason
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// assigned describes where the addresses come from.
func assigned(in Evidence, r document.PodReport) string {
	var parts []string
	differences := 0
	for _, i := range r.Interfaces {
		part := i.Address.String()
		switch {
		case i.ENIID == "":
			part += " on an unknown ENI"
		case i.Device != nil && i.Card != nil:
			part += fmt.Sprintf(" of %s (card %d, device %d)", i.ENIID, *i.Card, *i.Device)
		default:
			part += " of " + i.ENIID
		}
		if i.SubnetID != "" {
			part += " in " + i.SubnetID
		}
		if age := show.Since(i.AssignedAt, in.At); age != show.Unknown {
			part += ", for " + age
		}
		parts = append(parts, part)
		differences += len(i.Differences)
	}
	sentence := strings.Join(parts, "; ") + ", on " + in.Node
	if differences > 0 {
		sentence += "; the kernel's state is not as expected: " + human.Plural(differences, "difference", "differences")
	}
	return sentence
}

// timeline merges what the daemon and Kubernetes report about the pod, oldest first.
func timeline(in Evidence) []document.TimelineItem {
	items := []document.TimelineItem{}
	failed := map[time.Time]bool{}
	for _, e := range in.Daemon {
		if e.Pod == nil || *e.Pod != in.Pod {
			continue
		}
		warning := inventory.EventWarning(e.Kind) && e.Kind != introspect.EventMissedDEL // reports have never called it a warning
		if e.Kind == introspect.EventADDFailed {
			failed[e.At.Truncate(time.Second)] = true
		}
		items = append(items, document.TimelineItem{At: e.At, From: document.FromDaemon, What: string(e.Kind), Message: inventory.EventText(e),
			Count: 1, Warning: warning})
	}
	for _, f := range in.Failures {
		// Recent failures are also in the events: do not list them twice.
		if f.Pod == in.Pod && !failed[f.At.Truncate(time.Second)] {
			items = append(items, document.TimelineItem{
				At: f.At, From: document.FromDaemon, What: string(introspect.EventADDFailed), Message: f.Cause + ": " + cmp.Or(f.Detail, f.Title),
				Count: 1, Warning: true,
			})
		}
	}
	for _, e := range in.Events {
		items = append(items, document.TimelineItem{
			At: e.At, From: document.FromKubernetes, What: e.Reason, Message: e.Message, Count: max(1, e.Count), Warning: e.Type == "Warning",
		})
	}
	slices.SortStableFunc(items, func(a, b document.TimelineItem) int { return a.At.Compare(b.At) })
	return items
}

func validText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
