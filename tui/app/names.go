package app

import (
	"strconv"
	"strings"
)

// Screens returns the titles, in lower case, of the screens that need no object. These can
// be opened by name.
func Screens() []string {
	var out []string
	for _, s := range digits() {
		out = append(out, strings.ToLower(s.title))
	}
	return out
}

// HasScreen reports whether name is the title, name or digit of a screen.
func HasScreen(name string) bool { return screenNamed(name) != "" }

// screenNamed resolves a title, name or digit to the name of a screen, "" if none.
func screenNamed(asked string) string {
	for i, s := range digits() {
		if asked == s.name || asked == strings.ToLower(s.title) || asked == strconv.Itoa(i+1) {
			return s.name
		}
	}
	return ""
}
