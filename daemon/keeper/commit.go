package keeper

import (
	"fmt"
	"slices"
	"time"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/crashpoint"
)

const (
	// commitRetry and commitRetryMost are the shortest and longest pause before a failed
	// checkpoint write is repeated.
	commitRetry     = time.Second
	commitRetryMost = 30 * time.Second
	// commitLimit is how long a write may take before the waiting requests are answered that the
	// disk hangs: less than a drain allows.
	commitLimit = 3 * time.Second
	// slowCommit is longer than a healthy disk takes.
	slowCommit = time.Second
)

// Image holds the changed checkpoint files as of one generation of the allocations. The Keeper
// owns its bytes, which stay valid until [Committed] reports the write.
type Image struct {
	Gen   uint64
	Files []ImageFile // at least one
}

// ImageFile is the checkpoint file of one network card.
type ImageFile struct {
	Card int
	Data []byte
}

// answer is a reply that waits for its generation to be durable.
type answer struct {
	gen  uint64
	done func(now time.Time)            // sends the reply
	undo func(now time.Time, err error) // reverts the change and sends a failure
}

// changed records that the ledger differs from what the writer last received.
func (k *Keeper) changed() {
	k.gen++
	// A request waits for the disk, which may be working again.
	if soon := k.commitFailedAt.Add(commitRetry); soon.Before(k.commitAfter) {
		k.commitAfter = soon
	}
}

// answerDurably sends a reply once all changes so far are on disk.
func (k *Keeper) answerDurably(now time.Time, done func(time.Time), undo func(time.Time, error)) {
	if k.gen == k.durable {
		done(now)
		return
	}
	k.unanswered = append(k.unanswered, answer{gen: k.gen, done: done, undo: undo})
}

// flush hands the newest image to the writer unless a write is in progress. Changes of all
// requests that arrive during a write go out together in the next one.
func (k *Keeper) flush(now time.Time) {
	if k.writing || k.gen == k.durable || now.Before(k.commitAfter) {
		return
	}
	k.writing, k.wrote = true, now
	image := Image{Gen: k.gen}
	for card, f := range k.ledger.dirty() {
		k.encoded[card] = checkpoint.Append(k.encoded[card][:0], f.entries())
		image.Files = append(image.Files, ImageFile{card, k.encoded[card]})
		f.dirty = false
	}
	crashpoint.Here(crashpoint.BeforeImage)
	k.out.Write(image)
	crashpoint.Here(crashpoint.AfterImage)
}

// Committed reports the end of a write.
type Committed struct {
	Gen uint64
	Err error
}

func (m Committed) handle(k *Keeper, now time.Time) {
	k.writing = false
	if m.Err == nil {
		k.durable = m.Gen
		k.commitPause = 0
		if k.commitProblem != "" {
			k.commitProblem = ""
			k.record(now, CheckpointRecovered{})
		}
		for _, a := range k.takeUpTo(m.Gen) {
			a.done(now)
		}
		return
	}
	k.ledger.touch() // any of the files may have been written
	k.commitPause = min(max(2*k.commitPause, commitRetry), commitRetryMost)
	k.commitFailedAt, k.commitAfter = now, now.Add(k.commitPause)
	k.commitFailed(now, m.Err)
	// This includes later changes: they may depend on the reverted ones.
	k.undo(k.takeUpTo(k.gen), now, m.Err)
}

// commitFailed records a failure, but not repetitions of it.
func (k *Keeper) commitFailed(now time.Time, err error) {
	if text := err.Error(); k.commitProblem != text {
		k.commitProblem = text
		k.record(now, CheckpointFailed{Err: err})
	}
}

// undo reverts changes, newest first: a later one may depend on an earlier one.
func (k *Keeper) undo(due []answer, now time.Time, err error) {
	for _, a := range slices.Backward(due) {
		a.undo(now, err)
	}
}

// stuck reports whether the writer has been busy with one image for too long.
func (k *Keeper) stuck(now time.Time) bool {
	return k.writing && now.Sub(k.wrote) >= commitLimit
}

// commitFailing reports whether waiting for the disk cannot succeed.
func (k *Keeper) commitFailing(now time.Time) bool {
	return k.stuck(now) || now.Before(k.commitAfter)
}

// Settled reports whether the checkpoint is as current as the disk allows: a shutdown has
// nothing to wait for.
func (k *Keeper) Settled(now time.Time) bool {
	return k.gen == k.durable || k.commitFailing(now)
}

// failStuck fails all requests that wait for a disk that does not respond. If the write does
// end, the file is behind the book and is written again.
func (k *Keeper) failStuck(now time.Time) {
	if !k.stuck(now) || len(k.unanswered) == 0 {
		return
	}
	err := fmt.Errorf("the disk has not answered for over %v", commitLimit)
	k.commitFailed(now, err)
	k.undo(k.takeUpTo(k.gen), now, err)
}

func (k *Keeper) takeUpTo(gen uint64) []answer {
	n := 0
	for n < len(k.unanswered) && k.unanswered[n].gen <= gen {
		n++
	}
	due := slices.Clone(k.unanswered[:n])
	k.unanswered = slices.Delete(k.unanswered, 0, n)
	return due
}
