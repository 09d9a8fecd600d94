package node

import (
	"cmp"
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
		lines[i] = strings.Repeat(" ", width-len(values[i])) + values[i] + "  " + cmp.Or(show.Term(t.Name), t.Name)
	}
	return lines
}
