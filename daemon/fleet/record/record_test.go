package record

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// Player is a source of a fleet for the screens.
var _ interface {
	View() *store.View
	Changed() <-chan struct{}
	Focus(watch.Focus)
	Refresh()
	Pace(watch.Pace)
	Detail(ctx context.Context, node string, want watch.Want, q watch.Query) watch.Detail
	Stats() watch.Stats
	Now() time.Time
	Title() string
} = (*Player)(nil)

var start = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

// sample is a node with a number of assigned addresses at a time.
func sample(name string, assigned int, at time.Time) document.NodeIPAM {
	return document.NodeIPAM{
		APIVersion: introspect.APIVersion, Kind: document.KindNode, Metadata: document.ObjectMeta{Name: name},
		State: document.StateLive, Source: document.SourceSummary, SampledAt: &at, LatencySeconds: new(0.1), Via: document.ViaPortForward,
		Summary: &introspect.Summary{
			APIVersion: introspect.APIVersion, Kind: introspect.KindSummary, Node: name, InstanceType: "m5.large", StartedAt: new(start.Add(-time.Hour)),
			Cards: []introspect.CardSummary{{Mode: introspect.ModeSecondaryIP, ENIs: new(2), ENILimit: new(3), AddressLimit: new(27), Total: 18, Assigned: assigned, Free: 18 - assigned}},
			ADDs:  &introspect.RequestCounts{Total: assigned, Failed: new(0)}, DELs: &introspect.RequestCounts{Failed: new(0)},
			LastErrors: []introspect.LastError{{Operation: "AssignPrivateIpAddresses", Message: "session_token=hunter2 was refused"}},
		},
		Object: &document.NodeObject{Zone: "eu-1a", InstanceID: "i-1", Labels: map[string]string{
			"topology.kubernetes.io/zone": "eu-1a", "node.kubernetes.io/instance-type": "m5.large", "eks.amazonaws.com/nodegroup": "blue",
			"cnictl.dev/max-eni": "2", "team": "secret", "example.com/token": "secret", "notkubernetes.io/x": "secret",
		}},
	}
}

// TestWriter_NothingSecret: errors and labels are recorded without secrets.
func TestWriter_NothingSecret(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{StartedAt: start})
	if err != nil {
		t.Fatal(err)
	}
	n := sample("n", 1, start)
	n.Error = &document.NodeError{Reason: introspect.ReasonTransport, Message: "https://me:hunter2@api: refused"}
	if err := errors.Join(w.WriteSample(n, start), w.Close()); err != nil {
		t.Fatal(err)
	}
	if n.Summary.LastErrors[0].Message != "session_token=hunter2 was refused" {
		t.Error("the sample that was given was changed")
	}
	zip, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil || !bytes.Contains(text, []byte("AssignPrivateIpAddresses")) {
		t.Fatalf("%s, %v", text, err)
	}
	for _, secret := range []string{"hunter2", `"secret"`} {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s is in %s", secret, text)
		}
	}
}

// recorded is a 20-minute recording: a steady node, one that grows by a pod a minute, one
// that comes and goes, and one that fails at the end.
func recorded(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{Tool: "v1.2.3", Title: "prod-eu", StartedAt: start})
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 121 {
		at := start.Add(time.Duration(i) * 10 * time.Second)
		check(w.WriteSample(sample("steady", 5, at), at))
		check(w.WriteSample(sample("growing", min(18, i/6), at), at))
		if i >= 30 && i < 60 {
			check(w.WriteSample(sample("passing", 1, at), at))
		}
		if i == 60 {
			check(w.WriteRemoved("passing", at))
		}
		failing := sample("failing", 7, at)
		if i >= 110 {
			failing.Summary, failing.SampledAt, failing.LatencySeconds, failing.Source, failing.State = nil, nil, nil, "", document.StateUnreachable
			failing.Error = &document.NodeError{Reason: introspect.ReasonTimeout, Message: "no answer, token=" + "AKIAIOSFODNN7EXAMPLE"}
		}
		check(w.WriteSample(failing, at))
		check(w.Flush())
	}
	if info := w.Info(); info.Samples != 393 || info.Nodes != 4 || !info.From.Equal(start) || !info.To.Equal(start.Add(20*time.Minute)) {
		t.Errorf("%+v", info)
	}
	check(w.Close())
	return out.Bytes()
}

