package live_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

const commands = `{"AvailableCommands":["/v1/enis"]}`

// node is an in-memory node that records when each path was requested.
type node struct {
	*fleettest.Pipe
	name string

	mu       sync.Mutex
	original bool
	broken   bool // it answers garbage
	events   int  // events so far
	news     chan struct{}
	asked    map[string][]time.Duration // since the start, by path
	start    time.Time
}

func newNode(t *testing.T, name string) *node {
	n := &node{name: name, asked: map[string][]time.Duration{}, start: time.Now(), news: make(chan struct{}, 1)}
	n.Pipe = fleettest.ServePipe(t, n.answer)
	return n
}

func (n *node) answer(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.asked[r.URL.Path] = append(n.asked[r.URL.Path], time.Since(n.start))
	original, broken := n.original, n.broken
	n.mu.Unlock()
	switch {
	case broken:
		_, _ = io.WriteString(w, "<html>")
	case original && r.URL.Path == introspect.PathENIs:
		_, _ = io.WriteString(w, `{"0":{"ENIPool":{}}}`)
	case original && r.URL.Path == introspect.PathIPAMEnv:
		_, _ = io.WriteString(w, `{"WARM_ENI_TARGET":1}`)
	case original:
		_, _ = io.WriteString(w, commands)
	case r.URL.Path == introspect.PathSummary:
		_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"NodeSummary","node":%q,"cards":[{"card":0,"total":9,"free":9}]}`, introspect.APIVersion, n.name)
	case r.URL.Path == introspect.PathENIs:
		_, _ = io.WriteString(w, `{"0":{"ENIPool":{}}}`)
	case r.URL.Path == introspect.PathPlan:
		_, _ = io.WriteString(w, `{"kind":"NodePlan"}`)
	case r.URL.Path == introspect.PathConfig:
		_, _ = io.WriteString(w, `{"kind":"NodeConfig"}`)
	case r.URL.Path == introspect.PathFailures:
		_, _ = io.WriteString(w, `{"kind":"Nonsense"}`)
	case r.URL.Path == introspect.PathEvents:
		n.answerEvents(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// answerEvents returns past events, or waits for one.
func (n *node) answerEvents(w http.ResponseWriter, r *http.Request) {
	if since := r.URL.Query().Get("since"); since == "" || since == fmt.Sprint(n.happened()) && r.URL.Query().Get("wait") != "" {
		if since != "" {
			wait := time.NewTimer(25 * time.Second)
			defer wait.Stop()
			select {
			case <-r.Context().Done():
			case <-wait.C:
			case <-n.news:
				last := n.happened()
				_, _ = fmt.Fprintf(w, `{"kind":"NodeEvents","epoch":"e","next":%d,"items":[{"seq":%d,"kind":"started"}]}`, last, last)
				return
			}
		}
	}
	_, _ = fmt.Fprintf(w, `{"kind":"NodeEvents","epoch":"e","next":%d,"items":[]}`, n.happened())
}

func (n *node) happened() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.events
}

// happen adds an event.
func (n *node) happen() {
	n.mu.Lock()
	n.events++
	n.mu.Unlock()
	n.news <- struct{}{}
}

func (n *node) set(f func(*node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n)
}

// times returns when a path was requested.
func (n *node) times(path string) []time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked[path])
}

func (n *node) target() fleet.Target {
	return fleet.Target{Name: n.name, Address: n.name + ":1", Dial: n.Dial, Via: document.ViaPortForward, Key: n.name + "-uid"}
}

// roster is a list of nodes that the test changes.
type roster struct {
	changes  chan func(put func(fleet.Target), remove func(string))
	ends     chan error
	troubles chan error
	more     atomic.Bool // nodes are still to come
}

func newRoster() *roster {
	return &roster{changes: make(chan func(func(fleet.Target), func(string))), ends: make(chan error), troubles: make(chan error)}
}

func (r *roster) Watch(ctx context.Context, put func(fleet.Target), listed func(), remove func(string), trouble func(error)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-r.ends:
			return err
		case err := <-r.troubles:
			trouble(err)
		case change := <-r.changes:
			if change(put, remove); !r.more.Load() {
				listed()
			}
		}
	}
}

func (r *roster) put(targets ...fleet.Target) {
	r.changes <- func(put func(fleet.Target), _ func(string)) {
		for _, t := range targets {
			put(t)
		}
	}
	synctest.Wait()
}

func (r *roster) remove(name string) {
	r.changes <- func(_ func(fleet.Target), remove func(string)) { remove(name) }
	synctest.Wait()
}

// bed is a Live with the test's fake clock.
type bed struct {
	*live.Live
	roster *roster
	stop   func()
}

func run(t *testing.T, opts live.Options) *bed {
	t.Helper()
	b := &bed{roster: newRoster()}
	if opts.Roster == nil {
		opts.Roster = b.roster
	}
	opts.Store = store.New()
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.CPU == nil {
		opts.CPU = func() time.Duration { return 0 }
	}
	l, err := live.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	b.Live, b.stop = l, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(b.stop)
	return b
}

func elapse(d time.Duration) {
	<-time.After(d) // on the fake clock
	synctest.Wait()
}

func seconds(times []time.Duration) []float64 {
	var out []float64
	for _, d := range times {
		out = append(out, d.Round(100*time.Millisecond).Seconds())
	}
	return out
}

func TestLive_PacesWhatIsLookedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		open, visible, rest, original := newNode(t, "open"), newNode(t, "visible"), newNode(t, "rest"), newNode(t, "original")
		original.original = true
		b.Focus(watch.Focus{Open: "open", Visible: []string{"visible", "original"}})
		b.roster.put(open.target(), visible.target(), rest.target(), original.target())
		elapse(61 * time.Second)
		for _, row := range []struct {
			n    *node
			path string
			want []float64
		}{
			{visible, introspect.PathSummary, []float64{0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60}},
			{visible, introspect.PathENIs, nil}, // no screen wants them
			{rest, introspect.PathSummary, []float64{0, 30, 60}},
			{original, introspect.PathENIs, []float64{0, 10, 20, 30, 40, 50, 60}},
			{original, introspect.PathSummary, []float64{0}}, // probed once
		} {
			if got := seconds(row.n.times(row.path)); !slices.Equal(got, row.want) {
				t.Errorf("%s: %s asked at %v, want %v", row.n.name, row.path, got, row.want)
			}
		}
		for _, path := range []string{introspect.PathSummary, introspect.PathENIs} {
			if got := len(open.times(path)); got != 25 {
				t.Errorf("%s of the open node read %d times, want 25", path, got)
			}
		}
		if v := b.View(); v.Totals.Live != 4 || v.Node("rest").Via != document.ViaPortForward {
			t.Errorf("totals %+v", v.Totals)
		}
		s := b.Stats()
		if s.Samples != uint64(25+13+3+7) || s.Failed != 0 || s.InFlight != 0 || s.Tunnels != 4 || s.Widened || s.Problem != "" {
			t.Errorf("stats %+v", s)
		}
		b.stop()
		for _, n := range []*node{open, visible, rest, original} {
			if n.Open() != 0 {
				t.Errorf("%s: %d connections after the end", n.name, n.Open())
			}
		}
	})
}

func TestLive_RowsBeforeAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		hangs := func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		object := &document.NodeObject{Zone: "eu-1a"}
		windows := &document.NodeObject{OS: "windows"}
		absent := &document.NodeError{Reason: introspect.ReasonNoPod, Message: "no aws-node pod"}
		b.roster.put(
			fleet.Target{Name: "hangs", Address: "x:1", Dial: hangs, Object: object},
			fleet.Target{Name: "win", Absent: absent, State: document.StateNoDaemon, Object: windows},
			fleet.Target{Name: "wrong", Address: "no address"},
		)
		v := b.View()
		if n := v.Node("hangs"); n == nil || n.State != document.StateAPIOnly || n.Object.Zone != "eu-1a" || n.Error != nil {
			t.Fatalf("hangs %+v", n)
		}
		if n := v.Node("win"); n.State != document.StateNoDaemon || n.Word != fleet.WordNoDaemon {
			t.Errorf("win %s %q", n.State, n.Word)
		}
		if n := v.Node("wrong"); n.State != document.StateUnreachable || n.Error == nil {
			t.Errorf("wrong %+v", n)
		}
		elapse(4 * time.Second)
		n := b.View().Node("hangs")
		if n.State != document.StateUnreachable || n.Error == nil || n.Error.Reason != introspect.ReasonTimeout || n.Object == nil {
			t.Errorf("after the time to dial: %s %+v", n.State, n.Error)
		}
	})
}

func TestLive_Breaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		n := newNode(t, "n")
		b.Focus(watch.Focus{Open: "n"})
		b.roster.put(n.target())
		elapse(time.Second)
		n.set(func(n *node) { n.broken = true })
		elapse(89 * time.Second)
		got := seconds(n.times(introspect.PathSummary))
		// Read as an open node, then as a failing one, then every minute.
		if want := []float64{0, 2.5, 12.5, 22.5, 82.5}; !slices.Equal(got, want) {
			t.Errorf("read at %v, want %v", got, want)
		}
		if row := b.View().Node("n"); row.State != document.StateStale || row.Free != 9 {
			t.Errorf("%s, %d free", row.State, row.Free)
		}
		n.set(func(n *node) { n.broken = false })
		b.Refresh()
		elapse(10 * time.Second)
		if row := b.View().Node("n"); row.State != document.StateLive {
			t.Errorf("after a refresh %s", row.State)
		}
		if got := len(n.times(introspect.PathSummary)); got < 8 {
			t.Errorf("read %d times: the breaker did not close", got)
		}
	})
}

func TestLive_PauseFocusRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		a, c := newNode(t, "a"), newNode(t, "c")
		b.Focus(watch.Focus{Visible: []string{"a"}})
		b.roster.put(a.target(), c.target())
		if b.Stats().Tunnels != 1 || a.Open() != 1 || c.Open() != 0 {
			t.Errorf("%d tunnels; a %d, c %d open", b.Stats().Tunnels, a.Open(), c.Open())
		}
		b.Pace(watch.Pace{Paused: true})
		elapse(time.Hour)
		if a.Open() != 0 || len(a.times(introspect.PathSummary)) != 1 || len(c.times(introspect.PathSummary)) != 1 {
			t.Errorf("paused: %d open, read at %v", a.Open(), a.times(introspect.PathSummary))
		}
		b.Refresh()
		synctest.Wait()
		if len(a.times(introspect.PathSummary)) != 2 || len(c.times(introspect.PathSummary)) != 1 {
			t.Error("a refresh while paused does not read just what is looked at")
		}
		b.Pace(watch.Pace{Interval: 8 * time.Second})
		elapse(time.Second)
		before := len(a.times(introspect.PathSummary))
		elapse(16 * time.Second)
		if got := len(a.times(introspect.PathSummary)) - before; got != 2 {
			t.Errorf("read %d times in 16 s at an interval of 8 s", got)
		}
		b.Focus(watch.Focus{Visible: []string{"a"}, Away: true})
		before = len(a.times(introspect.PathSummary))
		elapse(4 * time.Minute)
		if got := len(a.times(introspect.PathSummary)) - before; got != 5 || a.Open() != 0 {
			t.Errorf("away: read %d times in 240 s, want every 48 s; %d open", got, a.Open())
		}
		if b.Stats().Interval != 8*time.Second {
			t.Errorf("interval %s", b.Stats().Interval)
		}
	})
}

func TestLive_TunnelsForWhatIsOnTheScreen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		var nodes []*node
		var targets []fleet.Target
		var names []string
		for i := range 40 {
			n := newNode(t, fmt.Sprintf("n%02d", i))
			nodes, targets, names = append(nodes, n), append(targets, n.target()), append(names, n.name)
		}
		open := func() (n int) {
			for _, node := range nodes {
				n += node.Open()
			}
			return n
		}
		b.Focus(watch.Focus{Visible: names[:30]})
		b.roster.put(targets...)
		for range 10 {
			elapse(6 * time.Second)
			if n := open(); n != 16 || b.Stats().Tunnels != 16 {
				t.Fatalf("%d connections, %d tunnels by its own word, want 16", n, b.Stats().Tunnels)
			}
		}
		reused := 0
		for _, n := range nodes {
			if n.Dials() == 1 && len(n.times(introspect.PathSummary)) > 5 {
				reused++
			}
		}
		if reused != 16 {
			t.Errorf("%d nodes are read over one connection", reused)
		}
		b.Focus(watch.Focus{Visible: names[:30], Away: true})
		elapse(time.Second)
		if n := open(); n != 0 {
			t.Errorf("away: %d connections", n)
		}
	})
}

func TestLive_RosterChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		n := newNode(t, "n")
		n.original = true
		target := n.target()
		b.roster.put(target)
		if b.View().Node("n").Source != document.SourceV1 {
			t.Fatalf("%+v", b.View().Node("n"))
		}
		// A changed object is shown at once, without a request.
		target.Object = &document.NodeObject{Zone: "eu-1b"}
		b.roster.put(target)
		if row := b.View().Node("n"); row.Object == nil || row.Object.Zone != "eu-1b" || row.State != document.StateLive {
			t.Errorf("news: %s %+v", row.State, row.Object)
		}
		if got := len(n.times(introspect.PathENIs)); got != 1 {
			t.Errorf("asked %d times", got)
		}
		// Another pod: what was learned about its predecessor is discarded.
		n.set(func(n *node) { n.original = false })
		target.Key = "another"
		b.roster.put(target)
		if row := b.View().Node("n"); row.Source != document.SourceSummary {
			t.Errorf("another pod: %s %s %+v", row.State, row.Source, row.Error)
		}
		// The pod goes, then the node.
		b.roster.put(fleet.Target{Name: "n", Absent: &document.NodeError{Reason: introspect.ReasonPodNotRunning, Message: "Pending"}, State: document.StateAPIOnly})
		asked := len(n.times(introspect.PathSummary))
		elapse(time.Hour)
		if row := b.View().Node("n"); row.State != document.StateStale || len(n.times(introspect.PathSummary)) != asked || n.Open() != 0 {
			t.Errorf("without a pod: %s, asked %d times more", row.State, len(n.times(introspect.PathSummary))-asked)
		}
		b.roster.remove("n")
		if b.View().Node("n") != nil || len(b.View().Nodes) != 0 {
			t.Error("it is still there")
		}
		b.roster.remove("never was")
	})
}

func TestLive_RosterFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		n := newNode(t, "n")
		b.roster.put(n.target())
		b.roster.ends <- errors.New("nodes is forbidden")
		synctest.Wait()
		if got := b.Stats().Problem; got != "nodes is forbidden" {
			t.Errorf("problem %q", got)
		}
		elapse(time.Minute)
		if got := len(n.times(introspect.PathSummary)); got != 3 {
			t.Errorf("read %d times meanwhile", got)
		}
		if since := time.Since(b.Stats().ProblemAt); since != time.Minute {
			t.Errorf("since %s, want 1m", since)
		}
		b.roster.put(n.target())
		if s := b.Stats(); s.Problem != "" || !s.ProblemAt.IsZero() {
			t.Errorf("problem %q after it is back", b.Stats().Problem)
		}
		// A roster that retries by itself reports when it fails and when it recovers.
		for _, trouble := range []error{errors.New("the watch broke"), nil} {
			b.roster.troubles <- trouble
			synctest.Wait()
			if got := b.Stats().Problem; trouble == nil && got != "" || trouble != nil && got != trouble.Error() {
				t.Errorf("%v: problem %q", trouble, got)
			}
		}
	})
}

// TestLive_LeavesWhileRead: the result of a read is ignored once its node has left.
func TestLive_LeavesWhileRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		slow := fleettest.ServePipe(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		b.roster.put(fleet.Target{Name: "n", Address: "n:1", Dial: slow.Dial})
		if b.Stats().InFlight != 1 {
			t.Fatal("it is not read")
		}
		b.roster.remove("n")
		if s := b.Stats(); s.InFlight != 0 || s.Dropped != 1 || slow.Open() != 0 {
			t.Errorf("stats %+v, %d open", s, slow.Open())
		}
		elapse(time.Minute)
		if len(b.View().Nodes) != 0 {
			t.Error("it came back")
		}
	})
}

func TestLive_EventsHaveTheOpenNodeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{Interval: time.Minute})
		n := newNode(t, "n")
		b.roster.put(n.target())
		elapse(10 * time.Second)
		if got := n.times(introspect.PathEvents); got != nil {
			t.Errorf("events asked for at %v though no screen shows them", got)
		}
		b.Focus(watch.Focus{Open: "n"})
		elapse(2 * time.Second)
		before := len(n.times(introspect.PathSummary))
		n.happen()
		elapse(100 * time.Millisecond)
		if got := len(n.times(introspect.PathSummary)); got != before+1 {
			t.Errorf("read %d times after an event", got-before)
		}
		b.Focus(watch.Focus{})
		elapse(time.Second)
		asked := len(n.times(introspect.PathEvents))
		elapse(time.Hour)
		if len(n.times(introspect.PathEvents)) != asked || n.Open() != 0 {
			t.Errorf("closed, and events are still asked for; %d open", n.Open())
		}
	})
}

// TestLive_EventsInMeasure: a node with constant news, or one that does not wait for any, is
// not polled as fast as it answers.
func TestLive_EventsInMeasure(t *testing.T) {
	t.Parallel()
	for name, items := range map[string]string{"none": "", "always": `{"seq":%d,"kind":"started"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := run(t, live.Options{Interval: time.Minute})
				events, summaries := 0, 0
				p := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case introspect.PathSummary:
						summaries++
						_, _ = io.WriteString(w, `{"kind":"NodeSummary"}`)
					case introspect.PathEvents:
						if events++; events > 1000 {
							w.WriteHeader(http.StatusNotFound)
						}
						next, item := 0, ""
						if items != "" {
							next, item = events, fmt.Sprintf(items, events)
						}
						_, _ = fmt.Fprintf(w, `{"kind":"NodeEvents","epoch":"e","next":%d,"items":[%s]}`, next, item)
					default:
						_, _ = io.WriteString(w, commands)
					}
				})
				b.Focus(watch.Focus{Open: "n"})
				b.roster.put(fleet.Target{Name: "n", Address: "n:1", Dial: p.Dial})
				elapse(time.Minute)
				b.stop()
				if events < 30 || events > 130 || summaries > 65 {
					t.Errorf("asked %d times for events and %d times for the summary in a minute", events, summaries)
				}
			})
		})
	}
}

