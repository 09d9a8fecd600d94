package catalogue

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// How a text matches a signature, surest first.
const (
	Whole    = "whole"    // the text contains the signature
	ByCode   = "code"     // the text contains a code of the catalogue or of our daemon
	Cut      = "cut"      // the text was cut within the signature
	Reworded = "reworded" // the text contains most of the signature's distinctive words
)

// Candidate is a cause or symptom that a text may come from. At least one of Entry and Symptom is
// set.
type Candidate struct {
	Entry     *Entry   // nil if the text has several causes, or none
	Symptom   *Symptom // what the text means by itself; nil if that is what the cause shows
	Signature Signature
	How       string
	Line      int // of the text, from 1; the first match

	score   float64
	pattern *pattern
	printer string // by where the signature is found, or the form of the line
}

// Check returns what to look at next.
func (c Candidate) Check() Check {
	if c.Symptom != nil {
		return c.Symptom.Check
	}
	return c.Entry.Check
}

// Title says what the text is about, in a few words.
func (c Candidate) Title() string {
	if c.Symptom != nil {
		return c.Symptom.Title
	}
	return c.Entry.Title
}

// Meaning says what the text means.
func (c Candidate) Meaning() string {
	if c.Symptom != nil {
		return c.Symptom.Meaning
	}
	return c.Entry.Shows
}

// Causes returns the codes of the causes that the text may have, likeliest first, or group/*.
func (c Candidate) Causes() []string {
	if c.Entry != nil {
		return []string{c.Entry.Code}
	}
	return c.Symptom.Causes
}

// Likeliest returns the likeliest cause, nil if there is none or a group of them.
func (c Candidate) Likeliest() *Entry {
	for _, code := range c.Causes() {
		if e, ok := Lookup(code); ok || strings.HasSuffix(code, "/*") {
			return e
		}
	}
	return nil
}

// Fixes returns what to do about the text, or else the fixes of the likeliest cause.
func (c Candidate) Fixes() []Fix {
	if c.Symptom != nil && len(c.Symptom.Fixes) > 0 {
		return c.Symptom.Fixes
	}
	e := c.Likeliest()
	if e == nil {
		return nil
	}
	if first, ok := fixNamed(c.Signature.Fix); ok {
		rest := slices.DeleteFunc(slices.Clone(e.Fixes), func(f Fix) bool { return f == first })
		return append([]Fix{first}, rest...)
	}
	return e.Fixes
}

// Fix returns what to do first, if the text tells: it has one cause, or a fix of its own.
func (c Candidate) Fix() (Fix, bool) {
	fixes := c.Fixes()
	if len(fixes) == 0 || c.Entry == nil && len(c.Symptom.Fixes) == 0 {
		return Fix{}, false
	}
	return fixes[0], true
}

// Component names the program that prints the text, "" if several do.
func (c Candidate) Component() string {
	if c.ofProgram() && c.printer == "" {
		return c.Symptom.Component
	}
	return c.printer
}

// ofProgram reports whether the match is a known message of one named program.
func (c Candidate) ofProgram() bool { return c.Symptom != nil && c.Symptom.Component != "" }

// Normal reports whether the text reports no fault.
func (c Candidate) Normal() bool { return c.Entry == nil && c.Symptom.Normal }

// Limits of the search.
const (
	mostText    = 1 << 20
	mostLine    = 16 << 10
	mostFuzzy   = 200 // lines compared word by word
	mostWords   = 200 // words of such a line
	mostWrapped = 20  // lines of a message that was wrapped
	mostNormal  = 5   // candidates that report no fault
)

