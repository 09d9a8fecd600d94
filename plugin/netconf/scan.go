package netconf

import "unicode/utf8"

// scanner walks JSON text without building anything. It takes only what it is sure
// of; stuck means "ask encoding/json", not "wrong".
type scanner struct {
	in    []byte
	pos   int
	stuck bool
}

// maxDepth bounds the recursion of skip; encoding/json stops at 10,000.
const maxDepth = 64

func (s *scanner) giveUp() { s.stuck = true }

func (s *scanner) space() {
	for s.pos < len(s.in) {
		switch s.in[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// peek is the next byte that is not space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.stuck || s.pos == len(s.in) {
		return 0
	}
	return s.in[s.pos]
}

// eat takes the next byte if it is c.
func (s *scanner) eat(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) expect(c byte) {
	if !s.eat(c) {
		s.giveUp()
	}
}

// end requires that nothing follows.
func (s *scanner) end() {
	if s.space(); s.pos != len(s.in) {
		s.giveUp()
	}
}

// object calls fn for each key; fn must read the value.
func (s *scanner) object(fn func(key string)) {
	s.expect('{')
	if s.eat('}') {
		return
	}
	for !s.stuck {
		key := s.text()
		s.expect(':')
		if s.stuck {
			return
		}
		fn(key)
		if s.eat('}') {
			return
		}
		s.expect(',')
	}
}

// array calls fn for each element; fn must read it.
func (s *scanner) array(fn func()) {
	s.expect('[')
	if s.eat(']') {
		return
	}
	for !s.stuck {
		fn()
		if s.eat(']') {
			return
		}
		s.expect(',')
	}
}

// raw is the text of the next value.
func (s *scanner) raw() []byte {
	s.space()
	start := s.pos
	s.skip(0)
	if s.stuck {
		return nil
	}
	return s.in[start:s.pos]
}

// skip reads any value.
func (s *scanner) skip(depth int) {
	if depth > maxDepth {
		s.giveUp()
		return
	}
	switch c := s.peek(); {
	case c == '{':
		s.object(func(string) { s.skip(depth + 1) })
	case c == '[':
		s.array(func() { s.skip(depth + 1) })
	case c == '"':
		s.text()
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	default:
		s.number()
	}
}

func (s *scanner) literal(word string) {
	if len(s.in)-s.pos < len(word) || string(s.in[s.pos:s.pos+len(word)]) != word {
		s.giveUp()
		return
	}
	s.pos += len(word)
}

// number reads an integer of at most nine digits, the only numbers in a result or a
// configuration of ours, and returns it.
func (s *scanner) number() int {
	negative := s.eat('-')
	if s.stuck {
		return 0
	}
	start, n := s.pos, 0
	for s.pos < len(s.in) && '0' <= s.in[s.pos] && s.in[s.pos] <= '9' && s.pos-start < 9 {
		n = 10*n + int(s.in[s.pos]-'0')
		s.pos++
	}
	digits := s.pos - start
	leadingZero := digits > 1 && s.in[start] == '0'
	if digits == 0 || leadingZero || s.pos < len(s.in) && isNumber(s.in[s.pos]) {
		s.giveUp()
		return 0
	}
	if negative {
		return -n
	}
	return n
}

func isNumber(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E'
}

// text reads a string. Escapes by \u, and text that is not UTF-8, it leaves to
// encoding/json.
func (s *scanner) text() string {
	s.expect('"')
	if s.stuck {
		return ""
	}
	start := s.pos
	for s.pos < len(s.in) {
		switch c := s.in[s.pos]; {
		case c == '"':
			out := s.in[start:s.pos]
			s.pos++
			if !utf8.Valid(out) {
				s.giveUp()
			}
			return string(out)
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			s.giveUp()
			return ""
		}
		s.pos++
	}
	s.giveUp()
	return ""
}

// escaped goes on with a string that has escapes.
func (s *scanner) escaped(start int) string {
	out := append([]byte(nil), s.in[start:s.pos]...)
	for s.pos < len(s.in) {
		c := s.in[s.pos]
		s.pos++
		switch {
		case c == '"':
			if !utf8.Valid(out) {
				s.giveUp()
			}
			return string(out)
		case c == '\\':
			if s.pos == len(s.in) {
				s.giveUp()
				return ""
			}
			plain, ok := unescape(s.in[s.pos])
			if !ok {
				s.giveUp()
				return ""
			}
			s.pos++
			out = append(out, plain)
		case c < ' ':
			s.giveUp()
			return ""
		default:
			out = append(out, c)
		}
	}
	s.giveUp()
	return ""
}

func unescape(c byte) (byte, bool) {
	switch c {
	case '"', '\\', '/':
		return c, true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

// fields remembers which keys of an object came, and says of an unknown key whether
// encoding/json would match it to a known one by ignoring case.
type fields struct {
	known []string
	seen  uint32
}

// at is the position of key among the known ones, −1 for one to skip. The scanner
// gives up on a key that comes twice or differs by case.
func (f *fields) at(s *scanner, key string) int {
	for i, k := range f.known {
		if k == key {
			if f.seen&(1<<i) != 0 {
				s.giveUp()
			}
			f.seen |= 1 << i
			return i
		}
	}
	for _, k := range f.known {
		if mayFold(key, k) {
			s.giveUp()
		}
	}
	return -1
}

// mayFold is true when key equals known without regard to case; keys that are not
// ASCII may, by Unicode's rules, and count as such.
func mayFold(key, known string) bool {
	for i := range len(key) {
		if key[i] >= utf8.RuneSelf {
			return true
		}
	}
	if len(key) != len(known) {
		return false
	}
	for i := range len(key) {
		if lower(key[i]) != lower(known[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
