package vpc

import (
	"strconv"
	"unicode/utf8"
)

// appendJSONString quotes s as encoding/json does, HTML escapes included.
func appendJSONString(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				b = append(b, `\ufffd`...)
			case r == '\u2028' || r == '\u2029':
				b = append(b, `\u202`...)
				b = append(b, digits[r&15])
			default:
				b = append(b, s[i:i+size]...)
			}
			i += size
			continue
		}
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '<', '>', '&':
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			if c < ' ' {
				b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
			} else {
				b = append(b, c)
			}
		}
		i++
	}
	return append(b, '"')
}

// object writes an indented JSON object, four spaces a level, as the CNI library
// prints results.
type object struct {
	b     []byte
	depth int
	some  bool // the object or list being written has a member
}

func (o *object) newline() {
	if o.some {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '\n')
	for range o.depth {
		o.b = append(o.b, "    "...)
	}
	o.some = true
}

func (o *object) open(bracket byte) {
	o.b = append(o.b, bracket)
	o.depth++
	o.some = false
}

func (o *object) close(bracket byte) {
	o.depth--
	if o.some {
		o.some = false
		o.newline()
	}
	o.b = append(o.b, bracket)
	o.some = true
}

func (o *object) key(k string) {
	o.newline()
	o.b = appendJSONString(o.b, k)
	o.b = append(o.b, ": "...)
}

func (o *object) text(k, v string) {
	o.key(k)
	o.b = appendJSONString(o.b, v)
}

// textIf leaves out an empty text.
func (o *object) textIf(k, v string) {
	if v != "" {
		o.text(k, v)
	}
}

func (o *object) number(k string, v int) {
	o.key(k)
	o.b = strconv.AppendInt(o.b, int64(v), 10)
}

// JSON is the error as printed on standard output.
func (e *cniError) JSON() []byte {
	var o object
	o.open('{')
	o.number("code", e.code)
	o.text("msg", e.msg)
	o.textIf("details", e.details)
	o.close('}')
	return o.b
}
