package show

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Width is the number of cells that a text without colours takes on a terminal.
func Width(s string) int {
	if isASCII(s) {
		return len(s)
	}
	return ansi.StringWidth(alone(s))
}

// isASCII reports whether a text is printable ASCII alone: a byte is a cell.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i]-' ' > '~'-' ' {
			return false
		}
	}
	return true
}

// alone makes a text safe and such that what stands before it is left as it is: a mark at
// its beginning would join the character before.
func alone(s string) string {
	s = Safe(s)
	r, size := utf8.DecodeRuneInString(s)
	if !unicode.Is(unicode.M, r) {
		return s
	}
	quoted := strconv.QuoteRuneToASCII(r)
	return quoted[1:len(quoted)-1] + alone(s[size:])
}

// ClipMiddle cuts a text to a width by leaving its middle out, so that those that differ
// at their ends alone, like the names of the pods of a deployment, can still be distinguished.
func ClipMiddle(s string, width int) string {
	const tail = 6 // -xxxxx, which is a pod's own
	if Width(s) <= width || width < 2*tail || !isASCII(s) {
		return Clip(s, width)
	}
	return s[:width-1-tail] + "…" + s[len(s)-tail:]
}

// Clip cuts a text without colours to a width, with an ellipsis as its last cell. What
// is not safe to print is escaped.
func Clip(s string, width int) string {
	if isASCII(s) {
		switch {
		case len(s) <= width:
			return s
		case width <= 0:
			return ""
		}
		return s[:width-1] + "…"
	}
	s = alone(s)
	if ansi.StringWidth(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	room, cut := width-1, 0
	for cut < len(s) {
		cluster, cells := ansi.FirstGraphemeCluster(s[cut:], ansi.GraphemeWidth)
		if cells > room {
			break
		}
		room -= cells
		cut += len(cluster)
	}
	return s[:cut] + "…"
}
