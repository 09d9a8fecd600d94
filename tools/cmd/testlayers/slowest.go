package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// spent is the time that a test took, or a package if the test's name is empty.
type spent struct {
	id   testID
	wall time.Duration // for a parallel test, since it continued
}

// printSlowest prints the n packages and the n tests that took longest, across all layers.
// The time of a test includes its subtests.
func printSlowest(w io.Writer, results []layerResult, n int) {
	type row struct {
		spent
		layer string
	}
	var packages, tests []row
	for _, r := range results {
		for _, s := range r.times {
			switch {
			case s.id.Test == "":
				packages = append(packages, row{s, r.name})
			case !strings.Contains(s.id.Test, "/"):
				tests = append(tests, row{s, r.name})
			}
		}
	}
	for _, list := range [][]row{packages, tests} {
		slices.SortStableFunc(list, func(a, b row) int { return cmp.Compare(b.wall, a.wall) })
		for _, s := range list[:min(n, len(list))] {
			fmt.Fprintf(w, "slow (%s) %9s  %s %s\n", s.layer, seconds(s.wall), s.id.Package, s.id.Test)
		}
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
