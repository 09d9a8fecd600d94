package output

import (
	"strings"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
)

// Page is what a command shows of one thing: labelled values, and titled tables below.
type Page struct {
	Opts  table.Options
	Lines []string
}

// Field adds "label  value", the labels in one column. The value is safe to print.
func (p *Page) Field(label, value string) {
	const labels = 12
	p.Lines = append(p.Lines, p.Opts.Palette.Paint(paint.Dim, label)+strings.Repeat(" ", max(2, labels-len(label)))+value)
}

// Section adds a titled table, nothing when it is empty.
func (p *Page) Section(title string, t table.Table) {
	if len(t.Rows) == 0 {
		return
	}
	opts := p.Opts
	opts.NoHeaders = opts.NoHeaders || t.Columns[0].Name == ""
	p.Lines = append(p.Lines, "", p.Opts.Palette.Paint(paint.Head, title))
	p.Lines = append(p.Lines, t.Lines(opts)...)
}
