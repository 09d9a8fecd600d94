package logline

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendQuoted quotes a text as upstream's encoder of log lines does: unlike
// encoding/json it leaves <, > and & alone, as well as the line ends of JavaScript, and
// has no short forms for \b and \f.
func AppendQuoted(b []byte, s string) []byte { return appendQuoted(b, s, false) }

// AppendQuotedJSON quotes a text as encoding/json does by default, which is what upstream
// writes everything else with.
func AppendQuotedJSON(b []byte, s string) []byte { return appendQuoted(b, s, true) }

func appendQuoted(b []byte, s string, asJSON bool) []byte {
	b = append(b, '"')
	from := 0 // of what is yet to be copied as it is
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			if c < ' ' || c == '"' || c == '\\' || asJSON && (c == '<' || c == '>' || c == '&') {
				b = appendEscape(append(b, s[from:i-1]...), c, asJSON)
				from = i
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, s[from:i-size]...), `\ufffd`...)
			from = i
		case asJSON && (r == '\u2028' || r == '\u2029'): // they end lines in JavaScript
			b = append(append(b, s[from:i-size]...), `\u202`...)
			b = append(b, hexDigits[r&0xf])
			from = i
		}
	}
	return append(append(b, s[from:]...), '"')
}

func appendEscape(b []byte, c byte, asJSON bool) []byte {
	switch {
	case c == '"', c == '\\':
		return append(b, '\\', c)
	case c == '\n':
		return append(b, `\n`...)
	case c == '\r':
		return append(b, `\r`...)
	case c == '\t':
		return append(b, `\t`...)
	case c == '\b' && asJSON:
		return append(b, `\b`...)
	case c == '\f' && asJSON:
		return append(b, `\f`...)
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}
