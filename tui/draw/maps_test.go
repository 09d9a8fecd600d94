package draw

import (
	"testing"
)

// TestBlockMap_Arrange: blocks get as many cells as let all of them be seen, and fill the width.
func TestBlockMap_Arrange(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ count, width, height, columns, per int }{
		{16, 100, 12, 4, 24}, {1, 100, 12, 1, 64}, {64, 100, 12, 8, 12}, {256, 100, 12, 32, 3}, {512, 100, 12, 64, 1}, {512, 200, 12, 64, 3},
		{4096, 100, 12, 64, 1}, {4096, 600, 12, 256, 2}, {512, 5, 3, 4, 1}, {0, 10, 10, 1, 9}, {512, 0, 0, 1, 1},
	} {
		m := BlockMap{Count: x.count}
		if m.Arrange(x.width, x.height); m.Columns != x.columns || m.Per != x.per {
			t.Errorf("%d blocks in %dx%d: %d of %d cells", x.count, x.width, x.height, m.Columns, m.Per)
		}
	}
}
