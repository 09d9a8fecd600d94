package app

import (
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// The smallest terminal on which the screens are legible.
const (
	leastWidth  = 60
	leastHeight = 15
)

// hintsFrom is the least height at which the hints have their own line.
const hintsFrom = 18

// headerLines returns the height above the page: the fleet, and problems with reading it.
func (m *Model) headerLines() int {
	if m.banner() != "" {
		return 2
	}
	return 1
}

// banner returns the problem with reading nodes, "" if none. While no node is known, the
// problem is shown in place of the page.
func (m *Model) banner() string {
	stats := m.src.stats
	if stats.Problem == "" || len(m.view.Nodes) == 0 {
		return ""
	}
	why, lasts := stats.Problem, show.Age(max(m.now.Sub(stats.ProblemAt), 0))
	switch {
	case stats.ProblemAt.IsZero():
		return why
	case !stats.Outage():
		return why + " (for " + lasts + ")"
	}
	if _, cause, ok := strings.Cut(why, " unreachable: "); ok {
		why = cause
	}
	retry := "now"
	if wait := stats.RetryAt.Sub(m.now); wait >= time.Second {
		retry = "in " + show.Age(wait)
	}
	gone := "API server unreachable for " + lasts
	if full := gone + "; retrying " + retry + ": " + why; draw.Width(full)+len(" ! ") <= m.width {
		return full
	}
	return gone + ": " + why
}

// View draws the screen. Nothing else makes a tea.View.
func (m *Model) View() tea.View {
	if !m.drawn.fresh {
		m.drawn = frame{strings.Join(m.clean(m.lines()), "\n"), true}
	}
	v := tea.NewView(m.drawn.content)
	v.AltScreen = true
	v.ReportFocus = true
	v.WindowTitle = "cnictl " + show.Safe(m.o.Source.Title())
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// clean escapes what a page did not: nothing from a node may control the terminal.
func (m *Model) clean(lines []string) []string {
	for i, l := range lines {
		lines[i] = m.theme.Clean(l)
	}
	return lines
}

func (m *Model) small() bool { return m.width < leastWidth || m.height < leastHeight }

func (m *Model) footerLines() int {
	if m.height < hintsFrom {
		return 1
	}
	if _, ok := m.recording(); ok {
		return 3
	}
	return 2
}

// body returns the height of the page.
func (m *Model) body() int {
	rest := m.height - m.headerLines() - m.footerLines()
	if m.toasting() { // a message gets its own line, so it covers no row, filter or key
		rest--
	}
	return max(rest, 0)
}

// lines returns the full frame: exactly height lines, none wider than width.
func (m *Model) lines() []string {
	if m.width <= 0 || m.height <= 0 {
		return nil
	}
	s := m.style()
	if m.small() {
		says := "terminal too small: needs " + strconv.Itoa(leastWidth) + "x" + strconv.Itoa(leastHeight)
		return draw.Exactly([]string{draw.NewLine(s, m.width).Add(draw.Warn, says).String()}, m.width, m.height)
	}
	out := make([]string, 0, m.height)
	out = append(out, m.header(s))
	if says := m.banner(); says != "" {
		out = append(out, draw.NewLine(s, m.width).Gap(1).Add(draw.Bad, s.Clip("! "+says, m.width-1)).String())
	}
	body := m.pageLines(s)
	if m.mode == choosing {
		over := paletteLines(s, m.width, m.found, m.picked)
		over = over[:min(len(over), len(body)-1)]
		body = append(body[:len(body)-len(over):len(body)-len(over)], over...)
	}
	out = append(out, body...)
	if m.toasting() {
		out = append(out, draw.NewLine(s, m.width).Gap(1).Add(m.toast.Role, s.Clip(m.toast.Text, m.width-1)).String())
	}
	if r, ok := m.recording(); ok && m.footerLines() > 2 {
		out = append(out, m.playbackLine(s, r))
	}
	out = append(out, m.status(s))
	if m.footerLines() > 1 {
		out = append(out, m.hints(s))
	}
	return out
}

// pageLines returns the lines of the page. If the nodes cannot be listed, every screen
// would be empty, so it shows the reason and what to do instead.
func (m *Model) pageLines(s draw.Style) []string {
	problem := m.src.stats.Problem
	if problem == "" || len(m.view.Nodes) > 0 || m.overlaid() {
		return draw.Exactly(m.page().Lines(m.context()), m.width, m.body())
	}
	sheet := draw.NewSheet(s, max(m.width-4, 1))
	sheet.Add(draw.T(draw.Title, "Cannot list the nodes"))
	sheet.Blank()
	sheet.Item(draw.T(draw.Bad, "!"), draw.T(draw.Text, problem))
	sheet.Blank()
	again := "Retrying"
	if at := m.src.stats.ProblemAt; !at.IsZero() {
		again += " for " + show.Age(m.now.Sub(at))
	}
	sheet.Add(draw.T(draw.Faint, again+". "), draw.T(draw.Key, m.keys.First(keymap.Diagnose)), draw.T(draw.Faint, " shows diagnostics, "),
		draw.T(draw.Key, m.keys.First(keymap.Back)), draw.T(draw.Faint, " quits."))
	lines := []string{draw.Blank(m.width)}
	for _, l := range sheet.Lines() {
		lines = append(lines, draw.NewLine(s, m.width).Gap(2).Drawn(l, m.width-4).String())
	}
	return draw.Exactly(lines, m.width, m.body())
}

// piece is a part of a line that is dropped when it does not fit.
type piece struct {
	parts []draw.Span
	keep  int // the lowest is dropped first
}

func (p piece) width() int {
	n := 0
	for _, x := range p.parts {
		n += draw.Width(x.Text)
	}
	return n
}

// spelt is the width from which the header spells out the time zone.
const spelt = 140

// utc formats a time of day with its zone, in a form that --at accepts.
func (m *Model) utc(at time.Time) string {
	if m.width < spelt {
		return at.UTC().Format("15:04:05Z")
	}
	return at.UTC().Format("15:04:05 UTC")
}

// header summarises the fleet. Totals that lack some nodes are marked as lower bounds.
func (m *Model) header(s draw.Style) string {
	if m.src.stats.Outage() {
		s.Theme = s.Theme.Faded()
	}
	t := m.view.Totals
	least := ""
	if !t.Complete && t.Nodes > 0 {
		least = s.Pick("≥", ">=")
	}
	number := func(n int) string { return draw.Thousands(n) }
	text := func(r draw.Role, text string) draw.Span { return draw.Span{Role: r, Text: text} }
	counted := func(r draw.Role, name string, n int) []draw.Span {
		if n == 0 {
			return nil
		}
		return []draw.Span{text(draw.Faint, " "+name+" "), text(r, number(n))}
	}
	nodes := []draw.Span{text(draw.Faint, "nodes "), text(draw.Title, number(t.Nodes))}
	reading := []draw.Span{text(draw.Faint, "live "), text(draw.Good, number(t.Live))}
	if m.src.stats.Outage() {
		reading[0].Text = "last seen live "
	}
	reading = append(reading, counted(draw.Warn, "partial", t.Partial)...)
	reading = append(reading, counted(draw.Bad, "down", t.Down)...)
	unread := append(counted(draw.Faint, "pending", t.Unasked), counted(draw.Faint, fleet.WordNoDaemon, t.NoDaemon)...)
	if len(unread) > 0 {
		unread[0].Text = strings.TrimPrefix(unread[0].Text, " ")
	}
	pods := least + number(t.Assigned)
	if t.Pods != nil {
		pods += "/" + number(*t.Pods)
	}
	ips := []draw.Span{
		text(draw.Faint, "IPs held "), text(draw.Text, least+number(t.Held)),
		text(draw.Faint, " free "), text(draw.Text, least+number(t.Free)),
	}
	if t.Cooling.Known && t.Cooling.N > 0 {
		cooling := number(t.Cooling.N)
		if t.Cooling.Bound {
			cooling = s.Pick("≥", ">=") + cooling
		}
		ips = append(ips, text(draw.Faint, " cooling "), text(draw.BarCooling, cooling))
	}
	ips = append(ips, counted(draw.Bad, "waiting", t.Activity.Waiting.N)...)
	state := text(draw.Faint, m.utc(m.now))
	pace := text(draw.Faint, short(m.interval))
	if m.src.stats.Interval > m.interval {
		pace = text(draw.Warn, short(m.src.stats.Interval)+" (large)")
	}
	sweep := []draw.Span(nil)
	if took := m.src.stats.SweepTook; took > 0 {
		sweep = append(sweep, text(draw.Faint, "sweep "), text(draw.Text, took.Round(100*time.Millisecond).String()))
	}
	if r, ok := m.recording(); ok {
		state = text(draw.Faint, m.utc(r.Now()))
		pace = text(draw.Faint, m.speed(r))
		if m.paused {
			state, pace = text(draw.Warn, "PAUSED "+state.Text), text(draw.Faint, "")
		}
	} else if m.paused {
		state, pace = text(draw.Warn, "PAUSED"), text(draw.Faint, "")
	}
	faults := []draw.Span(nil)
	if t.Errors > 0 {
		faults = append(faults, text(draw.Bad, number(t.Errors)+plural(t.Errors, " error", " errors")))
	}
	if t.Warnings > 0 {
		if faults != nil {
			faults = append(faults, text(draw.Faint, " "))
		}
		faults = append(faults, text(draw.Warn, number(t.Warnings)+plural(t.Warnings, " warning", " warnings")))
	}
	title, room := m.o.Source.Title(), max(m.width/4, 16)
	if draw.Width(title) > room { // the end of an ARN identifies it
		title = s.Clip(title[strings.LastIndexByte(title, '/')+1:], room)
	}
	pieces := []piece{
		{[]draw.Span{text(draw.Title, "cnictl "), text(draw.Accent, title)}, 9},
		{nodes, 5}, {reading, 6}, {unread, 3}, {faults, 8},
		{[]draw.Span{text(draw.Faint, "pods "), text(draw.Text, pods)}, 4},
		{ips, 3},
		{[]draw.Span{pace}, 2},
		{sweep, 1},
		{[]draw.Span{state}, 7},
	}
	return joined(s, m.width, pieces)
}

// joined writes the pieces that fit, separated by bars.
func joined(s draw.Style, width int, pieces []piece) string {
	bar := s.Pick(" ▏", " | ")
	all := func() int {
		n := 1
		for i, p := range pieces {
			n += p.width()
			if i > 0 {
				n += draw.Width(bar)
			}
		}
		return n
	}
	filled := pieces[:0]
	for _, p := range pieces {
		if p.width() > 0 {
			filled = append(filled, p)
		}
	}
	pieces = filled
	for len(pieces) > 1 && all() > width {
		least := 0
		for i, p := range pieces {
			if p.keep < pieces[least].keep {
				least = i
			}
		}
		pieces = append(pieces[:least], pieces[least+1:]...)
	}
	l := draw.NewLine(s, width).Gap(1)
	for i, p := range pieces {
		if i > 0 {
			l.Add(draw.Border, bar)
		}
		for _, x := range p.parts {
			l.Add(x.Role, x.Text)
		}
	}
	return l.String()
}

// status is the line with the current location, or with the text being typed.
func (m *Model) status(s draw.Style) string {
	l := draw.NewLine(s, m.width).Gap(1)
	switch m.mode {
	case filtering:
		return m.filterLine(l)
	case choosing:
		l.Add(draw.Key, ":")
		m.input.Draw(l, l.Room())
		return l.String()
	case sorting:
		return m.sortLine(l)
	case exporting:
		for _, k := range [][2]string{{"t", "text"}, {"c", "CSV"}, {"j", "JSON"}, {"esc", "cancel"}} {
			if k[0] == "t" {
				l.Add(draw.Title, "export as ")
			}
			l.Gap(1).Add(draw.Key, k[0]).Gap(1).Add(draw.Text, k[1]).Gap(1)
		}
		return l.String()
	}
	right := m.position(s)
	const gap, place = 3, 12 // between the two; least cells for the location
	room := l.Room() - right.width() - gap
	for room < place && len(right.parts) > 1 { // drop the notes before the counter
		right.parts = right.parts[1:]
		room = l.Room() - right.width() - gap
	}
	m.crumbs(l, s, room)
	l.Gap(l.Room() - right.width() - 1)
	for _, p := range right.parts {
		l.Add(p.Role, p.Text)
	}
	return l.String()
}

// sortLine returns the sort menu, tighter on narrow terminals.
func (m *Model) sortLine(l *draw.Line) string {
	keys, title, gap := m.list().SortMenu(), "sort by", 2
	need := len(title) + 1
	for _, k := range keys {
		need += gap + draw.Width(k.Key) + 1 + draw.Width(k.Title)
	}
	if need > l.Room() {
		title, gap = "sort", 1
	}
	l.Add(draw.Title, title)
	for _, k := range keys {
		l.Gap(gap).Add(draw.Key, k.Key).Gap(1).Add(draw.Text, k.Title)
	}
	return l.String()
}

func (m *Model) filterLine(l *draw.Line) string {
	note, role := "", draw.Faint
	if list := m.list(); list != nil {
		shown, all := list.Found()
		note = draw.Thousands(shown) + " of " + draw.Thousands(all)
	}
	if m.problem != "" {
		note, role = m.problem, draw.Bad
	}
	l.Add(draw.Key, "/")
	room := max(l.Room()-draw.Width(note)-3, min(draw.Width(m.input.Text())+2, l.Room()/2))
	m.input.Draw(l, room)
	note = m.style().Clip(note, max(l.Room()-2, 0))
	return l.Gap(l.Room()-draw.Width(note)-1).Add(role, note).String()
}

// crumbs shows the path to the current screen.
func (m *Model) crumbs(l *draw.Line, s draw.Style, room int) {
	titles := make([]string, 0, len(m.router.stack))
	width := 0
	for _, e := range m.router.stack {
		t := e.page.Title()
		titles = append(titles, t)
		width += draw.Width(t) + 3
	}
	if width > room { // the first label identifies a node
		width = 0
		for i, e := range m.router.stack {
			if e.open.Screen == "node" {
				titles[i] = pages.Host(titles[i])
			}
			width += draw.Width(titles[i]) + 3
		}
	}
	from := 0
	for width > room && from < len(titles)-1 {
		width -= draw.Width(titles[from]) + 3
		from++
	}
	if from > 0 {
		l.Add(draw.Faint, s.Pick("… › ", "~ > "))
		room -= 4
	}
	before := l.Room()
	for i, t := range titles[from:] {
		if i > 0 {
			l.Add(draw.Border, s.Pick(" › ", " > "))
		}
		role := draw.Faint
		if from+i == len(titles)-1 {
			role = draw.Title
			t = s.Clip(t, max(room-(before-l.Room()), 8))
		}
		l.Add(role, t)
	}
}

// position shows the visible rows, the order and the filter.
func (m *Model) position(s draw.Style) piece {
	var parts []draw.Span
	add := func(r draw.Role, text string) { parts = append(parts, draw.Span{Role: r, Text: text}) }
	if l := m.list(); l != nil {
		first, last := l.Window()
		shown, all := l.Found()
		if n := l.Marked(); n > 0 {
			add(draw.Marked, strconv.Itoa(n)+" marked  ")
		}
		if l.Faults() {
			add(draw.Warn, "faults only  ")
		}
		if l.Frozen(m.now) {
			add(draw.Warn, "order paused  ")
		}
		if all > 0 && shown == 0 {
			add(draw.Warn, "0")
		} else if all > 0 {
			add(draw.Text, strconv.Itoa(first)+s.Pick("–", "-")+strconv.Itoa(last)+"/"+draw.Thousands(shown))
		}
		if shown != all {
			add(draw.Faint, " of "+draw.Thousands(all))
		}
		if m.width >= 80 {
			if o := l.Order(); o != "" {
				add(draw.Faint, "  sort: ")
				add(draw.Text, s.Clip(o, 20))
			}
			if f := l.Filter(); f != "" {
				add(draw.Faint, "  filter: ")
				add(draw.Match, s.Clip(f, max(m.width/5, 12)))
			}
		} else if f := l.Filter(); f != "" {
			add(draw.Faint, "  /")
			add(draw.Match, s.Clip(f, 12))
		}
	}
	return piece{parts: append(parts, m.helpHint().parts...)}
}

// helpHint shows the help key if the hints have no line of their own.
func (m *Model) helpHint() piece {
	if m.footerLines() > 1 {
		return piece{}
	}
	return piece{parts: []draw.Span{{Role: draw.Key, Text: "  " + m.keys.Shown(keymap.Help)}, {Role: draw.KeyHelp, Text: " help"}}}
}

func (m *Model) toasting() bool { return m.toast.Text != "" && m.now.Before(m.toastUntil) }

// hints shows the keys that matter here, the page's before the table's.
func (m *Model) hints(s draw.Style) string {
	l := draw.NewLine(s, m.width).Gap(1)
	hint := func(key, help string) {
		if key != "" && l.Room() > draw.Width(key)+draw.Width(help)+3 {
			l.Add(draw.Key, "<"+key+">").Gap(1).Add(draw.KeyHelp, help).Gap(2)
		}
	}
	switch m.mode {
	case filtering:
		hint("enter", "keep")
		hint("esc", "cancel")
		for _, example := range []string{"word", "!word", "re:x.y", "type=m5.*", "free>20", "state!=ok", "label:team=x"} {
			if l.Room() > len(example) {
				l.Add(draw.KeyHelp, example).Gap(2)
			}
		}
		return l.String()
	case choosing:
		hint("tab", "complete")
		hint("enter", "go")
		hint("esc", "close")
		if len(m.found) == mostChoices {
			l.Add(draw.KeyHelp, "type more to narrow the list")
		}
		return l.String()
	case sorting:
		l.Add(draw.KeyHelp, "press a letter to sort, again to reverse").Gap(2)
		hint("esc", "cancel")
		return l.String()
	case exporting:
		return l.Add(draw.KeyHelp, "writes what the screen shows to a new file").String()
	}
	hint(m.key1(keymap.Help), "help")
	if len(m.router.stack) > 1 {
		hint(m.keys.First(keymap.Out), "back")
	}
	if m.examinable() {
		hint(m.key1(keymap.Doctor), "doctor")
	}
	own := m.ownKeys()
	if slices.ContainsFunc(own, func(b keymap.Binding) bool { return b.Action == keymap.Zoom }) {
		hint(m.key1(keymap.NextPane), "next pane")
	}
	for _, b := range own {
		hint(b.Shown, b.Help)
	}
	if m.list() != nil {
		hint(m.keys.First(keymap.In), "open")
		hint(m.key1(keymap.Filter), "filter")
		hint(m.key1(keymap.Sort), "sort")
		hint(m.key1(keymap.Faults), "faults")
	}
	hint(m.key1(keymap.Palette), "go to")
	if m.ofNode() {
		hint(m.key1(keymap.Logs), "logs")
		hint(m.key1(keymap.WhatIf), "what if")
	}
	if m.page().Row(m.context()) != nil {
		hint(m.key1(keymap.Object), "YAML")
	}
	hint(m.key1(keymap.Export), "export")
	hint(m.key1(keymap.Theme), "theme")
	hint(m.key1(keymap.Back), "quit")
	return l.String()
}

// ofNode reports whether the object under the cursor, or the page itself, belongs to a
// node.
func (m *Model) ofNode() bool {
	switch m.page().Name() {
	case "overview", "node", "eni", "pod":
		return len(m.view.Nodes) > 0
	}
	return false
}

// examinable reports whether the doctor key works here.
func (m *Model) examinable() bool {
	switch m.page().Name() {
	case "trunks", "pods", "enis", "logs", "whatif":
		return len(m.view.Nodes) > 0
	}
	return m.ofNode()
}

func (m *Model) key1(action string) string { return m.keys.Shown(action) }

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func countOf(n int, one, many string) string { return show.Plural(n, one, many) }
