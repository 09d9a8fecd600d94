// Package theme gives every part of a screen its style by what it means. A style is a
// pair of escape sequences made once: painting a cell concatenates.
package theme

// Role is what a piece of text means.
type Role uint8

const (
	Text Role = iota
	Faint
	Title
	Header
	HeaderSorted
	Selected // text that takes keys or is chosen in a menu
	Cursor   // the sign before the row under the cursor
	Marked
	Good
	Warn
	Bad
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
	BarOthers // of a subnet: not taken by a node read here
	Stale
	roles
)

// Theme is a set of styles.
type Theme struct {
	Name string
	on   [roles]string // escape sequences before the text; "" = plain
	off  [roles]string

	tinted *Theme // nil: a tint cannot be seen here
	faded  *Theme // nil: there are no colours
}

// Faded is the theme for outdated values: all of them look stale.
func (t *Theme) Faded() *Theme {
	if t.faded == nil {
		return t
	}
	return t.faded
}

// Tinted is the theme on the background of the row under the cursor: every role keeps its
// colour, and where there are none the row is reversed.
func (t *Theme) Tinted() *Theme {
	if t.tinted == nil {
		return t
	}
	return t.tinted
}

// Plain has no colour and no escapes at all.
func Plain() *Theme { return &Theme{Name: "plain"} }

// Paint gives a text its style. The text holds no escapes and no line breaks.
func (t *Theme) Paint(r Role, s string) string {
	if t.on[r] == "" || s == "" {
		return s
	}
	return t.on[r] + s + t.off[r]
}

// On and Off are the sequences around a text of a role.
func (t *Theme) On(r Role) string { return t.on[r] }

// Off ends what On began.
func (t *Theme) Off(r Role) string { return t.off[r] }
