package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cnictl/testenv/rules/testindex"
)

var contractTest = regexp.MustCompile("`([a-z0-9/-]+ Test[A-Za-z0-9_]+)`( \\(nightly\\))?")

// TestContracts: the tests that docs/testing.md lists under Contracts exist, each contract has one
// that runs for every commit, and those that do not are marked.
func TestContracts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs/testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Contracts\n")
	section, _, _ = strings.Cut(section, "\n## ")
	tests, found := testindex.New(root), 0
	for row := range strings.Lines(section) {
		if !strings.HasPrefix(row, "|") || strings.HasPrefix(row, "|---") || strings.HasPrefix(row, "| contract |") {
			continue
		}
		names := contractTest.FindAllStringSubmatch(row, -1)
		if len(names) == 0 {
			t.Errorf("no test: %s", row)
		}
		inGate := false
		for _, name := range names {
			found++
			if err := tests.Find(name[1]); err != nil {
				t.Error(err)
			}
			nightly := tests.InGate(name[1]) != nil
			if marked := name[2] != ""; marked != nightly {
				t.Errorf("%s: nightly %v, marked %v", name[1], nightly, marked)
			}
			inGate = inGate || !nightly
		}
		if !inGate {
			t.Errorf("all tests of a contract only run nightly: %s", row)
		}
	}
	if found == 0 {
		t.Error("docs/testing.md names no tests under Contracts")
	}
}
