package output

import (
	"cmp"
	"strings"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/tui/show"
)

// Page is output about one object: labelled values, with titled tables below.
type Page struct {
	Opts   table.Options
	Labels int // width of the label column; 0: 12
	Lines  []string
}

// Field adds "label  value", with all labels in one column.
func (p *Page) Field(label, value string) { p.Cells(label, table.Cell{Text: value}) }

// Cells is Field for a value of several parts, each in its colour.
func (p *Page) Cells(label string, parts ...table.Cell) {
	labels := cmp.Or(p.Labels, 12)
	room := 0
	if p.Opts.Width > 0 {
		room = max(labels, p.Opts.Width-labels)
	}
	for i, line := range wrap(p.painted(parts), room) {
		begin := strings.Repeat(" ", labels)
		if i == 0 {
			begin = p.Opts.Palette.Paint(paint.Dim, label) + strings.Repeat(" ", max(2, labels-len(label)))
		}
		p.Lines = append(p.Lines, begin+line)
	}
}

// Line adds a line without a label, of parts in their colours.
func (p *Page) Line(parts ...table.Cell) {
	p.Lines = append(p.Lines, wrap(p.painted(parts), p.Opts.Width)...)
}

// Text adds a line of text.
func (p *Page) Text(text string) { p.Line(table.Cell{Text: text}) }

// Title adds an empty line and a title.
func (p *Page) Title(text string) {
	p.Lines = append(p.Lines, "")
	p.Line(table.Cell{Text: text, Class: paint.Head})
}

// painted escapes parts and paints them.
func (p *Page) painted(parts []table.Cell) string {
	var b strings.Builder
	for _, c := range parts {
		if !c.Raw {
			c.Text = show.Printable(c.Text)
		}
		b.WriteString(p.Opts.Palette.Paint(c.Class, c.Text))
	}
	return b.String()
}

// wrap breaks a line at blanks to fit a width, preferably between items. It does not break
// longer words. Width 0 means unlimited.
func wrap(line string, width int) []string {
	if width <= 0 || paint.Width(line) <= width {
		return []string{line}
	}
	var lines []string
	for _, blanks := range []string{"  ", " "} {
		lines = nil
		longest := 0
		for _, word := range strings.Split(line, blanks) {
			last := len(lines) - 1
			if last >= 0 && paint.Width(lines[last])+len(blanks)+paint.Width(word) <= width {
				lines[last] += blanks + word
				continue
			}
			lines = append(lines, word)
		}
		for _, l := range lines {
			longest = max(longest, paint.Width(l))
		}
		if longest <= width {
			break
		}
	}
	return lines
}

// Section adds a titled table, or nothing if it is empty.
func (p *Page) Section(title string, t table.Table) {
	if len(t.Rows) == 0 {
		return
	}
	opts := p.Opts
	opts.NoHeaders = opts.NoHeaders || t.Columns[0].Name == ""
	p.Title(title)
	p.Lines = append(p.Lines, t.Lines(opts)...)
}