// TestLive_NewsOfAFailingNode: news from Kubernetes does not hide why a node cannot be read.
func TestLive_NewsOfAFailingNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		n := newNode(t, "n")
		n.broken = true
		target := n.target()
		b.roster.put(target)
		before := b.View().Node("n")
		if before.State != document.StateUnreachable || before.Error == nil {
			t.Fatalf("%s %+v", before.State, before.Error)
		}
		target.Object = &document.NodeObject{Zone: "eu-1b"}
		b.roster.put(target)
		if row := b.View().Node("n"); row.Object == nil || row.State != before.State || row.Error == nil || row.Word != before.Word {
			t.Errorf("%s %q %+v", row.State, row.Word, row.Error)
		}
	})
}

// TestLive_NoEvents: a node that does not serve events is asked only once.
func TestLive_NoEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		asked := 0
		p := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case introspect.PathSummary:
				_, _ = io.WriteString(w, `{"kind":"NodeSummary"}`)
			case introspect.PathEvents:
				asked++
				fallthrough
			default:
				_, _ = io.WriteString(w, commands)
			}
		})
		b.Focus(watch.Focus{Open: "n"})
		b.roster.put(fleet.Target{Name: "n", Address: "n:1", Dial: p.Dial})
		elapse(time.Hour)
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}

func TestLive_ChangedAtMostFiveTimesASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{Background: 2 * time.Second, Interval: 2 * time.Second})
		var targets []fleet.Target
		for i := range 50 {
			n := newNode(t, fmt.Sprint(i))
			targets = append(targets, n.target())
			b.roster.put(n.target())
			elapse(30 * time.Millisecond)
		}
		fired := 0
		end := time.NewTimer(10 * time.Second)
		for {
			select {
			case <-b.Changed():
				fired++
				continue
			case <-end.C:
			}
			break
		}
		if fired < 20 || fired > 51 {
			t.Errorf("%d changes in 10 s with %d nodes", fired, len(targets))
		}
	})
}

func TestLive_IsHeldToItsShareOfTheProcessor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		samples := 0
		count := func() int { mu.Lock(); defer mu.Unlock(); return samples }
		b := run(t, live.Options{
			Background: time.Second, Interval: 2 * time.Second,
			Sampled: func(n document.NodeIPAM) {
				if n.State != document.StateAPIOnly { // it was read
					mu.Lock()
					samples++
					mu.Unlock()
				}
			},
			CPU: func() time.Duration { return time.Duration(count()) * 30 * time.Millisecond },
		})
		var targets []fleet.Target
		for i := range 100 {
			targets = append(targets, newNode(t, fmt.Sprint(i)).target())
		}
		b.roster.put(targets...)
		elapse(20 * time.Second)
		before := count()
		elapse(time.Minute)
		// 30 ms each at 30 % of a CPU are 10 a second.
		if got := count() - before; got < 500 || got > 605 {
			t.Errorf("%d samples in a minute, 600 are its share", got)
		}
		if s := b.Stats(); !s.Widened || s.Background != 10*time.Second {
			t.Errorf("background %s, widened %v", s.Background, s.Widened)
		}
	})
}

