package resync

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
)

// Recovered returns the key of an assignment that was rebuilt from a host link.
func Recovered(hostLink string) ipam.Sandbox {
	return ipam.Sandbox{Network: netnames.RecoveredNetwork, ContainerID: hostLink, IfName: netnames.RecoveredIfName}
}

// PodRoute is the kernel's state for a pod address.
type PodRoute struct {
	Address  netip.Addr
	HostLink string // "" if only rules remain
	Table    int    // of the pod's ENI; main if no rule leads elsewhere
	ToRule   bool   // the rule to the address exists
}

// RestoreInput is all evidence of allocations at the daemon's start.
type RestoreInput struct {
	Entries []checkpoint.Entry
	Links   []string   // names of the host's links
	Routes  []PodRoute // those that lead to a host link
	// HashOf returns the suffix of the name of the host link of a pod's first interface.
	HashOf func(namespace, name string) string
	// Now is the current time. Entries younger than [LinkDelay] are kept without a link: their
	// ADD may have been answered before the link was created. [Ended] judges them later. With
	// the zero time, every entry is old.
	Now time.Time
}

// RestoreResult says what to put into the book and what to clean up.
type RestoreResult struct {
	Events    []ipam.Restore
	Stale     []checkpoint.Entry // no link of that pod remains: its address's rules and routes must go
	Recovered int                // events rebuilt from the kernel
}

// Restore combines the checkpoint with the kernel. An entry that names its pod is kept while a
// link of that pod exists or the entry is young; an entry without a pod name is always kept. A
// pod route that no kept entry explains is a live allocation whose entry was lost: it is kept
// under its own key.
func Restore(in RestoreInput) RestoreResult {
	var out RestoreResult
	linked := Hashes(in.Links)
	explained := make(map[netip.Addr]bool, len(in.Entries))
	restored := make(map[ipam.Sandbox]bool, len(in.Entries))
	for _, e := range in.Entries {
		addr := e.Address()
		if e.PodName != "" && e.PodNamespace != "" && !linked[in.HashOf(e.PodNamespace, e.PodName)] && !young(e.AllocatedAt, in.Now) {
			out.Stale = append(out.Stale, e)
			continue
		}
		key := SandboxOf(e)
		if explained[addr] || restored[key] || key == (ipam.Sandbox{}) || !addr.IsValid() {
			// A duplicate address or sandbox, or none: the first entry wins. The DEL of the other finds
			// nothing, and an address that a pod still has shows in the kernel.
			continue
		}
		explained[addr], restored[key] = true, true
		out.Events = append(out.Events, ipam.Restore{
			Sandbox:    key,
			Pod:        ipam.Pod{Namespace: e.PodNamespace, Name: e.PodName, Interfaces: e.Interfaces},
			Address:    addr,
			AssignedAt: e.AllocatedAt,
		})
	}
	stale := make(map[netip.Addr]bool, len(out.Stale))
	for _, e := range out.Stale {
		stale[e.Address()] = !explained[e.Address()]
	}
	routes := slices.Clone(in.Routes)
	slices.SortFunc(routes, func(a, b PodRoute) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.HostLink, b.HostLink))
	})
	for _, r := range routes {
		if explained[r.Address] || stale[r.Address] {
			continue
		}
		explained[r.Address] = true
		out.Recovered++
		out.Events = append(out.Events, ipam.Restore{Sandbox: Recovered(r.HostLink), Address: r.Address})
	}
	return out
}

// SandboxOf returns the key of an allocation. A pod with an interface per network card has an
// entry in each card's file; every other pod is in one file, whichever card it is of.
func SandboxOf(e checkpoint.Entry) ipam.Sandbox {
	s := ipam.Sandbox{Network: e.NetworkName, ContainerID: e.ContainerID, IfName: e.IfName}
	if e.Interfaces > 1 {
		s.Interface = e.Card
	}
	return s
}

// hashLen is the length of the name hash in a host link's name.
const hashLen = 11

// Hashes returns the hashes of pod names at the end of the host's link names.
func Hashes(links []string) map[string]bool {
	set := make(map[string]bool, len(links))
	for _, name := range links {
		if len(name) >= hashLen {
			set[name[len(name)-hashLen:]] = true
		}
	}
	return set
}
