package output

import (
	"bytes"
	"fmt"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/tui/show"
)

// TableOptions returns the options for standard output.
func TableOptions(f *cli.Factory) table.Options {
	return table.Options{NoHeaders: f.Globals.NoHeaders, Width: f.Streams.Width(), Palette: f.Palette()}
}

// PrintTable writes a table, for people or as CSV.
func PrintTable(f *cli.Factory, t table.Table) error {
	if f.Globals.Output == CSV {
		b, err := csvOf(t, !f.Globals.NoHeaders)
		if err != nil {
			return err
		}
		return write(f, b)
	}
	return PrintLines(f, t.Lines(TableOptions(f)))
}

// PrintText writes lines of plain text.
func PrintText(f *cli.Factory, lines ...string) error {
	for i := range lines {
		lines[i] = show.Printable(lines[i])
	}
	return write(f, joinLines(lines))
}

// PrintLines writes lines in one go: those of tables and pages, which have escaped their texts.
func PrintLines(f *cli.Factory, lines []string) error { return write(f, joinLines(clean(f, lines))) }

// clean escapes what a caller did not: nothing from a node may control the terminal.
func clean(f *cli.Factory, lines []string) []string {
	out, palette := make([]string, len(lines)), f.Palette()
	for i, l := range lines {
		out[i] = palette.Clean(l)
	}
	return out
}

// write writes to standard output.
func write(f *cli.Factory, b []byte) error {
	if _, err := f.Streams.Out.Write(b); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func joinLines(lines []string) []byte {
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return b.Bytes()
}
