package show

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Width returns the number of terminal cells that a text without colours takes.
func Width(s string) int {
	if isASCII(s) {
		return len(s)
	}
	return ansi.StringWidth(alone(s))
}

// isASCII reports whether a text is only printable ASCII, where each byte is one cell.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i]-' ' > '~'-' ' {
			return false
		}
	}
	return true
}

// alone makes a text safe, and independent of the text before it: a combining mark at its start
// would join the previous character.
func alone(s string) string {
	s = Safe(s)
	r, size := utf8.DecodeRuneInString(s)
	if !unicode.Is(unicode.M, r) {
		return s
	}
	quoted := strconv.QuoteRuneToASCII(r)
	return quoted[1:len(quoted)-1] + alone(s[size:])
}

// ClipMiddle shortens a text to a width by cutting out its middle, so that texts that differ only
// at their ends, such as the names of a deployment's pods, remain distinguishable.
func ClipMiddle(s string, width int) string {
	const tail = 6 // -xxxxx, the unique part of a pod's name
	if Width(s) <= width || width < 2*tail || !isASCII(s) {
		return Clip(s, width)
	}
	return s[:width-1-tail] + "…" + s[len(s)-tail:]
}

// Clip shortens a text without colours to a width, with an ellipsis in the last cell. It escapes
// what is not safe to print.
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
