package figure

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// Lines prints lines of cells: the first cell, a name, left-aligned, the others, figures,
// right-aligned.
func Lines(w io.Writer, lines [][]string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	widest := 0
	for _, l := range lines {
		widest = max(widest, utf8.RuneCountInString(l[0]))
	}
	for _, l := range lines {
		fmt.Fprintf(tw, "%s%s\t%s\t\n", l[0], strings.Repeat(" ", widest-utf8.RuneCountInString(l[0])), strings.Join(l[1:], "\t"))
	}
	tw.Flush() //nolint:errcheck // as everywhere when printing
}
