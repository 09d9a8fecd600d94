package catalogue

import (
	"strings"
)

// Matcher finds the lines of a log that contain a signature literally. It is made for logs of a
// gigabyte: it reads each byte of most lines once.
type Matcher struct {
	by    map[[gram]byte][]pattern // by letters that every line with the signature has
	first [1 << 12]bool            // grams by their hash
}

// gram is how many consecutive letters are looked up.
const gram = 4

// letter returns a letter in lower case, or the underscore of setting names.
func letter(b byte) (byte, bool) {
	if b == '_' {
		return b, true
	}
	b |= 0x20
	return b, 'a' <= b && b <= 'z'
}

// NewMatcher makes a matcher of all signatures of the catalogue.
func NewMatcher() *Matcher {
	m := &Matcher{by: map[[gram]byte][]pattern{}}
	add := func(signatures []Signature) {
		for _, p := range patterns(signatures) {
			longest := ""
			for _, w := range strings.FieldsFunc(strings.Join(p.parts, " "), func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
				if len(w) > len(longest) {
					longest = w
				}
			}
			key := [gram]byte([]byte(longest)[len(longest)-gram:])
			m.by[key] = append(m.by[key], p)
			m.first[hash(key)] = true
		}
	}
	for e := range All() {
		add(e.Signatures)
	}
	for _, s := range symptoms {
		add(s.Signatures)
	}
	return m
}

// hash uses five bits of each letter.
func hash(key [gram]byte) (h int) {
	for _, b := range key {
		h = (h*31 + int(b&31)) & (1<<12 - 1)
	}
	return h
}

// Match reports whether a line contains a signature.
func (m *Matcher) Match(line []byte) bool {
	var key [gram]byte
	text, plain := "", ""
	run := 0
	for _, b := range line {
		b, ok := letter(b)
		if !ok {
			run = 0
			continue
		}
		copy(key[:], key[1:])
		key[gram-1] = b
		if run++; run < gram || !m.first[hash(key)] {
			continue
		}
		for _, p := range m.by[key] {
			if plain == "" {
				text = string(line)
				plain = normal(text)
			}
			if p.in(plain, text) {
				return true
			}
		}
	}
	return false
}
