package archtest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// compatibility is the page that compares this project with upstream.
const compatibility = "docs/compatibility.md"

// defects are the lengths of the lists of upstream's known defects, by the prefix of the ids
// that docs/compatibility.md gives them.
var defects = map[string]int{"13.1": 22, "13.2": 31, "plugin": 23}

// compatHead are the columns of every table of the page.
var compatHead = []string{"id", "upstream", "ours", "why different", "test"}

// compatRow is one behaviour.
type compatRow struct {
	line  int
	ids   []string // of defects; empty if the row is about no defect
	tests []string // in testindex's notation
}

var (
	rowDivider = regexp.MustCompile(`^:?-+:?$`)
	code       = regexp.MustCompile("`([^`]+)`")
	defectID   = regexp.MustCompile(`^([a-z0-9.]+)-([1-9][0-9]*)$`)
)

// parseCompatibility reads the rows of all tables on the page. It returns the valid rows and
// an error for each invalid one.
func parseCompatibility(page string) (rows []compatRow, wrong []error) {
	table := false
	for i, line := range strings.Split(page, "\n") {
		if !strings.HasPrefix(line, "|") {
			table = false
			continue
		}
		cells := cellsOf(line)
		switch {
		case !table:
			table = true
			if !slices.Equal(cells, compatHead) {
				wrong = append(wrong, fmt.Errorf("line %d: the columns are %q, want %q", i+1, cells, compatHead))
			}
		case rowDivider.MatchString(cells[0]):
		default:
			row, err := compatRowOf(cells)
			if err != nil {
				wrong = append(wrong, fmt.Errorf("line %d: %w", i+1, err))
				continue
			}
			row.line = i + 1
			rows = append(rows, row)
		}
	}
	return rows, wrong
}

// cellsOf splits a line of a table. \| is a literal bar.
func cellsOf(line string) (cells []string) {
	const bar = "\x00"
	line = strings.ReplaceAll(line, `\|`, bar)
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	for cell := range strings.SplitSeq(line, "|") {
		cells = append(cells, strings.TrimSpace(strings.ReplaceAll(cell, bar, "|")))
	}
	return cells
}

func compatRowOf(cells []string) (row compatRow, err error) {
	if len(cells) != len(compatHead) {
		return row, fmt.Errorf("%d columns, want %d", len(cells), len(compatHead))
	}
	if at := slices.Index(cells, ""); at >= 0 {
		return row, fmt.Errorf("nothing under %q", compatHead[at])
	}
	if cells[0] != "–" {
		row.ids = strings.Split(cells[0], ", ")
	}
	for _, test := range code.FindAllStringSubmatch(cells[4], -1) {
		row.tests = append(row.tests, test[1])
	}
	if len(row.tests) == 0 {
		return row, errors.New("no test")
	}
	return row, nil
}

// missingDefects lists the defects without a row, and invalid and duplicate ids.
func missingDefects(rows []compatRow) (wrong []error) {
	seen := map[string]bool{}
	for _, r := range rows {
		for _, id := range r.ids {
			parts := defectID.FindStringSubmatch(id)
			n := 0
			if parts != nil {
				n, _ = strconv.Atoi(parts[2]) // the next case rejects overflows
			}
			switch {
			case parts == nil || n == 0 || n > defects[parts[1]]:
				wrong = append(wrong, fmt.Errorf("line %d: %q is not in the lists of defects", r.line, id))
			case seen[id]:
				wrong = append(wrong, fmt.Errorf("line %d: %s has a row already", r.line, id))
			}
			seen[id] = true
		}
	}
	for list, most := range defects {
		for n := 1; n <= most; n++ {
			if id := fmt.Sprintf("%s-%d", list, n); !seen[id] {
				wrong = append(wrong, fmt.Errorf("%s has no row", id))
			}
		}
	}
	return wrong
}
