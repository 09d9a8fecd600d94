package catalogue

import (
	"math"
	"slices"
	"strings"
	"sync"
)

// index finds patterns by their words. It is made once.
type index struct {
	grams     grams // signatures
	codes     []*pattern
	told, own scope // signatures of the catalogue and the sentences; texts of our code
	weight    map[string]float64
}

// scope is a set of patterns that are compared with each other.
type scope struct {
	by    map[string][]*pattern // by word
	words []string
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
}

// subjects are names of which a signature that has one is about nothing else.
var subjects = []string{
	"aws node", "kube proxy", "nodeagent", "k8s cni", "policyendpoint", "eniconfig", "cninode", "securitygrouppolic", "pod eni",
	"vpc cni", "aws k8s agent", "aws cni", "egress cni",
	"trunk", "branch", "metadata", "ipv6", "prefix", "webhook", "iptables", "dial", "sts", "eni", "sandbox", "polic", "amazonaws",
}

var theIndex = sync.OnceValue(newIndex)

func newIndex() *index {
	const many = 1 << 12
	x := &index{weight: make(map[string]float64, many)}
	x.told.by, x.own.by = make(map[string][]*pattern, many), make(map[string][]*pattern, many)
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
		from := source{symptom: s}
		if len(s.Causes) == 1 && !s.Normal {
			from.entry, _ = Lookup(s.Causes[0])
		}
		all = append(all, patterns(from, s.Signatures, nil)...)
		for _, p := range patterns(from, s.exact, nil) {
			p.exact = true
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
	for _, p := range all {
		if p.code || p.exact {
			continue
		}
		plain := strings.Join(p.parts, " ")
		p.words = words(plain)
		if !p.own {
			plain = strings.ReplaceAll(plain, "-", " ")
			for _, name := range subjects {
				if strings.Contains(plain, name) {
					p.names = append(p.names, name)
				}
			}
		}
		of := &x.told
		if p.own {
			of = &x.own
		}
		for i, w := range p.words {
			if slices.Contains(p.words[:i], w) {
				continue
			}
			if of.by[w] == nil {
				of.words = append(of.words, w)
			}
			of.by[w] = append(of.by[w], p)
			x.weight[w]++
		}
	}
	for w, n := range x.weight {
		x.weight[w] = math.Log(1 + float64(len(all))/n)
	}
	for _, p := range all {
		for _, w := range p.words {
			p.all += x.weight[w]
		}
		if p.own && (len(p.words) < leastWords || p.all < leastSaid) {
			p.words, p.all = nil, math.Inf(1) // says too little
		}
	}
	return x
}

func patterns(from source, signatures []Signature, codes []string) []*pattern {
	var out []*pattern
	for _, s := range signatures {
		p := &pattern{Signature: s, from: from}
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