// Explain finds what a text may come from: an error, an event's message, or log lines, JSON or
// not, cut at either end, wrapped or slightly reworded. The likeliest candidate comes first.
// Unknown text gives none.
func Explain(text string) []Candidate {
	text = text[:min(len(text), mostText)]
	e := &explainer{index: theIndex()}
	var lines []string
	var rest []int // lines without a complete signature
	for line := range strings.Lines(text) {
		line = line[:min(len(line), mostLine)]
		lines = append(lines, line)
		n := len(lines)
		if !e.complete(line, n) && strings.TrimSpace(line) != "" {
			rest = append(rest, n)
		}
		if n > 1 && line[0] == '\t' { // as the status of an SDK's error, which says what the line before means
			e.complete(lines[n-2]+line, n-1)
		}
	}
	wrapped := len(lines) > 1 && len(lines) <= mostWrapped
	if len(lines) > 1 && !e.specific() {
		e.complete(text, 1) // one message over several lines
		if wrapped && !e.specific() {
			e.complete(unwrapped(lines), 1) // broken within words
		}
	}
	for _, n := range rest[:min(len(rest), mostFuzzy)] {
		e.partly(lines[n-1], n, &e.index.listed)
	}
	if wrapped && !e.specific() {
		e.partly(text, 1, &e.index.listed)
	}
	for _, n := range rest[:min(len(rest), mostFuzzy)] {
		if !e.specific() || len(rest) > 1 && !slices.ContainsFunc(e.found, func(c Candidate) bool { return c.Line == n }) {
			e.partly(lines[n-1], n, &e.index.own)
		}
	}
	found := e.ranked()
	sure := func(c Candidate) bool { return c.How == Whole || c.How == ByCode }
	if _, ok := foreignIn(text); ok && len(lines) == 1 && !slices.ContainsFunc(found, sure) {
		return nil // similar words say less than another program's sentence
	}
	for i := range found {
		c := &found[i]
		if c.printer = callerOf(lines[c.Line-1]); c.printer == "" && !c.ofProgram() {
			c.printer = printerOf(c.Signature.Where, lines[c.Line-1])
		}
	}
	return found
}

// unwrapped joins lines that a terminal broke.
func unwrapped(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.Trim(line, "\r\n"))
	}
	return b.String()
}

type explainer struct {
	index *index
	found []Candidate
}

// specific reports whether anything was found but messages that wrap others.
func (e *explainer) specific() bool {
	return slices.ContainsFunc(e.found, func(c Candidate) bool { return c.Symptom == nil || !c.Symptom.wraps })
}

// add keeps the best match of each cause and symptom.
func (e *explainer) add(p *pattern, c Candidate) {
	c.Entry, c.Symptom, c.Signature, c.pattern = p.from.entry, p.from.symptom, p.Signature, p
	for i, old := range e.found {
		if c.Entry != nil && old.Entry == c.Entry || c.Entry == nil && old.Entry == nil && old.Symptom == c.Symptom {
			if c.score > old.score {
				c.Line = min(c.Line, old.Line)
				e.found[i] = c
			}
			return
		}
	}
	e.found = append(e.found, c)
}

// complete finds signatures and codes that a text contains unchanged. It reports whether there is
// more than a message that wraps others.
func (e *explainer) complete(text string, line int) bool {
	plain, any := normal(text), false
	ofOurs := sync.OnceValue(func() bool {
		printer, _ := formOf(text)
		return slices.Contains(ours, printer.Component)
	})
	e.index.grams.each([]byte(text), func(p *pattern) bool {
		if p.in(plain, text) && (!p.ours || ofOurs()) {
			any = any || p.from.symptom == nil || !p.from.symptom.wraps
			e.add(p, Candidate{How: Whole, Line: line, score: 2000 + float64(min(len(p.Text), 150)) - p.doubt(200, 400)})
		}
		return true
	})
	for _, p := range e.index.codes {
		if hasCode(plain, p.Text) {
			any = true
			e.add(p, Candidate{How: ByCode, Line: line, score: 1900 - p.doubt(0, 400)})
		}
	}
	return any
}

// doubt lowers the score of a signature that needs more to mean its cause, and of a symptom.
func (p *pattern) doubt(noted, symptom float64) (out float64) {
	switch {
	case p.Note != "":
		out = noted
	case p.from.entry != nil:
		return 0
	}
	if p.from.entry == nil {
		out += symptom
	}
	return out
}

