package catalogue

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How a text matches a signature, surest first.
const (
	Whole    = "whole"    // the text contains the signature
	ByCode   = "code"     // the text contains a code of the catalogue or of our daemon
	Cut      = "cut"      // the text was cut within the signature
	Reworded = "reworded" // the text contains most of the signature's distinctive words
)

// Candidate is a cause or symptom that a text may come from.
type Candidate struct {
	Entry     *Entry   // nil for a symptom
	Symptom   *Symptom // nil for a cause
	Signature Signature
	How       string
	Line      int // of the text, from 1; the first match

	score int
}

// Check returns what to look at next.
func (c Candidate) Check() Check {
	if c.Entry != nil {
		return c.Entry.Check
	}
	return c.Symptom.Check
}

// Limits of the search.
const (
	mostText  = 1 << 20
	mostLine  = 16 << 10
	mostFuzzy = 200 // lines compared word by word
	mostWords = 200 // words of such a line
)

// Explain finds what a text may come from: an error, an event's message, or log lines, JSON or
// not, cut at either end or slightly reworded. The likeliest candidate comes first. Unknown text
// gives none.
func Explain(text string) []Candidate {
	text = text[:min(len(text), mostText)]
	e := newExplainer()
	var lines []string
	var rest []int // lines without a complete signature
	for line := range strings.Lines(text) {
		line = line[:min(len(line), mostLine)]
		lines = append(lines, line)
		if n := len(lines); !e.complete(line, n) && strings.TrimSpace(line) != "" {
			rest = append(rest, n)
		}
	}
	if len(e.found) == 0 && len(lines) > 1 {
		e.complete(text, 1) // one message over several lines
	}
	for _, n := range rest[:min(len(rest), mostFuzzy)] {
		e.partly(lines[n-1], n)
	}
	slices.SortStableFunc(e.found, func(a, b Candidate) int { return cmp.Compare(b.score, a.score) })
	return e.found
}

// source is an entry or a symptom.
type source struct {
	entry      *Entry
	symptom    *Symptom
	signatures []pattern
	codes      []string
}

// pattern is a signature prepared for comparison.
type pattern struct {
	Signature
	parts []string
	words []string
}

type explainer struct {
	sources []source
	weight  map[string]float64 // of words: rare ones weigh more
	found   []Candidate
}

func newExplainer() *explainer {
	e := &explainer{weight: map[string]float64{}}
	for entry := range All() {
		s := source{entry: entry, signatures: patterns(entry.Signatures), codes: []string{entry.Code}}
		for _, code := range entry.Daemon {
			s.codes = append(s.codes, string(code))
		}
		e.sources = append(e.sources, s)
	}
	for i := range symptoms {
		s := source{symptom: &symptoms[i], signatures: patterns(symptoms[i].Signatures)}
		for _, code := range symptoms[i].Daemon {
			s.codes = append(s.codes, string(code))
		}
		e.sources = append(e.sources, s)
	}
	total := 0.0
	for _, s := range e.sources {
		for _, p := range s.signatures {
			total++
			for _, w := range slices.Compact(slices.Sorted(slices.Values(p.words))) {
				e.weight[w]++
			}
		}
	}
	for w, n := range e.weight {
		e.weight[w] = math.Log(1 + total/n)
	}
	return e
}

func patterns(signatures []Signature) []pattern {
	out := make([]pattern, len(signatures))
	for i, s := range signatures {
		p := pattern{Signature: s}
		for _, part := range strings.Split(s.Text, "…") {
			p.parts = append(p.parts, normal(part))
		}
		p.words = words(normal(s.Text))
		out[i] = p
	}
	return out
}

// add keeps the best match of each entry and symptom.
func (e *explainer) add(s source, c Candidate) {
	c.Entry, c.Symptom = s.entry, s.symptom
	if c.Signature.Note != "" {
		c.score -= 200
	}
	if s.symptom != nil {
		c.score -= 400
	}
	for i, old := range e.found {
		if old.Entry == c.Entry && old.Symptom == c.Symptom {
			if c.score > old.score {
				e.found[i] = c
			}
			return
		}
	}
	e.found = append(e.found, c)
}

// complete finds signatures and codes that a text contains unchanged.
func (e *explainer) complete(text string, line int) bool {
	plain := normal(text)
	any := false
	for _, s := range e.sources {
		for _, p := range s.signatures {
			if p.in(plain, text) {
				any = true
				e.add(s, Candidate{Signature: p.Signature, How: Whole, Line: line, score: 2000 + min(len(p.Text), 150)})
			}
		}
		for _, code := range s.codes {
			if hasCode(plain, code) {
				any = true
				e.add(s, Candidate{Signature: Signature{Text: code}, How: ByCode, Line: line, score: 1900})
			}
		}
	}
	return any
}

// in reports whether a text has all parts of the signature. A word that is also plain English
// must match in case too.
func (p pattern) in(plain, text string) bool {
	if ordinary(p.Text) {
		return hasWord(text, p.Text)
	}
	for _, part := range p.parts {
		if !strings.Contains(plain, part) {
			return false
		}
	}
	return true
}

// ordinary reports whether text is a single word without inner capitals: Throttling, Unsupported.
func ordinary(text string) bool {
	return strings.IndexFunc(text[1:], func(r rune) bool { return !unicode.IsLower(r) }) < 0
}

// hasCode finds a code. A code that is also plain English counts only as the value of a cause.
func hasCode(plain, code string) bool {
	if strings.ContainsAny(code, "-/") && code != "not-supported" {
		return hasWord(plain, code)
	}
	for _, before := range []string{"cause:", "cause: ", "cause="} {
		if hasWord(plain, before+code) {
			return true
		}
	}
	return plain == code
}

