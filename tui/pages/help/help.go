// Package help shows the keys of the app and of the screen below it, and what the signs
// mean.
package help

import (
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/components/prose"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/theme"
)

// Page is the help overlay.
type Page struct {
	sections []keymap.Section
	titles   []string
	scroll   prose.Scroll
}

// New makes the help for a screen. titles are the titles of the screens, by digit.
func New(keys keymap.Map, of pages.Page, titles []string) *Page {
	p := &Page{titles: titles}
	if own := keys.Page(of.Name()); len(own) > 0 {
		p.sections = append(p.sections, keymap.Section{Title: of.Title(), Bindings: own})
	}
	for _, s := range keys.Sections {
		s.Bindings = slices.DeleteFunc(slices.Clone(s.Bindings), func(b keymap.Binding) bool { return b.Action == keymap.Screen1 }) // the notes list them
		p.sections = append(p.sections, s)
	}
	return p
}

// Name implements pages.Page.
func (*Page) Name() string { return "help" }

// Title implements pages.Page.
func (*Page) Title() string { return "Help" }

// Keys implements pages.Page.
func (*Page) Keys() []keymap.Binding { return nil }

// Busy implements pages.Page.
func (*Page) Busy() bool { return false }

// Focus implements pages.Page.
func (*Page) Focus(pages.Context) watch.Focus { return watch.Focus{} }

// Row implements pages.Page.
func (*Page) Row(pages.Context) any { return nil }

// Update implements pages.Page.
func (p *Page) Update(c pages.Context, msg tea.Msg) tea.Cmd {
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
func (p *Page) Lines(c pages.Context) []string {
	if c.Width <= 0 || c.Height <= 0 {
		return nil
	}
	s := c.Style()
	all := p.keys(s, c.Width)
	if len(all)+len(p.notes(s)) < c.Height {
		all = append(all, components.NewLine(s, c.Width).String())
	}
	for _, note := range p.notes(s) {
		l := components.NewLine(s, c.Width).Gap(1).Add(theme.Key, s.Fit(note[0], 8, false)).Gap(1).Add(theme.Text, note[1])
		all = append(all, l.String())
	}
	sheet := prose.NewSheet(s, c.Width)
	sheet.Drawn(all...)
	return p.scroll.Window(sheet, c.Height)
}

func (p *Page) notes(s components.Style) [][2]string {
	var screens []string
	for i, title := range p.titles {
		screens = append(screens, strconv.Itoa(i+1)+" "+strings.ToLower(title))
	}
	return [][2]string{
		{"screens", strings.Join(screens, " ")},
		{"scales", "trend: 0 to the node's limit, 15 min; charts: 0 to the number on top"},
		{"signs", bars(s) + "  - none  ? unknown  >= at least"},
		{"filter", "word  !word  re:x.y  type=m5.*  warm>20  state!=ok  label:team=x"},
	}
}

// bars returns the legend of bars, charts and strips of addresses.
func bars(s components.Style) string {
	var out []string
	for _, sign := range []struct {
		show.Sign
		word string
	}{{show.Used, "used"}, {show.Cooling, "cooling"}, {show.Free, "free"}, {show.Room, "not held"}} {
		out = append(out, sign.Pick(s.ASCII)+" "+sign.word)
	}
	return strings.Join(out, " ")
}

// keys arranges the sections in as many columns as fit. A section may continue in the next
// column.
func (p *Page) keys(s components.Style, width int) []string {
	var cells []func(l *components.Line, room int)
	for _, section := range p.sections {
		cells = append(cells, func(l *components.Line, room int) { l.Add(theme.Title, s.Clip(section.Title, room-1)) })
		for _, b := range section.Bindings {
			cells = append(cells, func(l *components.Line, room int) {
				l.Add(theme.Key, s.Fit(key(s, b.Shown), keyWidth, false)).Gap(1).Add(theme.Text, s.Clip(b.Help, room-keyWidth-2))
			})
		}
	}
	columns := max(min(width/columnWidth, 4), 1)
	rows := (len(cells) + columns - 1) / columns
	out := make([]string, 0, rows)
	for y := range rows {
		l := components.NewLine(s, width)
		for x := range columns {
			l.To(1 + x*(width-1)/columns)
			if i := x*rows + y; i < len(cells) {
				cells[i](l, (width-1)/columns)
			}
		}
		out = append(out, l.String())
	}
	return out
}

// key returns a key's name, in ASCII if only that may be written.
func key(s components.Style, name string) string {
	if !s.ASCII {
		return name
	}
	return strings.NewReplacer("↑", "up", "↓", "down", "←", "left", "→", "right", "⇧", "s-", "…", "-").Replace(name)
}
