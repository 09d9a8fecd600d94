package introspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxDepth bounds the nesting of a document; /v1/enis has 9 levels.
const maxDepth = 16

// place is a path within a document, for people: 0.ENIs.eni-….
type place []string

func (p place) String() string {
	var b strings.Builder
	for i, step := range p {
		if i > 0 {
			b.WriteByte('.')
		}
		if len(step) > 60 {
			step = strings.ToValidUTF8(step[:60], "") + "…"
		}
		if quoted := fmt.Sprintf("%q", step); quoted != `"`+step+`"` || strings.ContainsRune(step, '.') {
			step = quoted
		}
		b.WriteString(step)
	}
	if b.Len() == 0 {
		return "the top"
	}
	return b.String()
}

// checkStructure refuses what encoding/json accepts silently: a repeated member (the last
// one wins, and it ignores letter case) and deep nesting. It returns the member names of
// the outermost object.
func checkStructure(body []byte) (outer []string, err error) {
	s := scanner{body: body, until: len(body), stack: make([]level, 0, maxDepth)}
	if err := s.scan(); err != nil {
		return nil, err
	}
	return s.outer, nil
}

// placeOf names the value that a decoder had just read, or begun, at an offset of a valid
// document.
func placeOf(body []byte, offset int64) place {
	if offset > 0 && (body[offset-1] == '{' || body[offset-1] == '[') {
		offset--
	}
	s := scanner{body: body, until: int(offset)}
	if err := s.scan(); err != nil {
		return nil
	}
	return s.place()
}

// scanner walks over a document that is known to be valid JSON.
type scanner struct {
	body  []byte
	until int // stop at this offset
	stack []level
	outer []string // names of the outermost object
}

// level is an open object or array.
type level struct {
	object bool
	inKey  bool // the next string is a member's name
	name   []byte
	index  int
	few    [][]byte        // names seen so far, while there are few
	many   map[string]bool // folded, when there are many
}

// fewNames is how many names are compared one by one.
const fewNames = 12

func (s *scanner) scan() error {
	for i := 0; i < s.until; i++ {
		switch s.body[i] {
		case '{', '[':
			if len(s.stack) == maxDepth {
				return fmt.Errorf("%s is nested more than %d levels deep", s.place(), maxDepth)
			}
			s.open(s.body[i] == '{')
		case '}', ']':
			s.stack = s.stack[:len(s.stack)-1]
		case ',':
			top := &s.stack[len(s.stack)-1]
			top.inKey = top.object
			top.index++
		case '"':
			end := s.endOfString(i)
			if top := len(s.stack) - 1; top >= 0 && s.stack[top].inKey {
				s.stack[top].inKey = false
				if !s.stack[top].add(s.body[i+1 : end]) {
					return fmt.Errorf("%s is given twice", s.place())
				}
				if top == 0 {
					s.outer = append(s.outer, string(s.stack[0].name))
				}
			}
			i = end
		}
	}
	return nil
}

// open enters an object or array. It reuses the name buffer of the last one at that depth.
func (s *scanner) open(object bool) {
	var few [][]byte
	if depth := len(s.stack); depth < cap(s.stack) {
		few = s.stack[:depth+1][depth].few[:0]
	}
	s.stack = append(s.stack, level{object: object, inKey: object, few: few})
}

// endOfString returns the offset of the quote that closes the string opened at i.
func (s *scanner) endOfString(i int) int {
	for i++; i < len(s.body)-1 && s.body[i] != '"'; i++ {
		if s.body[i] == '\\' {
			i++
		}
	}
	return i
}

// add records a member's name. It returns false if the object already has it.
func (l *level) add(raw []byte) bool {
	if bytes.IndexByte(raw, '\\') >= 0 {
		var name string
		if json.Unmarshal(fmt.Appendf(nil, `"%s"`, raw), &name) == nil {
			raw = []byte(name)
		}
	}
	l.name = raw
	if l.many == nil && len(l.few) < fewNames {
		for _, seen := range l.few {
			if bytes.EqualFold(seen, raw) {
				return false
			}
		}
		l.few = append(l.few, raw)
		return true
	}
	if l.many == nil {
		l.many = make(map[string]bool, 4*fewNames)
		for _, seen := range l.few {
			l.many[folded(seen)] = true
		}
	}
	name := folded(raw)
	if l.many[name] {
		return false
	}
	l.many[name] = true
	return true
}

// folded maps letters that encoding/json considers equal to the same letter: it reads the
// Kelvin sign as k and the long s as s.
func folded(name []byte) string {
	return strings.ReplaceAll(strings.ToLower(string(name)), "ſ", "s")
}

func (s *scanner) place() place {
	var p place
	for i := range s.stack {
		switch l := &s.stack[i]; {
		case !l.object:
			p = append(p, fmt.Sprintf("[%d]", l.index))
		case l.name != nil:
			p = append(p, string(l.name))
		}
	}
	return p
}

// unmarshal reads a document of checked structure. An error says where the problem is.
func unmarshal(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("at %s: unexpected JSON %.40s", placeOf(body, wrong.Offset), wrong.Value)
	}
	return err
}
