package query

import (
	"slices"
	"testing"
)

func TestNear(t *testing.T) {
	t.Parallel()
	known := []string{"ip-10-0-3-1.eu", "ip-10-0-3-17.eu", "ip-10-0-3-18.eu", "ip-10-1-3-17.eu", "gpu-large-1.eu", "gpu-large-2.eu"}
	for name, want := range map[string][]string{
		"ip-10-0-3-71": {"ip-10-0-3-1.eu", "ip-10-0-3-17.eu", "ip-10-0-3-18.eu", "ip-10-1-3-17.eu"},
		"ip-10-0-3-19": {"ip-10-0-3-1.eu", "ip-10-0-3-17.eu", "ip-10-0-3-18.eu", "ip-10-1-3-17.eu"},
		"gpularge-1":   {"gpu-large-1.eu", "gpu-large-2.eu"},
		"large":        {"gpu-large-1.eu", "gpu-large-2.eu"},
		"nosuch":       {},
		"":             {},
	} {
		if got := Near(name, known); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for _, row := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "ab", 1}, {"abc", "bc", 1}, {"kitten", "sitting", 3}, {"stauts", "status", 1}, {"ba", "ab", 1}} {
		if got := distance(row.a, row.b, 5); got != row.want {
			t.Errorf("%s to %s: %d, want %d", row.a, row.b, got, row.want)
		}
	}
}
