package keeper

import (
	"iter"
	"slices"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/ipam"
)

// ledger holds the allocations as encoded checkpoint entries, so that writing the
// file is one copy of bytes and not an encoding of every pod.
type ledger struct {
	index map[ipam.Sandbox]int
	keys  []ipam.Sandbox
	rows  [][]byte
}

func newLedger() ledger { return ledger{index: make(map[ipam.Sandbox]int)} }

func (l *ledger) put(a ipam.Assignment) {
	e := checkpoint.Entry{
		NetworkName: a.Sandbox.Network, ContainerID: a.Sandbox.ContainerID, IfName: a.Sandbox.IfName,
		AllocatedAt:  a.AssignedAt,
		PodNamespace: a.Pod.Namespace, PodName: a.Pod.Name, Interfaces: a.Pod.Interfaces,
	}
	if a.Address.Is4() {
		e.IPv4 = a.Address
	} else {
		e.IPv6 = a.Address
	}
	row := checkpoint.EncodeEntry(e)
	if i, ok := l.index[a.Sandbox]; ok {
		l.rows[i] = row
		return
	}
	l.index[a.Sandbox] = len(l.rows)
	l.keys = append(l.keys, a.Sandbox)
	l.rows = append(l.rows, row)
}

func (l *ledger) remove(s ipam.Sandbox) {
	i, ok := l.index[s]
	if !ok {
		return
	}
	last := len(l.rows) - 1
	l.rows[i], l.keys[i] = l.rows[last], l.keys[last]
	l.index[l.keys[i]] = i
	l.rows[last], l.keys[last] = nil, ipam.Sandbox{}
	l.rows, l.keys = l.rows[:last], l.keys[:last]
	delete(l.index, s)
}

func (l *ledger) entries() iter.Seq[[]byte] { return slices.Values(l.rows) }