// in reports whether a text has all parts of the signature. A word that is also plain English
// must match in case too.
func (p *pattern) in(plain, text string) bool {
	if ordinary(p.Text) {
		return hasWord(text, p.Text) && (!slices.Equal(p.Where, inEvents) || asReason(text, p.Text))
	}
	for _, part := range p.parts {
		if !strings.Contains(plain, part) {
			return false
		}
	}
	return true
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

// Least that must be left of a signature.
const (
	leastCut    = 12   // characters of a cut one
	leastPart   = 0.6  // share of them
	leastWords  = 3    // words of a reworded one
	leastWeight = 0.72 // share of their weight, in order
	leastAny    = 0.9  // in any order
	leastOwn    = 0.85 // of a text from our code
	leastTotal  = 11.0 // weight: two rare words, or three that are less so
	leastAll    = 9.0  // weight of a short one, all of which is there
	leastSaid   = 18.0 // weight of a text from our code that is known by its words
	leastLoose  = 32.0 // weight of one that is anywhere in a line
	leastShare  = 0.4  // of a line that a lighter one is
	leastLong   = 24.0 // weight at which a smaller share of a long signature is enough
	leastQuoted = 0.85 // share of a cut line that is in the signature
	nearBest    = 0.8  // of the best match, by weight and share; weaker ones are left out
)

// partly finds signatures that a line contains in part.
func (e *explainer) partly(line string, n int, of *scope) {
	plain := strings.TrimSpace(uncut(normal(peel(line))))
	said := words(plain)
	said = said[:min(len(said), mostWords)]
	type match struct {
		p       *pattern
		how     string
		quality float64
	}
	var all []match
	best := 0.0
	for _, p := range e.index.near(said, of) {
		how, part, weight := e.index.compare(plain, said, p)
		if how == "" {
			continue
		}
		m := match{p, how, weight * part}
		best = max(best, m.quality)
		all = append(all, m)
	}
	for _, m := range all {
		if m.quality >= best*nearBest {
			score := 500 + min(m.quality*5, 450) - m.p.doubt(20, 20)
			if m.how == Cut {
				score += 10
			}
			e.add(m.p, Candidate{How: m.how, Line: n, score: score})
		}
	}
}

// compare returns how a line matches a signature, which share of it the line has, and the weight
// of that share; "" for too little.
func (x *index) compare(plain string, said []string, p *pattern) (how string, part, weight float64) {
	if p.own && p.in(plain, plain) && (p.all >= leastLoose || p.all >= x.total(said)*leastShare) {
		return Whole, 1, p.all
	}
	fault := slices.ContainsFunc(p.words, fails)
	if said := slices.ContainsFunc(said, fails); fault && !said || said && !fault && p.normal() && !p.own {
		return "", 0, 0 // "attached" and "failed to attach" are opposites
	}
	if !p.own {
		if part := cutPart(plain, p); part > 0 {
			return Cut, part, p.all
		}
	}
	if len(p.words) < leastWords || !p.about(plain, said) {
		return "", 0, 0
	}
	common := 0.0
	for _, w := range p.words {
		if slices.Contains(said, w) {
			common += x.weight[w]
		}
	}
	inOrder, n := 0.0, 0
	for at, room := 0, 2*len(p.words)+2; at == 0 || at < len(said); at++ {
		if at > 0 && !slices.Contains(p.words, said[at]) {
			continue
		}
		if weight, count := x.inOrder(said[at:min(len(said), at+room)], p.words); weight > inOrder {
			inOrder, n = weight, count
		}
	}
	if len(p.parts) > 1 && !slices.Contains(said, p.rare) {
		return "", 0, 0
	}
	part = inOrder / p.all
	least := leastWeight
	if p.own {
		least = leastOwn
	}
	switch {
	case n == len(p.words) && inOrder >= leastAll && !p.own:
		return Reworded, 1, inOrder
	case n < leastWords || inOrder < leastTotal:
	case part >= least, part >= leastPart && inOrder >= leastLong && !p.own:
		return Reworded, part, inOrder
	case part >= 0.4 && n > leastWords && inOrder >= 1.5*leastTotal && inOrder >= leastQuoted*x.total(said):
		return Cut, part, inOrder
	}
	if common >= p.all*leastAny && common >= leastAll && len(said) <= 3*len(p.words) && !p.own {
		return Reworded, leastWeight, common
	}
	return "", 0, 0
}

// about reports whether a line can be about what the signature is about: it has the names in it,
// and something of each part.
func (p *pattern) about(plain string, said []string) bool {
	plain = strings.ReplaceAll(plain, "-", " ")
	for _, name := range p.names {
		if !strings.Contains(plain, name) && !(name == "eni" && strings.Contains(plain, "interface")) {
			return false
		}
	}
	for _, w := range p.words { // ports, addresses, ec2
		if strings.ContainsAny(w, "0123456789") && !slices.Contains(said, w) {
			return false
		}
	}
	if p.own || len(p.parts) == 1 {
		return true
	}
	for _, part := range p.parts {
		if in := words(part); len(in) > 0 && !slices.ContainsFunc(in, func(w string) bool { return slices.Contains(said, w) }) {
			return false
		}
	}
	return true
}

// total returns the weight of a line's words. Those that no signature has count like rare ones,
// except for names and numbers.
func (x *index) total(said []string) (sum float64) {
	for _, w := range said {
		switch weight, known := x.weight[w]; {
		case known:
			sum += weight
		case !strings.ContainsAny(w, "0123456789"):
			sum += 3
		}
	}
	return sum
}

// cutPart returns how much of a signature a text begins or ends with, or consists of; 0 for too
// little.
func cutPart(text string, p *pattern) float64 {
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

// inOrder returns the weight of the heaviest sequence of words in both, and their number.
func (x *index) inOrder(a, b []string) (weight float64, words int) {
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
				row[j+1] = sequence{diagonal.weight + x.weight[v], diagonal.words + 1}
			case row[j].weight > above.weight:
				row[j+1] = row[j]
			}
			diagonal = above
		}
	}
	return row[len(b)].weight, row[len(b)].words
}

