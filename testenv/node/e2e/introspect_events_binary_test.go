package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// follower reads events as they happen, over connections that get cut.
type follower struct {
	mu     sync.Mutex
	events []introspect.Event // guarded by mu
	broken int                // failed requests; guarded by mu
	seen   func(n int)        // called for each event, with the number of events so far
	end    context.CancelFunc
	ended  chan struct{}
}

func (l *lab) follow(c *client.Client, after client.Cursor, seen func(n int)) *follower {
	ctx, cancel := context.WithCancel(l.t.Context())
	f := &follower{seen: seen, end: cancel, ended: make(chan struct{})}
	go func() { // ends with the context
		defer close(f.ended)
		for e, err := range c.Follow(ctx, client.FollowOptions{After: after, Wait: 2 * time.Second, Retry: 10 * time.Millisecond}) {
			f.take(e, err)
		}
	}()
	l.t.Cleanup(func() {
		cancel()
		<-f.ended
	})
	return f
}

func (f *follower) take(e introspect.Event, err error) {
	f.mu.Lock()
	if err != nil {
		f.broken++
	} else {
		f.events = append(f.events, e)
	}
	n := len(f.events)
	f.mu.Unlock()
	if err == nil && f.seen != nil {
		f.seen(n)
	}
}

func (f *follower) all() (events []introspect.Event, broken int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events), f.broken
}

