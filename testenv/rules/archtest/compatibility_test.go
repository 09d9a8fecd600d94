package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/testenv/rules/testindex"
)

// TestCompatibility: each row of docs/compatibility.md has a test, each test exists, and
// each known defect of upstream has a row.
func TestCompatibility(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, compatibility))
	if err != nil {
		t.Fatal(err)
	}
	rows, wrong := parseCompatibility(string(page))
	for _, err := range append(wrong, missingDefects(rows)...) {
		t.Errorf("%s: %v", compatibility, err)
	}
	tests := testindex.New(root)
	for _, r := range rows {
		for _, test := range r.tests {
			if err := tests.Find(test); err != nil {
				t.Errorf("%s:%d: %v", compatibility, r.line, err)
			}
		}
	}
}

// TestCompatibility_Rules tests the parser that the test above relies on.
func TestCompatibility_Rules(t *testing.T) {
	t.Parallel()
	const page = "# Page\n\nText with a | bar.\n\n" +
		"| id | upstream | ours | why different | test |\n|---|---|:--|--:|---|\n" +
		"| – | a | b | same | `x TestA`, `y TestB/row, with comma` |\n" +
		"| 13.1-1, plugin-2 | a \\| b | `code` | c | `x TestC` |\n" +
		"| 13.2-1 | a | | c | `x TestC` |\n" +
		"| 13.2-2 | a | b | c | later |\n" +
		"| 13.2-3 | a | b | c |\n" +
		"\n| id | upstream | test |\n|---|---|---|\n"
	rows, wrong := parseCompatibility(page)
	want := []compatRow{
		{line: 7, tests: []string{"x TestA", "y TestB/row, with comma"}},
		{line: 8, ids: []string{"13.1-1", "plugin-2"}, tests: []string{"x TestC"}},
	}
	if diff := cmp.Diff(want, rows, cmp.AllowUnexported(compatRow{})); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	checkErrors(t, wrong, `line 9: nothing under "ours"`, "line 10: no test", "line 11: 4 columns, want 5", "line 13: the columns are")

	var full []compatRow
	for list, most := range defects {
		for n := range most {
			full = append(full, compatRow{line: 1, ids: []string{fmt.Sprintf("%s-%d", list, n+1)}})
		}
	}
	checkErrors(t, missingDefects(full))
	lacks := full[0].ids[0]
	checkErrors(t, missingDefects(append(full[1:], compatRow{line: 2, ids: []string{full[1].ids[0], "13.2-99", "13.9-1", "13.1-0", "row", "13.1-99999999999999999999"}})),
		full[1].ids[0]+" has a row already", `"13.2-99" is not in the lists of defects`, `"13.9-1" is not in`, `"13.1-0" is not in`, `"row" is not in`, `"13.1-99999999999999999999" is not in`, lacks+" has no row")
}

// checkErrors checks that each error contains its text, in order.
func checkErrors(t *testing.T, got []error, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d errors, want %d: %v", len(got), len(want), got)
	}
	for i, err := range got {
		if !strings.Contains(err.Error(), want[i]) {
			t.Errorf("error %d: %v, want %q", i, err, want[i])
		}
	}
}
