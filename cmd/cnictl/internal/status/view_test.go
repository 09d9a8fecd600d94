package status

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

func ptr[T any](v T) *T { return &v }

// randomList generates a sweep of n nodes of every kind.
func randomList(r *rand.Rand, n int) document.NodeIPAMList {
	now := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	list := document.NodeIPAMList{SampledAt: now}
	names := []string{"ip-10-0-3-17.eu-west-1.compute.internal", "n", "東京都の節点", "evil\x1b[2J\u202e", strings.Repeat("long-", 50)}
	for i := range n {
		node := document.NodeIPAM{State: document.StateLive, SampledAt: &now, Source: document.SourceSummary}
		node.Metadata.Name = fmt.Sprintf("%s-%d", names[r.IntN(len(names))], i)
		if r.IntN(5) == 0 {
			node.State, node.Error = document.StateUnreachable, &document.NodeError{Reason: introspect.ReasonTimeout, Message: "no complete answer in time\x1b[31m"}
			list.Items = append(list.Items, node)
			continue
		}
		limit := r.IntN(800)
		s := &introspect.Summary{
			InstanceType: "m5.large", WaitingADDs: ptr(r.IntN(3)),
			Cards:   []introspect.CardSummary{{ENIs: ptr(r.IntN(15)), Total: limit, Assigned: limit / 2, Cooling: ptr(r.IntN(4)), Free: r.IntN(9), AddressLimit: &limit}},
			Subnets: []introspect.Subnet{{ID: fmt.Sprintf("subnet-%d", r.IntN(6)), CIDR: "10.0.0.0/24", Available: ptr(r.IntN(300))}},
		}
		if r.IntN(2) == 0 {
			s.LastErrors = []introspect.LastError{{At: now, Operation: "ADD", Message: strings.Repeat("x\u2028", r.IntN(200)), Cause: "internal"}}
			s.Cards[0].AddressLimit = nil
		}
		node.Summary = s
		list.Items = append(list.Items, node)
	}
	return list
}

// TestView_FitsItsFrame: for any size and data, the frame has at most height−1 lines,
// none wider than the terminal.
func TestView_FitsItsFrame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		list := randomList(r, []int{0, 1, 3, 20, 500}[r.IntN(5)])
		fr := Frame{Width: 1 + r.IntN(220), Height: 2 + r.IntN(80), Command: "cnictl", ASCII: r.IntN(2) == 0, NoHeaders: r.IntN(4) == 0}
		if r.IntN(2) == 0 {
			fr.Palette, fr.Every = paint.Colours(), 5*time.Second
		}
		lines := View(store.Of(list.Items), ofList(list), fr)
		if len(lines) > fr.Height-1 {
			t.Errorf("seed %d: %d lines in a height of %d", seed, len(lines), fr.Height)
		}
		for _, l := range lines {
			if paint.Width(l) > fr.Width {
				t.Errorf("seed %d: %d cells in a width of %d: %q", seed, paint.Width(l), fr.Width, l)
			}
			if strings.Contains(l, "\x1b[2J") || strings.ContainsAny(l, "\u202e\u2028\n\r") {
				t.Errorf("seed %d: unescaped: %q", seed, l)
			}
		}
	}
}

func ofList(list document.NodeIPAMList) document.FleetStatus {
	return Of(store.Of(list.Items), list, nil)
}

