package fleetsim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
)

// clock is a clock that the test advances.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// get queries a node directly, past the API server.
func get(ctx context.Context, s *Sim, node, path string) (*http.Response, []byte, error) {
	return getMost(ctx, s, node, path, 16<<20)
}

// getMost is get, but reads at most most bytes of the answer.
func getMost(ctx context.Context, s *Sim, node, path string, most int64) (*http.Response, []byte, error) {
	tr := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return s.DialNode(ctx, node, IntrospectionPort)
	}}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return nil, nil, err
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	return resp, body, err
}

func mustGet(t *testing.T, s *Sim, node, path string) []byte {
	t.Helper()
	resp, body, err := get(t.Context(), s, node, path)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s of %s: %v, %v: %.200s", path, node, resp, err, body)
	}
	return body
}

// TestOurs_EveryDocument: after hours of churn, the documents of our nodes can be read and
// agree with each other.
func TestOurs_EveryDocument(t *testing.T) {
	t.Parallel()
	c := newClock()
	fleets := []*Sim{New(t, Options{Nodes: 90, Seed: 7, Now: c.Now}), New(t, Options{Nodes: 10, IPv6: true, Now: c.Now})}
	causes, modes, cooling, trunks := map[string]bool{}, map[string]bool{}, 0, 0
	for turn := range 8 {
		c.add(19 * time.Minute)
		s := fleets[turn%2]
		for _, n := range s.Nodes() {
			var sum introspect.Summary
			if err := json.Unmarshal(mustGet(t, s, n.Name, introspect.PathSummary), &sum); err != nil {
				t.Fatal(err)
			}
			if err := sum.Check(); err != nil || sum.Node != n.Name {
				t.Errorf("summary of %s: %v", n.Name, err)
			}
			pool, err := introspect.Decode(mustGet(t, s, n.Name, introspect.PathENIs))
			if err != nil || pool.Shape != introspect.ShapeBlanked || len(pool.Mismatches) > 0 {
				t.Fatalf("enis of %s: %+v, %v", n.Name, pool, err)
			}
			pool.Recount(c.Now(), cooldown)
			held := false // addresses being released are no longer in the ENIs' counts
			for _, op := range sum.Operations {
				held = held || op.Kind == "release" || op.Kind == "detach"
			}
			for _, card := range sum.Cards {
				modes[card.Mode+sum.IPFamily] = true
				cooling += *card.Cooling
				for _, served := range pool.Cards {
					if served.Card == card.Card && !held && (served.Assigned != card.Assigned || served.Total != card.Total || *served.Cooling != *card.Cooling) {
						t.Errorf("%s: /v1/enis has %+v, the summary %+v", n.Name, served, card)
					}
				}
			}
			for _, e := range sum.LastErrors {
				causes[e.Cause] = true
				if cause.Code(e.Cause).Title() == "" {
					t.Errorf("%s: cause %q is not a code", n.Name, e.Cause)
				}
			}
			if sum.Trunk.ENIID != "" {
				trunks++
			}
		}
	}
	for _, want := range []string{introspect.ModePrefix + "ipv4", introspect.ModePrefix + "ipv6", introspect.ModeSecondaryIP + "ipv4"} {
		if !modes[want] {
			t.Errorf("no node is in mode %s: %v", want, modes)
		}
	}
	for _, want := range []cause.Code{cause.SubnetExhausted, cause.EC2Throttled} {
		if !causes[string(want)] {
			t.Errorf("no node reported %s in two hours: %v", want, causes)
		}
	}
	if cooling == 0 || trunks == 0 {
		t.Errorf("%d addresses cool, %d trunks", cooling, trunks)
	}
}

