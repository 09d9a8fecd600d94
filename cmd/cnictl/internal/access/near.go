package access

import (
	"cmp"
	"slices"
	"strings"
)

// mostNear is how many names like one that there is not are shown.
const mostNear = 5

// near are the known names of nodes that one who typed this may have meant, the likeliest
// first: those that are a few letters another, else those that hold it. What the domain adds
// does not count where none was typed.
func near(name string, known []string) []string {
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
	names := make([]string, min(mostNear, len(like)))
	for i := range names {
		names[i] = like[i].name
	}
	return names
}

// distance is how many bytes have to be put in, left out or changed to make b of a; above
// most it is any number above it.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost++
			}
			above = row[j+1]
			row[j+1] = min(cost, above+1, row[j]+1)
		}
	}
	return row[len(b)]
}
