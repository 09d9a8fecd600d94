package main

import (
	"strconv"
	"strings"

	"cnictl/testenv/terminal"
)

// This file reads what the screens show.

// Size of the terminal.
const (
	columns = 200
	rows    = 60
)

const (
	cursorMark = "▸"
	statusLine = -2 // the hints are below it
)

// selected returns the name in the row with the cursor, or "" if there is none.
func selected(s *terminal.Screen) string {
	for y := 1; y < s.Height(); y++ {
		if name, ok := strings.CutPrefix(s.Line(y), cursorMark); ok {
			if f := strings.Fields(strings.TrimPrefix(name, "●")); len(f) > 0 {
				return f[0]
			}
		}
	}
	return ""
}

// hasRows reports whether nodes are shown.
func hasRows(s *terminal.Screen) bool { return strings.HasPrefix(selected(s), "ip-") }

// hasAll reports whether the header counts all nodes of a fleet.
func hasAll(nodes int) func(*terminal.Screen) bool {
	want := "nodes " + thousands(nodes)
	return func(s *terminal.Screen) bool { return strings.Contains(s.Line(0), want) && hasRows(s) }
}

// isSwept reports whether every node has been read once.
func isSwept(s *terminal.Screen) bool {
	return strings.Contains(s.Line(0), "live ") && !strings.Contains(s.Line(0), "unasked")
}

func status(s *terminal.Screen) string { return s.Line(statusLine) }

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	rest := strconv.Itoa(n % 1000)
	return strconv.Itoa(n/1000) + "," + strings.Repeat("0", 3-len(rest)) + rest
}
