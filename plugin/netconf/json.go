package netconf

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Raw is JSON text that is kept unchanged.
type Raw []byte

// MarshalJSON implements json.Marshaler.
func (r Raw) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Raw) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}

// cursor walks JSON text that has passed checkSyntax, so it checks nothing again.
type cursor struct {
	in  []byte
	pos int
}

// peek returns the first byte of the next value or the next punctuation, 0 at the end.
func (c *cursor) peek() byte {
	for c.pos < len(c.in) && isSpace(c.in[c.pos]) {
		c.pos++
	}
	if c.pos == len(c.in) {
		return 0
	}
	return c.in[c.pos]
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\n' }

// kind names the next value as encoding/json's errors do.
func (c *cursor) kind() string {
	switch c.peek() {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}

// object calls fn for each key; fn must read the value.
func (c *cursor) object(fn func(key string)) {
	for c.next('{', '}') {
		key := c.text()
		c.peek()
		c.pos++ // the colon
		fn(key)
	}
}

// array calls fn for each element; fn must read it.
func (c *cursor) array(fn func()) {
	for c.next('[', ']') {
		fn()
	}
}

// next moves to the next member of an object or array; false past the last.
func (c *cursor) next(open, closing byte) bool {
	switch c.peek() {
	case open: // the opening bracket: a nested value would follow a comma
		c.pos++
		if c.peek() != closing {
			return true
		}
	case ',':
		c.pos++
		return true
	}
	c.pos++
	return false
}

// raw reads any value and returns its text.
func (c *cursor) raw() []byte {
	c.peek()
	start, depth := c.pos, 0
	for c.pos < len(c.in) {
		switch c.in[c.pos] {
		case '"':
			c.skipText()
		case '{', '[':
			depth++
			c.pos++
		case '}', ']':
			if depth == 0 {
				return c.in[start:c.pos]
			}
			depth--
			c.pos++
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return c.in[start:c.pos]
			}
			c.pos++
			continue
		default:
			c.pos++
			continue
		}
		if depth == 0 {
			return c.in[start:c.pos]
		}
	}
	return c.in[start:c.pos]
}

// skipText moves past a string.
func (c *cursor) skipText() {
	for c.pos++; c.in[c.pos] != '"'; c.pos++ {
		if c.in[c.pos] == '\\' {
			c.pos++
		}
	}
	c.pos++
}

// text reads a string.
func (c *cursor) text() string {
	c.peek()
	start := c.pos + 1
	c.skipText()
	body := c.in[start : c.pos-1]
	plain := true
	for _, b := range body {
		plain = plain && b != '\\' && b < utf8.RuneSelf
	}
	if plain {
		return string(body)
	}
	return unquote(body)
}

// unquote resolves escapes; invalid UTF-8 becomes U+FFFD.
func unquote(body []byte) string {
	out := make([]byte, 0, len(body))
	for len(body) > 0 {
		if body[0] != '\\' {
			r, size := utf8.DecodeRune(body)
			out = utf8.AppendRune(out, r)
			body = body[size:]
			continue
		}
		if body[1] != 'u' {
			out = append(out, unescape(body[1]))
			body = body[2:]
			continue
		}
		r, size := hexRune(body), 6
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if len(body) >= 12 && body[6] == '\\' && body[7] == 'u' {
				low = hexRune(body[6:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				size = 12
			}
		}
		out = utf8.AppendRune(out, r)
		body = body[size:]
	}
	return string(out)
}

// hexRune reads "\uXXXX".
func hexRune(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[2:6]), 16, 32)
	return rune(n)
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// sameKey reports whether encoding/json matches key to known, a lower-case or camel-case
// ASCII name. encoding/json ignores case by Unicode's simple folding, under which the long
// s and the Kelvin sign are letters s and k too.
func sameKey(key, known string) bool {
	i := 0
	for _, r := range key {
		switch {
		case r == 'ſ':
			r = 's'
		case r == '\u212a':
			r = 'k'
		case r >= utf8.RuneSelf:
			return false
		}
		if i == len(known) || lower(byte(r)) != lower(known[i]) {
			return false
		}
		i++
	}
	return i == len(known)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
