package introspectserver

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
)

// Bounds of one event and one failure, so that a full answer stays below 1 MiB.
const (
	maxSentence   = 512 // bytes of a message
	maxEventCIDRs = 32
)

// Feed holds the state changes for /v1/events. It is safe for concurrent use; Append never
// waits for a reader.
type Feed struct {
	epoch string

	mu     sync.Mutex // guards ring and change
	ring   *ring[introspect.Event]
	change chan struct{} // closed at the next Append; nil while no reader waits
}

// NewFeed makes an empty feed for the daemon run that started at the given time, which
// becomes the epoch of its events, so that two runs on a node differ.
func NewFeed(started time.Time) *Feed {
	return &Feed{
		epoch: strconv.FormatInt(started.UnixNano(), 36),
		ring:  newRing[introspect.Event](introspect.MaxEvents),
	}
}

// Append adds a state change and returns its number. It sets Seq, converts At to UTC and
// truncates Message and CIDRs. The feed keeps the event's slices and pointers, so the
// caller must not modify what they refer to.
func (f *Feed) Append(e introspect.Event) uint64 {
	e.At = e.At.UTC()
	e.Message = sentence(e.Message)
	if len(e.CIDRs) > maxEventCIDRs {
		e.CIDRs = slices.Clip(e.CIDRs[:maxEventCIDRs])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	e.Seq = f.ring.Last() + 1
	if f.change != nil {
		close(f.change)
		f.change = nil
	}
	return f.ring.Append(e)
}

// read returns the events after q.since. Without a since nothing counts as missing, and the
// answer starts with the oldest event. If there are no events, grown is closed at the next
// one.
func (f *Feed) read(q eventQuery, now time.Time) (doc introspect.NodeEvents, grown <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.ring.Last()
	gap := ""
	var after uint64
	switch {
	case q.epoch != "" && q.epoch != f.epoch:
		gap, after = introspect.GapRestart, f.ring.First()-1
	case q.since == nil:
		after = f.ring.First() - 1
	case *q.since <= last:
		after = *q.since
	case q.epoch == "":
		// Only another run can have had so many.
		gap, after = introspect.GapRestart, f.ring.First()-1
	default:
		return doc, nil, badParameter("since is %d, but the newest event is %d", *q.since, last)
	}
	items, first, missed := f.ring.Since(after, q.limit)
	if missed > 0 {
		gap = introspect.GapOverflow
	}
	doc = introspect.NodeEvents{
		APIVersion: introspect.APIVersion, Kind: introspect.KindEvents, Epoch: f.epoch,
		Next: first - 1 + uint64(len(items)), Items: items,
	}
	switch {
	case gap != "":
		doc.Items = slices.Insert(items, 0, gapEvent(gap, first-1, missed, items, now))
	case items == nil:
		doc.Items = []introspect.Event{}
		if f.change == nil {
			f.change = make(chan struct{})
		}
	}
	return doc, f.change, nil
}

// gapEvent replaces the events up to a number, which the reader cannot get.
func gapEvent(reason string, upTo, missed uint64, then []introspect.Event, now time.Time) introspect.Event {
	e := introspect.Event{Seq: upTo, At: now.UTC(), Kind: introspect.EventGap, Reason: reason}
	if len(then) > 0 {
		e.At = then[0].At
	}
	if reason == introspect.GapOverflow {
		e.Missed = &missed
	}
	return e
}

// FailureLog holds the failed ADDs for /v1/failures. It is safe for concurrent use.
type FailureLog struct {
	mu   sync.Mutex // guards ring
	ring *ring[introspect.Failure]
}

// NewFailureLog makes an empty log.
func NewFailureLog() *FailureLog {
	return &FailureLog{ring: newRing[introspect.Failure](introspect.MaxFailures)}
}

// Append adds a failed ADD. It takes the title from the cause and truncates the detail,
// which must not contain a sandbox id.
func (l *FailureLog) Append(f introspect.Failure) {
	f.At = f.At.UTC()
	f.Title = cause.Code(f.Cause).Title()
	f.Detail = sentence(f.Detail)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring.Append(f)
}

// list returns the failures, newest first.
func (l *FailureLog) list() []introspect.Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	items, _, _ := l.ring.Since(l.ring.First()-1, introspect.MaxFailures)
	slices.Reverse(items)
	if items == nil {
		items = []introspect.Failure{}
	}
	return items
}

// sentence truncates a text to maxSentence bytes of whole characters.
func sentence(s string) string {
	if len(s) <= maxSentence {
		return s
	}
	return strings.ToValidUTF8(s[:maxSentence], "") + "…"
}
