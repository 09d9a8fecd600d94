package introspectserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/testenv"
)

func numbered(n uint64) introspect.Event {
	return introspect.Event{At: testNow.Add(time.Duration(n) * time.Second), Kind: introspect.EventAddressAssigned}
}

func fed(n uint64) *Feed {
	f := NewFeed(testNow)
	for i := range n {
		f.Append(numbered(i + 1))
	}
	return f
}

func TestFeed_Read(t *testing.T) {
	t.Parallel()
	since := func(n uint64) *uint64 { return &n }
	epoch := fed(0).epoch
	for _, row := range []struct {
		n    uint64
		q    eventQuery
		want string
	}{
		{0, eventQuery{}, "next 0"},
		{3, eventQuery{}, "1 2 3 next 3"},
		{3, eventQuery{limit: 2}, "1 2 next 2"},
		{3, eventQuery{since: since(1), epoch: epoch}, "2 3 next 3"},
		{3, eventQuery{since: since(3), epoch: epoch}, "next 3"},
		{3, eventQuery{since: since(3)}, "next 3"},
		{3, eventQuery{since: since(4), epoch: epoch}, "since is 4, but the newest event is 3"},
		{3, eventQuery{since: since(4)}, "gap to 0 restart 1 2 3 next 3"},
		{3, eventQuery{since: since(1), epoch: "other"}, "gap to 0 restart 1 2 3 next 3"},
		{3, eventQuery{epoch: "other", limit: 1}, "gap to 0 restart 1 next 1"},
		{0, eventQuery{since: since(7), epoch: "other"}, "gap to 0 restart next 0"},
		{501, eventQuery{limit: 1}, "2 next 2"}, // without since nothing is missing
		{501, eventQuery{since: since(0), epoch: epoch, limit: 1}, "gap to 1 overflow missed 1 2 next 2"},
		{507, eventQuery{since: since(4), epoch: epoch, limit: 1}, "gap to 7 overflow missed 3 8 next 8"},
		{507, eventQuery{since: since(4), epoch: "other", limit: 1}, "gap to 7 restart 8 next 8"},
	} {
		if row.q.limit == 0 {
			row.q.limit = introspect.MaxEvents
		}
		doc, grown, err := fed(row.n).read(row.q, testNow)
		var words []string
		for _, e := range doc.Items {
			switch {
			case e.Kind != introspect.EventGap:
				words = append(words, fmt.Sprint(e.Seq))
			case e.Missed != nil:
				words = append(words, fmt.Sprintf("gap to %d %s missed %d", e.Seq, e.Reason, *e.Missed))
			default:
				words = append(words, fmt.Sprintf("gap to %d %s", e.Seq, e.Reason))
			}
			if e.At.IsZero() {
				t.Errorf("%+v: no time", e)
			}
		}
		got := strings.Join(append(words, fmt.Sprintf("next %d", doc.Next)), " ")
		if err != nil {
			got = err.Error()
		}
		if got != row.want || err == nil && (len(doc.Items) == 0) != (grown != nil) {
			t.Errorf("%d events, %+v:\n got %s\nwant %s", row.n, row.q, got, row.want)
		}
	}
}

func TestFeed_Bounds(t *testing.T) {
	t.Parallel()
	f, l := NewFeed(testNow), NewFailureLog()
	for range 600 {
		f.Append(introspect.Event{Message: strings.Repeat("é", 1000), CIDRs: make([]netip.Prefix, 1000), At: time.Now()})
		l.Append(introspect.Failure{Detail: strings.Repeat("é", 1000)})
	}
	doc, _, err := f.read(eventQuery{limit: introspect.MaxEvents}, testNow)
	if err != nil || len(doc.Items) != introspect.MaxEvents {
		t.Fatalf("%d events, %v", len(doc.Items), err)
	}
	if e := doc.Items[0]; len(e.Message) > maxSentence+3 || len(e.CIDRs) != maxEventCIDRs || e.At.Location() != time.UTC {
		t.Errorf("%d bytes, %d CIDRs, %s", len(e.Message), len(e.CIDRs), e.At)
	}
	if got := l.list(); len(got) != introspect.MaxFailures || len(got[0].Detail) > maxSentence+3 {
		t.Errorf("%d failures", len(got))
	}
}

func TestFailureLog_NewestFirst(t *testing.T) {
	t.Parallel()
	l := NewFailureLog()
	if got := l.list(); got == nil || len(got) != 0 {
		t.Errorf("%v", got)
	}
	for n := range 150 {
		l.Append(introspect.Failure{WaitedMS: int64(n), Cause: "pool-dry"})
	}
	got := l.list()
	if got[0].WaitedMS != 149 || got[99].WaitedMS != 50 || got[0].Title == "" {
		t.Errorf("%+v … %+v", got[0], got[99])
	}
}

