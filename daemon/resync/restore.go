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

// Recovered returns the key of an assignment rebuilt from a host link.
func Recovered(hostLink string) ipam.Sandbox {
	return ipam.Sandbox{Network: netnames.RecoveredNetwork, ContainerID: hostLink, IfName: netnames.RecoveredIfName}
}

// PodRoute is what the kernel has for the address of a pod.
type PodRoute struct {
	Address  netip.Addr
	HostLink string // "" if only rules are left
	Table    int    // of the pod's ENI; main if no rule leads elsewhere
	ToRule   bool   // the rule to the address is there
}

// RestoreInput is all evidence of allocations when the daemon starts.
type RestoreInput struct {
	Entries []checkpoint.Entry
	Links   []string   // names of the host's links
	Routes  []PodRoute // that lead to a host link
	// HashOf is the suffix that the host link of a pod's first interface ends with.
	HashOf func(namespace, name string) string
	// Now is the time. Entries younger than [LinkDelay] are kept without a link: their
	// ADD may have been answered and the link not made yet. [Ended] judges them later.
	// The zero time makes every entry old.
	Now time.Time
}

// RestoreResult says what to put into the book and what to clean up.
type RestoreResult struct {
	Events    []ipam.Restore
	Stale     []checkpoint.Entry // no link of that pod is left: rules and routes of its address go
	Recovered int                // events rebuilt from the kernel
}

// Restore joins the checkpoint with the kernel. An entry that names its pod is kept
// while a link of that pod exists or the entry is young, and one that names none is
// kept always. A pod
// route that no kept entry explains is a live allocation whose entry was lost: it
// is kept under a key of its own.
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
			// The same address or sandbox twice, or none: the first entry wins. DEL of
			// another finds nothing, and an address that a pod still has shows in the
			// kernel.
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

// SandboxOf is the key of an allocation. A pod with an interface per network card has an
// entry in each card's file; every other pod is in one file, of whatever card.
func SandboxOf(e checkpoint.Entry) ipam.Sandbox {
	s := ipam.Sandbox{Network: e.NetworkName, ContainerID: e.ContainerID, IfName: e.IfName}
	if e.Interfaces > 1 {
		s.Interface = e.Card
	}
	return s
}

// hashLen is the length of the name hash in a host link's name.
const hashLen = 11

// Hashes lists the hashes of pod names that links of the host end with.
func Hashes(links []string) map[string]bool {
	set := make(map[string]bool, len(links))
	for _, name := range links {
		if len(name) >= hashLen {
			set[name[len(name)-hashLen:]] = true
		}
	}
	return set
}
