package inventory

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/causes/catalogue"
)

// PodSides are what Kubernetes and the daemon report about the pods of a node.
type PodSides struct {
	Pods     []watch.Pod // from Kubernetes
	Listed   bool        // Kubernetes listed the pods
	Held     []document.AddressItem
	Asked    bool   // the daemon reported its addresses
	Silent   string // why it did not; "" if it could not be read
	Failures []introspect.Failure
	Blocked  []introspect.BlockedCard

	// Settled reports whether a difference between the two sides has lasted long enough to be
	// real, as they are read at different moments; nil = always.
	Settled func(pod introspect.PodRef, address string) bool
}

// Pod is one address of a pod, or a pod without one.
type Pod struct {
	document.NodePodItem
	ID   string       // NAMESPACE/NAME, with the address if the name is not unique
	Full string       // NAMESPACE/NAME
	Node string       // "" if it is not bound to one
	CIDR netip.Prefix // secondary IP or prefix of the address; zero if not from the pool
	At   time.Time    // the time that ages are relative to
}

// JoinPods merges the two sides by namespace and name, or by address if the daemon does not name
// pods, like those before v1.10. The rows show which pods have an address, which have none and
// why, and which addresses are held for pods that are gone.
func JoinPods(in PodSides) []*Pod {
	listed := map[introspect.PodRef]*[]*document.AddressItem{} // by pod in Kubernetes: held addresses
	having := map[string]introspect.PodRef{}                   // by address
	for _, p := range in.Pods {
		listed[p.PodRef] = new([]*document.AddressItem)
		for _, address := range FromPool(p) {
			having[address] = p.PodRef
		}
	}
	rows := make([]*Pod, 0, len(in.Pods)+len(in.Held))
	for i := range in.Held {
		a := &in.Held[i]
		ref := introspect.PodRef{Namespace: a.PodNamespace, Name: a.PodName}
		if ref.Name == "" {
			ref = having[a.Address]
		}
		switch held := listed[ref]; {
		case a.State != introspect.AddressAssigned:
		case held != nil:
			*held = append(*held, a)
		default:
			r := rowOf(ref, a)
			if in.Listed && ref.Name != "" && in.settled(ref, r.Address) {
				r.State, r.Reason = document.PodLeftOver, "Kubernetes has no such pod on the node: its DEL is missing or still to come"
			}
			rows = append(rows, r)
		}
	}
	for _, p := range in.Pods {
		rows = append(rows, joined(in, p, *listed[p.PodRef])...)
	}
	slices.SortFunc(rows, func(a, b *Pod) int {
		return cmp.Or(human.Natural(a.Namespace, b.Namespace), human.Natural(a.Name, b.Name), human.Natural(a.Address, b.Address))
	})
	for i, r := range rows {
		r.Full = name(r.PodRef)
		r.ID = r.Full
		if r.Name == "" || r.State == document.PodLeftOver || i > 0 && rows[i-1].PodRef == r.PodRef {
			r.ID = strings.TrimSpace(r.ID + " " + r.Address)
		}
	}
	return rows
}

// name is NAMESPACE/NAME, "" without a name.
func name(pod introspect.PodRef) string {
	if pod.Name == "" {
		return ""
	}
	return pod.Namespace + "/" + pod.Name
}

// PodItems returns the documents of rows.
func PodItems(rows []*Pod) []document.NodePodItem {
	items := make([]document.NodePodItem, len(rows))
	for i, r := range rows {
		items[i] = r.Document()
	}
	return items
}

func (in PodSides) settled(pod introspect.PodRef, address string) bool {
	return in.Settled == nil || in.Settled(pod, address)
}

func rowOf(ref introspect.PodRef, a *document.AddressItem) *Pod {
	device := a.Device // so that the row does not keep the list of addresses alive
	return &Pod{CIDR: a.CIDR, NodePodItem: document.NodePodItem{
		PodRef: ref, State: document.PodHasAddress, Address: a.Address,
		ENIID: a.ENIID, Device: &device, SubnetID: a.SubnetID, Since: a.AssignedAt,
	}}
}

// FromPool returns the addresses of a pod that its node's pool should hold.
func FromPool(p watch.Pod) []string {
	if p.HostNetwork || p.PodENI != "" || p.Phase == "Succeeded" || p.Phase == "Failed" {
		return nil
	}
	return p.IPs
}

