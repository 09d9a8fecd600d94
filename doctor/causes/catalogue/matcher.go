package catalogue

// Matcher finds the lines of a log that contain a signature literally. It is made for logs of a
// gigabyte: it reads each byte of most lines once.
type Matcher struct{ grams grams }

// NewMatcher makes a matcher of all signatures of the catalogue.
func NewMatcher() *Matcher {
	m := &Matcher{}
	add := func(signatures []Signature) {
		for _, p := range patterns(source{}, signatures, nil) {
			m.grams.add(p)
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

// Match reports whether a line contains a signature.
func (m *Matcher) Match(line []byte) bool {
	text, plain := "", ""
	return !m.grams.each(line, func(p *pattern) bool {
		if plain == "" {
			text = string(line)
			plain = normal(text)
		}
		return !p.in(plain, text)
	})
}

// gram is how many consecutive letters are looked up.
const gram = 4

// grams finds patterns by letters that every line with the pattern has.
type grams struct {
	by    map[[gram]byte][]*pattern
	first [1 << 12]bool // grams by their hash
}

// letter returns a letter in lower case, or the underscore of setting names.
func letter(b byte) (byte, bool) {
	if b == '_' {
		return b, true
	}
	b |= 0x20
	return b, 'a' <= b && b <= 'z'
}

func (g *grams) add(p *pattern) {
	longest := ""
	for _, part := range p.parts {
		start := 0
		for i := range len(part) + 1 {
			if i < len(part) && (part[i] == '_' || 'a' <= part[i] && part[i] <= 'z') {
				continue
			}
			if i-start > len(longest) {
				longest = part[start:i]
			}
			start = i + 1
		}
	}
	if g.by == nil {
		g.by = map[[gram]byte][]*pattern{}
	}
	key := [gram]byte([]byte(longest)[len(longest)-gram:])
	g.by[key] = append(g.by[key], p)
	g.first[hash(key)] = true
}

// hash uses five bits of each letter.
func hash(key [gram]byte) (h int) {
	for _, b := range key {
		h = (h*31 + int(b&31)) & (1<<12 - 1)
	}
	return h
}

// each calls yield for patterns whose letters a line has, some of them more than once, until it
// returns false, and reports whether it never did.
func (g *grams) each(line []byte, yield func(*pattern) bool) bool {
	var key [gram]byte
	run := 0
	for _, b := range line {
		b, ok := letter(b)
		if !ok {
			run = 0
			continue
		}
		copy(key[:], key[1:])
		key[gram-1] = b
		if run++; run < gram || !g.first[hash(key)] {
			continue
		}
		for _, p := range g.by[key] {
			if !yield(p) {
				return false
			}
		}
	}
	return true
}
