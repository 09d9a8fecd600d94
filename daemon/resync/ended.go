package resync

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
)

const (
	// LinkDelay bounds the time between the answer of an ADD and the host link that
	// the plugin makes after it. An allocation that old without a link has ended.
	LinkDelay = time.Minute
	// EndedGap is the least time between two looks at the host's links that both miss
	// a pod's: a link is absent for a moment while it changes its name or namespace.
	EndedGap = 5 * time.Second
)

// young reports whether the link of an allocation may be still to come. A time far in
// the future is of no use (the clock was set back) and makes nothing young.
func young(assignedAt, now time.Time) bool {
	if assignedAt.IsZero() || now.IsZero() {
		return false
	}
	age := now.Sub(assignedAt)
	return -LinkDelay < age && age < LinkDelay
}

// Absences holds, by sandbox, when a look first missed the link of an allocation.
type Absences map[ipam.Sandbox]time.Time

// EndedInput is one look at the host's links.
type EndedInput struct {
	Now         time.Time         // when the links were listed
	Assignments []ipam.Assignment // all, as they are after the links were listed
	Links       []string          // names of the host's links; none at all: not read
	Routes      []PodRoute        // read with the links; nil: not read
	// HashOf is the suffix that the host link of a pod's first interface ends with.
	HashOf func(namespace, name string) string
	Absent Absences // EndedResult.Absent of the look before; nil: the first one
}

// EndedResult says which allocations have ended.
type EndedResult struct {
	Ended  []ipam.Assignment // in the order of the input
	Absent Absences          // for the next look
	// Again is when another look could end an allocation that this one missed a link
	// of; zero: none is missed.
	Again time.Time
}

// Ended finds the allocations whose pod is gone though no DEL came: two looks at least
// [EndedGap] apart found no host link of the pod, and the allocation is older than
// [LinkDelay]. One rebuilt from the kernel is bound to its own link, one that names no
// pod is kept always.
//
// A pod that was recreated under the same name has a link of the same name. Then the
// route decides: the older of two such allocations has ended when no host link leads
// to its address and one leads to that of the younger.
func Ended(in EndedInput) EndedResult {
	out := EndedResult{Absent: in.Absent}
	if len(in.Links) == 0 {
		return out // a host has at least lo
	}
	k := newLinkIndex(&in)
	out.Absent = Absences{}
	for i := range in.Assignments {
		a := &in.Assignments[i]
		if k.linked(a) {
			continue
		}
		first, seen := in.Absent[a.Sandbox]
		if !seen || first.After(in.Now) || first.Before(a.AssignedAt) {
			first = in.Now // the first look, or that of an earlier life of the sandbox
		}
		ripe := first.Add(EndedGap)
		if young(a.AssignedAt, in.Now) {
			if old := a.AssignedAt.Add(LinkDelay); old.After(ripe) {
				ripe = old
			}
		}
		if !ripe.After(in.Now) {
			out.Ended = append(out.Ended, *a)
		} else if out.Again.IsZero() || ripe.Before(out.Again) {
			out.Again = ripe
		}
		// Kept for those that ended too: the caller may fail to clean up after them.
		out.Absent[a.Sandbox] = first
	}
	return out
}

// linkIndex answers which allocations have a link.
type linkIndex struct {
	in     *EndedInput
	names  map[string]bool
	hashes map[string]bool
	routed map[netip.Addr]bool
	// newest is the latest allocation of each pod name and interface that has a
	// route, by its time.
	newest map[podInterface]time.Time
}

type podInterface struct {
	namespace, name, ifName string
	card                    int // of a pod with an interface per network card
}

func newLinkIndex(in *EndedInput) *linkIndex {
	k := &linkIndex{
		in: in, hashes: Hashes(in.Links),
		names:  make(map[string]bool, len(in.Links)),
		routed: make(map[netip.Addr]bool, len(in.Routes)),
		newest: map[podInterface]time.Time{},
	}
	for _, name := range in.Links {
		k.names[name] = true
	}
	for _, r := range in.Routes {
		if r.HostLink != "" {
			k.routed[r.Address] = true
		}
	}
	for i := range in.Assignments {
		a := &in.Assignments[i]
		if p := interfaceOf(a); k.routed[a.Address] && a.AssignedAt.After(k.newest[p]) {
			k.newest[p] = a.AssignedAt
		}
	}
	return k
}

func interfaceOf(a *ipam.Assignment) podInterface {
	return podInterface{a.Pod.Namespace, a.Pod.Name, a.Sandbox.IfName, a.Sandbox.Interface}
}

func (k *linkIndex) linked(a *ipam.Assignment) bool {
	switch {
	case a.Sandbox.Network == netnames.RecoveredNetwork:
		return k.names[a.Sandbox.ContainerID]
	case a.Pod.Namespace == "" || a.Pod.Name == "":
		return true // the links do not show it
	case k.routed[a.Address]:
		return true
	case k.in.Routes != nil && k.newest[interfaceOf(a)].After(a.AssignedAt):
		return false
	}
	return k.hashes[k.in.HashOf(a.Pod.Namespace, a.Pod.Name)]
}
