package resync

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
)

const (
	// LinkDelay bounds the time between the answer to an ADD and the host link that the plugin
	// then creates. An allocation that old without a link has ended.
	LinkDelay = time.Minute
	// EndedGap is the minimum time between two looks at the host's links that both miss a pod's
	// link: a link is absent for a moment while its name or namespace changes.
	EndedGap = 5 * time.Second
)

// young reports whether the link of an allocation may still be to come. A time far in the
// future is ignored (the clock was set back): that allocation is not young.
func young(assignedAt, now time.Time) bool {
	if assignedAt.IsZero() || now.IsZero() {
		return false
	}
	age := now.Sub(assignedAt)
	return -LinkDelay < age && age < LinkDelay
}

// Absences holds, by sandbox, when the link of an allocation was first found missing.
type Absences map[ipam.Sandbox]time.Time

// EndedInput is one look at the host's links.
type EndedInput struct {
	Now         time.Time         // when the links were listed
	Assignments []ipam.Assignment // all assignments, read after the links were listed
	Links       []string          // names of the host's links; empty if not read
	Routes      []PodRoute        // read with the links; nil if not read
	// HashOf returns the suffix of the name of the host link of a pod's first interface.
	HashOf func(namespace, name string) string
	Absent Absences // EndedResult.Absent of the previous look; nil for the first one
}

// EndedResult says which allocations have ended.
type EndedResult struct {
	Ended  []ipam.Assignment // in the order of the input
	Absent Absences          // for the next look
	// Again is when another look could end an allocation whose link this one missed; zero if no
	// link was missed.
	Again time.Time
}

// Ended finds the allocations whose pod is gone although no DEL came: two looks at least
// [EndedGap] apart found no host link of the pod, and the allocation is older than
// [LinkDelay]. An allocation rebuilt from the kernel is tied to its own link; one without
// a pod name is always kept.
//
// A pod that was recreated under the same name has a link of the same name. Then the route
// decides: the older of two such allocations has ended if no host link leads to its address
// and one leads to the address of the younger.
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
			first = in.Now // the first look, or one at an earlier life of the sandbox
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
		// Ended allocations are kept, too: the caller may fail to clean up after them.
		out.Absent[a.Sandbox] = first
	}
	return out
}

// linkIndex knows which allocations have a link.
type linkIndex struct {
	in     *EndedInput
	names  map[string]bool
	hashes map[string]bool
	routed map[netip.Addr]bool
	// newest is the time of the latest routed allocation of each pod name and interface.
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
		return true // links cannot show it
	case k.routed[a.Address]:
		return true
	case k.in.Routes != nil && k.newest[interfaceOf(a)].After(a.AssignedAt):
		return false
	}
	return k.hashes[k.in.HashOf(a.Pod.Namespace, a.Pod.Name)]
}
