package catalogue

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"cnictl/testenv/text/golden"
)

// TestDocumentation: docs/doctor has a page for each group, and nothing else.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	const dir = "../../../docs/doctor"
	for _, g := range Groups() {
		golden.File(t, filepath.Join(dir, g.Name+".md"), []byte(g.Markdown()))
	}
	golden.File(t, "../../../docs/errors.md", []byte(ErrorsPage()))
	pages, err := os.ReadDir(dir)
	if err != nil || len(pages) != len(Groups()) {
		t.Errorf("%d pages for %d groups, %v", len(pages), len(Groups()), err)
	}
}

// TestOperations: docs/operations.md has an entry for each group, and for no other.
func TestOperations(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/operations.md"
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

// TestDeployFiles: every file of deploy/ that pages or the catalogue name exists.
func TestDeployFiles(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, page := range append(pages, root+"/README.md", root+"/CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(text)
	}
	for _, g := range Groups() {
		texts[g.Name] = g.Markdown()
	}
	named := 0
	for where, text := range texts {
		for _, m := range regexp.MustCompile(`(?:^|[^\w./-]|\.\./)(deploy/[\w./-]*\w)`).FindAllStringSubmatch(text, -1) {
			named++
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", where, m[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d files named", named)
	}
}
