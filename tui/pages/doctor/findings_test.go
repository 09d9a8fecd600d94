package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// finding is a finding for one of the catalogue's causes.
func finding(t testing.TB, code, confidence, node string) document.Finding {
	t.Helper()
	e, ok := catalogue.Lookup(code)
	if !ok {
		t.Fatal(code)
	}
	f := document.Finding{
		Code: code, Title: e.Title, Severity: e.Severity.String(), Confidence: confidence, Nodes: []string{node}, Links: e.Links,
		Scope: document.FindingScope{Node: node}, Check: document.CauseCheck(e.Check), Summary: "42 of 42 addresses are assigned",
		Evidence: []document.FindingEvidence{
			{Source: "intro.enis", ObservedAt: pagetest.Start().Add(-12 * time.Second), Path: "assignable addresses", Value: "0", Expected: "at least 1", Holds: true},
			{Source: "k8s.node", ObservedAt: pagetest.Start(), Path: "Ready", Value: "True", Expected: "True"},
		},
		Missing:  []document.MissingEvidence{{Source: "ec2.subnet", Reason: evidence.MissingForbidden, WouldDecide: "available addresses"}},
		Versions: document.FindingVersions{Detected: []string{"v1.0.0 (cnictl)"}},
	}
	for _, fix := range e.Fixes {
		f.Fix = append(f.Fix, document.CauseFix{Text: fix.Text, Command: fix.Command, SideEffects: fix.SideEffect, Risk: fix.Risk.String()})
	}
	return f
}

// reported is a report with every kind of finding.
func reported(t testing.TB) document.DoctorReport {
	t.Helper()
	root, follows, lone := finding(t, "ip/subnet-exhausted", "confirmed", pagetest.Starved), finding(t, "ip/alloc-backoff", "probable", pagetest.Starved), finding(t, "eni/leaked", "suspected", "")
	root.Scope.Subnet = "subnet-0aa11bb22cc33dd44"
	root.Explains, follows.Causes = []string{follows.Code}, []string{root.Code}
	lone.Scope, lone.Nodes, lone.Fix = document.FindingScope{Cluster: true}, []string{}, nil
	hostile := finding(t, "boot/ipamd-down", "confirmed", pagetest.Hostile)
	hostile.Summary, hostile.Evidence[0].Value = pagetest.Hostile, strings.Repeat(pagetest.Hostile, 20)
	return document.DoctorReport{
		Kind: document.KindDoctorReport, SampledAt: pagetest.Start().Add(-3 * time.Second), Mode: "laptop", Nodes: 10, Verdict: "3 causes found on 10 nodes",
		Findings: []document.Finding{root, hostile, lone}, Explained: []document.Finding{follows},
		Undecided: []string{"boot/apiserver", "boot/backing-store"}, RuledOut: []string{"ip/prefix-fragmented"},
		NotChecked: []document.MissingEvidence{{Source: "ec2.eni", Reason: evidence.MissingNotAsked}, {Source: "kern.rule", Reason: evidence.MissingMode}, {Source: "k8s.ds", Reason: pagetest.Hostile}},
	}
}

func gives(r document.DoctorReport, err error) func(pages.Examine) (document.DoctorReport, error) {
	return func(pages.Examine) (document.DoctorReport, error) { return r, err }
}

// examined opens the page with a doctor.
func examined(o pages.Open, doctor func(pages.Examine) (document.DoctorReport, error)) *pagetest.Screen {
	s := pagetest.Open(New(o), pagetest.Fleet(), 120, 37)
	s.Doctor = doctor
	s.Page = New(o)
	s.Send(pages.Changed{})
	return s
}

func open() pages.Page { return New(pages.Open{}) }