// open returns a player with a clock that the test moves.
func open(t testing.TB, file []byte) (*Player, *time.Time) {
	t.Helper()
	clock := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	p, err := Open(bytes.NewReader(file), Options{Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	return p, &clock
}

// nodes describes a view in one line.
func nodes(v *store.View) string {
	var parts []string
	for _, n := range v.Nodes {
		parts = append(parts, fmt.Sprintf("%s %s %d", n.Metadata.Name, n.State, n.Assigned))
	}
	return strings.Join(parts, ", ")
}

func TestPlayer_Plays(t *testing.T) {
	t.Parallel()
	p, clock := open(t, recorded(t))
	if p.Title() != "prod-eu (recording)" || p.index.header.Tool != "v1.2.3" || p.Info().Interrupted {
		t.Errorf("%s %+v", p.Title(), p.index.header)
	}
	if from, to := p.Range(); !from.Equal(start) || to.Sub(from) != 20*time.Minute {
		t.Errorf("%v %v", from, to)
	}
	if info := p.Info(); info.Samples != 393 || info.Nodes != 4 {
		t.Errorf("%+v", info)
	}
	step := func(real time.Duration, wantAt time.Duration, want string) {
		t.Helper()
		*clock = clock.Add(real)
		p.Advance()
		if got := nodes(p.View()); got != want || p.Now().Sub(start) != wantAt {
			t.Errorf("at %v: %s\nwant %v: %s", p.Now().Sub(start), got, wantAt, want)
		}
	}
	step(0, 0, "failing live 7, growing live 0, steady live 5")
	step(61*time.Second, 61*time.Second, "failing live 7, growing live 1, steady live 5")
	p.Speed(60)
	step(5*time.Second, 361*time.Second, "failing live 7, growing live 6, passing live 1, steady live 5")
	p.Pace(watch.Pace{Paused: true})
	step(time.Hour, 361*time.Second, "failing live 7, growing live 6, passing live 1, steady live 5")
	p.Pace(watch.Pace{})
	step(5*time.Second, 661*time.Second, "failing live 7, growing live 11, steady live 5")
	step(time.Hour, 20*time.Minute, "failing stale 7, growing live 18, steady live 5")
	if s := p.Stats(); s.Samples != 393 {
		t.Errorf("%d samples played: those of key frames are no news", s.Samples)
	}
	n := p.View().Node("failing")
	if strings.Contains(n.Error.Message, "AKIA") || n.Error.Reason != introspect.ReasonTimeout || n.Word != "stale 110s: timeout" {
		t.Errorf("%q %q", n.Error.Message, n.Word)
	}
	want := map[string]string{"topology.kubernetes.io/zone": "eu-1a", "node.kubernetes.io/instance-type": "m5.large", "eks.amazonaws.com/nodegroup": "blue", "cnictl.dev/max-eni": "2"}
	if diff := cmp.Diff(want, n.Object.Labels); diff != "" {
		t.Error(diff)
	}
}

// TestPlayer_SeeksWhereItWouldHavePlayed: seeking to a time gives the same view as playing
// up to it.
func TestPlayer_SeeksWhereItWouldHavePlayed(t *testing.T) {
	t.Parallel()
	file := recorded(t)
	sought, _ := open(t, file)
	last := uint64(0)
	for _, to := range []time.Duration{0, 19 * time.Minute, 7 * time.Minute, 7*time.Minute + time.Second, 5 * time.Minute, 299 * time.Second, time.Hour, -time.Hour, 16 * time.Minute} {
		played, clock := open(t, file)
		*clock = clock.Add(max(0, to))
		played.Advance()
		sought.Seek(start.Add(to))
		if got, want := nodes(sought.View()), nodes(played.View()); got != want || !sought.Now().Equal(played.Now()) {
			t.Errorf("at %v: %s\nplayed: %s", to, got, want)
		}
		g := sought.View().Node("growing")
		if want := played.View().Node("growing"); to > 0 && (len(g.History) != len(want.History) || !cmp.Equal(g.Rates, want.Rates)) {
			t.Errorf("at %v: %d points, played: %d; %+v %+v", to, len(g.History), len(want.History), g.Rates, want.Rates)
		}
		if gen := sought.View().Generation; gen < last {
			t.Errorf("generation %d after %d", gen, last)
		} else {
			last = gen
		}
	}
}

// TestPlayer_Samples: each sample appears once, wherever the player is.
func TestPlayer_Samples(t *testing.T) {
	t.Parallel()
	p, _ := open(t, recorded(t))
	p.Seek(start.Add(7 * time.Minute))
	before, count, gone := nodes(p.View()), 0, ""
	for s := range p.Samples {
		switch {
		case s.Node == nil:
			gone += s.Name + " " + s.At.Sub(start).String()
		case s.Name == "growing":
			if got, want := s.Node.Summary.Cards[0].Assigned, min(18, int(s.At.Sub(start)/time.Minute)); got != want {
				t.Errorf("%d pods after %v, want %d", got, s.At.Sub(start), want)
			}
			fallthrough
		default:
			count++
		}
	}
	if count != 393 || gone != "passing 10m0s" {
		t.Errorf("%d samples, gone: %s", count, gone)
	}
	for range p.Samples {
		break
	}
	if now := nodes(p.View()); now != before {
		t.Errorf("the player shows %s, before: %s", now, before)
	}
}

func TestPlayer_Detail(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{StartedAt: start})
	if err != nil {
		t.Fatal(err)
	}
	n := sample("a", 1, start)
	n.ENIs = []introspect.NodeENI{{ID: "eni-1", SubnetID: "subnet-1", CIDRs: []introspect.NodeCIDR{{CIDR: netip.MustParsePrefix("10.0.0.5/32"), Total: 1}}}}
	if err := w.WriteSample(n, start); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p, _ := open(t, out.Bytes())
	d := p.Detail(t.Context(), "a", watch.WantENIs|watch.WantPlan, watch.Query{})
	if len(d.ENIs) != 1 || d.ENIs[0].ID != "eni-1" || len(d.Errors) != 1 || d.Errors[watch.WantPlan].Reason != introspect.ReasonNotServed {
		t.Errorf("%+v", d)
	}
	if d := p.Detail(t.Context(), "b", watch.WantENIs, watch.Query{}); len(d.Errors) != 1 {
		t.Errorf("%+v", d)
	}
	if d := p.Detail(t.Context(), "a", ^watch.Want(0)&^watch.WantENIs, watch.Query{}); d.Errors[watch.WantNodeUse].Reason != introspect.ReasonNotServed {
		t.Errorf("of the last document nothing is said: %+v", d.Errors)
	}
}

// TestWriter_View writes only what changed between views.
func TestWriter_View(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{StartedAt: start})
	if err != nil {
		t.Fatal(err)
	}
	s := store.New()
	write := func(at time.Time, samples ...document.NodeIPAM) {
		t.Helper()
		for _, n := range samples {
			s.PutAt(n, at)
		}
		if err := w.WriteView(s.View(), at); err != nil {
			t.Fatal(err)
		}
	}
	write(start, sample("a", 1, start), sample("b", 2, start))
	later := start.Add(10 * time.Second)
	write(later, sample("b", 3, later))
	s.Remove("a")
	write(later.Add(10 * time.Second))
	if got := w.Info(); got.Samples != 3 || got.Nodes != 2 {
		t.Errorf("%+v", got)
	}
	p, _ := open(t, out.Bytes()) // not closed, as after a crash
	p.Seek(start.Add(time.Minute))
	if got := nodes(p.View()); got != "b live 3" {
		t.Error(got)
	}
}

