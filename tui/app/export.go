package app

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/document"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

func (m *Model) exportKey(key string) tea.Cmd {
	m.mode = browsing
	switch key {
	case "t":
		return m.export("text")
	case "c":
		return m.export("csv")
	case "j":
		return m.export("json")
	case "esc", "x", "q":
		return nil
	}
	return m.say(draw.Warn, "t is text, c CSV, j JSON")
}

// export writes what the screen shows into a new file.
func (m *Model) export(how string) tea.Cmd {
	data, suffix := m.document(how)
	if suffix == "" {
		return m.say(draw.Warn, "exports are text, csv or json")
	}
	name := "cnictl-" + m.page().Name() + "-" + m.now.UTC().Format("20060102-150405") + suffix
	return m.fx.export(name, data)
}

// document returns the screen in a format. The suffix is "" if the format is unknown.
func (m *Model) document(how string) (data []byte, suffix string) {
	l := m.list()
	switch how {
	case "text", "txt":
		if l == nil {
			return m.plainText(), ".txt"
		}
		return textTable(l.Cells()), ".txt"
	case "csv":
		if l == nil {
			return csvTable([]string{"line"}, lineRows(m.plainText())), ".csv"
		}
		return csvTable(l.Cells()), ".csv"
	case "json":
		if d, ok := m.page().(pages.Documented); ok {
			if doc := d.Document(); doc != nil {
				return jsonValue(doc), ".json"
			}
		}
		if l == nil {
			return jsonValue(m.page().Row(m.context())), ".json"
		}
		return jsonTable(l.Cells()), ".json"
	}
	return nil, ""
}

// plainText returns the screen without colours.
func (m *Model) plainText() []byte {
	c := m.context()
	c.Theme = draw.PlainTheme()
	var b bytes.Buffer
	for _, line := range m.page().Lines(c) {
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func lineRows(text []byte) [][]string {
	var out [][]string
	for line := range strings.Lines(string(text)) {
		out = append(out, []string{strings.TrimRight(line, "\n")})
	}
	return out
}

func textTable(header []string, rows [][]string) []byte {
	width := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], draw.Width(cell))
		}
	}
	var b bytes.Buffer
	for _, row := range append([][]string{header}, rows...) {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(draw.Blank(width[i] - draw.Width(cell) + 2))
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// csvTable escapes cells that a spreadsheet would run as a formula: text from a node must
// not be executed.
func csvTable(header []string, rows [][]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(header) // a write to memory cannot fail
	for _, row := range rows {
		out := make([]string, len(row))
		for i, cell := range row {
			if cell != "" && cell != "-" && strings.ContainsRune("=+-@", rune(cell[0])) {
				cell = "'" + cell
			}
			out[i] = cell
		}
		_ = w.Write(out)
	}
	w.Flush()
	return b.Bytes()
}

func jsonTable(header []string, rows [][]string) []byte {
	out := make([]map[string]string, 0, len(rows))
	for _, row := range rows {
		object := make(map[string]string, len(header))
		for i, name := range header {
			object[name] = row[i]
		}
		out = append(out, object)
	}
	return jsonValue(out)
}

// jsonValue returns what cnictl prints for the same object with -o json.
func jsonValue(v any) []byte {
	data, err := document.Marshal(v)
	if err != nil {
		data, _ = json.Marshal(err.Error())
	}
	var b bytes.Buffer
	_ = json.Indent(&b, data, "", "  ") // data is valid JSON
	b.WriteByte('\n')
	return b.Bytes()
}

// writeNew creates a file. It never overwrites one.
func writeNew(directory, name string, data []byte) (path string, err error) {
	path = filepath.Join(directory, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return path, err
	}
	_, err = f.Write(data)
	return path, errors.Join(err, f.Close())
}

func exportTo(directory string) func(string, []byte) tea.Cmd {
	return func(name string, data []byte) tea.Cmd {
		return func() tea.Msg {
			path, err := writeNew(directory, name, data)
			return exported{path, err}
		}
	}
}

// short formats an interval.
func short(d time.Duration) string {
	switch {
	case d >= time.Minute && d%time.Minute == 0:
		return strings.TrimSuffix(d.String(), "0s")
	case d <= 0:
		return "-"
	}
	return d.Round(100 * time.Millisecond).String()
}