// TestFindings_Frames: the list, the causes that daemons report below it, one finding,
// and the screen without a report.
func TestFindings_Frames(t *testing.T) {
	found := func(s *pagetest.Screen) { s.Doctor = gives(reported(t), nil); s.Page = open(); s.Wait(2); s.Frame() }
	pagetest.Frames(t, "found", open, found)
	pagetest.Coloured(t, "found", open, found)
	pagetest.Frames(t, "reported", open, func(s *pagetest.Screen) { found(s); s.Do(keymap.NextPane, keymap.NextPane); s.Wait(2) })
	pagetest.Frames(t, "finding", open, func(s *pagetest.Screen) { found(s); s.Do(keymap.In); s.Page = s.Above })
	pagetest.Frames(t, "evidence", open, func(s *pagetest.Screen) { found(s); s.Do(keymap.Evidence) })
	pagetest.Frames(t, "clean", open, func(s *pagetest.Screen) {
		s.Doctor = gives(document.DoctorReport{Verdict: "no known cause on 10 nodes", SampledAt: pagetest.Start(), RuledOut: []string{"a", "b"}}, nil)
		s.Page = open()
		s.Wait(1)
	})
	pagetest.Frames(t, "failed", open, func(s *pagetest.Screen) {
		s.Doctor = gives(document.DoctorReport{}, errors.New("list nodes: "+pagetest.Hostile))
		s.Page = open()
		s.Wait(1)
	})
	pagetest.Frames(t, "examining", open, func(s *pagetest.Screen) {
		s.Doctor, s.Deaf, s.Page = gives(document.DoctorReport{}, nil), true, open()
		s.Wait(1)
		s.Examined[0].Progress(3, 10, "nodes in full")
	})
}

// TestFindings_SoFar: what an examination has found until now is listed while it goes on, also after the
// screen was left and entered again. Its verdict waits for the end; without one, the findings stay.
func TestFindings_SoFar(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{}), pagetest.Fleet(), 120, 37)
	m := New(pages.Open{}).(*Model)
	s.Doctor, s.Deaf, s.Page = gives(document.DoctorReport{}, nil), true, m
	s.Wait(1)
	says := func(wanted string, unwanted ...string) {
		t.Helper()
		text := strings.Join(s.Frame(), "\n")
		if !strings.Contains(text, wanted) {
			t.Errorf("no %q in\n%s", wanted, text)
		}
		for _, u := range unwanted {
			if strings.Contains(text, u) {
				t.Errorf("%q in\n%s", u, text)
			}
		}
	}
	all := reported(t)
	part := all
	part.Findings, part.Explained = all.Findings[:1], nil
	asked := s.Examined[0]
	asked.Progress(1, 10, "nodes in full")
	asked.SoFar(part)
	s.Send(pages.Changed{}) // as when the screen is entered
	says("1 cause found so far", all.Verdict, "suspected")
	says("examining 1 of 10: nodes in full")
	if m.Document() != nil {
		t.Error("what is not complete is exported as a report")
	}
	asked.SoFar(all)
	s.Wait(1)
	says("3 causes found so far", all.Verdict)
	s.Send(pages.Examined{To: m, ID: asked.ID, Err: errors.New("the cluster is gone")})
	s.Wait(3) // until the rows are in order
	says("not examined to the end: the cluster is gone", all.Verdict, "Not examined")
	says("suspected")
	s.Do(keymap.Refresh)
	s.Send(pages.Examined{To: m, ID: s.Examined[1].ID, Report: all})
	says(all.Verdict, "so far")
	s.Do(keymap.Refresh)
	s.Examined[2].SoFar(part)
	s.Wait(3)
	says("suspected", "so far") // the earlier report has more
}

// TestFindings_Bears: navigating a report, at every size, in Unicode and ASCII.
func TestFindings_Bears(t *testing.T) {
	r := reported(t)
	pagetest.CheckAllSizes(t, func(o pages.Open) pages.Page {
		m := New(o).(*Model)
		m.exam.id, m.exam.running = 1, true
		m.take(pages.Context{}, pages.Examined{ID: 1, Report: r})
		return &always{m}
	}, "doctor")
}

// always is the page with a doctor.
type always struct{ *Model }

func (a *always) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	c.Examines = true
	return a.Model.Update(c, msg)
}

func (a *always) Lines(c pages.Context) []string {
	c.Examines = true
	return a.Model.Lines(c)
}

func TestFinding_Keys(t *testing.T) { pagetest.Keys(t, &findingPage{finding: &document.Finding{}}) }

