package app

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func newFlow(t *testing.T, nodes int) *bench {
	t.Helper()
	b := newBench(t, pagetest.NewSource(nodes, 5), nil)
	b.resize(120, 40)
	b.change()
	b.View()
	return b
}

func (b *bench) stackNames() string {
	var out []string
	for _, e := range b.router.stack {
		out = append(out, e.page.Name())
	}
	return strings.Join(out, ">")
}

func TestScreensAreAStackWithAHistory(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 50)
	at := func(want string) {
		t.Helper()
		if got := b.stackNames(); got != want {
			t.Fatalf("at %s, want %s", got, want)
		}
	}
	b.press("enter")
	at("overview>node")
	b.press("esc")
	at("overview")
	b.press("2")
	at("overview>subnets")
	b.press("[")
	at("overview")
	b.press("[")
	at("overview>node")
	b.press("]", "]")
	at("overview>subnets")
	b.press("-")
	at("overview")
	b.press("-")
	at("overview>subnets")
	b.press("?")
	at("overview>subnets>help")
	b.press("?")
	at("overview>subnets")
	b.press("ctrl+g")
	at("overview>subnets>diagnostics")
	b.press("q")
	at("overview>subnets")
	b.press("1")
	at("overview")
	b.press(":")
	b.typed("trun")
	b.press("enter")
	at("overview>trunks")
	b.press(":")
	b.typed(pagetest.NodeName(7))
	b.press("enter")
	at("overview>trunks>node")
	b.press("y")
	at("overview>trunks>node>object")
	b.press("esc", "esc", "esc", "y")
	at("overview>object")
	b.sees(t, "kind: NodeIPAM")
	b.press("y")
	b.sees(t, `"kind": "NodeIPAM"`)
	b.press("esc")
	at("overview")
}

func TestFilterIsLive(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 100)
	b.press("/")
	b.typed("type=m5.large")
	b.sees(t, "17 of 100")
	b.press("esc")
	if f := b.list().Filter(); f != "" {
		t.Errorf("esc leaves the filter %q", f)
	}
	b.press("/")
	b.typed("type=m5.large")
	b.press("enter")
	if got := b.list().Filter(); got != "type=m5.large" {
		t.Errorf("enter leaves the filter %q", got)
	}
	b.press("/")
	b.typed(" re:(")
	b.sees(t, "missing closing )")
	b.press("enter") // refused
	b.sees(t, "missing closing )")
	b.press("esc")
	if got := b.list().Filter(); got != "type=m5.large" {
		t.Errorf("esc leaves the filter %q", got)
	}
	b.press("/", "ctrl+l")
	b.typed("fre<5")
	b.press("enter")
	b.resize(80, 24)
	b.sees(t, `"fre" is not a column`)
	b.press("esc", "esc")
	b.resize(120, 40)
	if f := b.list().Filter(); f != "" {
		t.Errorf("esc on the table leaves the filter %q", f)
	}
	b.press("n")
	first := b.list().Identities()[0]
	b.press("n")
	second := b.list().Identities()[0]
	if first == second {
		t.Error("n does not go on")
	}
	b.press("N")
	if got := b.list().Identities()[0]; got != first {
		t.Errorf("N goes to %s, not back to %s", got, first)
	}
}

func TestSortMenuAndMemory(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 100)
	b.press("s")
	b.sees(t, "sort by", "n name", "z zone")
	b.press("n")
	if got := b.list().Order(); got != "node" {
		t.Errorf("s n sorts by %q", got)
	}
	b.press("s", "n")
	if got := b.list().Order(); got != "-node" {
		t.Errorf("s n again sorts by %q", got)
	}
	b.press("o")
	if got := b.list().Order(); got != "node" {
		t.Errorf("o sorts by %q", got)
	}
	b.press("shift+right")
	if got := b.list().Order(); got != "type" {
		t.Errorf("shift+right sorts by %q", got)
	}
	// Another screen set of the same program finds the order again; ^l and another cluster do not.
	b.press("/")
	b.typed("type=m5.large")
	b.press("enter")
	again := newBench(t, b.fleet, func(o *Options) { o.Remembered = b.remembered })
	if order, filter := again.list().Order(), again.list().Filter(); order != "type" || filter != "type=m5.large" {
		t.Errorf("the same cluster is sorted by %q, of %q", order, filter)
	}
	other := newBench(t, b.fleet, func(o *Options) { o.Remembered, o.Cluster = b.remembered, "another" })
	if order, filter := other.list().Order(), other.list().Filter(); order != "state,-ip%" || filter != "" {
		t.Errorf("another cluster is sorted by %q, of %q", order, filter)
	}
	b.press("f", "ctrl+l")
	if order, filter := b.list().Order(), b.list().Filter(); order != "state,-ip%" || filter != "" || b.list().Faults() {
		t.Errorf("after ^l it is sorted by %q, of %q", order, filter)
	}
}

