package show

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLen limits one string from a node, in bytes: longer ones are cut, as nothing that a healthy
// node reports is that long.
const maxLen = 1024

// Safe is Printable for one string from a node, which it cuts.
func Safe(s string) string {
	if len(s) > maxLen {
		cut := maxLen
		for cut > maxLen-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return Printable(s)
}

// Printable escapes control, escape, bidi and other invisible characters, and invalid UTF-8. A
// terminal then shows the text and does nothing else.
func Printable(s string) string {
	if isSafe(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x`)
			b.WriteString(strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

func isSafe(s string) bool {
	ascii := 0
	for ascii < len(s) && s[ascii] >= ' ' && s[ascii] < 0x7f {
		ascii++
	}
	s = s[ascii:]
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}
