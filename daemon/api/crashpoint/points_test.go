package crashpoint

import (
	"slices"
	"testing"
)

func TestAll(t *testing.T) {
	t.Parallel()
	points := All()
	slices.Sort(points)
	if n := len(slices.Compact(slices.Clone(points))); n != len(points) || points[0] == "" {
		t.Errorf("%d points, %d differ; first %q", len(points), n, points[0])
	}
	points[0] = "changed"
	if slices.Contains(All(), "changed") {
		t.Error("All shares its table")
	}
}