// ranked returns the candidates, likeliest first, without those that another one makes needless.
func (e *explainer) ranked() []Candidate {
	out := slices.DeleteFunc(slices.Clone(e.found), func(c Candidate) bool {
		return slices.ContainsFunc(e.found, func(d Candidate) bool { return d.within(c) || d.says(c) })
	})
	specific := e.specific()
	fault := slices.ContainsFunc(out, func(c Candidate) bool { return !c.Normal() && (!specific || c.Symptom == nil || !c.Symptom.wraps) })
	out = slices.DeleteFunc(out, func(c Candidate) bool {
		return specific && c.Symptom != nil && c.Symptom.wraps || fault && c.Normal()
	})
	slices.SortStableFunc(out, func(a, b Candidate) int { return cmp.Compare(b.score, a.score) })
	if len(out) > mostNormal && out[0].Normal() {
		out = out[:mostNormal]
	}
	return out
}

// says reports whether c is a cause that other only guesses at, of the same line.
func (c Candidate) says(other Candidate) bool {
	return other.Entry == nil && other.ofProgram() && c.Entry != nil && c.How == Whole && c.Signature.Note == "" &&
		c.Line == other.Line && slices.Contains(other.Causes(), c.Entry.Code)
}

// within reports whether other was found only because its signature is part of c's, which is longer
// and so the one that is meant.
func (c Candidate) within(other Candidate) bool {
	if other.How != Whole || c.How != Whole || other.Line != c.Line || !c.ofProgram() || c.pattern == other.pattern {
		return false
	}
	if other.Entry != nil && slices.Contains(c.Causes(), other.Entry.Code) {
		return false
	}
	whole := strings.Join(c.pattern.parts, " ")
	for _, part := range other.pattern.parts {
		if !strings.Contains(whole, part) {
			return false
		}
	}
	return len(whole) > len(other.Signature.Text)
}
