package app

import (
	"errors"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"

	"cnictl/tui/draw"
	"cnictl/tui/show"
)

// ErrNoTerminal is returned when there is no terminal to draw on.
var ErrNoTerminal = errors.New("tui needs a terminal")

// ErrSwitched is returned when the user switches to another context.
var ErrSwitched = errors.New("switched to another context")

// environ is the inherited environment.
type environ []string

func (e environ) get(name string) string {
	for i := len(e) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(e[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// utf8 reports whether the locale uses UTF-8.
func (e environ) utf8() bool { return show.UTF8(e.get) }

// dumb reports whether the terminal cannot place a cursor.
func (e environ) dumb() bool {
	t := e.get("TERM")
	return t == "" || t == "dumb"
}

// accessible reports whether ACCESSIBLE asks for text instead of a screen.
func (e environ) accessible() bool {
	switch strings.ToLower(e.get("ACCESSIBLE")) {
	case "", "0", "false", "no":
		return false
	}
	return true
}

// light guesses from COLORFGBG whether the background is light. Some terminals set it to
// "foreground;background" in the 16 colours.
func (e environ) light() bool {
	v := e.get("COLORFGBG")
	background := v[strings.LastIndexByte(v, ';')+1:]
	return background == "7" || background == "15"
}

// noColor reports whether NO_COLOR has any value, as https://no-color.org defines it.
func (e environ) noColor() bool { return e.get("NO_COLOR") != "" }

// terminal returns what the terminal can show with a colour profile.
func terminal(p colorprofile.Profile, e environ, light bool) draw.Terminal {
	return draw.Terminal{
		Colour: p >= colorprofile.ANSI && !e.noColor(),
		Many:   p >= colorprofile.ANSI256,
		True:   p >= colorprofile.TrueColor,
		Light:  light,
	}
}

// backgroundLimit is how long to wait for the terminal to report its background. Some
// never do, and a late answer must not change the colours while the user is reading.
const backgroundLimit = 400 * time.Millisecond
