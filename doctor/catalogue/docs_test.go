package catalogue

import (
	"os"
	"path/filepath"
	"regexp"
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

// TestOperations: docs/operations.md has an entry for each group, and for no other.
func TestOperations(t *testing.T) {
	t.Parallel()
	const page = "../../docs/operations.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^### .*: `(.+)`$").FindAllSubmatch(text, -1) {
		entries[string(m[1])]++
	}
	for _, g := range Groups() {
		if entries[g.Name] != 1 {
			t.Errorf("%s has %d entries for the group %s", page, entries[g.Name], g.Name)
		}
		delete(entries, g.Name)
	}
	for name := range entries {
		t.Errorf("%s: no group is named %s", page, name)
	}
}
