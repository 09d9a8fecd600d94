package draw

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

// Names of the themes, in the order in which the key steps through them.
const (
	Auto         = "auto" // dark or light, like the terminal's background
	Dark         = "dark"
	Light        = "light"
	HighContrast = "high-contrast"
	Deuteranopia = "deuteranopia-safe"
	Mono         = "mono"
)

// Themes returns the themes that the user can choose.
func Themes() []string {
	return []string{Auto, Dark, Light, HighContrast, Deuteranopia, Mono}
}

// named resolves the name of a theme; one has a short name too.
func named(name string) string {
	if name == "deuteranopia" {
		return Deuteranopia
	}
	return name
}

// CheckTheme rejects unknown names.
func CheckTheme(name string) error {
	if name = named(name); name == "" || slices.Contains(Themes(), name) {
		return nil
	}
	return fmt.Errorf("unknown theme %q; themes: %s", name, strings.Join(Themes(), ", "))
}

// Terminal describes a terminal's colours.
type Terminal struct {
	Colour bool // any; without, only bold, reverse and underline remain
	Many   bool // 256
	True   bool // 24 bit
	Light  bool // its background
}

// NewTheme makes a theme for a terminal. The 16 colours are the terminal's own, so the user's
// palette applies; on a 24-bit terminal, softer colours replace them.
func NewTheme(name string, term Terminal) *Theme {
	name = named(name)
	if name == Auto || name == "" {
		name = Dark
		if term.Light {
			name = Light
		}
	}
	if !term.Colour {
		name = Mono
	}
	variant := name
	if term.Light {
		variant = onLight(name)
	}
	all := styles(variant, term.True)
	t := ThemeOf(all)
	t.Name, t.tinted = name, &Theme{Name: name}
	t.filled = map[Role]*Theme{}
	for _, bar := range []Role{BarUsed, BarCooling, BarFree} {
		if _, none := all[bar].GetForeground().(lipgloss.NoColor); none {
			continue
		}
		t.filled[bar] = &Theme{Name: name}
		for role := Text; role < roles; role++ {
			style, ok := all[role]
			if !ok {
				style = lipgloss.NewStyle()
			}
			t.filled[bar].set(role, style.Background(all[bar].GetForeground()))
		}
	}
	tints := tint(variant, term, all)
	t.faded = &Theme{Name: name, tinted: &Theme{Name: name}}
	for role, style := range tints {
		t.tinted.set(role, style)
		from := role
		if !furniture(role) {
			from = Stale
		}
		t.faded.set(role, all[from])
		t.faded.tinted.set(role, tints[from])
	}
	return t
}

// ThemeOf makes a theme of styles. The other roles are plain.
func ThemeOf(styles map[Role]lipgloss.Style) *Theme {
	t := &Theme{}
	for role, style := range styles {
		t.set(role, style)
	}
	return t
}

// set makes a style that of a role.
func (t *Theme) set(role Role, style lipgloss.Style) {
	t.on[role], t.off[role] = pair(style)
	t.ruled[role] = style.GetUnderline()
}

// furniture reports whether a role is not a value, so that it does not fade.
func furniture(r Role) bool {
	switch r {
	case Title, Header, HeaderSorted, Selected, Cursor, Marked, Key, KeyHelp, Border, BorderFocused, Match:
		return true
	}
	return false
}

// tint gives every role the background of the row under the cursor. A grey that would be
// hard to read there is made stronger.
func tint(name string, term Terminal, all map[Role]lipgloss.Style) map[Role]lipgloss.Style {
	fill, grey := "", ""
	switch light := term.Light || name == Light; {
	case name == Mono:
	case term.True && light:
		fill, grey = "#dfebff", "#4a5460"
	case term.True:
		fill, grey = "#22344d", "#a9b4c0"
	case term.Many && light:
		fill, grey = "254", "240"
	case term.Many:
		fill, grey = "237", "250"
	case light:
		fill, grey = "7", "8"
	default:
		fill, grey = "8", "7"
	}
	out := map[Role]lipgloss.Style{}
	for role := Text; role < roles; role++ {
		style, ok := all[role]
		switch {
		case !ok:
			style = lipgloss.NewStyle()
		case role == Faint || role == Stale || role == KeyHelp || role == BarRoom || role == Border:
			if _, none := style.GetForeground().(lipgloss.NoColor); !none {
				style = style.Foreground(lipgloss.Color(grey))
			}
		}
		if fill == "" {
			out[role] = style.Reverse(true)
			continue
		}
		out[role] = style.Background(lipgloss.Color(fill))
	}
	return out
}

// Variants, for a light background, of themes chosen by name. Bright colours would be
// invisible there.
const (
	highContrastLight = "high-contrast-light"
	deuteranopiaLight = "deuteranopia-safe-light"
)

func onLight(name string) string {
	switch name {
	case HighContrast:
		return highContrastLight
	case Deuteranopia:
		return deuteranopiaLight
	}
	return name
}

