package app

import (
	"slices"
	"strconv"
	"strings"

	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

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
				add(draw.Text, s.Clip(o, max(m.width/3, 20)))
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
		if m.list() != nil && (b.Action == keymap.PrevBlock || b.Action == keymap.NextBlock) {
			continue // of the map, which is not focused
		}
		first, _, _ := strings.Cut(b.Shown, " ")
		hint(first, b.Help)
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
	case "subnets", "trunks", "pods", "enis", "logs", "whatif":
		return len(m.view.Nodes) > 0
	}
	return m.ofNode()
}

func (m *Model) key1(action string) string { return m.keys.First(action) }
