package ipamd

import (
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/logline"
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

const (
	// commitRetry spaces attempts to write a checkpoint that could not be written.
	commitRetry = time.Second
	// commitLimit is how long a write may take before those who wait for it are told
	// that the disk hangs: below the time that a drain leaves.
	commitLimit = 3 * time.Second
)

// image is the checkpoint file as of one generation of the ledger.
type image struct {
	gen  uint64
	data []byte
}

// answer is a reply that waits for its generation to be durable.
type answer struct {
	gen  uint64
	done func()                         // sends the reply
	undo func(now time.Time, err error) // takes the change back and sends a failure
}

// changed records that the ledger differs from what was last handed to the writer.
func (o *owner) changed() { o.gen++ }

// answerDurably sends a reply as soon as everything changed so far is on disk.
func (o *owner) answerDurably(done func(), undo func(now time.Time, err error)) {
	if o.gen == o.durable {
		done()
		return
	}
	o.unanswered = append(o.unanswered, answer{gen: o.gen, done: done, undo: undo})
}

// flush hands the newest image to the writer unless one is being written; the
// changes of all requests that arrived meanwhile then go out together.
func (o *owner) flush() {
	if o.writing || o.gen == o.durable || o.now().Before(o.commitAfter) {
		return
	}
	o.writing, o.wrote = true, o.now()
	o.encoded = checkpoint.Append(o.encoded[:0], o.ledger.entries())
	o.commits <- image{gen: o.gen, data: o.encoded}
}

// committed is the writer's report.
type committed struct {
	gen uint64
	err error
}

func (m committed) handle(o *owner, now time.Time) {
	o.writing = false
	if m.err == nil {
		o.durable = m.gen
		o.answerUpTo(m.gen, func(a answer) { a.done() })
		return
	}
	o.commitAfter = now.Add(commitRetry)
	o.log.Error("checkpoint not written", slog.Any(logline.KeyError, m.err))
	o.history.failed(now, "checkpoint", cause.CheckpointUnwritable, m.err)
	o.undo(o.takeUpTo(m.gen), now, m.err)
}

// undo takes changes back, newest first: a later one may rest on an earlier one.
func (o *owner) undo(due []answer, now time.Time, err error) {
	for _, a := range slices.Backward(due) {
		a.undo(now, err)
	}
}

// stuck reports that the writer has been at one image for too long.
func (o *owner) stuck(now time.Time) bool {
	return o.writing && now.Sub(o.wrote) >= commitLimit
}

// commitFailing reports that waiting for the disk is in vain.
func (o *owner) commitFailing(now time.Time) bool {
	return o.stuck(now) || now.Before(o.commitAfter)
}

// failStuck fails everybody who waits for a disk that does not answer. When the
// write ends after all, the file is behind the book and is written again.
func (o *owner) failStuck(now time.Time) {
	if !o.stuck(now) || len(o.unanswered) == 0 {
		return
	}
	err := fmt.Errorf("the disk has not answered for %v", now.Sub(o.wrote).Round(time.Second))
	o.log.Error("checkpoint not written", slog.Any(logline.KeyError, err))
	o.history.failed(now, "checkpoint", cause.CheckpointUnwritable, err)
	o.undo(o.takeUpTo(o.gen), now, err)
}

func (o *owner) answerUpTo(gen uint64, send func(answer)) {
	for _, a := range o.takeUpTo(gen) {
		send(a)
	}
}

func (o *owner) takeUpTo(gen uint64) []answer {
	n := 0
	for n < len(o.unanswered) && o.unanswered[n].gen <= gen {
		n++
	}
	due := slices.Clone(o.unanswered[:n])
	o.unanswered = slices.Delete(o.unanswered, 0, n)
	return due
}
