package output

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/fleet/show"
)

// csvOf writes a table for spreadsheets: what is not known is empty.
func csvOf(t table.Table, headers bool) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	var records [][]string
	if headers {
		head := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			head[i] = c.Name
		}
		records = append(records, head)
	}
	for _, row := range t.Rows {
		record := make([]string, len(row))
		for i, c := range row {
			record[i] = csvCell(c.Text)
		}
		records = append(records, record)
	}
	if err := w.WriteAll(records); err != nil {
		return nil, fmt.Errorf("encode CSV: %w", err)
	}
	return b.Bytes(), nil
}

// csvCell makes a text safe for terminals and for spreadsheets, which take one that
// begins like a formula for a formula.
func csvCell(text string) string {
	text = show.Safe(text)
	switch {
	case text == show.Unknown:
		return ""
	case text == "" || !strings.ContainsRune("=+-@", rune(text[0])):
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}