// TestFaultsArePerScreen: the other screens still show all rows.
func TestFaultsArePerScreen(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 100)
	b.press("f", "6")
	if b.list().Faults() {
		t.Error("f on the nodes hides pods")
	}
	b.press("1")
	if !b.list().Faults() {
		t.Error("the nodes show all rows again")
	}
}

// TestWeakMatch: what only a description contains is not what enter opens.
func TestWeakMatch(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 100)
	b.press(":")
	b.typed("daemon")
	b.press("enter")
	b.sees(t, "no match for daemon")
	b.press(":")
	b.typed("daemon")
	b.press("down", "enter")
	if b.page().Name() == "overview" {
		t.Error("a chosen match is not taken")
	}
}

// TestWhatIsNotKept: filters do not persist between runs, and a theme only if chosen on the screen.
func TestWhatIsNotKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, pagetest.NewSource(20, 1), func(o *Options) { o.Theme = draw.Light })
	b.resize(100, 30)
	b.change()
	b.press("/")
	b.typed("type=m5.large")
	b.press("enter", "s", "n", "w")
	last := b.saves[len(b.saves)-1]
	if last.Theme != "" {
		t.Errorf("the theme of one run is kept: %q", last.Theme)
	}
	again := newBench(t, b.fleet, nil)
	again.Model = newModel(again.o, utf8Locale, b.keys, last, again.fx)
	if got := again.list().Filter(); got != "" {
		t.Errorf("the next run filters by %q", got)
	}
	b.press("t")
	if last := b.saves[len(b.saves)-1]; last.Theme != b.colours || last.Theme == draw.Light {
		t.Errorf("t is kept as %q", last.Theme)
	}
}

// TestCursorGoesToTheTop: a new order or filter puts the cursor on the first row and keeps it
// there whichever row that is. When the filter is removed, the cursor stays on its row.
func TestCursorGoesToTheTop(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 100)
	first := func() string { return b.rows()[0] }
	for _, keys := range [][]string{{"s", "n"}, {"o"}, {"shift+right"}, {"f"}, {"f"}} {
		b.press("down", "down", "down")
		b.press(keys...)
		if keys[0] == "f" && !b.list().Faults() {
			continue // all rows again: the cursor stays on its row
		}
		if got := b.list().Identities()[0]; got != first() {
			t.Errorf("%v: the cursor is on %s, not on %s", keys, got, first())
		}
	}
	b.press("s", "n", "down", "down", "/")
	b.typed("type=m5.large")
	found := b.list().Identities()[0]
	if found != first() {
		t.Errorf("filtered: the cursor is on %s, not on %s", found, first())
	}
	b.press("enter", "down")
	found = b.list().Identities()[0]
	b.press("esc")
	if got := b.list().Identities()[0]; b.list().Filter() != "" || got != found {
		t.Errorf("the filter gone, the cursor is on %s, not on %s", got, found)
	}
}

func TestSelectionFollowsIdentityAndOrderWaits(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 60)
	b.press("s", "f", "down", "down", "down")
	name := b.list().Identities()[0]
	starve := func(free int) {
		for _, n := range b.fleet.View().Nodes {
			if n.Metadata.Name == name {
				sample := n.NodeIPAM
				sum := *sample.Summary
				sum.Cards = []introspect.CardSummary{sum.Cards[0]}
				sum.Cards[0].Free = free
				sample.Summary = &sum
				b.fleet.Put(sample)
			}
		}
		b.change()
	}
	row := func() int {
		i := 0
		for ; i < len(b.view.Nodes); i++ {
			if r := b.rows(); r[i] == name {
				return i
			}
		}
		return -1
	}
	before := row()
	starve(100_000)
	if got := b.list().Identities()[0]; got != name {
		t.Fatalf("the cursor went to %s", got)
	}
	if row() != before {
		t.Error("the rows moved under the hand")
	}
	b.sees(t, "order paused")
	b.clock = b.clock.Add(3 * time.Second)
	b.send(second{b.ticks})
	if got := b.list().Identities()[0]; got != name || row() != 0 {
		t.Errorf("after a rest the cursor is on %s and the row at %d", got, row())
	}
	if text := b.text(t); strings.Contains(text, "order paused") {
		t.Error("the order is still held")
	}
}

// rows returns the identities of the overview's rows in display order.
func (b *bench) rows() []string {
	_, cells := b.list().Cells()
	out := make([]string, 0, len(cells))
	for _, c := range cells {
		out = append(out, c[0])
	}
	return out
}

