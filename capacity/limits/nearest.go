package limits

import (
	"slices"
	"strings"
)

// Nearest returns up to n built-in types that the user may have meant.
func Nearest(name string, n int) []string { return Table{}.Nearest(name, n) }

// Nearest returns up to n known types that the user may have meant, best first:
// fewest edits (insert, delete, replace, swap of neighbours), then byte order.
// Types that differ in more than a third of their letters are left out.
func (t Table) Nearest(name string, n int) []string {
	if n <= 0 || len(name) > 64 {
		return nil
	}
	name = strings.ToLower(strings.TrimSpace(name))
	type hit struct {
		name  string
		edits int
	}
	var hits []hit
	for known := range t.Types() {
		if d := edits(name, known); d <= max(1, len(known)/3) {
			hits = append(hits, hit{known, d})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return a.edits - b.edits })
	names := make([]string, 0, n)
	for _, h := range hits[:min(n, len(hits))] {
		names = append(names, h.name)
	}
	return names
}

// edits is the restricted Damerau-Levenshtein distance of two short names.
func edits(a, b string) int {
	var before, last, row []int
	row = make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	last = make([]int, len(b)+1)
	before = make([]int, len(b)+1)
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
