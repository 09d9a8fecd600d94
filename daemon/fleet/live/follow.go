package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// follower is the long poll for events on the open node, which brings its events to the
// screen at once. Only the loop uses it.
type follower struct {
	member *member
	cancel context.CancelFunc
}

// follow starts and ends that request to match the focus.
func (l *Live) follow(ctx context.Context, running *sync.WaitGroup, f *follower) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.members[l.focus.Open]
	if m != nil && (l.focus.Away || l.paused || m.noEvents || m.source != document.SourceSummary || m.reader.Client() == nil) {
		m = nil
	}
	if m == f.member {
		return
	}
	if f.cancel != nil {
		f.cancel()
	}
	if f.member, f.cancel = m, nil; m == nil {
		return
	}
	following, cancel := context.WithCancel(ctx)
	f.cancel = cancel
	l.guarded(running, func() {
		defer cancel()
		l.followEvents(following, m)
	})
}

const (
	eventWait     = 25 * time.Second // shorter than the idle timeouts of proxies and port-forwards
	eventSlack    = 5 * time.Second  // for one request, on top of its wait
	eventRetry    = 5 * time.Second
	eventRetryMax = time.Minute
	eventGap      = 500 * time.Millisecond // between two requests, if the node answers at once
)

// followEvents forces a read of the node whenever it reports an event.
func (l *Live) followEvents(ctx context.Context, m *member) {
	l.countFollower(1)
	defer l.countFollower(-1)
	var after client.Cursor
	for wait := eventRetry; ctx.Err() == nil; {
		doc, err := eventsWithin(ctx, m, after)
		var bug *fleet.Panic
		if errors.As(err, &bug) {
			l.trouble(fmt.Errorf("follow the events of node %s: %w", m.target.Name, err))
		}
		switch client.ReasonOf(err) {
		case "":
			wait = eventRetry
			news := after.Epoch != "" && len(doc.Items) > 0
			after = client.Cursor{Epoch: doc.Epoch, Seq: doc.Next}
			if news {
				l.mu.Lock()
				l.plan.Force(m.target.Name)
				l.mu.Unlock()
				l.poke()
			}
			if !pause(ctx, eventGap) {
				return
			}
			continue
		case introspect.ReasonNoEndpoint, introspect.ReasonNotServed, introspect.ReasonNotFound:
			l.mu.Lock()
			m.noEvents = true
			l.mu.Unlock()
			return
		}
		if !pause(ctx, wait) {
			return
		}
		wait = min(2*wait, eventRetryMax)
	}
}

func eventsWithin(ctx context.Context, m *member, after client.Cursor) (introspect.NodeEvents, error) {
	ctx, cancel := context.WithTimeout(ctx, eventWait+eventSlack)
	defer cancel()
	return fleet.Recover(func() (introspect.NodeEvents, error) {
		return m.reader.Client().Events(ctx, after, client.EventsOptions{Wait: eventWait})
	})
}

func (l *Live) countFollower(n int) {
	l.mu.Lock()
	l.followers += n
	l.mu.Unlock()
}