// TestRows: consequences come below their cause, whatever the order of the report.
func TestRows(t *testing.T) {
	t.Parallel()
	r := document.DoctorReport{
		Findings: []document.Finding{{Code: "a"}, {Code: "b"}},
		Explained: []document.Finding{
			{Code: "of-b", Causes: []string{"b"}}, {Code: "of-both", Causes: []string{"a", "b"}}, {Code: "of-none", Causes: []string{"c"}},
		},
	}
	var got []string
	for _, row := range rowsOf(&r, nil) {
		got = append(got, fmt.Sprint(row.code(), row.follows))
	}
	if want := []string{"afalse", "of-bothtrue", "bfalse", "of-btrue", "of-nonetrue"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRows_Reported: what nodes report is in the same list: on the row of the finding of that code, below
// the finding that explains it on all its nodes, or by severity on a row of its own; before the doctor
// has looked, alone.
func TestRows_Reported(t *testing.T) {
	t.Parallel()
	of := func(code string, s document.Severity, nodes ...string) *group {
		g := &group{Code: code, Severity: s}
		for _, name := range nodes {
			g.Nodes = append(g.Nodes, &affected{Name: name})
		}
		return g
	}
	groups := []*group{
		of("ip/subnet-exhausted", document.SeverityWarning, "a"), of("obs/add-waiting", document.SeverityError, "a"),
		of("obs/pool-dry", document.SeverityWarning, "a", "b"), of("timeout", document.SeverityError, "c"),
	}
	r := document.DoctorReport{Findings: []document.Finding{
		{Code: "ip/subnet-exhausted", Severity: "critical", Nodes: []string{"a"}}, {Code: "eni/leaked", Severity: "warning", Nodes: []string{}},
	}}
	list := func(r *document.DoctorReport) (got []string) {
		for _, row := range rowsOf(r, groups) {
			got = append(got, fmt.Sprint(row.severity(), " ", row.code(), " ", row.follows, " ", row.nodes()))
		}
		return got
	}
	if diff := cmp.Diff([]string{
		"critical ip/subnet-exhausted false [a]", "error obs/add-waiting true [a]", "error timeout false [c]",
		"warning eni/leaked false []", "warning obs/pool-dry false [a b]",
	}, list(&r)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"error obs/add-waiting false [a]", "error timeout false [c]", "warning ip/subnet-exhausted false [a]", "warning obs/pool-dry false [a b]",
	}, list(nil)); diff != "" {
		t.Error(diff)
	}
}

// TestExamine_Scope: the doctor examines what the screen was opened for.
func TestExamine_Scope(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		open  pages.Open
		scope evidence.Scope
		nodes []string
	}{
		{pages.Open{}, evidence.Scope{Cluster: true}, nil},
		{pages.Open{Node: pagetest.Starved}, evidence.Scope{Node: pagetest.Starved}, []string{pagetest.Starved}},
		{pages.Open{Node: pagetest.Starved, Pod: "shop/cart"}, evidence.Scope{Pod: "shop/cart"}, []string{pagetest.Starved}},
		{pages.Open{Nodes: pagetest.Down + "," + pagetest.Plain}, evidence.Scope{Cluster: true}, []string{pagetest.Plain, pagetest.Down}},
	} {
		s := examined(tt.open, gives(document.DoctorReport{}, nil))
		if len(s.Examined) != 1 {
			t.Fatalf("%+v: asked %d times", tt.open, len(s.Examined))
		}
		got := s.Examined[0]
		slices.Sort(got.Nodes)
		slices.Sort(tt.nodes)
		if got.Scope != tt.scope || !slices.Equal(got.Nodes, tt.nodes) || (got.Nodes == nil) != (tt.nodes == nil) {
			t.Errorf("%+v: asked about %+v, %q", tt.open, got.Scope, got.Nodes)
		}
	}
	if s := examined(pages.Open{Node: pagetest.Absent}, gives(document.DoctorReport{}, nil)); len(s.Examined) != 0 {
		t.Error("a node that is not there means all")
	}
}