// TestOurs_OtherDocuments: each has the right kind and content.
func TestOurs_OtherDocuments(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := New(t, Options{Nodes: 3, Seed: 2, Churn: 5 * time.Second, Now: c.Now})
	c.add(10 * time.Minute)
	name := s.Nodes()[0].Name
	var plan introspect.NodePlan
	decode(t, mustGet(t, s, name, "/v1/plan?warmIp=60&maxEni=0"), &plan)
	if plan.Kind != introspect.KindPlan || !plan.WhatIf || *plan.Targets.WarmIP != 60 {
		t.Errorf("plan: %+v", plan)
	}
	var events introspect.NodeEvents
	decode(t, mustGet(t, s, name, "/v1/events"), &events)
	if len(events.Items) < 10 || events.Items[len(events.Items)-1].Seq != events.Next {
		t.Fatalf("events: %d, next %d", len(events.Items), events.Next)
	}
	var later introspect.NodeEvents
	decode(t, mustGet(t, s, name, fmt.Sprintf("/v1/events?since=%d&epoch=%s", events.Next-2, events.Epoch)), &later)
	if len(later.Items) != 2 || later.Items[1].Seq != events.Next {
		t.Errorf("events since %d: %+v", events.Next-2, later)
	}
	var restarted introspect.NodeEvents
	decode(t, mustGet(t, s, name, "/v1/events?since=5&epoch=other"), &restarted)
	if len(restarted.Items) == 0 || restarted.Items[0].Kind != introspect.EventGap || restarted.Items[0].Reason != introspect.GapRestart {
		t.Errorf("events of another run: %+v", restarted.Items)
	}
	for _, e := range events.Items {
		if e.Kind != introspect.EventAddressAssigned {
			continue
		}
		resp, body, err := get(t.Context(), s, name, "/v1/pod?namespace="+e.Pod.Namespace+"&name="+e.Pod.Name)
		var pod introspect.NodePod
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			decode(t, body, &pod)
			if pod.Kind != introspect.KindPod || len(pod.Interfaces) != 1 || pod.Interfaces[0].Address != e.Address {
				t.Errorf("pod: %s", body)
			}
		}
	}
	for path, kind := range map[string]string{
		"/v1/config": introspect.KindConfig, "/v1/failures": introspect.KindFailures, "/v1/logs?lines=5": introspect.KindLogs, "/v1/schemas": introspect.KindSchemas,
	} {
		var doc struct{ Kind string }
		decode(t, mustGet(t, s, name, path), &doc)
		if doc.Kind != kind {
			t.Errorf("%s is a %q", path, doc.Kind)
		}
	}
	var commands introspect.Commands
	decode(t, mustGet(t, s, name, "/v1/pods"), &commands)
	if len(commands.AvailableCommands) != len(ourPaths) {
		t.Errorf("an unknown path: %+v", commands)
	}
	if resp, body, err := get(t.Context(), s, name, "/v1/plan?warmIps=3"); err != nil || resp.StatusCode != http.StatusBadRequest || !bytes.Contains(body, []byte(introspect.FaultBadParameter)) {
		t.Errorf("a misspelt target: %v, %v, %s", resp, err, body)
	}
}

func decode(t *testing.T, body []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%v: %.300s", err, body)
	}
}