func TestShare(t *testing.T) {
	t.Parallel()
	tests := []struct {
		height, top int
		all         parts
		want        room
	}{
		// Everything fits.
		{24, 5, parts{2, 1, 3}, room{2, 1, 3}},
		{24, 5, parts{0, 0, 3}, room{0, 0, 3}},
		{40, 5, parts{6, 6, 12}, room{6, 6, 12}},
		// Low terminal: each part gets some rows, and passes those it does not need to the next.
		{24, 5, parts{9, 9, 100}, room{6, 2, 4}},
		{24, 5, parts{1, 1, 100}, room{1, 1, 10}},
		{24, 5, parts{9, 9, 2}, room{8, 2, 2}},
		{24, 5, parts{30, 1, 2}, room{9, 1, 2}},
		{24, 5, parts{0, 9, 100}, room{0, 4, 10}},
		// High terminal.
		{40, 5, parts{9, 9, 100}, room{9, 5, 14}},
		{40, 5, parts{1, 1, 100}, room{1, 1, 26}},
		// Hardly any space, or none.
		{9, 5, parts{3, 2, 9}, room{1, 0, 0}},
		{6, 5, parts{3, 2, 9}, room{0, 0, 0}},
		{0, 5, parts{30, 30, 500}, room{20, 20, 20}},
	}
	for _, tt := range tests {
		if got := (Frame{Height: tt.height}).share(tt.top, tt.all); got != tt.want {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

func TestShortNames(t *testing.T) {
	t.Parallel()
	items := func(names ...string) (out []*store.Node) {
		for _, n := range names {
			out = append(out, store.NewNode(document.NodeIPAM{Metadata: document.ObjectMeta{Name: n}}))
		}
		return out
	}
	same := shortNames(items("a.ec2.internal", "b.ec2.internal"))
	if nameIn(same, "a.ec2.internal") != "a" || nameIn(same, "c.ec2.internal") != "c.ec2.internal" {
		t.Errorf("%v", same)
	}
	for _, mixed := range [][]string{{"a.x", "b.y"}, {"a.x", "b"}, {"a"}, {".x"}, {"127.0.0.1:1"}, {"10.0.0.1"}, {"10.0.0.1:61679", "11.0.0.1:61679"}, {"::ffff:10.0.0.1"}} {
		if got := shortNames(items(mixed...)); got != nil {
			t.Errorf("%v: %v", mixed, got)
		}
	}
}

// TestView_ShortSubnet: the document flags a subnet that is nearly full. The page marks it and
// lists it among the causes, the fullest subnet first.
func TestView_ShortSubnet(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	list := document.NodeIPAMList{SampledAt: now, Items: []document.NodeIPAM{{
		Metadata: document.ObjectMeta{Name: "n"}, State: document.StateLive, SampledAt: &now,
		Summary: &introspect.Summary{Cordoned: ptr(true), Subnets: []introspect.Subnet{
			{ID: "subnet-a", CIDR: "10.0.0.0/24", Available: ptr(200), AsOf: &now},
			{ID: "subnet-b", CIDR: "10.0.1.0/24", Available: ptr(5), AsOf: &now},
			{ID: "subnet-c", CIDR: "10.0.2.0/24", Available: ptr(0), AsOf: &now},
			{ID: "subnet-d"},
		}},
	}}}
	status := ofList(list)
	for i, want := range []struct {
		usable  *int
		percent string
		short   bool
	}{{ptr(251), "20%", false}, {ptr(251), "98%", true}, {ptr(251), "100%", true}, {nil, "-", false}} {
		if got := status.Subnets[i]; (got.Usable == nil) != (want.usable == nil) || got.Usable != nil && *got.Usable != *want.usable || percent(got) != want.percent || got.Short != want.short {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	screen := strings.Join(View(store.Of(list.Items), status, Frame{}), "\n")
	for _, want := range []string{
		"⚠  ip/subnet-exhausted      -        subnet-c  the subnet has no free addresses\n⚠  obs/subnet-low           -        subnet-b  98% of the subnet in use, 5 addresses free\n",
		"  100% !     0     0s  none left\n", "  98% !      5     0s\n",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
	// The subnet becomes an error while ADDs wait for it, which are part of it.
	list.Items[0].Summary.WaitingADDs = ptr(2)
	list.Items[0].Summary.Backoffs = []introspect.Backoff{{Scope: "subnet", ID: "subnet-c", Until: now.Add(time.Minute), Cause: "subnet-exhausted"}}
	screen = strings.Join(View(store.Of(list.Items), ofList(list), Frame{NoHeaders: true}), "\n")
	if !strings.Contains(screen, "!  ip/subnet-exhausted") || strings.Contains(screen, "obs/add-waiting") {
		t.Errorf("ip/subnet-exhausted is not critical, with the ADDs that wait as part of it, in\n%s", screen)
	}
}

// TestView_Unreadable: nodes that could not be read share one line with the reasons and the
// command that lists them, however many there are, and take no row of the table. A node
// that was read before stays in the table with its old values. -o wide lists all of them.
func TestView_Unreadable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	list := document.NodeIPAMList{SampledAt: now, Items: []document.NodeIPAM{
		{Metadata: document.ObjectMeta{Name: "live"}, State: document.StateLive, SampledAt: &now, Summary: &introspect.Summary{}},
		{Metadata: document.ObjectMeta{Name: "old"}, State: document.StateStale, SampledAt: &now, Summary: &introspect.Summary{}, Error: &document.NodeError{Reason: introspect.ReasonTimeout, Message: "no complete answer in time"}},
	}}
	for i, reason := range []introspect.Reason{introspect.ReasonRefused, introspect.ReasonTimeout, introspect.ReasonNoPod, introspect.ReasonNotHTTP} {
		for range 40 - i {
			list.Items = append(list.Items, document.NodeIPAM{
				Metadata: document.ObjectMeta{Name: fmt.Sprintf("lost-%d", len(list.Items))}, State: document.StateUnreachable,
				Error: &document.NodeError{Reason: reason, Message: "dial tcp 10.0.0.1:61679: connect: connection refused"},
			})
		}
	}
	status := ofList(list)
	for width, want := range map[int]string{
		0:   "!  155 unreadable: refused 40, timeout 40, no pod 38, not HTTP 37  cnictl nodes --filter reading!=live --context=x",
		120: "!  155 unreadable: refused 40, timeout 40, no pod 38, not HTTP 37  cnictl nodes --filter reading!=live --context=x",
		80:  "!  155 unreadable: refused 40, …  cnictl nodes --filter reading!=live",
		50:  "!  155 unreadable: refused 40, timeout 40, …",
	} {
		lines := View(store.Of(list.Items), status, Frame{Width: width, Height: 24, Command: "cnictl", SameNodes: " --context=x"})
		screen := strings.Join(lines, "\n")
		if !slices.Contains(lines, want) || strings.Contains(screen, "dial tcp") || strings.Contains(screen, "lost-") {
			t.Errorf("%d columns: no %q in\n%s", width, want, screen)
		}
		if !strings.Contains(screen, "stale: timeout") {
			t.Errorf("%d columns: the node that was read before is not there:\n%s", width, screen)
		}
	}
	if screen := strings.Join(View(store.Of(list.Items), status, Frame{All: true, Command: "cnictl"}), "\n"); !strings.Contains(screen, "lost-155") {
		t.Errorf("-o wide leaves nodes out:\n%s", screen)
	}
}

// TestHead_Day: the header of a recording shows the day, in full if it fits.
func TestHead_Day(t *testing.T) {
	t.Parallel()
	list := document.NodeIPAMList{SampledAt: time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)}
	for width, want := range map[int]string{0: " 2026-11-21 14:02:11 UTC", 80: " 2026-11-21 14:02:11 UTC", 42: " 11-21 14:02"} {
		if line := View(store.Of(list.Items), ofList(list), Frame{Width: width, Dated: true})[0]; !strings.HasSuffix(line, want) {
			t.Errorf("%d columns: %q", width, line)
		}
	}
	if line := View(store.Of(list.Items), ofList(list), Frame{})[0]; !strings.HasSuffix(line, "    14:02:11 UTC") {
		t.Errorf("%q", line)
	}
}

// TestHead_Every: the interval of upstream nodes is shown if it differs.
func TestHead_Every(t *testing.T) {
	t.Parallel()
	for want, fr := range map[string]Frame{
		"UTC  every 2s":                {Every: 2 * time.Second},
		"UTC  every 2s (upstream 10s)": {Every: 2 * time.Second, Upstream: 10 * time.Second},
		"UTC  every 10s":               {Every: 10 * time.Second, Upstream: 10 * time.Second},
		"UTC  every 30s":               {Every: 30 * time.Second, Upstream: 10 * time.Second},
	} {
		if line := View(&store.View{}, ofList(document.NodeIPAMList{}), fr)[0]; !strings.HasSuffix(line, want) {
			t.Errorf("%q, want %q", line, want)
		}
	}
}

// TestView_SubnetAgesByTheNodesClock: a laptop's clock that is an hour fast does not make
// counts look old.
func TestView_SubnetAgesByTheNodesClock(t *testing.T) {
	t.Parallel()
	laptop := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	node := laptop.Add(-time.Hour)
	list := document.NodeIPAMList{SampledAt: laptop, Items: []document.NodeIPAM{{
		Metadata: document.ObjectMeta{Name: "n"}, State: document.StateLive, SampledAt: &node,
		Summary: &introspect.Summary{Subnets: []introspect.Subnet{
			{ID: "subnet-a", Available: ptr(9), AsOf: ptr(node.Add(-7 * time.Second))},
			{ID: "subnet-b", Available: ptr(9), AsOf: ptr(node.Add(-7 * time.Minute))},
		}},
	}}}
	screen := strings.Join(View(store.Of(list.Items), ofList(list), Frame{}), "\n")
	for _, want := range []string{"9        7s\n", "9  7m (old)\n"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
}

func BenchmarkView500Nodes(b *testing.B) {
	list := randomList(rand.New(rand.NewPCG(1, 1)), 500)
	s := ofList(list)
	for b.Loop() {
		View(store.Of(list.Items), s, Frame{Width: 120, Height: 40, Command: "cnictl"})
	}
}

// TestCounts_AddUp: every node is in one of the counts of the first line.
func TestCounts_AddUp(t *testing.T) {
	t.Parallel()
	var list document.NodeIPAMList
	for i, state := range []document.State{
		document.StateLive, document.StateUnreachable, document.StateForbidden, document.StateStale,
		document.StateMetricsOnly, document.StateNoDaemon, document.StateAPIOnly,
	} {
		for range i + 1 {
			list.Items = append(list.Items, document.NodeIPAM{Metadata: document.ObjectMeta{Name: fmt.Sprint("n", len(list.Items))}, State: state})
		}
	}
	const want = "NODES 28  1 live  2 unreachable  3 forbidden  4 stale  5 metrics only  6 no daemon  7 not read"
	if got := (Frame{}).counts(ofList(list).Nodes); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