func TestMarksCopyExport(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 30)
	b.press("s", "n", "home", "space", "down", "ctrl+space", "i")
	want := strings.Join([]string{pagetest.NodeName(0), pagetest.NodeName(1), pagetest.NodeName(2)}, "\n")
	if len(b.copied) != 1 || b.copied[0] != want {
		t.Errorf("copied %q", b.copied)
	}
	b.press("x", "c", "x", "j", "x", "t")
	name := "cnictl-overview-20261121-140211"
	if got := string(b.files[name+".csv"]); strings.Count(got, "\n") != 4 || !strings.HasPrefix(got, "NODE,TYPE,ENI,") {
		t.Errorf("CSV of three marked rows:\n%s", got)
	}
	var rows []map[string]string
	if err := json.Unmarshal(b.files[name+".json"], &rows); err != nil || len(rows) != 3 || rows[0]["NODE"] != pagetest.NodeName(0) {
		t.Errorf("JSON: %v %v", err, rows)
	}
	if got := string(b.files[name+".txt"]); strings.Count(got, "\n") != 4 {
		t.Errorf("text:\n%s", got)
	}
	if focus, _, _ := b.fleet.Requested(); len(focus.Visible) == 0 {
		t.Error("nothing is looked at")
	}
}

func TestPaceAndFocus(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 30)
	b.press("+")
	if _, pace, _ := b.fleet.Requested(); pace.Interval != 15*time.Second {
		t.Errorf("+ gives %v", pace.Interval)
	}
	b.press("_", "_")
	if _, pace, _ := b.fleet.Requested(); pace.Interval != 5*time.Second {
		t.Errorf("_ _ gives %v", pace.Interval)
	}
	b.press("p")
	if _, pace, _ := b.fleet.Requested(); !pace.Paused {
		t.Error("p does not pause")
	}
	b.sees(t, "PAUSED")
	before := b.View().Content
	b.fleet.Step(30)
	b.change()
	if b.View().Content != before {
		t.Error("the picture moves while paused")
	}
	if b.ticking && b.tick() != nil {
		t.Error("seconds are counted while paused")
	}
	b.press("p")
	b.send(tea.BlurMsg{})
	if focus, _, _ := b.fleet.Requested(); !focus.Away {
		t.Error("the source does not know that the terminal lost focus")
	}
	if b.tick() != nil {
		t.Error("seconds are counted while the terminal has no focus")
	}
	b.send(tea.FocusMsg{})
	if focus, _, _ := b.fleet.Requested(); focus.Away {
		t.Error("the source does not know that somebody looks again")
	}
	b.press("r")
	if _, _, called := b.fleet.Requested(); called != 1 {
		t.Error("r does not read")
	}
	b.press("enter")
	if focus, _, _ := b.fleet.Requested(); focus.Open == "" {
		t.Error("the open node is not looked at first")
	}
}

func TestMouse(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 100)
	if b.View().MouseMode != tea.MouseModeNone {
		t.Error("the mouse is taken before it is asked for")
	}
	b.press("m")
	if b.View().MouseMode != tea.MouseModeCellMotion {
		t.Error("m does not take the mouse")
	}
	lines := strings.Split(b.text(t), "\n")
	header := 0
	for i, l := range lines {
		if strings.HasPrefix(l, "  NODE") {
			header = i
		}
	}
	click := func(x, y int) { b.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft}) }
	click(3, header)
	if got := b.list().Order(); got != "node" {
		t.Errorf("a click on NODE sorts by %q", got)
	}
	click(5, header+4)
	if got, want := b.list().Identities()[0], b.rows()[3]; got != want {
		t.Errorf("a click selects %s, want %s", got, want)
	}
	b.send(tea.MouseWheelMsg{X: 5, Y: header + 4, Button: tea.MouseWheelDown})
	if first, _ := b.list().Window(); first != 4 {
		t.Errorf("the wheel goes to %d", first)
	}
	b.clock = b.clock.Add(time.Second)
	click(5, header+2)
	b.clock = b.clock.Add(100 * time.Millisecond)
	click(5, header+2)
	if got := b.stackNames(); got != "overview>node" {
		t.Errorf("a double click goes to %s", got)
	}
}

