package logline

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendQuoted quotes a text as upstream's log encoder does: unlike encoding/json it does
// not escape <, >, & or JavaScript's line separators, and has no short forms for \b and \f.
func AppendQuoted(b []byte, s string) []byte { return appendQuoted(b, s, false) }

// AppendQuotedJSON quotes a text as encoding/json does by default. Upstream uses that for
// everything except log lines.
func AppendQuotedJSON(b []byte, s string) []byte { return appendQuoted(b, s, true) }

func appendQuoted(b []byte, s string, asJSON bool) []byte {
	b = append(b, '"')
	from := 0 // start of the text not copied yet
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
		case asJSON && (r == '\u2028' || r == '\u2029'): // JavaScript's line terminators
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