// learner counts what is learned, and replaces nothing.
type learner map[string]int

func (l learner) Learn(v any) {
	switch v := v.(type) {
	case document.NodeIPAM:
		l[v.Metadata.Name]++
	case documents:
		l["documents of "+v.Node]++
	default:
		l[fmt.Sprintf("%T", v)]++
	}
}

func (l learner) Replace(v any) any { return v }

// TestWriter_Learns: an anonymized recording learns each sample once, and none that is unchanged.
func TestWriter_Learns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{StartedAt: start})
	if err != nil {
		t.Fatal(err)
	}
	learned := learner{}
	w.Anonymize(learned)
	s := store.New()
	for i := range 100 { // the last are in another key frame
		at := start.Add(time.Duration(i) * 10 * time.Second)
		s.PutAt(sample("a", i, at), at)
		s.PutAt(sample("b", i/50, at), at)
		if err := w.WriteView(s.View(), at); err != nil {
			t.Fatal(err)
		}
		d := watch.Detail{Node: "a", Logs: &introspect.NodeLogs{Lines: []string{"x"}}}
		if err := w.WriteDocuments(d, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteRemoved("b", start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(learner{"a": 100, "b": 2, "documents of a": 1}, learned); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOpen_CutFile plays a file that was truncated anywhere, up to its end.
func TestOpen_CutFile(t *testing.T) {
	t.Parallel()
	file := recorded(t)
	samples := -1
	for cut := 200; cut < len(file); cut += 997 {
		p, err := Open(bytes.NewReader(file[:cut]), Options{})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if !p.Interrupted() {
			t.Errorf("cut at %d of %d: not noticed", cut, len(file))
		}
		if p.Info().Samples < samples {
			t.Errorf("cut at %d: %d samples, fewer than before", cut, p.Info().Samples)
		}
		samples = p.Info().Samples
		p.Seek(start.Add(time.Hour))
		if samples > 0 && len(p.View().Nodes) == 0 {
			t.Errorf("cut at %d: %d samples and nothing to see", cut, samples)
		}
	}
	if samples < 300 {
		t.Errorf("%d samples at last", samples)
	}
}

func zipped(t testing.TB, lines ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const goodHeader = `{"format":"cnictl-recording","version":1,"tool":"","title":"","startedAt":"2026-11-21T14:00:00Z"}`

func TestOpen_Refuses(t *testing.T) {
	t.Parallel()
	for want, file := range map[string][]byte{
		"not gzip-compressed":      []byte("hello"),
		"no header":                zipped(t)[:10],
		"not a recording's header": zipped(t, `{"kind":"NodeIPAMList"}`),
		"version 2":                zipped(t, strings.Replace(goodHeader, `"version":1`, `"version":2`, 1)),
		"a line is longer":         zipped(t, goodHeader, strings.Repeat(" ", maxLine+1)),
		"too large when unp":       zipped(t, append([]string{goodHeader}, repeated(`{"at":"2026-11-21T14:00:00Z","gone":"a"}`+strings.Repeat(" ", 1<<20), 24)...)...),
	} {
		_, err := Open(bytes.NewReader(file), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func repeated(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// FuzzOpen: any recording is either refused or played, within its bounds.
func FuzzOpen(f *testing.F) {
	r, err := gzip.NewReader(bytes.NewReader(recorded(f)))
	if err != nil {
		f.Fatal(err)
	}
	whole, err := io.ReadAll(r)
	if err != nil {
		f.Fatal(err)
	}
	lines := strings.SplitN(string(whole), "\n", 12)
	f.Add(strings.Join(lines[:10], "\n"), 100)
	f.Add(goodHeader+"\n"+`{"at":"2026-11-21T14:00:00Z","same":{"node":"a"}}`, 3)
	f.Add(goodHeader+"\n"+`{"at":"2026-11-21T14:00:00Z","key":{"nodes":-5}}`+"\n"+`{"at":"2025-01-01T00:00:00Z","put":{"metadata":{"name":"a"},"summary":{"cards":[{"assigned":-1}]}}}`, 3)
	f.Add(goodHeader+"\n{", 1)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		file := zipped(t, text)
		if cut > 0 && cut < len(file) {
			file = file[:len(file)-cut]
		}
		p, err := Open(bytes.NewReader(file), Options{Now: func() time.Time { return start }})
		if err != nil {
			return
		}
		from, to := p.Range()
		if to.Before(from) {
			t.Fatalf("%v before %v", to, from)
		}
		for _, at := range []time.Time{from, to, from.Add(to.Sub(from) / 2)} {
			p.Seek(at)
			for _, n := range p.View().Nodes {
				if n.Assigned < 0 || n.Metadata.Name == "" {
					t.Fatalf("%+v", n)
				}
			}
		}
	})
}

func BenchmarkWriter(b *testing.B) {
	w, err := NewWriter(io.Discard, Header{})
	if err != nil {
		b.Fatal(err)
	}
	at := start
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at = at.Add(time.Millisecond)
		if err := w.WriteSample(sample("a", i%18, at), at); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlayer reads ten minutes of 5,000 nodes, a tenth of whose samples changed, and
// seeks in them.
func BenchmarkPlayer(b *testing.B) {
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{StartedAt: start})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 60 {
		at := start.Add(time.Duration(i) * 10 * time.Second)
		for j := range 5000 {
			if err := w.WriteSample(sample(fmt.Sprintf("ip-10-0-%d-%d", j/256, j%256), (i+j)/10%18, at), at); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("open", func(b *testing.B) {
		b.ReportMetric(float64(out.Len()), "file-bytes")
		for b.Loop() {
			if _, err := Open(bytes.NewReader(out.Bytes()), Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("seek", func(b *testing.B) {
		p, err := Open(bytes.NewReader(out.Bytes()), Options{})
		if err != nil {
			b.Fatal(err)
		}
		for i := 0; b.Loop(); i++ {
			p.Seek(start.Add(time.Duration(9-i%7) * time.Minute))
		}
	})
}

// BenchmarkWriteView writes a view of 5,000 nodes, a hundred of them changed.
func BenchmarkWriteView(b *testing.B) {
	w, err := NewWriter(io.Discard, Header{StartedAt: start})
	if err != nil {
		b.Fatal(err)
	}
	s, step := store.New(), 0
	put := func(i int, at time.Time) { s.PutAt(sample(fmt.Sprintf("node-%04d", i), step, at), at) }
	for i := range 5000 {
		put(i, start)
	}
	b.ReportAllocs()
	for b.Loop() {
		step++
		at := start.Add(time.Duration(step) * time.Second)
		for i := range 100 {
			put((step*100+i)%5000, at)
		}
		if err := w.WriteView(s.View(), at); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSurvey: the time line has errors from when a node fails until it works again or is gone.
func TestSurvey(t *testing.T) {
	t.Parallel()
	p, err := Open(bytes.NewReader(recorded(t)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Track().Errors != nil {
		t.Error("errors are known before the survey")
	}
	p.Survey(t.Context())
	first, last := -1, -1
	for i, failed := range p.Track().Errors {
		if failed && first < 0 {
			first = i
		}
		if failed {
			last = i
		}
	}
	if first != parts*110/120 || last != parts-1 {
		t.Errorf("errors in the parts %d to %d", first, last)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err = Open(bytes.NewReader(recorded(t)), Options{}); err != nil {
		t.Fatal(err)
	}
	if p.Survey(ended); p.Track().Errors != nil {
		t.Error("half a survey is shown")
	}
}