func count(events []introspect.Event, kind introspect.EventKind) (n int) {
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// inOrder checks that events are numbered from first on without a gap.
func inOrder(t *testing.T, events []introspect.Event, first uint64) {
	t.Helper()
	for i, e := range events {
		if want := first + uint64(i); e.Seq != want {
			t.Fatalf("event %d of the list has number %d, want %d: %+v", i, e.Seq, want, e)
		}
		if i > 0 && e.At.Before(events[i-1].At) {
			t.Errorf("event %d is older than the one before it: %+v after %+v", e.Seq, e, events[i-1])
		}
		if e.Kind.Title() == "" {
			t.Errorf("event %d is of the unknown kind %q", e.Seq, e.Kind)
		}
	}
}

// TestEvents_NoneLostNoneDoubled adds and deletes sixty pods while the follower's
// connection is cut after every seventh event.
func TestEvents_NoneLostNoneDoubled(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.4xlarge", map[string]string{"ENABLE_PREFIX_DELEGATION": "true"})
	_, d := l.introspection(n)
	f := l.follow(l.client(d), client.Cursor{}, func(n int) {
		if n%7 == 0 {
			d.cut()
		}
	})
	pods := map[string]*node.Pod{}
	for round := range 4 {
		some := l.mustAdd(n, fmt.Sprintf("p%d", round), 15, 5)
		for _, p := range some {
			pods[p.Name] = p
		}
		d.cut()
		l.del(n, some, 5)
	}
	testenv.Eventually(l.t, "the last event", func() bool {
		events, _ := f.all()
		return count(events, introspect.EventAddressReleased) >= 60
	})
	events, broken := f.all()
	// An HTTP client reconnects on its own when a kept-alive connection turns out to be closed:
	// only the other cuts are failures.
	if n := d.opened(); n < 10 {
		t.Errorf("the follower connected %d times: the connection was not cut", n)
	}
	t.Logf("%d events over %d connections, %d failed requests", len(events), d.opened(), broken)
	inOrder(t, events, 1)
	if events[0].Kind != introspect.EventStarted {
		t.Errorf("the first event is %s", events[0].Kind)
	}
	state := map[string]introspect.EventKind{}
	for _, e := range events {
		if e.Kind != introspect.EventAddressAssigned && e.Kind != introspect.EventAddressReleased {
			continue
		}
		p := pods[e.Pod.Name]
		if p == nil || e.Address != p.IP || e.ENIID == "" {
			t.Fatalf("event of no pod of the test: %+v", e)
		}
		want := introspect.EventAddressAssigned
		if state[p.Name] != "" {
			want = introspect.EventAddressReleased
		}
		if e.Kind != want || state[p.Name] == introspect.EventAddressReleased {
			t.Errorf("%s of %s after %q", e.Kind, p.Name, state[p.Name])
		}
		state[p.Name] = e.Kind
	}
	for name := range pods {
		if state[name] != introspect.EventAddressReleased {
			t.Errorf("the last event of %s is %q", name, state[name])
		}
	}
	// A later reader gets the same events, at once or in parts.
	whole, err := l.client(d).Events(t.Context(), client.Cursor{}, client.EventsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := encoded(t, events), encoded(t, whole.Items[:min(len(events), len(whole.Items))]); a != b {
		t.Errorf("followed\n%s\nasked for\n%s", a, b)
	}
	var pieces []introspect.Event
	for at := (client.Cursor{Epoch: whole.Epoch}); at.Seq < whole.Next; {
		doc, err := l.client(d).Events(t.Context(), at, client.EventsOptions{Limit: 9})
		if err != nil {
			t.Fatal(err)
		}
		pieces, at.Seq = append(pieces, doc.Items...), doc.Next
	}
	if a, b := encoded(t, whole.Items), encoded(t, pieces[:min(len(pieces), len(whole.Items))]); a != b {
		t.Errorf("whole\n%s\nin pieces\n%s", a, b)
	}
	for _, p := range pods {
		if s := encoded(t, events); len(s) == 0 || containsAny(s, p.ContainerID) {
			t.Errorf("the events hold the sandbox id of %s", p.Name)
		}
	}
	l.nothingLeft(n)
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestEvents_Restart kills the daemon during a follow: a gap with the reason separates the two
// runs, and both are complete.
func TestEvents_Restart(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	_, d := l.introspection(n)
	f := l.follow(l.client(d), client.Cursor{}, nil)
	pods := l.mustAdd(n, "p", 3, 1)
	l.settled(n)
	testenv.Eventually(l.t, "events", func() bool {
		events, _ := f.all()
		return count(events, introspect.EventAddressAssigned) == 3
	})
	l.kill(n, 9)
	l.start(n, nil)
	l.del(n, pods, 1)
	testenv.Eventually(l.t, "events of the second run", func() bool {
		events, _ := f.all()
		return count(events, introspect.EventAddressReleased) == 3
	})
	events, _ := f.all()
	gap := slices.IndexFunc(events, func(e introspect.Event) bool { return e.Kind == introspect.EventGap })
	if gap < 0 || count(events, introspect.EventGap) != 1 || events[gap].Reason != introspect.GapRestart || events[gap].Missed != nil {
		t.Fatalf("want one gap with the reason restart: %s", encoded(t, events))
	}
	inOrder(t, events[:gap], 1)
	inOrder(t, events[gap+1:], events[gap].Seq+1)
	if events[gap].Seq != 0 || events[gap+1].Kind != introspect.EventStarted {
		t.Errorf("the second run begins with %+v after %+v", events[gap+1], events[gap])
	}
	if got := count(events[:gap], introspect.EventAddressAssigned); got != 3 {
		t.Errorf("%d assignments in the first run", got)
	}
}

// TestEvents_Overflow: a follower that returns after more changes than the daemon keeps is given
// the number of missing ones.
func TestEvents_Overflow(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", map[string]string{"IP_COOLDOWN_PERIOD": "0", "MAX_ENI": "1"})
	l.settled(n)
	c, d := l.introspection(n)
	before, err := c.Events(t.Context(), client.Cursor{}, client.EventsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 270 // two changes each
	for i := range rounds {
		if r := l.wireAdd(n, sandbox(i)); !r.Success {
			t.Fatalf("ADD %d: %+v", i, r)
		}
		if r := l.wireDel(n, sandbox(i)); !r.Success {
			t.Fatalf("DEL %d: %+v", i, r)
		}
	}
	after := client.Cursor{Epoch: before.Epoch, Seq: before.Next}
	doc, err := c.Events(t.Context(), after, client.EventsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gap := doc.Items[0]
	if gap.Kind != introspect.EventGap || gap.Reason != introspect.GapOverflow || gap.Missed == nil || *gap.Missed != gap.Seq-after.Seq {
		t.Fatalf("first %+v after event %d", gap, after.Seq)
	}
	events := doc.Items[1:]
	inOrder(t, events, gap.Seq+1)
	if len(events) != introspect.MaxEvents {
		t.Errorf("%d events, want the last %d", len(events), introspect.MaxEvents)
	}
	if total := int(*gap.Missed) + len(events); total < 2*rounds {
		t.Errorf("%d missed and %d received: fewer than %d changes", *gap.Missed, len(events), 2*rounds)
	}
	last := events[len(events)-1]
	if last.Kind != introspect.EventAddressReleased && count(events, introspect.EventAddressReleased) < introspect.MaxEvents/2-10 {
		t.Errorf("the newest is %+v", last)
	}
	all := l.schemas(d)
	for _, path := range []string{"", "?since=1", "?limit=3", "?epoch=other&since=5", "?since=99999999&epoch=" + before.Epoch, "?wait=31", "?since=x"} {
		all.check(t, l.ask(d, introspect.PathEvents+path, nil).body)
	}
}
