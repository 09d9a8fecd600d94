package app

import (
	"strconv"
	"strings"
)

// Screens are the titles of the screens that can be opened by name: those that need no
// object.
func Screens() []string {
	var out []string
	for _, s := range digits() {
		out = append(out, strings.ToLower(s.title))
	}
	return out
}

// HasScreen reports whether name is a screen: its title, its name or its digit.
func HasScreen(name string) bool { return screenNamed(name) != "" }

// screenNamed resolves a title, name or digit to the name of a screen; "" when there is
// none.
func screenNamed(asked string) string {
	for i, s := range digits() {
		if asked == s.name || asked == strings.ToLower(s.title) || asked == strconv.Itoa(i+1) {
			return s.name
		}
	}
	return ""
}
