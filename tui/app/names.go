package app

import (
	"strconv"
	"strings"
)

// Screens names the screens that can be asked for by name: those that stand alone, as
// they call themselves.
func Screens() []string {
	var out []string
	for _, s := range digits() {
		out = append(out, strings.ToLower(s.title))
	}
	return out
}

// HasScreen tells whether a screen can be asked for so: by what it calls itself, by its
// name or by its digit.
func HasScreen(name string) bool { return screenNamed(name) != "" }

// screenNamed is the name of the screen that is asked for, "" when there is none.
func screenNamed(asked string) string {
	for i, s := range digits() {
		if asked == s.name || asked == strings.ToLower(s.title) || asked == strconv.Itoa(i+1) {
			return s.name
		}
	}
	return ""
}