// joined returns the rows of a pod in Kubernetes, one for each address that the daemon holds
// for it.
func joined(in PodSides, p watch.Pod, held []*document.AddressItem) []*Pod {
	if len(held) > 0 {
		var rows []*Pod
		for _, a := range held {
			r := rowOf(p.PodRef, a)
			r.Phase = p.Phase
			if len(p.IPs) > 0 && len(held) == 1 && !slices.Contains(p.IPs, r.Address) && in.settled(p.PodRef, r.Address) {
				r.Reason = "Kubernetes reports " + strings.Join(p.IPs, ", ")
			}
			rows = append(rows, r)
		}
		return rows
	}
	r := &Pod{NodePodItem: document.NodePodItem{PodRef: p.PodRef, Phase: p.Phase, Address: strings.Join(p.IPs, ","), Since: p.StartedAt}}
	r.State, r.Reason = stateWithout(in, p)
	if r.State == document.PodWaiting || r.State == document.PodEnded {
		r.Address = ""
	}
	return []*Pod{r}
}

// stateWithout returns the state of a pod for which the daemon holds no address.
func stateWithout(in PodSides, p watch.Pod) (state, reason string) {
	silent := cmp.Or(in.Silent, "the daemon could not be read")
	switch {
	case p.HostNetwork:
		return document.PodHostNetwork, ""
	case p.Phase == "Succeeded" || p.Phase == "Failed":
		return document.PodEnded, ""
	case p.PodENI != "":
		return document.PodBranch, ""
	case p.Wants:
		return document.PodWaiting, PendingBranch
	case !in.Asked:
		if len(p.IPs) > 0 {
			return document.PodHasAddress, silent
		}
		return document.PodWaiting, cmp.Or(p.Reason, silent)
	case len(p.IPs) > 0 && !in.settled(p.PodRef, p.IPs[0]):
		return document.PodHasAddress, ""
	case len(p.IPs) > 0:
		return document.PodUnknown, "the daemon holds no address for it"
	}
	return document.PodWaiting, WhyNone(in.Failures, in.Blocked, p)
}

// PendingBranch is the reason of a pod that waits for its branch ENI.
const PendingBranch = "it needs a branch ENI, and the VPC resource controller has not annotated it yet"

// WhyNone explains why a pod that should have an address has none: its last failed ADD, what
// blocks the pool, or what Kubernetes reports about it. A cause of the daemon is its first word.
func WhyNone(failures []introspect.Failure, blocked []introspect.BlockedCard, p watch.Pod) string {
	holds := len(blocked) > 0 && blocked[0].Cause != string(cause.PoolDry) // says more than that the pool is empty
	for _, failure := range failures {                                     // newest first
		if failure.Pod == p.PodRef && !(holds && failure.Cause == string(cause.PoolDry)) {
			return fmt.Sprintf("%s: %s", failure.Cause, cmp.Or(failure.Detail, failure.Title))
		}
	}
	if len(blocked) > 0 {
		return fmt.Sprintf("%s: %s", blocked[0].Cause, blocked[0].Message)
	}
	return cmp.Or(p.Reason, "no ADD received for it yet")
}

// unbound is the reason of a pod without a node.
const unbound = "not scheduled to a node yet"

// FindingOf returns the doctor's code for a pod without an address: for the cause of the daemon that the
// reason begins with, or for a branch ENI, however long it has waited; "" if there is none.
func FindingOf(reason string) string {
	code, _, found := strings.Cut(reason, ": ")
	switch {
	case strings.HasPrefix(reason, unbound):
		return "obs/pod-unschedulable"
	case reason == PendingBranch:
		code, found = string(cause.BranchPending), true
	}
	if e, ok := catalogue.Reported(code); ok && found {
		return e.Code
	}
	return ""
}

// NamedReason returns a reason as people see it: with the doctor's code for it, in place of the daemon's.
func NamedReason(reason string) string {
	code := FindingOf(reason)
	if code == "" {
		return reason
	}
	if daemons, text, found := strings.Cut(reason, ": "); found && catalogue.Named(daemons) != daemons {
		reason = text
	}
	return code + ": " + reason
}

// PodKind says in one word where a pod's address comes from; "" if unknown.
func PodKind(r *Pod) string {
	switch {
	case r.CIDR.IsValid() && r.CIDR.IsSingleIP():
		return "secondary"
	case r.CIDR.IsValid():
		return "prefix"
	case r.State == document.PodBranch:
		return "branch"
	case r.State == document.PodHostNetwork:
		return "host"
	}
	return ""
}

// PodFault reports whether a pod needs attention.
func PodFault(r *Pod) bool {
	switch r.State {
	case document.PodWaiting, document.PodUnknown, document.PodLeftOver:
		return true
	}
	return strings.HasPrefix(r.Reason, "Kubernetes reports")
}

// Document returns the row as documents have it.
func (r *Pod) Document() document.NodePodItem {
	item := r.NodePodItem
	if item.State == document.PodWaiting {
		item.Finding = FindingOf(item.Reason)
	}
	return item
}
