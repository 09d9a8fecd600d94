package draw

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"cnictl/tui/show"
)

const blanks = "                                                                                                                                "

// Blank returns n blanks.
func Blank(n int) string {
	if n <= 0 {
		return ""
	}
	if n <= len(blanks) {
		return blanks[:n]
	}
	return strings.Repeat(" ", n)
}

// Width returns how many cells a text without escapes takes. Some terminals, such as tmux,
// count the characters of a cluster one by one; others count the cluster as one. Width
// returns the larger, so that no line is too long on either; show counts clusters.
func Width(s string) int {
	if ascii(s) {
		return len(s)
	}
	return max(ansi.StringWidthWc(s), ansi.StringWidth(s))
}

// Clip cuts a text without escapes to a width, with a mark where it was cut.
func (s Style) Clip(text string, width int) string {
	switch {
	case width <= 0:
		return ""
	case len(text) <= width && ascii(text):
		return text
	}
	head := Head(text, width)
	if len(head) == len(text) {
		return text
	}
	return Head(head, width-1) + s.Ellipsis()
}

// Head returns as much of the beginning of a text as fits a width.
func Head(text string, width int) string {
	if ascii(text) {
		return text[:max(min(len(text), width), 0)]
	}
	wc, clusters, end := 0, 0, 0
	for end < len(text) {
		cluster, _ := ansi.FirstGraphemeCluster(text[end:], ansi.GraphemeWidth)
		wc += ansi.StringWidthWc(cluster)
		clusters += ansi.StringWidth(cluster)
		if max(wc, clusters) > width {
			break
		}
		end += len(cluster)
	}
	return text[:end]
}

// Fit cuts or pads a text without escapes to exactly a width.
func (s Style) Fit(text string, width int, right bool) string {
	if width <= 0 {
		return ""
	}
	text = show.Printable(text)
	if s.ASCII {
		text = Plain7(text)
	}
	text = s.Clip(text, width)
	pad := Blank(width - Width(text))
	if right {
		return pad + text
	}
	return text + pad
}

// Plain7 replaces each non-ASCII character with an ASCII one, a question mark if no other
// fits.
func Plain7(text string) string {
	if ascii(text) {
		return text
	}
	text = strings.ReplaceAll(text, "≥", ">=")
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			return r
		case r == '…':
			return '~'
		case r == '×':
			return 'x'
		case r == '·', r == '–', r == '—':
			return '-'
		}
		return '?'
	}, text)
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Thousands formats a count with commas.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Counts writes the counts of a cell, such as 1742/2492, as [Thousands] does. Other texts stay.
func Counts(cell string) string {
	if len(cell) < 4 || strings.Trim(cell, "0123456789/") != "" || !strings.ContainsAny(cell[:1], "0123456789") {
		return cell
	}
	parts := strings.Split(cell, "/")
	for i, part := range parts {
		if n, err := strconv.Atoi(part); err == nil && strconv.Itoa(n) == part {
			parts[i] = Thousands(n)
		}
	}
	return strings.Join(parts, "/")
}

// Clock formats a time of day in UTC, as in the header, or the date if it is more than a
// day ago: always 8 cells.
func Clock(at, now time.Time) string {
	if at.IsZero() {
		return "--:--:--"
	}
	at = at.UTC()
	if now.Sub(at) > 24*time.Hour {
		return at.Format("Jan _2  ")
	}
	return at.Format("15:04:05")
}
