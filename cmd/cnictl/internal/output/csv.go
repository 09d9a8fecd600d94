package output

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"cnictl/cmd/cnictl/internal/table"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// csvOf formats a table for spreadsheets: unknown values are empty.
func csvOf(t table.Table, headers bool) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	var records [][]string
	if headers {
		head := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			head[i] = strings.TrimSpace(c.Name + " " + c.Unit)
		}
		records = append(records, head)
	}
	for _, row := range t.Rows {
		record := make([]string, len(row))
		for i, c := range row {
			if t.Columns[i].Unit != "" {
				c.Text = c.Plain
			}
			record[i] = csvCell(c.Text)
		}
		records = append(records, record)
	}
	if err := w.WriteAll(records); err != nil {
		return nil, fmt.Errorf("encode CSV: %w", err)
	}
	return b.Bytes(), nil
}

// csvCell makes text safe for terminals and for spreadsheets, which would evaluate anything
// that looks like a formula.
func csvCell(text string) string {
	text = show.Safe(text)
	switch {
	case query.IsUnknown(text):
		return ""
	case !strings.ContainsRune("=+-@", rune(text[0])):
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}
