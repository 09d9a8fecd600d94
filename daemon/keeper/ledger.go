package keeper

import (
	"iter"
	"slices"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/ipam"
)

// ledger holds the allocations as encoded checkpoint entries, so that writing a file is
// one copy of bytes and not an encoding of every pod. Each network card has a file of its
// own (spec/ipamd.md §2.1).
type ledger struct {
	files map[int]*ledgerFile
	home  map[ipam.Sandbox]int // the file that an allocation is in
}

// ledgerFile is the allocations of one network card.
type ledgerFile struct {
	index map[ipam.Sandbox]int
	keys  []ipam.Sandbox
	rows  [][]byte
	dirty bool // it differs from what was last handed to the writer
}

func newLedger() ledger {
	l := ledger{files: make(map[int]*ledgerFile), home: make(map[ipam.Sandbox]int)}
	l.file(0)
	return l
}

func (l *ledger) file(card int) *ledgerFile {
	f, ok := l.files[card]
	if !ok {
		f = &ledgerFile{index: make(map[ipam.Sandbox]int)}
		l.files[card] = f
	}
	return f
}

// put keeps an allocation in the file of its card. One whose card is not known stays
// where it was, in the file of its interface at first.
func (l *ledger) put(a ipam.Assignment) {
	card := a.Card
	if a.ENI == "" {
		card = a.Sandbox.Interface
		if at, ok := l.home[a.Sandbox]; ok {
			card = at
		}
	}
	if at, ok := l.home[a.Sandbox]; ok && at != card {
		l.file(at).remove(a.Sandbox)
	}
	l.home[a.Sandbox] = card
	l.file(card).put(a.Sandbox, encodeEntry(a))
}

func encodeEntry(a ipam.Assignment) []byte {
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
	return checkpoint.EncodeEntry(e)
}

func (l *ledger) remove(s ipam.Sandbox) {
	if card, ok := l.home[s]; ok {
		l.files[card].remove(s)
		delete(l.home, s)
	}
}

// len counts the allocations in all files.
func (l *ledger) len() (n int) {
	for _, f := range l.files {
		n += len(f.rows)
	}
	return n
}

// dirty are the cards whose file is to be written, in order.
func (l *ledger) dirty() []int {
	var out []int
	for card, f := range l.files {
		if f.dirty {
			out = append(out, card)
		}
	}
	if len(out) == 0 {
		return []int{0} // a change that another one undid
	}
	slices.Sort(out)
	return out
}

// touch makes every file one that is to be written.
func (l *ledger) touch() {
	for _, f := range l.files {
		f.dirty = true
	}
}

func (f *ledgerFile) put(s ipam.Sandbox, row []byte) {
	f.dirty = true
	if i, ok := f.index[s]; ok {
		f.rows[i] = row
		return
	}
	f.index[s] = len(f.rows)
	f.keys = append(f.keys, s)
	f.rows = append(f.rows, row)
}

func (f *ledgerFile) remove(s ipam.Sandbox) {
	i, ok := f.index[s]
	if !ok {
		return
	}
	f.dirty = true
	last := len(f.rows) - 1
	f.rows[i], f.keys[i] = f.rows[last], f.keys[last]
	f.index[f.keys[i]] = i
	f.rows[last], f.keys[last] = nil, ipam.Sandbox{}
	f.rows, f.keys = f.rows[:last], f.keys[:last]
	delete(f.index, s)
}

func (f *ledgerFile) entries() iter.Seq[[]byte] { return slices.Values(f.rows) }