// TestEvents_Kinds: every kind has its own title.
func TestEvents_Kinds(t *testing.T) {
	t.Parallel()
	kinds := introspect.EventKinds()
	for _, k := range kinds {
		if k.Title() == "" {
			t.Errorf("%s has no title", k)
		}
	}
	slices.Sort(kinds)
	if len(slices.Compact(kinds)) != len(introspect.EventKinds()) || introspect.EventKind("x").Title() != "" {
		t.Error("kinds")
	}
}

// run starts a server and returns its address and a function that stops it.
func run(t *testing.T, opts Options) (addr string, end func()) {
	t.Helper()
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	select {
	case <-s.Ready():
	case err := <-done:
		cancel()
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(end)
	return s.Addr(), end
}

func newClient(t *testing.T, addr string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Address: addr, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestEvents_LongPollOutlivesTheWriteTimeout: the server's time limits apply only to
// immediate answers.
func TestEvents_LongPollOutlivesTheWriteTimeout(t *testing.T) {
	t.Parallel()
	opts := fullOptions()
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.http.ReadTimeout, s.http.WriteTimeout = 500*time.Millisecond, 500*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	<-s.Ready()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	c := newClient(t, s.Addr())
	took := testenv.Took(func() {
		doc, err := c.Events(t.Context(), client.Cursor{Epoch: opts.Events.epoch, Seq: 3}, client.EventsOptions{Wait: time.Second})
		if err != nil || len(doc.Items) != 0 || doc.Next != 3 {
			t.Fatalf("%+v, %v", doc, err)
		}
	})
	if took < time.Second {
		t.Fatalf("an answer after %s, not a second", took)
	}
	answer := make(chan introspect.NodeEvents, 1)
	go func() {
		doc, err := c.Events(ctx, client.Cursor{Epoch: opts.Events.epoch, Seq: 3}, client.EventsOptions{Wait: 30 * time.Second})
		if err != nil {
			t.Error(err)
		}
		answer <- doc
	}()
	h := s.http.Handler.(*handler)
	testenv.Eventually(t, "requests wait for events", func() bool { return len(h.polls) == 1 })
	opts.Events.Append(numbered(4))
	if doc := <-answer; len(doc.Items) != 1 || doc.Items[0].Seq != 4 {
		t.Errorf("%+v", doc)
	}
	testenv.Eventually(t, "requests wait for events", func() bool { return len(h.polls) == 0 })
}

func TestEvents_EndWithTheServer(t *testing.T) {
	t.Parallel()
	opts := fullOptions()
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	<-s.Ready()
	c := newClient(t, s.Addr())
	answer := make(chan error, 1)
	go func() {
		_, err := c.Events(t.Context(), client.Cursor{Epoch: opts.Events.epoch, Seq: 3}, client.EventsOptions{Wait: 30 * time.Second})
		answer <- err
	}()
	h := s.http.Handler.(*handler)
	testenv.Eventually(t, "requests wait for events", func() bool { return len(h.polls) == 1 })
	cancel()
	if err := <-answer; err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestEvents_TooManyWait(t *testing.T) {
	t.Parallel()
	opts := fullOptions()
	stop := make(chan struct{})
	h := newHandler(opts, "", stop)
	target := fmt.Sprintf("/v1/events?since=3&epoch=%s&wait=30", opts.Events.epoch)
	var all sync.WaitGroup
	for range maxPolls {
		all.Go(func() { ask(t, h, target) })
	}
	testenv.Eventually(t, "requests wait for events", func() bool { return len(h.polls) == maxPolls })
	w := ask(t, h, target)
	if f := read[introspect.Fault](t, w); w.Code != http.StatusServiceUnavailable || f.Code != introspect.FaultBusy || w.Header().Get("Retry-After") != "5" {
		t.Errorf("%d %+v", w.Code, f)
	}
	// Without a wait the answer is immediate.
	if w := ask(t, h, "/v1/events"); w.Code != http.StatusOK {
		t.Errorf("%d", w.Code)
	}
	close(stop)
	all.Wait()
	testenv.Eventually(t, "requests wait for events", func() bool { return len(h.polls) == 0 })
	// A client that disconnects frees its place.
	ctx, cancel := context.WithCancel(t.Context())
	h = newHandler(opts, "", nil)
	all.Go(func() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil))
	})
	testenv.Eventually(t, "requests wait for events", func() bool { return len(h.polls) == 1 })
	cancel()
	all.Wait()
	testenv.Eventually(t, "requests wait for events", func() bool { return len(h.polls) == 0 })
}