// TestLive_Addresses: only the open node's and upstream nodes' are read, unless a screen
// wants maps or all addresses.
func TestLive_Addresses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		opts  live.Options
		focus watch.Focus
		want  []float64
	}{
		"no screen shows":    {live.Options{}, watch.Focus{}, nil},
		"its row is visible": {live.Options{}, watch.Focus{Visible: []string{"n"}}, nil},
		"maps":               {live.Options{}, watch.Focus{Maps: true}, []float64{0, 60}},
		"always":             {live.Options{ENIs: true}, watch.Focus{}, []float64{0, 30, 60}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, n := run(t, row.opts), newNode(t, "n")
				b.Focus(row.focus)
				b.roster.put(n.target())
				elapse(61 * time.Second)
				if got := seconds(n.times(introspect.PathENIs)); !slices.Equal(got, row.want) {
					t.Errorf("addresses asked for at %v, want %v", got, row.want)
				}
			})
		})
	}
}

// TestLive_WithoutAStore: a caller with its own rows is notified of every change.
func TestLive_WithoutAStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf(format, args...))
		}
		rows := newRoster()
		l, err := live.New(live.Options{
			Roster: rows, Now: time.Now, CPU: func() time.Duration { return 0 }, Interval: 20 * time.Second, Background: 20 * time.Second,
			Sampled: func(n document.NodeIPAM) {
				zone := ""
				if n.Object != nil {
					zone = n.Object.Zone
				}
				note("%s %s %s", n.Metadata.Name, n.State, zone)
			},
			Removed: func(name string) { note("%s gone", name) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		n := newNode(t, "n")
		target := n.target()
		rows.put(target)
		elapse(time.Second)
		target.Object = &document.NodeObject{Zone: "eu-1b"}
		rows.put(target)
		elapse(20 * time.Second)
		rows.remove("n")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []string{"n api-only ", "n live ", "n api-only eu-1b", "n live eu-1b", "n gone"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if v := l.View(); len(v.Nodes) != 0 {
			t.Errorf("%d nodes in the view", len(v.Nodes))
		}
	})
}

// TestLive_Suspended: a deadline that passed while the process was suspended is no node's
// fault.
func TestLive_Suspended(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		stood           time.Duration
		failed, dropped uint64
		state           document.State // shortly afterwards
	}{
		"suspended": {time.Minute, 0, 1, document.StateLive},
		"it ran on": {0, 1, 0, document.StateUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var jump atomic.Int64
				b := run(t, live.Options{Now: func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }})
				n := newNode(t, "n")
				target, dials := n.target(), 0
				target.Dial = func(ctx context.Context) (net.Conn, error) {
					if dials++; dials == 1 {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return n.Dial(ctx)
				}
				b.roster.put(target)
				elapse(500 * time.Millisecond)
				jump.Store(int64(row.stood))
				elapse(5 * time.Second)
				if s := b.Stats(); s.Failed != row.failed || s.Dropped != row.dropped {
					t.Errorf("%d failed, %d dropped, want %d and %d", s.Failed, s.Dropped, row.failed, row.dropped)
				}
				if got := b.View().Node("n").State; got != row.state {
					t.Errorf("it is %s, want %s", got, row.state)
				}
			})
		})
	}
}

// writes answers every request with the same body.
func writes(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}