// TestUpstream_EveryRelease: each release answers in its own format, which we can read.
func TestUpstream_EveryRelease(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := New(t, Options{Nodes: 100, Seed: 3, UpstreamShare: 1, Now: c.Now})
	c.add(time.Hour)
	shapes := map[string]introspect.Shape{
		"v1.7.10": introspect.ShapeAddresses, "v1.9.3": introspect.ShapeCIDRs, "v1.10.4": introspect.ShapeFamilies, "v1.11.5": introspect.ShapeFamilies,
		"v1.12.6": introspect.ShapeFamilies, "v1.15.5": introspect.ShapeFamilies, "v1.18.6": introspect.ShapeFamilies, "v1.19.6": introspect.ShapeFamilies,
		"v1.20.5": introspect.ShapeCards, "v1.21.1": introspect.ShapeCards, "v1.22.3": introspect.ShapeSubnets, "v1.23.0": introspect.ShapeBlanked,
	}
	seen := map[string]bool{}
	for _, n := range s.Nodes() {
		body := mustGet(t, s, n.Name, "/v1/enis")
		pool, err := introspect.Decode(body)
		if err != nil || pool.Shape != shapes[n.Release] || len(pool.Mismatches) > 0 {
			t.Fatalf("%s of %s: %v, %+v\n%.600s", n.Name, n.Release, err, pool, body)
		}
		seen[n.Release] = true
		for path, want := range map[string]string{"/v1/summary": "AvailableCommands", "/v1/ipamd-env-settings": "WARM_ENI_TARGET", "/v1/networkutils-env-settings": "AWS_VPC_ENI_MTU"} {
			var doc map[string]any
			decode(t, mustGet(t, s, n.Name, path), &doc)
			if doc[want] == nil {
				t.Errorf("%s of %s has no %s", path, n.Name, want)
			}
		}
	}
	if len(seen) != len(shapes) {
		t.Errorf("releases %v of %d", seen, len(shapes))
	}
}

// TestSeed: nodes depend only on the seed and the time, however often they are read.
func TestSeed(t *testing.T) {
	t.Parallel()
	docs := func(seed uint64, looks int) string {
		c := newClock()
		s := New(t, Options{Nodes: 12, Seed: seed, UpstreamShare: 0.4, Now: c.Now})
		for range looks {
			c.add(30 * time.Minute / time.Duration(looks))
			for _, n := range s.Nodes() {
				mustGet(t, s, n.Name, "/v1/enis")
			}
		}
		var b strings.Builder
		for _, n := range s.Nodes() {
			fmt.Fprintf(&b, "%s %s %s %s\n", n.Name, n.Pod, mustGet(t, s, n.Name, "/v1/enis"), mustGet(t, s, n.Name, "/v1/summary"))
		}
		return b.String()
	}
	once, often, other := docs(1, 1), docs(1, 60), docs(2, 1)
	if once != often {
		t.Error("reading a fleet often changes it")
	}
	if once == other {
		t.Error("another seed gives the same fleet")
	}
}

// TestAddresses_AreUnique checks the whole fleet after some time.
func TestAddresses_AreUnique(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := New(t, Options{Nodes: 400, Seed: 5, Now: c.Now})
	c.add(20 * time.Minute)
	owner := map[netip.Addr]string{}
	for _, n := range s.nodes {
		n.withWorld(func(w *world) {
			for _, e := range w.Book.Snapshot().ENIs {
				if who := owner[e.PrimaryIP]; who != "" {
					t.Errorf("%s belongs to %s and to %s", e.PrimaryIP, who, n.name)
				}
				owner[e.PrimaryIP] = n.name
				for _, cidr := range e.CIDRs {
					for a := cidr.Prefix.Addr(); cidr.Prefix.Contains(a) && a.Is4(); a = a.Next() {
						if who := owner[a]; who != "" {
							t.Errorf("%s belongs to %s and to %s", a, who, n.name)
						}
						owner[a] = n.name
					}
				}
			}
		})
	}
	if len(owner) < 400*10 {
		t.Errorf("%d addresses", len(owner))
	}
}