// pair returns what a style writes around a text.
func pair(style lipgloss.Style) (on, off string) {
	on, off, _ = strings.Cut(style.Render("x"), "x")
	return on, off
}

func styles(name string, deep bool) map[Role]lipgloss.Style {
	out := common()
	for role, c := range palette(name) { // a coloured role needs no underline, except Match
		out[role] = out[role].Foreground(lipgloss.Color(c)).Underline(role == Match)
	}
	if deep {
		refine(name, out)
	}
	out[HeaderSorted] = out[Accent]
	if _, none := out[Accent].GetForeground().(lipgloss.NoColor); none {
		out[HeaderSorted] = out[Accent].Underline(true)
	}
	for row, of := range map[Role]Role{WarnRow: Warn, BadRow: Bad} {
		_, none := out[of].GetForeground().(lipgloss.NoColor)
		out[row] = out[of].Underline(false).Bold(none)
	}
	return out
}

// common returns the attributes common to all themes, without colours. Mono has only these.
func common() map[Role]lipgloss.Style {
	s := lipgloss.NewStyle()
	return map[Role]lipgloss.Style{
		Faint:         s,
		Title:         s.Bold(true),
		Header:        s.Bold(true),
		Selected:      s.Reverse(true),
		Cursor:        s.Bold(true),
		Marked:        s.Bold(true),
		Good:          s,
		Warn:          s.Bold(true),
		Bad:           s.Bold(true).Underline(true),
		Info:          s,
		Accent:        s.Bold(true),
		Key:           s.Bold(true),
		KeyHelp:       s,
		Border:        s,
		BorderFocused: s.Bold(true),
		Match:         s.Underline(true),
		BarUsed:       s,
		BarCooling:    s,
		BarFree:       s,
		BarRoom:       s,
		BarOthers:     s,
		Stale:         s,
		Node1:         s, Node2: s, Node3: s, Node4: s, Node5: s, Node6: s,
	}
}

// palette returns a theme in the terminal's 16 colours.
func palette(name string) map[Role]string {
	const (
		red, green, yellow, blue, magenta, cyan, grey = "1", "2", "3", "4", "5", "6", "8"
		brightRed, brightGreen, brightYellow          = "9", "10", "11"
		brightBlue, brightMagenta, brightCyan, white  = "12", "13", "14", "15"
		black                                         = "0"
	)
	switch name {
	case Dark:
		return map[Role]string{
			Title: brightCyan, Marked: brightMagenta,
			Good: green, Warn: yellow, Bad: brightRed, Info: cyan, Accent: brightCyan,
			Key: cyan, KeyHelp: grey, Border: grey, BorderFocused: cyan, Cursor: cyan, Match: brightYellow,
			BarUsed: blue, BarCooling: yellow, BarFree: green, BarRoom: grey, BarOthers: magenta,
			Faint: grey, Stale: grey,
			Node1: brightCyan, Node2: brightMagenta, Node3: brightGreen, Node4: brightBlue, Node5: magenta, Node6: green,
		}
	case Light:
		return map[Role]string{
			Title: blue, Marked: magenta,
			Good: green, Warn: magenta, Bad: red, Info: blue, Accent: blue,
			Key: blue, KeyHelp: grey, Border: grey, BorderFocused: blue, Cursor: blue, Match: magenta,
			BarUsed: blue, BarCooling: magenta, BarFree: green, BarRoom: grey, BarOthers: cyan,
			Faint: grey, Stale: grey,
			Node1: blue, Node2: magenta, Node3: cyan, Node4: green, Node5: brightBlue, Node6: brightMagenta,
		}
	case HighContrast:
		return map[Role]string{
			Title: white, Marked: brightMagenta,
			Good: brightGreen, Warn: brightYellow, Bad: brightRed, Info: brightCyan, Accent: white,
			Key: brightYellow, Border: white, BorderFocused: brightYellow, Cursor: brightYellow, Match: brightYellow,
			BarUsed: brightBlue, BarCooling: brightYellow, BarFree: brightGreen, BarOthers: brightMagenta,
			Node1: brightCyan, Node2: brightMagenta, Node3: brightGreen, Node4: brightBlue, Node5: cyan, Node6: white,
		}
	case highContrastLight:
		return map[Role]string{
			Title: black, Marked: magenta,
			Good: blue, Warn: magenta, Bad: red, Info: blue, Accent: black,
			Key: blue, Border: black, BorderFocused: blue, Cursor: blue, Match: magenta,
			BarUsed: blue, BarCooling: magenta, BarFree: green, BarOthers: cyan,
			Node1: blue, Node2: magenta, Node3: cyan, Node4: green, Node5: black, Node6: brightMagenta,
		}
	case deuteranopiaLight:
		return map[Role]string{ // Bad has no colour: it is bold and underlined
			Title: blue, Marked: magenta, Good: blue, Info: blue, Accent: blue,
			Key: blue, KeyHelp: grey, Border: grey, BorderFocused: blue, Cursor: blue, Match: blue,
			BarUsed: blue, BarCooling: yellow, BarFree: cyan, BarRoom: grey,
			Faint: grey, Stale: grey,
			Node1: blue, Node2: cyan, Node3: magenta, Node4: black, Node5: brightBlue, Node6: brightMagenta,
		}
	case Deuteranopia:
		// Nearly everyone can distinguish blue and yellow; red and green are not used.
		return map[Role]string{
			Title: brightBlue, Marked: brightCyan,
			Good: blue, Warn: yellow, Bad: brightYellow, Info: cyan, Accent: brightBlue,
			Key: brightBlue, KeyHelp: grey, Border: grey, BorderFocused: brightBlue, Cursor: brightBlue, Match: brightYellow,
			BarUsed: blue, BarCooling: yellow, BarFree: cyan, BarRoom: grey,
			Faint: grey, Stale: grey,
			Node1: brightBlue, Node2: brightCyan, Node3: cyan, Node4: white, Node5: magenta, Node6: brightMagenta,
		}
	}
	return nil
}

