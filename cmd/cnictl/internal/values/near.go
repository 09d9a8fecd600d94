package values

import (
	"strings"

	"cnictl/tui/query"
)

// Near returns the names most likely meant by an unknown path: similar names in the same
// place, else the same name in another place.
func Near(path string, names []string) (near []string) {
	place, key := cut(path)
	var beside []string
	for _, name := range names {
		switch p, k := cut(name); {
		case p == place:
			beside = append(beside, k)
		case strings.EqualFold(k, key):
			near = append(near, name)
		}
	}
	if similar := query.Near(key, beside); len(similar) > 0 {
		near = similar
		for i := range near {
			near[i] = place + near[i]
		}
	}
	return near[:min(len(near), query.MostNear)]
}

// cut splits a path into its place, which ends in a dot unless empty, and its key.
func cut(path string) (place, key string) {
	at := strings.LastIndexByte(path, '.') + 1
	return path[:at], path[at:]
}