// TestTraits: each trait has its effect, on the requested number of nodes.
func TestTraits(t *testing.T) {
	t.Parallel()
	opts := Options{Nodes: 170, Seed: 4, Shares: map[Trait]float64{}}
	for _, trait := range Traits() {
		if trait != Upstream {
			opts.Shares[trait] = 0.02
		}
	}
	s := New(t, opts)
	of := map[Trait]string{}
	count := map[Trait]int{}
	for _, n := range s.Nodes() {
		for _, trait := range n.Traits {
			count[trait]++
			of[trait] = n.Name
		}
	}
	for trait := range opts.Shares {
		if count[trait] != 3 {
			t.Errorf("%d nodes are %s, want 2 %% of 170", count[trait], trait)
		}
	}
	for _, trait := range []Trait{Refused, NoDaemon, Fargate, Windows, NotReady, UnixSocket} {
		if _, err := s.DialNode(t.Context(), of[trait], IntrospectionPort); err == nil {
			t.Errorf("a node that is %s accepts a connection", trait)
		}
	}
	ctx, cancel := context.WithDeadline(t.Context(), testenv.Soon())
	defer cancel()
	if _, _, err := get(ctx, s, of[Dead], "/v1/summary"); err == nil {
		t.Error("a dead node answers")
	}
	if _, body, err := get(t.Context(), s, of[Half], "/v1/summary"); err == nil {
		t.Errorf("half an answer was read without an error: %s", body)
	}
	if _, _, err := get(t.Context(), s, of[Garbage], "/v1/summary"); err == nil {
		t.Error("garbage was read as HTTP")
	}
	if _, body, err := get(t.Context(), s, of[Huge], "/v1/enis"); err != nil || len(body) < 8<<20 {
		t.Errorf("a huge answer has %d bytes, %v", len(body), err)
	}
	if _, body, err := getMost(t.Context(), s, of[Endless], "/v1/enis", 10*4096); err != nil || len(body) != 10*4096 {
		t.Errorf("an endless answer ends after %d bytes, %v", len(body), err)
	}
	if pool, err := introspect.Decode(mustGet(t, s, of[Lying], "/v1/enis")); err != nil || len(pool.Mismatches) == 0 {
		t.Errorf("a lying node: %+v, %v", pool, err)
	}
	if body := mustGet(t, s, of[WrongJSON], "/v1/enis"); !json.Valid(body) {
		t.Errorf("wrong-json answers invalid JSON: %s", body)
	}
	var sum introspect.Summary
	decode(t, mustGet(t, s, of[Hostile], "/v1/summary"), &sum)
	if !strings.Contains(sum.Node, "\x1b[31m") || !strings.Contains(sum.Version, "\u202e") {
		t.Errorf("a hostile node reports %q %q", sum.Node, sum.Version)
	}
	hostile := New(t, Options{Nodes: 20, UpstreamShare: 1, Shares: map[Trait]float64{Hostile: 1}})
	for _, n := range hostile.Nodes() {
		if body := mustGet(t, hostile, n.Name, "/v1/enis"); !json.Valid(body) || bytes.Contains(body, []byte{0x1b}) {
			t.Errorf("a hostile node of %s answers invalid JSON: %.200q", n.Release, body)
		}
	}
}

func TestOptions_AreChecked(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{Nodes: -1}, {Nodes: MaxNodes + 1}, {UpstreamShare: 1.1}, {Shares: map[Trait]float64{"odd": 0.1}}, {Shares: map[Trait]float64{Dead: 0.6, Slow: 0.6}},
		{Shares: map[Trait]float64{Dead: -0.1}}, {Named: map[string][]Trait{"unknown": {Dead}}}, {Named: map[string][]Trait{NodeName(0): {"odd"}}}, {Latency: -1},
	} {
		if s, err := Start(o); err == nil {
			s.Close()
			t.Errorf("%+v is accepted", o)
		}
	}
}

// BenchmarkStart measures a fleet's start, and its memory after the start and after every node
// has been read.
func BenchmarkStart(b *testing.B) {
	for _, nodes := range []int{500, MaxNodes} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				s, err := Start(Options{Nodes: nodes, Seed: 1, UpstreamShare: 0.3})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-started")
				took := testenv.Took(func() {
					for _, n := range s.nodes {
						n.withWorld(func(*world) {})
					}
				})
				b.ReportMetric(float64(took.Milliseconds()), "ms-all-made")
				b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-all-made")
				s.Close()
				b.StartTimer()
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