// TestFollow_NothingLostNothingDoubled: several clients follow a node across restarts of its
// server and of the daemon, while bursts of events overflow the ring for slow clients. Each
// gets exactly what happened, except for the gaps reported to it.
func TestFollow_NothingLostNothingDoubled(t *testing.T) {
	t.Parallel()
	const runs, bursts = 3, 4
	rnd := rand.New(rand.NewPCG(7, 7))
	addr := "unix:" + filepath.Join(t.TempDir(), "i.sock")
	happened := map[string]uint64{} // last number by epoch
	var followers [4][]introspect.Event
	ctx, cancel := context.WithCancel(t.Context())
	last := make(chan struct{}, len(followers))
	var all sync.WaitGroup
	for i := range followers {
		c := newClient(t, addr)
		all.Go(func() {
			for e, err := range c.Follow(ctx, client.FollowOptions{Retry: time.Millisecond}) {
				if err != nil {
					continue // the server is down
				}
				followers[i] = append(followers[i], e)
				if e.Kind == introspect.EventTerminating {
					last <- struct{}{}
				}
			}
		})
	}
	for n := range runs {
		feed := NewFeed(testNow.Add(time.Duration(n) * time.Hour))
		for range bursts {
			_, end := run(t, Options{Addr: addr, Source: source{}, Log: discard(), Events: feed})
			for range rnd.IntN(700) {
				e := numbered(1)
				e.Reason = feed.epoch // which daemon run it is from
				feed.Append(e)
			}
			end()
		}
		happened[feed.epoch] = feed.Append(introspect.Event{Kind: introspect.EventCheckpointFailed, Reason: feed.epoch})
		if n == runs-1 {
			happened[feed.epoch] = feed.Append(introspect.Event{Kind: introspect.EventTerminating, Reason: feed.epoch})
			run(t, Options{Addr: addr, Source: source{}, Log: discard(), Events: feed})
		}
	}
	for range followers {
		testenv.Receive(t, "the last event", last)
	}
	cancel()
	all.Wait()
	for i, got := range followers {
		if err := complete(got, happened); err != nil {
			t.Errorf("follower %d: %v", i, err)
		}
	}
}

// complete checks one follower's events: unless there is a gap, each follows its
// predecessor.
func complete(got []introspect.Event, happened map[string]uint64) error {
	epoch, seq := "", uint64(0)
	for n, e := range got {
		switch {
		case e.Kind == introspect.EventGap && e.Reason == introspect.GapRestart:
			epoch, seq = "", e.Seq
		case e.Kind == introspect.EventGap && e.Reason == introspect.GapOverflow:
			if e.Missed == nil || seq+*e.Missed != e.Seq {
				return fmt.Errorf("event %d: gap %+v after %d", n, e, seq)
			}
			seq = e.Seq
		case epoch == "" && n == 0: // the node's oldest event
			epoch, seq = e.Reason, e.Seq
		default:
			if epoch == "" {
				epoch = e.Reason
			}
			if e.Seq != seq+1 || e.Reason != epoch {
				return fmt.Errorf("event %d: %d of %s after %d of %s", n, e.Seq, e.Reason, seq, epoch)
			}
			seq = e.Seq
		}
		if epoch != "" && seq > happened[epoch] {
			return errors.New("more than happened")
		}
	}
	if seq != happened[epoch] {
		return fmt.Errorf("ended at %d of %d", seq, happened[epoch])
	}
	return nil
}

// TestServe_OneOfTwoDaemonsGetsTheSocket: both start at once over a stale socket.
func TestServe_OneOfTwoDaemonsGetsTheSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "i.sock")
	for range 20 {
		ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		ln.SetUnlinkOnClose(false)
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 2)
		ready := make(chan struct{}, 2)
		for range 2 {
			s, err := New(Options{Addr: "unix:" + path, Source: source{}, Log: discard()})
			if err != nil {
				t.Fatal(err)
			}
			go func() { results <- s.Serve(ctx) }()
			go func() {
				select {
				case <-s.Ready():
					ready <- struct{}{}
				case <-ctx.Done():
				}
			}()
		}
		// One fails, the other serves.
		if err := <-results; err == nil || !strings.Contains(err.Error(), "another process") {
			t.Errorf("the second: %v", err)
		}
		<-ready
		if _, _, err := newClient(t, "unix:"+path).Summary(t.Context()); err != nil {
			t.Errorf("the first: %v", err)
		}
		cancel()
		if err := <-results; err != nil {
			t.Errorf("the first: %v", err)
		}
	}
}

func BenchmarkFeed_Append(b *testing.B) {
	f := NewFeed(testNow)
	e := numbered(1)
	b.ReportAllocs()
	for b.Loop() {
		f.Append(e)
	}
}
