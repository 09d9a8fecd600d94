package client

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"time"

	"cnictl/daemon/api/introspect"
)

// Cursor is a position in a node's events. The zero value comes before the oldest event
// that the node remembers.
type Cursor struct {
	Epoch string // the daemon's run; "" if unknown
	Seq   uint64 // the last event seen
}

// EventsOptions bounds one request for events. The zero value asks for all events.
type EventsOptions struct {
	Wait  time.Duration // how long to wait for events, in whole seconds up to MaxEventWait
	Limit int           // maximum number of events; 0 = the node's limit
}

// Events reads the events after a cursor. The next cursor is Cursor{doc.Epoch, doc.Next}.
func (c *Client) Events(ctx context.Context, after Cursor, opts EventsOptions) (introspect.NodeEvents, error) {
	q := url.Values{}
	if after.Epoch != "" {
		q.Set("epoch", after.Epoch)
		q.Set("since", strconv.FormatUint(after.Seq, 10))
	}
	if wait := min(int(opts.Wait/time.Second), introspect.MaxEventWait); wait > 0 {
		q.Set("wait", strconv.Itoa(wait))
	}
	if opts.Limit > 0 {
		q.Set("limit", strconv.Itoa(min(opts.Limit, introspect.MaxEvents)))
	}
	var doc introspect.NodeEvents
	if _, err := c.ours(ctx, introspect.PathEvents, q, introspect.KindEvents, &doc.Kind, &doc); err != nil {
		return introspect.NodeEvents{}, err
	}
	if err := checkEvents(doc, after); err != nil {
		return introspect.NodeEvents{}, c.malformed(introspect.PathEvents, err)
	}
	return doc, nil
}

// checkEvents refuses an answer that would silently lose or repeat events.
func checkEvents(doc introspect.NodeEvents, after Cursor) error {
	if doc.Epoch == "" || len(doc.Epoch) > 64 || len(doc.Items) > introspect.MaxEvents+1 {
		return fmt.Errorf("epoch %.20q with %d events", doc.Epoch, len(doc.Items))
	}
	last, known := after.Seq, after.Epoch != ""
	if known && after.Epoch != doc.Epoch && (len(doc.Items) == 0 || doc.Items[0].Kind != introspect.EventGap) {
		return fmt.Errorf("epoch %.20q where %.20q was asked for, without a gap", doc.Epoch, after.Epoch)
	}
	for _, e := range doc.Items {
		switch {
		case e.Kind == introspect.EventGap:
			if after.Epoch == doc.Epoch && e.Seq <= last {
				return fmt.Errorf("a gap up to event %d after event %d", e.Seq, last)
			}
		case known && e.Seq != last+1:
			return fmt.Errorf("event %d after event %d", e.Seq, last)
		}
		last, known = e.Seq, true
	}
	if len(doc.Items) > 0 && doc.Next != last || known && len(doc.Items) == 0 && doc.Next != after.Seq {
		return fmt.Errorf("next is %d after event %d", doc.Next, last)
	}
	return nil
}

// FollowOptions configures Follow. The zero value starts at the oldest event that the node
// remembers.
type FollowOptions struct {
	After Cursor
	Wait  time.Duration // of one request; 0 = 25 s
	Retry time.Duration // the first pause after a failed request, doubled up to 30 s; 0 = 1 s
}

const (
	defaultWait  = 25 * time.Second // below the usual timeouts of proxies and port-forwards
	maxRetry     = 30 * time.Second
	requestSlack = 10 * time.Second // time for one request beyond its wait
)

// Follow yields events as they happen until the caller stops or ctx ends. It yields each
// failure as an error, and reconnects if the caller continues. No event is lost or repeated
// by a reconnection; if the node itself has lost some, a gap event says so. A node that
// does not serve events, or sends nonsense, ends the sequence after its error.
func (c *Client) Follow(ctx context.Context, opts FollowOptions) iter.Seq2[introspect.Event, error] {
	if opts.Wait <= 0 {
		opts.Wait = defaultWait
	}
	if opts.Retry <= 0 {
		opts.Retry = time.Second
	}
	return func(yield func(introspect.Event, error) bool) {
		after, pause := opts.After, opts.Retry
		for ctx.Err() == nil {
			doc, err := c.eventsWithin(ctx, after, opts.Wait)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				if !yield(introspect.Event{}, err) || !worthRetry(err) || !wait(ctx, pause) {
					return
				}
				pause = min(2*pause, maxRetry)
				continue
			}
			pause = opts.Retry
			if len(doc.Items) == 0 && !wait(ctx, pause) { // the node may answer without waiting
				return
			}
			for _, e := range doc.Items {
				if !yield(e, nil) {
					return
				}
			}
			after = Cursor{Epoch: doc.Epoch, Seq: doc.Next}
		}
	}
}

func (c *Client) eventsWithin(ctx context.Context, after Cursor, wait time.Duration) (introspect.NodeEvents, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+requestSlack)
	defer cancel()
	return c.Events(ctx, after, EventsOptions{Wait: wait})
}

// worthRetry reports whether the node may be back later.
func worthRetry(err error) bool {
	switch ReasonOf(err) {
	case introspect.ReasonRefused, introspect.ReasonNoSocket, introspect.ReasonTimeout, introspect.ReasonTransport,
		introspect.ReasonUnresolved, introspect.ReasonBusy:
		return true
	}
	return false
}

// wait pauses. It returns false if ctx ended first.
func wait(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