// TestExamine_Again: examinations run one at a time, again on the key and for another scope, but not
// after an error. A cancelled one starts again when the screen is entered.
func TestExamine_Again(t *testing.T) {
	t.Parallel()
	s := examined(pages.Open{}, gives(reported(t), nil))
	asked := func(want int) {
		t.Helper()
		if len(s.Examined) != want {
			t.Fatalf("asked %d times, want %d", len(s.Examined), want)
		}
	}
	asked(1)
	s.Wait(3)
	asked(1)
	s.Do(keymap.Refresh)
	asked(2)
	s.Deaf = true
	s.Do(keymap.Refresh, keymap.Refresh)
	asked(3)
	m := s.Page.(*Model)
	s.Send(pages.Examined{To: m, ID: s.Examined[1].ID, Report: document.DoctorReport{Verdict: "stale"}})
	if !m.exam.running || m.exam.report.Verdict == "stale" {
		t.Error("an answer to another question was taken")
	}
	s.Send(pages.Examined{To: m, ID: s.Examined[2].ID, Err: context.Canceled})
	if m.exam.running || m.exam.report == nil || m.exam.err != nil {
		t.Errorf("given up: %+v", m.exam)
	}
	s.Do(keymap.AllNodes)
	asked(4)
	if m.exam.report != nil {
		t.Error("the report is of another scope")
	}
	s.Send(pages.Examined{To: m, ID: s.Examined[3].ID, Err: context.Canceled})
	asked(4)
	s.Send(pages.Changed{})
	asked(5)
	s.Send(pages.Examined{To: m, ID: s.Examined[4].ID, Err: errors.New("no")})
	s.Wait(3)
	asked(5)
}

// TestExamine_Recorded: a recording is examined again as it plays or seeks.
func TestExamine_Recorded(t *testing.T) {
	t.Parallel()
	m, view := New(pages.Open{}).(*Model), pagetest.Fleet().View()
	c := pages.Context{View: view, Now: pagetest.Start(), Clock: pagetest.Start(), Recorded: true, Examines: true}
	m.exam = examination{report: &document.DoctorReport{SampledAt: c.Now}, ended: c.Clock}
	for _, tt := range []struct {
		now, clock time.Duration
		want       bool
	}{{0, time.Hour, false}, {29 * time.Second, time.Hour, false}, {30 * time.Second, time.Hour, true}, {-time.Minute, 5 * time.Second, true}, {-time.Minute, 4 * time.Second, false}} {
		at := c
		at.Now, at.Clock = c.Now.Add(tt.now), c.Clock.Add(tt.clock)
		if got := m.due(at); got != tt.want {
			t.Errorf("%v later, %v of the clock: %v", tt.now, tt.clock, got)
		}
		if at.Recorded = false; m.due(at) {
			t.Error("a live fleet is examined again without a key")
		}
	}
}

// TestFinding_Command: a command is copied in full, however it is wrapped.
func TestFinding_Command(t *testing.T) {
	t.Parallel()
	r := reported(t)
	s := examined(pages.Open{}, gives(r, nil))
	s.Do(keymap.In)
	s.Page, s.Width = s.Above, 60
	var all []string
	for _, fix := range r.Findings[0].Fix {
		if fix.Command != "" {
			all = append(all, fix.Command)
		}
	}
	all = append(all, r.Findings[0].Check.Command, all[0])
	for _, want := range all {
		batch, ok := s.Page.Update(s.Context(), pages.Do{Action: keymap.CopyCommand})().(tea.BatchMsg)
		if !ok || fmt.Sprint(batch[0]()) != want {
			t.Errorf("copied %v, want %q", batch[0](), want)
		}
		s.Do(keymap.NextCommand)
	}
	if s.Do(keymap.ToNode); len(s.Opened) != 1 || s.Opened[0] != (pages.Open{Screen: "node", Node: pagetest.Starved}) {
		t.Errorf("opened %+v", s.Opened)
	}
}

// TestDocument: y shows the finding; an export contains the report.
func TestDocument(t *testing.T) {
	t.Parallel()
	s := examined(pages.Open{}, gives(reported(t), nil))
	m := s.Page.(*Model)
	if f, ok := m.Row(s.Context()).(*document.Finding); !ok || f.Code != "ip/subnet-exhausted" {
		t.Errorf("%+v", m.Row(s.Context()))
	}
	if r, ok := m.Document().(*document.DoctorReport); !ok || len(r.Findings) != 3 {
		t.Errorf("%+v", m.Document())
	}
	s.Frame()
	s.Do(keymap.NextPane, keymap.NextPane)
	if _, ok := m.Row(s.Context()).([]document.Problem); !ok || m.Document() != nil { // the nodes
		t.Errorf("%+v", m.Row(s.Context()))
	}
}

func BenchmarkFindings(b *testing.B) {
	s := pagetest.Open(New(pages.Open{}), pagetest.Fleet(), 200, 60)
	s.Doctor, s.Page = gives(reported(b), nil), New(pages.Open{})
	s.Wait(2)
	for b.Loop() {
		s.Frame()
	}
}
