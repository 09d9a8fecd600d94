package catalogue

import (
	"os"
	"path/filepath"
	"testing"

	"cnictl/testenv/golden"
)

// TestDocumentation: docs/doctor has a page for each group, and nothing else.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	const dir = "../../docs/doctor"
	for _, g := range Groups() {
		golden.File(t, filepath.Join(dir, g.Name+".md"), []byte(g.Markdown()))
	}
	pages, err := os.ReadDir(dir)
	if err != nil || len(pages) != len(Groups()) {
		t.Errorf("%d pages for %d groups, %v", len(pages), len(Groups()), err)
	}
}
