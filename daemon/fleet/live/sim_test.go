package live_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/testenv"
	"cnictl/testenv/kube/fleetsim"
)

// simulated returns a simulator's nodes as targets that bypass its API server.
func simulated(sim *fleetsim.Sim) []fleet.Target {
	var targets []fleet.Target
	for _, n := range sim.Nodes() {
		targets = append(targets, fleet.Target{
			Name: n.Name, Address: n.Name, Via: document.ViaPortForward, Key: n.Name, Object: &document.NodeObject{OS: "linux"},
			Dial: func(ctx context.Context) (net.Conn, error) {
				return sim.DialNode(ctx, n.Name, fleetsim.IntrospectionPort)
			},
		})
	}
	return targets
}

func start(tb testing.TB, opts live.Options) (_ *live.Live, stop func()) {
	tb.Helper()
	opts.Store, opts.Now = store.New(), time.Now
	l, err := live.New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return l, func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("run: %v", err)
		}
	}
}

// await waits until ok accepts the view.
func await(tb testing.TB, l *live.Live, what string, ok func(*store.View) bool) {
	tb.Helper()
	testenv.EventuallyErr(tb, what, func() error {
		if v := l.View(); !ok(v) {
			return fmt.Errorf("%+v", v.Totals)
		}
		return nil
	})
}

// TestLive_SimulatedFleet: our nodes, nodes of upstream's releases and hostile ones side by
// side, while users look around. Each row ends up showing what its node is.
func TestLive_SimulatedFleet(t *testing.T) {
	t.Parallel()
	bad := map[fleetsim.Trait][]introspect.Reason{
		fleetsim.Refused:   {introspect.ReasonRefused, introspect.ReasonTransport},
		fleetsim.Half:      {introspect.ReasonTransport},
		fleetsim.Garbage:   {introspect.ReasonNotHTTP},
		fleetsim.WrongJSON: {introspect.ReasonMalformed},
		fleetsim.Huge:      {introspect.ReasonTooLarge, introspect.ReasonTimeout}, // on a busy machine
		fleetsim.Endless:   {introspect.ReasonTooLarge, introspect.ReasonTimeout},
		fleetsim.Dead:      {introspect.ReasonTimeout},
	}
	named := map[string][]fleetsim.Trait{}
	reasons := map[string][]introspect.Reason{}
	for trait, why := range bad {
		name := fleetsim.NodeName(len(named))
		named[name], reasons[name] = []fleetsim.Trait{trait}, why
	}
	named[fleetsim.NodeName(len(named))] = []fleetsim.Trait{fleetsim.Lying}
	named[fleetsim.NodeName(len(named))] = []fleetsim.Trait{fleetsim.Hostile}
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 60, UpstreamShare: 0.4, Seed: 3, Named: named})
	targets := simulated(sim)
	l, stop := start(t, live.Options{Roster: live.Static(targets), Concurrency: 8})
	var names []string
	for _, target := range targets {
		names = append(names, target.Name)
	}
	l.Focus(watch.Focus{Open: names[20], Visible: names[:30]})
	is := func(n *store.Node, why []introspect.Reason) bool {
		if why == nil {
			return n.State == document.StateLive && n.Known
		}
		return n.Error != nil && slices.Contains(why, n.Error.Reason) && !n.Known
	}
	await(t, l, "every row is what its node is", func(v *store.View) bool {
		l.Detail(t.Context(), names[20+int(v.Generation)%20], watch.WantENIs|watch.WantPlan|watch.WantConfig, watch.Query{})
		return len(v.Nodes) == len(targets) && !slices.ContainsFunc(v.Nodes, func(n *store.Node) bool { return !is(n, reasons[n.Metadata.Name]) })
	})
	stop()
	if s := l.Stats(); s.InFlight != 0 && s.Dropped == 0 || s.Samples < uint64(len(targets)) || s.LatencyP99 < s.LatencyP50 || s.LatencyP50 == 0 {
		t.Errorf("stats %+v", s)
	}
}

// BenchmarkPipe samples nodes without a simulator: this is the sampler's own cost.
func BenchmarkPipe(b *testing.B) {
	const body = `{"apiVersion":"cnictl/v1alpha1","kind":"NodeSummary","cards":[{"card":0,"total":9,"free":9}]}`
	node := fleettest.ServePipe(b, writes(body))
	r, err := fleet.NewReader(fleet.Target{Name: "n", Dial: node.Dial}, fleet.ReaderOptions{Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for _, kept := range []bool{false, true} {
		b.Run(fmt.Sprintf("kept=%v", kept), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := r.Read(b.Context(), fleet.Query{}); n.Error != nil {
					b.Fatal(n.Error)
				}
				if !kept {
					r.Close()
				}
			}
		})
	}
}
