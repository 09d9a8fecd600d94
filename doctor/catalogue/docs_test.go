package catalogue

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite generated documentation")

// TestDocumentation: docs/doctor has a page for each group, and nothing else.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	const dir = "../../docs/doctor"
	for _, g := range Groups() {
		page := filepath.Join(dir, g.Name+".md")
		want := g.Markdown()
		if *update {
			if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(have)); diff != "" {
			t.Errorf("%s is stale, run make generate (-want +have):\n%s", page, diff)
		}
	}
	pages, err := os.ReadDir(dir)
	if err != nil || len(pages) != len(Groups()) {
		t.Errorf("%d pages for %d groups, %v", len(pages), len(Groups()), err)
	}
}
