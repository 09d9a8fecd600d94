package keeper

import (
	"fmt"
	"slices"
	"time"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/crashpoint"
)

const (
	// commitRetry spaces attempts to write a checkpoint that could not be written,
	// from the first to the most.
	commitRetry     = time.Second
	commitRetryMost = 30 * time.Second
	// commitLimit is how long a write may take before those who wait for it are answered
	// that the disk hangs: below the time that a drain leaves.
	commitLimit = 3 * time.Second
	// slowCommit is more than a healthy disk takes.
	slowCommit = time.Second
)

// Image is what changed of the checkpoint files up to one generation of the allocations.
// Its bytes are the Keeper's: they hold until the write is reported by [Committed].
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
	undo func(now time.Time, err error) // takes the change back and sends a failure
}

// changed records that the ledger differs from what was last handed to the writer.
func (k *Keeper) changed() {
	k.gen++
	// A request waits for the disk, which may work again.
	if soon := k.commitFailedAt.Add(commitRetry); soon.Before(k.commitAfter) {
		k.commitAfter = soon
	}
}

// answerDurably sends a reply as soon as everything changed so far is on disk.
func (k *Keeper) answerDurably(now time.Time, done func(time.Time), undo func(time.Time, error)) {
	if k.gen == k.durable {
		done(now)
		return
	}
	k.unanswered = append(k.unanswered, answer{gen: k.gen, done: done, undo: undo})
}

// flush hands the newest image to the writer unless one is being written; the
// changes of all requests that arrived meanwhile then go out together.
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
	// Also what came after that image: it may rest on what is taken back.
	k.undo(k.takeUpTo(k.gen), now, m.Err)
}

// commitFailed records a failure, but not its repetitions.
func (k *Keeper) commitFailed(now time.Time, err error) {
	if text := err.Error(); k.commitProblem != text {
		k.commitProblem = text
		k.record(now, CheckpointFailed{Err: err})
	}
}

// undo takes changes back, newest first: a later one may rest on an earlier one.
func (k *Keeper) undo(due []answer, now time.Time, err error) {
	for _, a := range slices.Backward(due) {
		a.undo(now, err)
	}
}

// stuck reports that the writer has been at one image for too long.
func (k *Keeper) stuck(now time.Time) bool {
	return k.writing && now.Sub(k.wrote) >= commitLimit
}

// commitFailing reports that waiting for the disk cannot succeed.
func (k *Keeper) commitFailing(now time.Time) bool {
	return k.stuck(now) || now.Before(k.commitAfter)
}

// Settled reports that the checkpoint is as current as the disk allows: there is
// nothing to wait for before the end.
func (k *Keeper) Settled(now time.Time) bool {
	return k.gen == k.durable || k.commitFailing(now)
}

// failStuck fails everybody who waits for a disk that does not answer. When the
// write ends after all, the file is behind the book and is written again.
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
