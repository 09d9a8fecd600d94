package app

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/lazy"
	"cnictl/tui/draw"
)

// choiceKind is the kind of a choice. Screens come before commands, and commands before nodes.
type choiceKind uint8

const (
	ofScreen choiceKind = iota
	ofCommand
	ofObject
	ofSearch // for a pod or an address
	ofPod    // that begins like what is typed
)

// mostChoices is how many choices are shown.
const mostChoices = 8

// choice is one choice. Name is unsanitised: it is made safe where it is drawn.
type choice struct {
	Kind     choiceKind
	Name     string
	Also     string // another name
	Title    string
	Argument bool // the command takes an argument
	Weak     bool // only the description has the typed text: enter does not take it
}

// Completion returns the line after tab is pressed.
func (i choice) Completion() string {
	if i.Argument {
		return i.Name + " "
	}
	return i.Name
}

// completions returns the choices for a text: exact names, then prefixes, then names
// containing it, then descriptions containing it. A command with an argument is chosen by
// its first word. A search for a pod or an address comes first.
func completions(items []choice, text string) []choice {
	typed := strings.TrimLeft(text, " ")
	text = strings.ToLower(typed)
	first, _, argument := strings.Cut(text, " ")
	type hit struct {
		choice
		rank int
	}
	var hits []hit
	for _, it := range items {
		name := strings.ToLower(it.Name)
		rank := -1
		switch {
		case argument && it.Argument && name == first, it.Kind == ofPod:
			rank = 0
		case name == text, it.Also != "" && it.Also == text:
			rank = 0
		case strings.HasPrefix(name, text), it.Also != "" && strings.HasPrefix(it.Also, text):
			rank = 1
		case strings.Contains(name, text):
			rank = 2
		case it.Kind != ofObject && strings.Contains(strings.ToLower(it.Title), text):
			rank, it.Weak = 3, true
		}
		if rank >= 0 {
			hits = append(hits, hit{it, rank})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Kind, b.Kind))
	})
	what, ok := searchFor(typed)
	switch {
	case ok:
		hits = append([]hit{{choice: what}}, hits...)
	case (len(hits) == 0 || hits[0].rank > 2) && podLike(typed): // nothing has it in its name
		pods := choice{Kind: ofSearch, Name: podCommand + " " + typed, Title: "find pods whose names begin so", Weak: true}
		hits = append(hits, hit{choice: pods})
	}
	out := make([]choice, 0, mostChoices)
	for _, h := range hits[:min(len(hits), mostChoices)] {
		out = append(out, h.choice)
	}
	return out
}

// podPattern matches a NAMESPACE/NAME with the characters that Kubernetes allows. The lengths are
// checked apart: as repetitions they would cost 230 KB at every start of the tool.
var podPattern = lazy.Regexp(`^([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/([a-z0-9][-.a-z0-9]*)$`)

// searchFor turns a typed or pasted NAMESPACE/NAME or address into a search for it.
func searchFor(text string) (choice, bool) {
	text = strings.TrimSpace(text)
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return choice{Kind: ofSearch, Name: "ip " + a.Unmap().String(), Title: "find what has this address"}, true
	}
	if m := podPattern().FindStringSubmatch(text); m != nil && len(m[1]) <= 63 && len(m[2]) <= 253 {
		return choice{Kind: ofSearch, Name: "pod " + text, Title: "this pod"}, true
	}
	return choice{}, false
}

// podLike reports whether a text may be the beginning of a pod's name, and is not that of an address.
func podLike(text string) bool {
	const letters, others = "abcdefghijklmnopqrstuvwxyz", "0123456789-."
	return len(text) > 1 && len(text) <= 253 && strings.ContainsAny(text, letters) && strings.Trim(text, letters+others) == ""
}

var choiceKinds = [...]string{"screen", "command", "node", "search", "pod"}

// paletteLines draws the choices and marks the picked one.
func paletteLines(s draw.Style, width int, items []choice, picked int) []string {
	out := make([]string, 0, len(items))
	name := 16
	for _, it := range items {
		name = min(max(name, draw.Width(it.Name)), max(width-24, 16))
	}
	for i, it := range items {
		style, mark := s, "  "
		if i == picked {
			style, mark = s.Selected(), s.Pick("▸ ", "> ")
		}
		l := draw.NewLine(style, width).Add(draw.Cursor, mark).Add(draw.Text, s.Fit(it.Name, name, false)).Gap(2)
		l.Add(draw.Faint, s.Fit(choiceKinds[it.Kind], 9, false)).Add(draw.Faint, it.Title)
		out = append(out, l.String())
	}
	return out
}
