package causes

import (
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"cnictl/doctor/evidence"
)

// TestDropped: sources that were not read rule nothing out. If random sources of a situation are
// dropped, its causes may no longer be found, but are then undecided, or cannot be checked from
// here if the sources could not be read. Whatever is ruled out is ruled out by a fact of a source
// that was read.
func TestDropped(t *testing.T) {
	t.Parallel()
	for _, f := range sampled(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			seed := fnv.New64a()
			seed.Write([]byte(f.name))
			random := rand.New(rand.NewPCG(seed.Sum64(), 0))
			ids := sourceIDs()
			if f.options().Move == nil {
				ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(evidence.InstallationSources(), id) })
			}
			for round := range 6 {
				random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
				drop := slices.Clone(ids[:1+random.IntN(1+round)])
				for _, alike := range sameWords {
					if slices.ContainsFunc(drop, func(id string) bool { return slices.Contains(alike, id) }) {
						drop = append(drop, alike...)
					}
				}
				drop = slices.DeleteFunc(drop, func(id string) bool { return id == "probe" }) // nothing follows from a probe that was not tried
				reason := []string{evidence.MissingForbidden, evidence.MissingMode}[round%2]
				f := f
				f.ev = without(f.ev, drop, reason)
				r := Diagnose(f.ev, f.options())
				for _, code := range f.expect {
					if slices.Contains(r.RuledOut, code) {
						t.Errorf("without %v (%s) %s is ruled out", drop, reason, code)
					}
				}
				for code, summary := range unfounded(f) {
					if slices.Contains(r.RuledOut, code) {
						t.Errorf("without %v (%s) %s is ruled out by nothing that was read: %s", drop, reason, code, summary)
					}
				}
			}
		})
	}
}

// sameWords are sources that report the same on a real node, but only one of them in a situation.
var sameWords = [][]string{
	{"intro.summary", "intro.config", "intro.plan", "intro.failures", "intro.events", "intro.pod", "log.ipamd", "metrics"},
	{"log.ipamd", "metrics", "k8s.evt"},
	{"k8s.evt", "log.plugin", "log.kubelet"},
}

// unfounded returns the causes whose rule states something that no fact of a source that was
// read rules out.
func unfounded(f fixture) map[string]string {
	cs := f.cases()
	missing := map[string]string{}
	for i, c := range cs {
		for id, reason := range c.R.Missing() {
			if other, there := missing[id]; i == 0 || there {
				missing[id] = or(other, reason)
			}
		}
	}
	out := map[string]string{}
	for _, r := range f.options().rules() {
		var candidates []candidate
		if r.all != nil {
			candidates = r.all(cs)
		} else {
			for _, c := range cs {
				candidates = append(candidates, r.node(c)...)
			}
		}
		for _, cd := range candidates {
			rules := func(state State) func(Fact) bool {
				return func(f Fact) bool { return f.State == state && read(missing, f.Source) }
			}
			if !slices.ContainsFunc(slices.Concat(cd.decisive, cd.required), rules(No)) && !slices.ContainsFunc(cd.unless, rules(Yes)) {
				out[r.code] = cd.summary
			}
		}
	}
	return out
}

// read reports whether a source was read. A missing or silent source counts as read, and the
// daemon's output in its container's log counts as the daemon's log.
func read(missing map[string]string, id string) bool {
	reason := missing[id]
	return reason == "" || reason == evidence.MissingAbsent || id == "intro.enis" && reason != evidence.MissingForbidden && reason != evidence.MissingMode ||
		id == "log.ipamd" && missing["log.awsnode"] == ""
}

// sourceIDs returns the IDs of all sources, in the order of a reading.
func sourceIDs() (ids []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[evidence.Reading]()) {
		if id := f.Tag.Get("json"); id != "" && id != "-" {
			ids = append(ids, id)
		}
	}
	return ids
}

// without returns the evidence with the given sources missing from every reading.
func without(ev *evidence.Evidence, drop []string, reason string) *evidence.Evidence {
	out := *ev
	out.Nodes = slices.Clone(ev.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		for _, at := range []**evidence.Reading{&n.First, &n.Second} {
			if *at == nil {
				continue
			}
			r := **at
			v := reflect.ValueOf(&r).Elem()
			for _, f := range reflect.VisibleFields(v.Type()) {
				if source := v.FieldByIndex(f.Index); slices.Contains(drop, f.Tag.Get("json")) && source.FieldByName("Missing").String() == "" {
					source.SetZero()
					source.FieldByName("Missing").SetString(reason)
				}
			}
			*at = &r
		}
	}
	return &out
}
