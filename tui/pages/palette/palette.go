// Package palette completes what is typed after a colon: screens, commands and nodes.
package palette

import (
	"cmp"
	"slices"
	"strings"

	"cnictl/daemon/fleet/show"
	"cnictl/tui/components"
	"cnictl/tui/theme"
)

// Kind of a choice. Screens stand before commands, and these before nodes.
type Kind uint8

const (
	Screen Kind = iota
	Command
	Object
)

// Most is how many choices are shown.
const Most = 8

// Item is one choice. Name is as a node says it: it is made safe where it is drawn.
type Item struct {
	Kind     Kind
	Name     string
	Title    string
	Argument bool // a command that takes a word more
}

// Completion is the line after tab.
func (i Item) Completion() string {
	if i.Argument {
		return i.Name + " "
	}
	return i.Name
}

// Complete gives the choices for a text, the best first. A command with an argument is
// chosen by its first word.
func Complete(items []Item, text string) []Item {
	text = strings.ToLower(strings.TrimLeft(text, " "))
	first, _, argument := strings.Cut(text, " ")
	type hit struct {
		Item
		rank int
	}
	var hits []hit
	for _, it := range items {
		name := strings.ToLower(it.Name)
		rank := -1
		switch {
		case argument && it.Argument && name == first:
			rank = 0
		case name == text:
			rank = 0
		case strings.HasPrefix(name, text):
			rank = 1
		case strings.Contains(name, text):
			rank = 2
		case it.Kind != Object && strings.Contains(strings.ToLower(it.Title), text):
			rank = 3
		}
		if rank >= 0 {
			hits = append(hits, hit{it, rank})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Kind, b.Kind))
	})
	out := make([]Item, 0, Most)
	for _, h := range hits[:min(len(hits), Most)] {
		out = append(out, h.Item)
	}
	return out
}

var kinds = [...]string{"screen", "command", "node"}

// Lines draws the choices, the picked one marked.
func Lines(s components.Style, width int, items []Item, picked int) []string {
	out := make([]string, 0, len(items))
	name := 16
	for _, it := range items {
		name = min(max(name, components.Width(show.Safe(it.Name))), max(width-24, 16))
	}
	for i, it := range items {
		l := components.NewLine(s, width)
		role, faint := theme.Text, theme.Faint
		mark := "  "
		if i == picked {
			role, faint, mark = theme.Selected, theme.Selected, s.Pick("▸ ", "> ")
		}
		l.Add(role, mark).Add(role, s.Fit(show.Safe(it.Name), name, false)).Add(role, "  ")
		l.Add(faint, s.Fit(kinds[it.Kind], 9, false)).Add(faint, show.Safe(it.Title))
		if i == picked {
			l.Add(role, components.Blank(l.Room()))
		}
		out = append(out, l.String())
	}
	return out
}
