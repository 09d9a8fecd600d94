package draw

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"cnictl/tui/show"
)

// Role is what a piece of text means.
type Role uint8

const (
	Text Role = iota
	Faint
	Title
	Header
	HeaderSorted
	Selected // the input cursor, or what is chosen in a menu
	Cursor   // the sign before the row under the cursor
	Marked
	Good
	Warn
	Bad
	WarnRow // a whole row or bar: Warn without its emphasis
	BadRow
	Info
	Accent
	Key
	KeyHelp
	Border
	BorderFocused
	Match
	BarUsed
	BarCooling
	BarFree
	BarRoom
	BarOthers // of a subnet: taken, but by no node read here
	Stale
	Node1 // the lines of one node, among those of others
	Node2
	Node3
	Node4
	Node5
	Node6
	roles
)

// Theme is a set of styles, one for each role. A style is a pair of escape sequences, made once, so
// painting a cell only concatenates.
type Theme struct {
	Name  string
	on    [roles]string // escape sequences before the text; "" = plain
	off   [roles]string
	ruled [roles]bool // underlined

	once sync.Once
	own  map[string]bool // see sequences

	tinted *Theme          // nil if none
	faded  *Theme          // nil if none
	filled map[Role]*Theme // by the role of the background
}

// Clean escapes what could control a terminal in a painted text, except the theme's own
// sequences. Text from elsewhere is escaped before it is painted, so that its width is known;
// Clean is for what reaches the terminal, where nothing may be left. A nil theme has no
// sequences.
func (t *Theme) Clean(painted string) string {
	at := strings.IndexByte(painted, '\x1b')
	if at < 0 {
		return show.Printable(painted)
	}
	own := t.sequences()
	var b strings.Builder
	for ; at >= 0; at = strings.IndexByte(painted, '\x1b') {
		b.WriteString(show.Printable(painted[:at]))
		painted = painted[at:]
		end := strings.IndexByte(painted, 'm') + 1
		if !own[painted[:end]] {
			end = 1
			b.WriteString(show.Printable(painted[:end]))
		} else {
			b.WriteString(painted[:end])
		}
		painted = painted[end:]
	}
	b.WriteString(show.Printable(painted))
	return b.String()
}

// sequences returns every escape sequence that the theme and those made from it write.
func (t *Theme) sequences() map[string]bool {
	if t == nil {
		return nil
	}
	t.once.Do(func() {
		t.own = map[string]bool{}
		for _, of := range append(slices.Collect(maps.Values(t.filled)), t, t.tinted, t.faded) {
			if of == nil {
				continue
			}
			for r := Text; r < roles; r++ {
				for _, sequence := range strings.SplitAfter(of.on[r]+of.off[r], "m") {
					t.own[sequence] = sequence != ""
				}
			}
			if of == t.faded {
				maps.Copy(t.own, of.sequences())
			}
		}
	})
	return t.own
}

// Faded returns the theme for outdated values, in which all values look stale.
func (t *Theme) Faded() *Theme {
	if t.faded == nil {
		return t
	}
	return t.faded
}

// Filled returns the theme on a background in the colour of a bar.
func (t *Theme) Filled(r Role) *Theme {
	if of := t.filled[r]; of != nil {
		return of
	}
	return t
}

// Coloured reports whether the theme tells bars apart by colour.
func (t *Theme) Coloured() bool { return t != nil && t.on[BarUsed] != t.on[BarFree] }

// Tinted returns the theme on the background of the row under the cursor. Every role keeps
// its colour; without colours, the row is reversed.
func (t *Theme) Tinted() *Theme {
	if t.tinted == nil {
		return t
	}
	return t.tinted
}

// PlainTheme returns a theme without colours or escapes.
func PlainTheme() *Theme { return &Theme{Name: "plain"} }

// Paint styles a text. The text must not contain escapes or line breaks. A nil theme paints
// nothing.
func (t *Theme) Paint(r Role, s string) string {
	if t == nil || t.on[r] == "" || s == "" {
		return s
	}
	if t.ruled[r] {
		return t.underlined(r, s)
	}
	return t.on[r] + s + t.off[r]
}

// underlined styles a text, but not the blanks around it, so that a line is as long as its text.
func (t *Theme) underlined(r Role, s string) string {
	text := strings.TrimLeft(s, " ")
	before := s[:len(s)-len(text)]
	text = strings.TrimRight(text, " ")
	after := s[len(before)+len(text):]
	if text != "" {
		text = t.on[r] + text + t.off[r]
	}
	return t.Paint(Text, before) + text + t.Paint(Text, after)
}

// On returns the sequence that begins text of a role.
func (t *Theme) On(r Role) string { return t.on[r] }

// Off returns the sequence that ends what On began.
func (t *Theme) Off(r Role) string { return t.off[r] }