func TestThemes(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 10)
	seen := map[string]bool{}
	for range draw.Themes() {
		b.press("t")
		seen[b.colours] = true
	}
	if len(seen) != len(draw.Themes()) {
		t.Errorf("t goes through %v", seen)
	}
	env := append(environ{"NO_COLOR=1"}, utf8Locale...)
	plain := newBench(t, b.fleet, func(o *Options) { o.Environ = env })
	plain.resize(120, 40)
	plain.change()
	for _, seq := range []string{"\x1b[3", "\x1b[9", ";3", ";9", ";38", ";48"} {
		if strings.Contains(plain.View().Content, seq) {
			t.Errorf("with NO_COLOR there is %q", seq)
		}
	}
	if !strings.Contains(plain.View().Content, "\x1b[7m") {
		t.Error("with NO_COLOR the selected row is not in reverse video")
	}
}

func TestBackgroundIsAskedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, pagetest.NewSource(3, 1), func(o *Options) { o.Theme = draw.Auto })
	b.Init()
	if b.theme.Name != draw.Dark {
		t.Errorf("before an answer: %s", b.theme.Name)
	}
	white := tea.BackgroundColorMsg{Color: white{}}
	b.clock = b.clock.Add(backgroundLimit + time.Millisecond)
	b.send(white)
	if b.theme.Name != draw.Dark {
		t.Error("a late answer changes the colours under the eyes")
	}
	b.clock = b.asked
	b.send(white)
	if b.theme.Name != draw.Light {
		t.Errorf("a light terminal has %s", b.theme.Name)
	}
}

type white struct{}

func (white) RGBA() (r, g, b, a uint32) { return 0xffff, 0xffff, 0xffff, 0xffff }

func TestSmallTerminalSaysSo(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 10)
	for _, size := range [][2]int{{59, 15}, {60, 14}, {10, 3}, {1, 1}} {
		b.resize(size[0], size[1])
		if size[0] > 40 {
			b.sees(t, "too small")
		}
		b.change()
		checkFrame(t, b.Model, "small")
	}
	b.resize(0, 0)
	checkFrame(t, b.Model, "none")
	b.resize(60, 15)
	b.sees(t, "ip-10-0-0-4")
}

func TestRowsWhileDataComes(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 20)
	b.fleet.Remove(pagetest.NodeName(0))
	b.fleet.Put(document.NodeIPAM{Metadata: document.ObjectMeta{Name: "new"}, State: document.StateAPIOnly})
	b.change()
	if shown, all := b.list().Found(); shown != 20 || all != 20 {
		t.Errorf("%d of %d", shown, all)
	}
	rows := strings.Join(b.rows(), " ")
	if strings.Contains(rows, pagetest.NodeName(0)+" ") || !strings.Contains(rows, "new") {
		t.Errorf("rows %s", rows)
	}
}

func TestAnswersGoToPagesOfTheStack(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 10)
	b.press("enter")
	if len(b.reads) == 0 {
		t.Fatal("the node's screen reads nothing")
	}
	b.press("?")
	b.send(pages.Loaded{ID: b.reads[0].ID, Want: b.reads[0].Want}) // an empty answer does no harm
	b.press("?", "esc")
	b.send(pages.Loaded{ID: b.reads[0].ID, Want: b.reads[0].Want}) // for a page that is no longer open
	if b.stackNames() != "overview" {
		t.Error(b.stackNames())
	}
}

// TestToast_GoesWithItsScreen: a message covers no breadcrumb, filter or key, and disappears with
// the next key or screen.
func TestToast_GoesWithItsScreen(t *testing.T) {
	t.Parallel()
	const says = "mouse: on"
	b := newFlow(t, 50)
	b.press("/")
	b.typed("type=m5.large")
	b.press("enter")
	for _, size := range [][2]int{{60, 15}, {80, 24}, {120, 40}} {
		b.resize(size[0], size[1])
		before := strings.Split(b.text(t), "\n")
		b.mouse = false
		b.press("m")
		b.sees(t, says)
		foot := b.footerLines()
		after := strings.Split(b.text(t), "\n")
		if now := after[len(after)-foot:]; !slices.Equal(now, before[len(before)-foot:]) {
			t.Errorf("at %v the message changes the foot:\n%s", size, strings.Join(now, "\n"))
		}
		b.press("down")
		b.lacks(t, says)
		b.mouse = false
		b.press("m")
		b.send(pages.Open{Screen: "subnets"})
		b.lacks(t, says)
		b.press("q")
	}
}

// TestLogs_NoLineMatches: if no line matches, the log says so at the top, with the key to press,
// and counts the lines at the bottom.
func TestLogs_NoLineMatches(t *testing.T) {
	t.Parallel()
	b := searching(t)
	b.resize(80, 24)
	b.send(pages.Open{Screen: "logs", Node: pagetest.Plain})
	b.answerAll(t)
	for range 4 {
		if strings.Contains(b.text(t), "No lines match (") {
			break
		}
		b.press("v")
	}
	b.sees(t, "No lines match (", "v changes the min level", " 0 of ")
}
