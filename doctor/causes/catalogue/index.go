package catalogue

import (
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"cnictl/daemon/lazy"
)

// index finds patterns by their words. It is made once.
type index struct {
	grams       grams // signatures
	codes       []*pattern
	listed, own scope // signatures of the catalogue and the sentences; texts of our code
	weight      map[string]float64
}

// scope is a set of patterns that are compared with each other.
type scope struct {
	by    map[string][]*pattern // by word
	words []string
}

// term is a word of patterns while the index is made.
type term struct {
	word        string
	weight      float64
	listed, own []*pattern
}

func (x *index) scope(p *pattern) *scope {
	if p.own {
		return &x.own
	}
	return &x.listed
}

// source is a cause, a sentence or a symptom: what a pattern points to.
type source struct {
	entry   *Entry
	symptom *Symptom
}

// pattern is a signature prepared for comparison.
type pattern struct {
	Signature
	from  source
	code  bool // the text is a code
	exact bool // not compared by words
	own   bool // the text is from our code
	parts []string
	words []string
	names []string // without which a line means something else
	all   float64  // weight of the words
	rare  string   // the heaviest word
	ours  bool     // only in a line of the CNI's programs
}

// normal reports whether the text reports no fault.
func (p *pattern) normal() bool { return p.from.symptom != nil && p.from.symptom.Normal }

// subjects are names of which a signature that has one is about nothing else.
var subjects = []string{
	"aws node", "kube proxy", "nodeagent", "k8s cni", "policyendpoint", "eniconfig", "cninode", "securitygrouppolic", "pod eni",
	"vpc cni", "aws k8s agent", "aws cni", "egress cni",
	"trunk", "branch", "metadata", "ipv6", "prefix", "webhook", "iptables", "dial", "sts", "eni", "sandbox", "polic", "amazonaws",
	"insufficient", "statfs", "cilium", "calico", "flannel", "coredns",
}

var theIndex = sync.OnceValue(newIndex)

func newIndex() *index {
	const many = 1 << 12
	x := &index{weight: make(map[string]float64, many)}
	x.listed.by, x.own.by = make(map[string][]*pattern, many), make(map[string][]*pattern, many)
	var all []*pattern
	for entry := range All() {
		codes := []string{entry.Code}
		for _, code := range entry.Daemon {
			codes = append(codes, string(code))
		}
		all = append(all, patterns(source{entry: entry}, entry.Signatures, codes)...)
	}
	for i := range symptoms {
		var codes []string
		for _, code := range symptoms[i].Daemon {
			codes = append(codes, string(code))
		}
		all = append(all, patterns(source{symptom: &symptoms[i]}, symptoms[i].Signatures, codes)...)
	}
	for _, s := range sentences() {
		if s.foreign {
			continue
		}
		from := source{symptom: s}
		if len(s.Causes) == 1 && !s.Normal && !strings.HasPrefix(s.Causes[0], GroupObserved+"/") {
			from.entry, _ = Lookup(s.Causes[0])
		}
		all = append(all, patterns(from, s.Signatures, nil)...)
		for _, p := range patterns(from, s.exact, nil) {
			p.exact = true
			all = append(all, p)
		}
		for _, p := range patterns(from, s.ours, nil) {
			p.exact, p.ours = true, true
			all = append(all, p)
		}
	}
	for _, p := range all {
		if p.code {
			x.codes = append(x.codes, p)
		} else {
			x.grams.add(p)
		}
	}
	all = append(all, ownPatterns()...)
	terms := make(map[string]*term, many) // by word and by form
	remembered := func(w string) *term {
		t, known := terms[w]
		if !known {
			f := form(w)
			if t = terms[f]; t == nil && f != "" {
				t = &term{word: f}
				terms[f] = t
			}
			terms[w] = t
		}
		return t
	}
	spelled, text := make([][]*term, len(all)), make([]string, 0, 10*len(all))
	room := make([]*term, 0, 10*len(all)) // of which the words of all patterns take their part
	for i, p := range all {
		if p.code || p.exact {
			continue
		}
		plain := p.parts[0]
		if len(p.parts) > 1 {
			plain = strings.Join(p.parts, " ")
		}
		start := len(room)
		room = appendWords(room, plain, remembered)
		in := slices.Clip(room[start:])
		spelled[i] = in
		start = len(text)
		if !p.own {
			plain = strings.ReplaceAll(plain, "-", " ")
			for _, name := range subjects {
				if strings.Contains(plain, name) {
					p.names = append(p.names, name)
				}
			}
			if strings.Count(plain, ".") > 2 {
				p.names = append(p.names, addresses().FindAllString(plain, -1)...)
			}
			if code := errorCode(p.Text); code != "" {
				p.names = append(p.names, code)
			}
		}
		for i, t := range in {
			text = append(text, t.word)
			if slices.Contains(in[:i], t) {
				continue
			}
			of := &t.listed
			if p.own {
				of = &t.own
			}
			if *of == nil {
				x.scope(p).words = append(x.scope(p).words, t.word)
			}
			*of = append(*of, p)
		}
		p.words = slices.Clip(text[start:])
	}
	for _, t := range terms {
		if t == nil || t.weight > 0 {
			continue
		}
		t.weight = math.Log(1 + float64(len(all))/float64(len(t.listed)+len(t.own)))
		x.weight[t.word] = t.weight
		if len(t.listed) > 0 {
			x.listed.by[t.word] = t.listed
		}
		if len(t.own) > 0 {
			x.own.by[t.word] = t.own
		}
	}
	for i, p := range all {
		rare := 0.0
		for _, t := range spelled[i] {
			p.all += t.weight
			if t.weight > rare {
				p.rare, rare = t.word, t.weight
			}
		}
		if p.own && (len(p.words) < leastWords || p.all < leastSaid) {
			p.words, p.all = nil, math.Inf(1) // says too little
		}
	}
	return x
}

