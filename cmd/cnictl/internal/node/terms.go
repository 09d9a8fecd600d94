package node

import (
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/tui/show"
)

// termLines formats the arithmetic of max-pods, a line per term, with the values in one
// column.
func termLines(terms []introspect.MaxPodsTerm) []string {
	values := make([]string, len(terms))
	width := 0
	for i, t := range terms {
		values[i] = show.Pods(&t.Value)
		width = max(width, len(values[i]))
	}
	lines := make([]string, len(terms))
	for i, t := range terms {
		name := t.Name
		if long := show.Term(t.Name); long != "" {
			name = long + " (" + name + ")"
		}
		lines[i] = strings.Repeat(" ", width-len(values[i])) + values[i] + "  " + name
	}
	return lines
}
