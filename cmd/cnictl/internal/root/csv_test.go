package root

import (
	"encoding/csv"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnictl/tui/tables"
)

// TestCSV_PlainNumbers: no CSV column contains two numbers or a number with a unit,
// whichever columns are requested.
func TestCSV_PlainNumbers(t *testing.T) {
	t.Parallel()
	composed := regexp.MustCompile(`^[~+-]?\d+(\.\d+)?[a-z%/× ]`)
	words := []string{"STATUS", "MESSAGE", "VERSION"} // their values may begin with a number
	w := newWorld(t)
	nodes := "nodes --columns "
	for _, c := range tables.Nodes() {
		nodes += c.Name + ","
	}
	for _, command := range []string{
		strings.TrimSuffix(nodes, ","), "enis", "ips", "top --interval 2s", "subnets", "trunks", "node pods large", "node checkpoint large", "node enis large", "node ips large",
	} {
		stdout, stderr, code := w.runNoun(t, call{args: command + " -o csv @large,prefixes,starved"})
		rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
		if err != nil || code != 0 || len(rows) == 0 {
			t.Errorf("%s: exit %d, %v\n%s", command, code, err, stderr)
			continue
		}
		for _, row := range rows[1:] {
			for i, cell := range row {
				if composed.MatchString(cell) && !slices.Contains(words, rows[0][i]) {
					t.Errorf("%s: %s: %q", command, rows[0][i], cell)
				}
			}
		}
	}
}