// addresses matches IPv4 addresses: half of one says nothing.
var addresses = lazy.Regexp(`\b\d+\.\d+\.\d+\.\d+\b`)

// errorCode returns the error code that a text begins with, in lower case: another code says something else
// in the same words.
func errorCode(text string) string {
	code, _, ok := strings.Cut(text, ": ")
	other := func(r rune) bool { return r != '.' && !unicode.IsLetter(r) }
	if !ok || code == "" || ordinary(code) || strings.IndexFunc(code, other) >= 0 || !unicode.IsUpper(rune(code[0])) {
		return ""
	}
	return strings.ToLower(code)
}

func patterns(from source, signatures []Signature, codes []string) []*pattern {
	out := make([]*pattern, 0, len(signatures)+len(codes))
	room := make([]pattern, len(signatures))
	for i, s := range signatures {
		p := &room[i]
		p.Signature, p.from = s, from
		p.parts = make([]string, 0, 1+strings.Count(s.Text, "…"))
		for part := range strings.SplitSeq(s.Text, "…") {
			p.parts = append(p.parts, normal(part))
		}
		out = append(out, p)
	}
	for _, code := range codes {
		out = append(out, &pattern{Signature: Signature{Text: code}, from: from, code: true, parts: []string{code}})
	}
	return out
}

// near returns the patterns that share much with a line, in the order of the index.
func (x *index) near(said []string, of *scope) []*pattern {
	got := map[*pattern]float64{}
	var out []*pattern
	for i, w := range said {
		if slices.Contains(said[:i], w) {
			continue
		}
		for _, p := range of.by[w] {
			if got[p] == 0 {
				out = append(out, p)
			}
			got[p] += x.weight[w]
		}
	}
	out = slices.DeleteFunc(out, func(p *pattern) bool { return got[p] < p.all*0.4 })
	if len(said) == 0 {
		return out
	}
	first, last := said[0], said[len(said)-1] // which may be cut
	for _, w := range of.words {
		if len(last) >= 6 && strings.HasPrefix(w, last) || len(first) >= 6 && strings.HasSuffix(w, first) {
			for _, p := range of.by[w] {
				if !slices.Contains(out, p) {
					out = append(out, p)
				}
			}
		}
	}
	return out
}