// hasWord reports whether text contains the complete word.
func hasWord(text, word string) bool {
	for rest := text; ; {
		at := strings.Index(rest, word)
		if at < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(rest[:at])
		after, _ := utf8.DecodeRuneInString(rest[at+len(word):])
		if !joins(before) && !joins(after) {
			return true
		}
		rest = rest[at+len(word):]
	}
}

func joins(r rune) bool {
	return r == '-' || r == '/' || r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// partly finds signatures that a line contains in part.
func (e *explainer) partly(line string, n int) {
	plain := strings.TrimSpace(uncut(normal(line)))
	said := words(plain)
	said = said[:min(len(said), mostWords)]
	for _, s := range e.sources {
		for _, p := range s.signatures {
			if part := cutPart(plain, p); part > 0 {
				e.add(s, Candidate{Signature: p.Signature, How: Cut, Line: n, score: 1000 + int(part*300)})
			} else if part := e.reworded(said, p.words); part > 0 {
				e.add(s, Candidate{Signature: p.Signature, How: Reworded, Line: n, score: 500 + int(part*300)})
			}
		}
	}
}

// uncut removes truncation marks.
func uncut(text string) string {
	for {
		was := text
		for _, mark := range []string{"…", "...", "<cut>", "[truncated]", "(truncated)"} {
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(text, mark), mark))
		}
		if text == was {
			return text
		}
	}
}

// Least length that must be left of a cut signature, and least share of it.
const (
	leastCut  = 12
	leastPart = 0.6
)

// cutPart returns how much of a signature a text begins or ends with, or consists of; 0 for too
// little.
func cutPart(text string, p pattern) float64 {
	if len(p.parts) > 1 || ordinary(p.Text) {
		return 0
	}
	whole := p.parts[0]
	longest := 0
	if strings.Contains(whole, text) {
		longest = len(text)
	}
	for n := min(len(whole), len(text)); n > longest; n-- {
		before, begun := strings.CutSuffix(text, whole[:n])
		after, ended := strings.CutPrefix(text, whole[len(whole)-n:])
		last, _ := utf8.DecodeLastRuneInString(before)
		first, _ := utf8.DecodeRuneInString(after)
		if begun && !joins(last) || ended && !joins(first) {
			longest = n
		}
	}
	part := float64(longest) / float64(len(whole))
	if longest < leastCut || part < leastPart {
		return 0
	}
	return part
}

// Least that must be left of a reworded signature.
const (
	leastWords  = 3
	leastWeight = 0.72 // in order
	leastAny    = 0.9  // in any order
)

// failing are words of failure. If a signature has one, the text must have one too: messages
// about success share the other words.
var failing = []string{"fail", "failed", "unable", "error", "no", "invalid", "unknown", "dial", "missing", "cannot", "timeout", "already", "skipping", "refused"}

func fails(w string) bool { return slices.Contains(failing, w) }

// reworded returns how much of a signature, by the weight of its words, a text has close together
// and in order, or nearly all of it in any order; 0 for too little.
func (e *explainer) reworded(said, signature []string) float64 {
	if len(signature) < leastWords || slices.ContainsFunc(signature, fails) && !slices.ContainsFunc(said, fails) {
		return 0
	}
	all, common := 0.0, 0.0
	for _, w := range signature {
		all += e.weight[w]
		if slices.Contains(said, w) {
			common += e.weight[w]
		}
	}
	if common < all*leastWeight {
		return 0
	}
	best, room := 0.0, len(signature)*2
	for at := 0; at == 0 || at+room <= len(said); at++ {
		best = max(best, e.inOrder(said[at:min(len(said), at+room)], signature))
	}
	switch {
	case best >= all*leastWeight:
		return best / all
	case common >= all*leastAny && len(said) <= 2*room:
		return leastWeight
	}
	return 0
}

// inOrder returns the weight of the heaviest sequence of words in both, 0 for fewer than
// leastWords.
func (e *explainer) inOrder(a, b []string) float64 {
	type sequence struct {
		weight float64
		words  int
	}
	row := make([]sequence, len(b)+1)
	for _, w := range a {
		diagonal := sequence{}
		for j, v := range b {
			above := row[j+1]
			switch {
			case w == v:
				row[j+1] = sequence{diagonal.weight + e.weight[v], diagonal.words + 1}
			case row[j].weight > above.weight:
				row[j+1] = row[j]
			}
			diagonal = above
		}
	}
	if row[len(b)].words < leastWords {
		return 0
	}
	return row[len(b)].weight
}

// normal removes what loggers, shells and people change: letter case, quotes, escapes, white
// space.
func normal(text string) string {
	text = unescape.Replace(text)
	return strings.Join(strings.Fields(strings.ToLower(text)), " ")
}

var unescape = strings.NewReplacer(
	`\n`, " ", `\t`, " ", `\r`, " ", `\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\u0027`, "", `\u0022`, "",
	`\`, "", `"`, "", `'`, "", "`", "", "“", "", "”", "", "‘", "", "’", "",
)

// words returns the meaningful words of a normal text, without plural endings.
func words(plain string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(plain, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		switch w {
		case "a", "an", "the", "to", "of", "is", "be", "for", "in", "on", "with", "and", "or", "as", "at", "from", "by", "was", "could", "not", "which", "that", "uses", "use":
			continue
		}
		if len(w) > 3 {
			w = strings.TrimSuffix(strings.TrimSuffix(w, "s"), "e")
		}
		out = append(out, w)
	}
	return out
}
