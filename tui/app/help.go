package app

import (
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// helpPage shows the keys of the app and of the screen below it, and what the signs mean.
type helpPage struct {
	sections []keymap.Section
	own      bool // the first are those of the screen
	titles   []string
	scroll   components.Scroll
}

// newHelp makes the help for a screen. titles are the titles of the screens, by digit.
func newHelp(keys keymap.Map, of pages.Page, titles []string) *helpPage {
	p := &helpPage{titles: titles}
	if own := keys.Page(of.Name()); len(own) > 0 {
		p.sections, p.own = append(p.sections, keymap.Section{Title: shortTitle(of.Title()), Bindings: own}), true
	}
	for _, s := range keys.Sections {
		s.Bindings = slices.DeleteFunc(slices.Clone(s.Bindings), func(b keymap.Binding) bool {
			return b.Action == keymap.Screen1 // the notes list them
		})
		p.sections = append(p.sections, s)
	}
	return p
}

// shortTitle shortens the title of a screen, which may be the name of a node.
func shortTitle(of string) string {
	if strings.ContainsAny(of, ".-/") {
		return "this screen"
	}
	return of
}

// Name implements pages.Page.
func (*helpPage) Name() string { return "help" }

// Title implements pages.Page.
func (*helpPage) Title() string { return "Help" }

// Focus implements pages.Page.
func (*helpPage) Focus(pages.Context) watch.Focus { return watch.Focus{} }

// Row implements pages.Page.
func (*helpPage) Row(pages.Context) any { return nil }

// Update implements pages.Page.
func (p *helpPage) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pages.Mouse:
		p.scroll.Wheel(msg.Wheel, c.Now)
	case pages.Do:
		p.scroll.Do(msg.Action, c.Now)
	}
	return nil
}

const (
	columnWidth = 26 // fits three times into 80 columns
	keyWidth    = 9
)

// Lines implements pages.Page: columns of keys, then what the signs mean.
func (p *helpPage) Lines(c pages.Context) []string {
	if c.Width <= 0 || c.Height <= 0 {
		return nil
	}
	s := c.Style()
	all := p.keys(s, c.Width)
	if len(all)+len(p.notes(s)) < c.Height {
		all = append(all, draw.NewLine(s, c.Width).String())
	}
	for _, note := range p.notes(s) {
		l := draw.NewLine(s, c.Width).Gap(1).Add(draw.Header, s.Fit(note.of, 8, false)).Gap(1)
		for _, part := range note.says {
			l.Add(part.Role, part.Text)
		}
		all = append(all, l.String())
	}
	sheet := draw.NewSheet(s, c.Width)
	sheet.Drawn(all...)
	return p.scroll.Window(sheet, c.Height)
}

// helpNote is a line below the keys.
type helpNote struct {
	of   string
	says []draw.Span
}

func (p *helpPage) notes(s draw.Style) []helpNote {
	var screens []draw.Span
	for i, title := range p.titles {
		screens = append(screens, draw.T(draw.Key, strconv.Itoa(i+1)), draw.T(draw.Text, " "+strings.ToLower(title)+" "))
	}
	text := func(text string) []draw.Span { return []draw.Span{draw.T(draw.Text, text)} }
	return []helpNote{
		{"screens", screens},
		{"scales", text("pool, trend: 0 to as many addresses as pods can have; trend: 15 min")},
		{"signs", text(signsOf(s) + "  - none  ? unknown  ≥ at least")},
		{"pool", text("amber: 85% used or more; red: no free address")},
		{"filter", text("word  !word  re:x.y  type=m5.*  free>20  state!=ok  label:team=x")},
	}
}

// signsOf returns the legend of bars, charts and strips of addresses.
func signsOf(s draw.Style) string {
	var out []string
	for _, sign := range []struct {
		show.Sign
		word string
	}{{show.Used, "used"}, {show.Cooling, "cooling"}, {show.Free, "free"}, {show.Room, "not held"}} {
		out = append(out, sign.Pick(s.ASCII)+" "+sign.word)
	}
	return strings.Join(out, " ")
}

// helpCell draws a line of a column.
type helpCell func(l *draw.Line, room int)

// keys arranges the sections in as many columns as fit, each section whole: as low as possible,
// beginning with the keys of the screen.
func (p *helpPage) keys(s draw.Style, width int) []string {
	groups := make([][]helpCell, len(p.sections))
	total := 0
	for i, section := range p.sections {
		groups[i] = p.group(s, section, i == 0 && p.own)
		total += len(groups[i])
	}
	columns := max(min(width/columnWidth, 4), 1)
	var placed [][]helpCell
	for rows := (total + columns - 1) / columns; placed == nil; rows++ {
		placed = pack(groups, columns, rows)
	}
	rows := 0
	for _, column := range placed {
		rows = max(rows, len(column))
	}
	out := make([]string, 0, rows)
	for y := range rows {
		l := draw.NewLine(s, width)
		for x, column := range placed {
			l.To(1 + x*(width-1)/columns)
			if y < len(column) && column[y] != nil {
				column[y](l, (width-1)/columns)
			}
		}
		out = append(out, l.String())
	}
	return out
}

// pack puts each group into the first column that has room for it, a blank line apart; nil if they
// do not fit.
func pack(groups [][]helpCell, columns, rows int) [][]helpCell {
	out := make([][]helpCell, columns)
	for _, g := range groups {
		at := slices.IndexFunc(out, func(c []helpCell) bool { return len(c) == 0 && len(g) <= rows || len(c)+1+len(g) <= rows })
		if at < 0 {
			return nil
		}
		if len(out[at]) > 0 {
			out[at] = append(out[at], nil)
		}
		out[at] = append(out[at], g...)
	}
	return out
}

// group draws a section: its heading with a rule, then the keys.
func (p *helpPage) group(s draw.Style, section keymap.Section, own bool) []helpCell {
	title, rule, role := section.Title, s.Pick("─", "-"), draw.Border
	if own {
		title, rule, role = "Keys of "+title, s.Pick("━", "="), draw.BorderFocused
	}
	out := []helpCell{func(l *draw.Line, room int) {
		title := s.Clip(title, room-2)
		l.Add(draw.Header, title).Gap(1).Add(role, strings.Repeat(rule, max(room-2-draw.Width(title), 0)))
	}}
	for _, b := range section.Bindings {
		out = append(out, func(l *draw.Line, room int) {
			l.Add(draw.Key, s.Fit(keyName(s, b.Shown), keyWidth, false)).Gap(1).Add(draw.Text, s.Clip(b.Help, room-keyWidth-2))
		})
	}
	return out
}

// keyName returns a key's name, in ASCII if only that may be written.
func keyName(s draw.Style, name string) string {
	if !s.ASCII {
		return name
	}
	return strings.NewReplacer("↑", "up", "↓", "down", "←", "left", "→", "right", "⇧", "s-", "…", "-").Replace(name)
}