// refine softens the colours of a theme on a 24-bit terminal.
func refine(name string, out map[Role]lipgloss.Style) {
	var soft map[Role]string
	fill, text := "", ""
	switch name {
	case Dark:
		fill, text = "#2b3f5c", "#ffffff"
		soft = map[Role]string{
			Title: "#7fd1e8", Good: "#7fc98f", Warn: "#e5c07b", Bad: "#ff7b72", Info: "#7aa7d9", Accent: "#7fd1e8",
			Key: "#7fd1e8", KeyHelp: "#8b949e", Border: "#4b5563", BorderFocused: "#7fd1e8", Cursor: "#7fd1e8", Match: "#ffd75f",
			BarUsed: "#5b8fd6", BarCooling: "#d9a75b", BarFree: "#6fb98f", BarRoom: "#5f6875", BarOthers: "#b8a2da",
			Faint: "#8b949e", Stale: "#7d8590", Marked: "#d8a0e8",
			Node1: "#7fd1e8", Node2: "#d8a0e8", Node3: "#9fd98b", Node4: "#8fb4ff", Node5: "#f0a8b8", Node6: "#b8a2da",
		}
	case Light:
		fill, text = "#cfe2ff", "#0b1f33"
		soft = map[Role]string{
			Title: "#0b5fa5", Good: "#166f30", Warn: "#855900", Bad: "#c2221f", Info: "#0a66b5", Accent: "#0b5fa5",
			Key: "#0b5fa5", KeyHelp: "#5f6873", Border: "#aab2bd", BorderFocused: "#0b5fa5", Cursor: "#0b5fa5", Match: "#a3310a",
			BarUsed: "#2f6fc4", BarCooling: "#b7791f", BarFree: "#2c8a57", BarRoom: "#949ca6", BarOthers: "#6b4a9e",
			Faint: "#5f6873", Stale: "#68717c", Marked: "#8a2da5",
			Node1: "#0b5fa5", Node2: "#8a2da5", Node3: "#0f6a78", Node4: "#166f30", Node5: "#6b4a9e", Node6: "#4d5b00",
		}
	case deuteranopiaLight:
		fill, text = "#cfe2ff", "#0b1f33"
		soft = map[Role]string{
			Title: "#0b4fa5", Good: "#0b4fa5", Warn: "#8a5a00", Bad: "#6b3d00", Info: "#0a66b5", Accent: "#0b4fa5",
			Key: "#0b4fa5", KeyHelp: "#5f6873", Border: "#aab2bd", BorderFocused: "#0b4fa5", Cursor: "#0b4fa5", Match: "#8a5a00",
			BarUsed: "#1f5fbf", BarCooling: "#a86e00", BarFree: "#5b93d6", BarRoom: "#949ca6",
			Faint: "#5f6873", Stale: "#68717c",
			Node1: "#0b4fa5", Node2: "#0f6a78", Node3: "#4b3f9e", Node4: "#2b5d8a", Node5: "#3a3a3a", Node6: "#7a2d6a",
		}
	case Deuteranopia:
		fill, text = "#26405f", "#ffffff"
		soft = map[Role]string{
			Good: "#6ea8fe", Warn: "#e6b800", Bad: "#ffd000", Info: "#9ec5fe",
			BarUsed: "#4a86e8", BarCooling: "#d0a000", BarFree: "#9ec5fe", BarRoom: "#5f6875",
			Faint: "#8b949e", Stale: "#7d8590", Border: "#4b5563", KeyHelp: "#8b949e",
			Node1: "#9ec5fe", Node2: "#8fd3d8", Node3: "#c0b4e8", Node4: "#e0e0e0", Node5: "#7fb0ff", Node6: "#e8b8d8",
		}
	default:
		return
	}
	for role, c := range soft {
		out[role] = out[role].Foreground(lipgloss.Color(c))
	}
	out[Selected] = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Color(text)).Background(lipgloss.Color(fill))
}
