package main

import (
	"strconv"
	"strings"
)

// What the screens show, as far as the bench has to know.

const (
	cursorMark = "▸"
	statusLine = -2 // below it are the hints
)

// selected is the row with the cursor, without the mark; "" when there is none.
func selected(s *screen) string {
	for y := 1; y < s.height; y++ {
		if name, ok := strings.CutPrefix(s.line(y), cursorMark); ok {
			if f := strings.Fields(strings.TrimPrefix(name, "●")); len(f) > 0 {
				return f[0]
			}
		}
	}
	return ""
}

// hasRows tells whether nodes are shown.
func hasRows(s *screen) bool { return strings.HasPrefix(selected(s), "ip-") }

// hasAll tells whether the header counts all nodes of a fleet.
func hasAll(nodes int) func(*screen) bool {
	want := "nodes " + thousands(nodes)
	return func(s *screen) bool { return strings.Contains(s.line(0), want) && hasRows(s) }
}

// isSwept tells whether every node has been read once.
func isSwept(s *screen) bool {
	return strings.Contains(s.line(0), "live ") && !strings.Contains(s.line(0), "unasked")
}

func status(s *screen) string { return s.line(statusLine) }

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	rest := strconv.Itoa(n % 1000)
	return strconv.Itoa(n/1000) + "," + strings.Repeat("0", 3-len(rest)) + rest
}
