package query

import (
	"cmp"
	"slices"
	"strings"
)

// MostNear is the maximum number of suggested names.
const MostNear = 5

// Near returns the known names that the typed name most likely means, likeliest first: those
// that differ in a few letters, else those that contain it. Domains are compared only if one
// was typed.
func Near(name string, known []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var like []candidate
	most := max(1, len(name)/4)
	for _, k := range known {
		short := k
		if !strings.Contains(name, ".") {
			short, _, _ = strings.Cut(k, ".")
		}
		switch d := distance(name, short, most); {
		case d <= most:
			like = append(like, candidate{k, d})
		case len(name) > 2 && strings.Contains(k, name):
			like = append(like, candidate{k, most + 1})
		}
	}
	slices.SortFunc(like, func(a, b candidate) int { return cmp.Or(a.distance-b.distance, strings.Compare(a.name, b.name)) })
	names := make([]string, min(MostNear, len(like)))
	for i := range names {
		names[i] = like[i].name
	}
	return names
}

// distance is the number of bytes to insert, delete, replace or swap with a neighbour to turn a
// into b; if that is more than most, it is any number above most.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	var before []int // the row before the last
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := row[j]
			if a[i] != b[j] {
				cost++
			}
			next[j+1] = min(cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
