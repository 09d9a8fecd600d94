package tables

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

var t0 = fleettest.Start()

func after(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

// Nodes of the tests.
var sample, failed = fleettest.Sample, fleettest.Failed

// text returns a node's cell.
func text(t *testing.T, n *store.Node, name string) string {
	t.Helper()
	c, ok := query.Find(Nodes(), name)
	if !ok {
		t.Fatalf("no column %s", name)
	}
	return c.Text(n)
}

func TestNodes(t *testing.T) {
	t.Parallel()
	s := store.New().Prepare(NodeCells)
	full := sample("full", t0, 20, 3, 4)
	full.LatencySeconds = new(0.1234)
	full.Object = &document.NodeObject{Zone: "eu-1a", CreatedAt: new(t0.Add(-50 * time.Hour)), Daemon: &document.DaemonPod{Name: "aws-node-x"}}
	full.Summary.Trunk = &introspect.Trunk{Enabled: true, ENIID: "eni-t", BranchUsed: new(3), BranchLimit: new(54)}
	full.Summary.Targets = introspect.Targets{WarmIP: new(5), MinimumIP: new(10)}
	full.Summary.Subnets = []introspect.Subnet{{ID: "subnet-1"}, {ID: "subnet-2"}}
	s.Put(full)
	full.SampledAt, full.Summary = new(after(60)), sample("full", after(60), 22, 3, 2).Summary
	full.Summary.Trunk = &introspect.Trunk{Enabled: true, Supported: new(true), BranchUsed: new(0), BranchLimit: new(54)}
	s.Put(full)
	s.Put(failed("failed", introspect.ReasonTimeout))
	s.Put(document.NodeIPAM{Metadata: document.ObjectMeta{Name: "asked"}, State: document.StateAPIOnly, Object: &document.NodeObject{InstanceType: "c5.large", InstanceID: "i-9", MaxPods: new(29)}})
	bare := document.NodeIPAM{Metadata: document.ObjectMeta{Name: "bare"}, State: document.StateLive, Source: document.SourceV1, SampledAt: &t0, Summary: &introspect.Summary{Cards: []introspect.CardSummary{{ENIs: new(0), Assigned: 2, Free: 1, Total: 3}}}}
	s.Put(bare)
	metrics := sample("metrics", t0, 20, 0, 7)
	metrics.State, metrics.Source = document.StateMetricsOnly, document.SourceMetrics
	metrics.Summary.Cards[0].Cooling, metrics.Summary.Cards[0].ENIs = nil, nil
	s.Put(metrics)
	for node, cells := range map[string]string{
		"metrics": "eni -/3|assigned 20|cooling -|free 7|source metrics",
		"full":    "type m5.large|zone eu-1a|eni 2/3|ip 22/27|ip% 81%|assigned 22|cooling 3|free 2|limit 27|warm 2|targets -|maxpods 29 ok|branch 0/54|trunk 0 0/54|mode secondary-ip|prefixes 0|waiting 0|instance i-full|up 61m|source summary|via port-forward|age 2d2h|pods 22/29|adds 2.0|dels 0|ec2 -|latency 123ms|reading live|daemon aws-node-x|subnets -|state ok",
		"failed":  "type ?|zone -|eni ?|ip ?|ip% ?|assigned ?|free ?|limit ?|warm ?|targets ?|maxpods ?|branch ?|trunk ?|trend ?|mode ?|waiting ?|instance ?|version ?|up ?|source ?|via -|age -|pods ?|adds -|latency -|reading unreachable|state unreachable: timeout",
		"asked":   "type c5.large|eni -|ip -|limit -|maxpods 29|instance i-9|up -|pods -|reading api-only|state not read yet",
		"bare":    "type -|eni 0|ip 2/3|ip% -|limit -|warm 1|targets -|maxpods -|branch -|trunk -|mode -|waiting -|up -|source v1|pods 2/-|state ok (upstream)",
	} {
		n := s.View().Node(node)
		for pair := range strings.SplitSeq(cells, "|") {
			name, want, _ := strings.Cut(pair, " ")
			if node == "asked" && name == "state" {
				want = n.Word // the fleet package's word
			}
			if got := text(t, n, name); got != want {
				t.Errorf("%s %s: %q, want %q", node, name, got, want)
			}
		}
	}
	if got := text(t, s.View().Node("full"), "trend"); !strings.ContainsRune(got, '▇') {
		t.Errorf("trend %q", got)
	}
	if got := text(t, store.NewNode(full), "adds"); got != "-" {
		t.Errorf("a rate of one sample: %s", got)
	}
}

// TestNodes_Originals: a healthy upstream node is ok to filters and "ok (upstream)" on
// screen; source=upstream finds it in any state.
func TestNodes_Originals(t *testing.T) {
	t.Parallel()
	ours, original, ill := sample("ours", t0, 5, 0, 5), sample("original", t0, 5, 0, 5), sample("ill", t0, 27, 0, 0)
	original.Source, ill.Source = document.SourceV1, document.SourceV1
	ill.Summary.WaitingADDs = new(1)
	all := []*store.Node{store.NewNode(ours), store.NewNode(original), store.NewNode(ill), store.NewNode(failed("failed", introspect.ReasonTimeout))}
	for text, want := range map[string]string{
		"state=ok": "ours original", "state!=ok": "ill failed", "!state=ok": "ill failed", `state="ok (upstream)"`: "original", "(upstream)": "original",
		"source=upstream": "original ill", "source=v1": "original ill", "source!=upstream": "ours failed", "state=*upstream*": "original",
	} {
		f, err := query.Parse(text, query.Options[*store.Node]{Columns: Nodes()})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range all {
			if f.Match(n) {
				got = append(got, n.Metadata.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

// TestNodes_Names: filters accept every name, and no name appears twice.
func TestNodes_Names(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range Nodes() {
		if seen[c.Name] || c.Header == "" || c.Title == "" || c.Text == nil || c.Name != strings.ToLower(c.Name) || strings.ContainsAny(c.Name, " =!<>\",:") {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
		if f, err := query.Parse(c.Name+"=*", query.Options[*store.Node]{Columns: Nodes()}); err != nil || f.Empty() {
			t.Errorf("%s: %v", c.Name, err)
		}
		switch c.Name {
		case "node", "ip", "assigned", "free", "state":
			if c.Drop != 0 {
				t.Errorf("%s may be dropped", c.Name)
			}
		}
	}
}

// TestNodes_Safe: whatever strings a node has, no cell contains anything that a
// terminal would act on.
func TestNodes_Safe(t *testing.T) {
	t.Parallel()
	evil := []string{"\x1b[2J", "a\nb", "\u202egnp", "\x00", "\xff", "\u200b", "東京", "\x9b31m", strings.Repeat("\u202e", 2000)}
	r := rand.New(rand.NewPCG(8, 9))
	var spoil func(v reflect.Value)
	spoil = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				spoil(v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Field(i).CanSet() {
					spoil(v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				spoil(v.Index(i))
			}
		case reflect.String:
			if r.IntN(3) > 0 && v.Type() != reflect.TypeFor[document.State]() {
				v.SetString(evil[r.IntN(len(evil))])
			}
		default:
		}
	}
	for range 300 {
		n := fleettest.Random(r, "n", t0)
		spoil(reflect.ValueOf(&n).Elem())
		node := store.NewNode(n)
		for _, c := range Nodes() {
			if got := c.Text(node); strings.ContainsFunc(got, func(r rune) bool { return !strconv.IsPrint(r) }) {
				t.Fatalf("%s of %+v: %q", c.Name, n, got)
			}
		}
	}
}

// TestNodes_Prepared: texts that were made when a node was put, or later, are those that are made when they
// are read.
func TestNodes_Prepared(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(12, 13))
	bare, made := store.New(), store.New().Prepare(NodeCells)
	late := made.Another()
	for i := range 200 {
		n := fleettest.Random(r, "n"+strconv.Itoa(r.IntN(9)), after(i))
		bare.PutAt(n, after(i))
		made.PutAt(n, after(i))
		late.PutAt(n, after(i))
	}
	if bare.Prepare(NodeCells); len(bare.View().Nodes) < 5 {
		t.Fatalf("%d nodes", len(bare.View().Nodes))
	}
	for _, n := range made.View().Nodes {
		for _, x := range []*store.Node{n, bare.View().Node(n.Metadata.Name), late.View().Node(n.Metadata.Name)} {
			if _, ok := x.Derived().(*nodeCells); !ok || joined(x) != cellsOf(n).lower {
				t.Errorf("%s: %q, want %q", n.Metadata.Name, joined(x), cellsOf(n).lower)
			}
			for i, c := range Nodes() {
				if got, want := c.Text(x), show.Safe(nodeTable[i].text(n)); got != want {
					t.Errorf("%s of %s: %q, want %q", c.Name, n.Metadata.Name, got, want)
				}
			}
		}
	}
}

// TestNodes_Joined: the fast word search finds the same as the slow one.
func TestNodes_Joined(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(10, 11))
	long := Nodes()
	for i := range long {
		long[i].Joined = nil
	}
	found := 0
	for i := range 2000 {
		n := store.NewNode(fleettest.Random(r, []string{"Node-A", "node-b", "東京-C"}[r.IntN(3)], after(i)))
		c := long[r.IntN(len(long))].Text(n)
		from := r.IntN(len(c) + 1)
		word := strings.ToUpper(c[from:min(len(c), from+1+r.IntN(5))])
		if strings.ContainsFunc(word, func(r rune) bool { return r == '"' || !strconv.IsPrint(r) }) || strings.ContainsRune(word, '\ufffd') {
			continue
		}
		match := func(columns []query.Column[*store.Node]) bool {
			f, err := query.Parse(`"`+word+`"`, query.Options[*store.Node]{Columns: columns})
			if err != nil {
				t.Fatal(err)
			}
			return f.Match(n)
		}
		want := match(long)
		if got := match(Nodes()); got != want {
			t.Errorf("%q in %q: %v, want %v", word, cellsOf(n).text, got, want)
		}
		if want {
			found++
		}
	}
	if found < 100 {
		t.Errorf("%d words found", found)
	}
}

func TestNodes_Order(t *testing.T) {
	t.Parallel()
	s := store.New().Prepare(NodeCells)
	waiting := sample("waiting", t0, 27, 0, 0)
	waiting.Summary.WaitingADDs = new(3)
	s.Put(waiting)
	s.Put(sample("a-fine", t0, 5, 0, 5))
	s.Put(sample("b-fine", t0, 9, 0, 5))
	s.Put(sample("full", t0, 27, 0, 0))
	o, err := query.ParseOrder("state,-ip%", Nodes())
	if err != nil {
		t.Fatal(err)
	}
	rows := append([]*store.Node(nil), s.View().Nodes...)
	o.Sort(rows, func(n *store.Node) string { return n.Metadata.Name })
	var got []string
	for _, n := range rows {
		got = append(got, n.Metadata.Name)
	}
	if strings.Join(got, " ") != "waiting full b-fine a-fine" {
		t.Error(got)
	}
}

func BenchmarkNodes(b *testing.B) {
	s := store.New().Prepare(NodeCells)
	for i := range 5000 {
		s.PutAt(fleettest.Busy(i, t0), t0)
	}
	rows := s.View().Nodes
	for name, text := range map[string]string{"words": "nowhere", "terms": "type=m5.* warm>2 !stale"} {
		b.Run("filter-"+name, func(b *testing.B) {
			f, err := query.Parse(text, query.Options[*store.Node]{Columns: Nodes()})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, n := range rows {
					f.Match(n)
				}
			}
		})
	}
	for _, text := range []string{"state,-ip%", "-free", "type"} {
		b.Run("sort-"+text, func(b *testing.B) {
			o, err := query.ParseOrder(text, Nodes())
			if err != nil {
				b.Fatal(err)
			}
			work := make([]*store.Node, len(rows))
			for b.Loop() {
				copy(work, rows)
				o.Sort(work, func(n *store.Node) string { return n.Metadata.Name })
			}
		})
	}
}

// TestTypeText: Kubernetes' type wins over a daemon that lies, and no type widens a table.
func TestTypeText(t *testing.T) {
	t.Parallel()
	n := sample("a", t0, 1, 0, 1)
	n.Summary.InstanceType = "m5.large\x1b[31m" + strings.Repeat("x", 200)
	if got := TypeText(store.NewNode(n)); show.Width(got) != longestType || !strings.HasPrefix(got, `m5.large\x1b`) {
		t.Errorf("%q", got)
	}
	n.Object = &document.NodeObject{InstanceType: "m5.xlarge"}
	if got := TypeText(store.NewNode(n)); got != "m5.xlarge" {
		t.Errorf("%q", got)
	}
}

// TestPercent: a node with prefixes is full at max-pods, and sorts like one.
func TestPercent(t *testing.T) {
	t.Parallel()
	node := func(assigned int) *store.Node {
		n := sample("n", t0, assigned, 0, 0)
		n.Summary.MaxPods = &introspect.MaxPods{Value: new(234)}
		n.Summary.Cards[0].Mode, n.Summary.Cards[0].AddressLimit = introspect.ModePrefix, new(3248)
		return store.NewNode(n)
	}
	for assigned, want := range map[int]string{63: "26%", 230: "98%"} {
		if got := text(t, node(assigned), "ip%"); got != want {
			t.Errorf("%d of max-pods 234: %s, want %s", assigned, got, want)
		}
	}
}

// TestNodes_OverWarm: a node that holds far more than its pods can use is found by that state.
func TestNodes_OverWarm(t *testing.T) {
	t.Parallel()
	filter, err := query.Parse("state="+store.WordOverWarm, query.Options[*store.Node]{Columns: Nodes()})
	if err != nil {
		t.Fatal(err)
	}
	for used, want := range map[int]bool{8: true, 45: false} {
		if got := filter.Match(store.NewNode(sample("a", t0, used, 0, 90))); got != want {
			t.Errorf("%d used, 90 free: %v, want %v", used, got, want)
		}
	}
}
