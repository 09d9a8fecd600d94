package netconf

import (
	"errors"
	"strconv"
)

// maxDepth is encoding/json's limit on nesting.
const maxDepth = 10000

var (
	errEnd   = errors.New("unexpected end of JSON input")
	errDepth = errors.New("exceeded max depth")
)

// checkSyntax reports the first mistake in the text.
func checkSyntax(in []byte) error {
	s := &syntax{cursor: cursor{in: in}}
	s.value()
	if s.err == nil && s.peek() != 0 || s.err == nil && s.pos < len(in) {
		s.bad()
	}
	return s.err
}

type syntax struct {
	cursor
	depth int
	err   error // the first
}

// bad records a mistake at the current byte.
func (s *syntax) bad() {
	switch {
	case s.err != nil:
	case s.pos == len(s.in):
		s.err = errEnd
	default:
		s.err = errors.New("invalid character " + strconv.QuoteRune(rune(s.in[s.pos])) + offset(s.pos))
	}
}

// offset is the text for the position of a mistake.
func offset(pos int) string { return " at offset " + strconv.Itoa(pos) }

// expect consumes one byte.
func (s *syntax) expect(c byte) bool {
	if !s.take(c) {
		s.bad()
		return false
	}
	return true
}

func (s *syntax) value() {
	switch c := s.peek(); {
	case c == '{':
		s.nested(s.members)
	case c == '[':
		s.nested(s.elements)
	case c == '"':
		s.quoted()
	case c == '-' || '0' <= c && c <= '9':
		s.number()
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	default:
		s.bad()
	}
}

func (s *syntax) nested(inside func()) {
	s.pos++
	if s.depth++; s.depth > maxDepth {
		s.err = errDepth
		return
	}
	inside()
	s.depth--
}

func (s *syntax) members() {
	if s.peek() == '}' {
		s.pos++
		return
	}
	for s.err == nil {
		if s.peek() != '"' {
			s.bad()
			return
		}
		s.quoted()
		s.peek()
		if !s.expect(':') {
			return
		}
		s.value()
		if s.err != nil {
			return
		}
		if s.peek() == '}' {
			s.pos++
			return
		}
		s.expect(',')
	}
}

func (s *syntax) elements() {
	if s.peek() == ']' {
		s.pos++
		return
	}
	for s.err == nil {
		s.value()
		if s.err != nil {
			return
		}
		if s.peek() == ']' {
			s.pos++
			return
		}
		s.expect(',')
	}
}

func (s *syntax) quoted() {
	for s.pos++; s.pos < len(s.in); s.pos++ {
		switch c := s.in[s.pos]; {
		case c == '"':
			s.pos++
			return
		case c == '\\':
			s.pos++
			if !s.escape() {
				return
			}
		case c < ' ':
			s.bad()
			return
		}
	}
	s.bad()
}

// escape leaves the position on the last byte of the escape.
func (s *syntax) escape() bool {
	if s.pos == len(s.in) {
		s.bad()
		return false
	}
	switch s.in[s.pos] {
	case 'b', 'f', 'n', 'r', 't', '\\', '/', '"':
		return true
	case 'u':
		for range 4 {
			if s.pos++; s.pos == len(s.in) || !isHex(s.in[s.pos]) {
				s.bad()
				return false
			}
		}
		return true
	}
	s.bad()
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (s *syntax) literal(word string) {
	for i := range len(word) {
		if !s.expect(word[i]) {
			return
		}
	}
}

func (s *syntax) number() {
	s.take('-')
	if !s.take('0') && !s.digits() {
		s.bad()
		return
	}
	if s.take('.') && !s.digits() {
		s.bad()
		return
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			s.bad()
		}
	}
}

func (s *syntax) take(c byte) bool {
	if s.pos < len(s.in) && s.in[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *syntax) digits() bool {
	start := s.pos
	for s.pos < len(s.in) && '0' <= s.in[s.pos] && s.in[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}
