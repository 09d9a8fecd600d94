package keeper

import (
	"iter"
	"slices"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// ledger holds the allocations as encoded checkpoint entries, so that writing a file copies
// bytes once instead of encoding every pod. Each network card has its own file, as in
// upstream.
type ledger struct {
	files map[int]*ledgerFile
	cards []int                // of the files, in the order of writing
	home  map[ipam.Sandbox]int // the card whose file holds the allocation
	links linkNames
}

// linkNames finds the pods that have host links, by the hashes in the links' names.
type linkNames struct {
	pods map[string][]linked
	of   map[ipam.Sandbox]ipam.Pod
}

type linked struct {
	sandbox ipam.Sandbox
	pod     ipam.Pod
}

// put records a sandbox's pod. An allocation that was rebuilt from the kernel has no pod: its
// link may be that of an older sandbox of any pod that gets the link's name.
func (l *linkNames) put(s ipam.Sandbox, p ipam.Pod) {
	if was, known := l.of[s]; known && was == p {
		return
	}
	l.remove(s)
	if p.Name == "" {
		return
	}
	l.of[s] = p
	for _, hash := range netnames.Hashes(p.Namespace, p.Name, p.Interfaces) {
		l.pods[hash] = append(l.pods[hash], linked{s, p})
	}
}

func (l *linkNames) remove(s ipam.Sandbox) {
	p, known := l.of[s]
	if !known {
		return
	}
	delete(l.of, s)
	for _, hash := range netnames.Hashes(p.Namespace, p.Name, p.Interfaces) {
		rest := slices.DeleteFunc(l.pods[hash], func(o linked) bool { return o.sandbox == s })
		if l.pods[hash] = rest; len(rest) == 0 {
			delete(l.pods, hash)
		}
	}
}

// holder returns another pod that has one of a pod's host links, and the link's hash.
func (l *linkNames) holder(p ipam.Pod) (other ipam.Pod, hash string, found bool) {
	for _, hash := range netnames.Hashes(p.Namespace, p.Name, p.Interfaces) {
		for _, o := range l.pods[hash] {
			if o.pod.Namespace != p.Namespace || o.pod.Name != p.Name {
				return o.pod, hash, true
			}
		}
	}
	return ipam.Pod{}, "", false
}

// ledgerFile holds the allocations of one network card.
type ledgerFile struct {
	index map[ipam.Sandbox]int
	keys  []ipam.Sandbox
	rows  [][]byte
	dirty bool // it differs from what the writer last received
}

func newLedger() ledger {
	l := ledger{
		files: make(map[int]*ledgerFile), home: make(map[ipam.Sandbox]int),
		links: linkNames{pods: map[string][]linked{}, of: map[ipam.Sandbox]ipam.Pod{}},
	}
	l.file(0)
	return l
}

func (l *ledger) file(card int) *ledgerFile {
	f, ok := l.files[card]
	if !ok {
		f = &ledgerFile{index: make(map[ipam.Sandbox]int)}
		l.files[card] = f
		at := slices.IndexFunc(l.cards, func(c int) bool { return c > card })
		if at < 0 {
			at = len(l.cards)
		}
		l.cards = slices.Insert(l.cards, at, card)
	}
	return f
}

// put stores an allocation in the file of its card.
func (l *ledger) put(a ipam.Assignment) {
	card := l.cardOf(a)
	f := l.file(card)
	if at, ok := l.home[a.Sandbox]; ok && at != card {
		l.files[at].remove(a.Sandbox)
		l.writeLast(at)
	}
	l.home[a.Sandbox] = card
	l.links.put(a.Sandbox, a.Pod)
	f.put(a.Sandbox, encodeEntry(a))
}

// writeLast moves a file to the end of the writing order: an entry that left it is already in
// another file by then. After a crash in between it is in both, and after the next start in one.
func (l *ledger) writeLast(card int) {
	at := slices.Index(l.cards, card)
	l.cards = append(slices.Delete(l.cards, at, at+1), card)
}

// cardOf returns the card whose file holds an allocation. For a pod with several interfaces
// that is the number of the interface, even if the ENI has moved to another card, because the
// file tells the interfaces apart. An allocation whose card is unknown stays where it was.
func (l *ledger) cardOf(a ipam.Assignment) int {
	if a.Pod.Interfaces > 1 || a.Sandbox.Interface > 0 {
		return a.Sandbox.Interface
	}
	if a.ENI == "" {
		return l.home[a.Sandbox]
	}
	return a.Card
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
		l.links.remove(s)
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

// dirty yields the files to write, at least one, in the order of their cards; but a file that
// an entry has left comes after the file that has the entry now.
func (l *ledger) dirty() iter.Seq2[int, *ledgerFile] {
	return func(yield func(int, *ledgerFile) bool) {
		none := true
		for _, card := range l.cards {
			if f := l.files[card]; f.dirty {
				none = false
				if !yield(card, f) {
					return
				}
			}
		}
		if none {
			yield(0, l.files[0]) // a change that a later one undid
		}
	}
}

// touch marks every file as to be written.
func (l *ledger) touch() {
	for _, f := range l.files {
		f.dirty = true
	}
}

// load fills the ledger with the allocations restored from the files, and reports whether the
// files hold anything else: a rejected entry, or an entry in another card's file. Then all
// files must be written, or the leftovers would come back at the next start.
func (l *ledger) load(found []checkpoint.Entry, allocations []ipam.Assignment) (differ bool) {
	at := make(map[ipam.Sandbox]int, len(found))
	for _, e := range found {
		l.file(e.Card)
		if s := resync.SandboxOf(e); !has(at, s) { // the first of two entries wins
			at[s] = e.Card
		}
	}
	differ = len(found) != len(allocations)
	for _, a := range allocations {
		card, known := at[a.Sandbox]
		if known {
			l.home[a.Sandbox] = card
		}
		l.put(a)
		differ = differ || !known || l.home[a.Sandbox] != card
	}
	for _, f := range l.files {
		f.dirty = differ
	}
	return differ
}

func has[K comparable, V any](m map[K]V, key K) bool {
	_, ok := m[key]
	return ok
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
