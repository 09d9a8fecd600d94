package causes

import (
	"slices"
	"testing"

	"cnictl/doctor/evidence"
	"cnictl/testenv/situation/corpus"
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
			needs := slices.DeleteFunc(corpus.SourceIDs(), func(id string) bool { return slices.Contains(evidence.InstallationSources(), id) })
			for without, ev := range f.Dropped(needs) {
				r := Diagnose(ev, Options{})
				for _, code := range f.expect {
					if slices.Contains(r.RuledOut, code) {
						t.Errorf("without %s %s is ruled out", without, code)
					}
				}
				for code, summary := range unfounded(ev) {
					if slices.Contains(r.RuledOut, code) {
						t.Errorf("without %s %s is ruled out by nothing that was read: %s", without, code, summary)
					}
				}
			}
		})
	}
}

// unfounded returns the causes whose rule states something that no fact of a source that was
// read rules out.
func unfounded(ev *evidence.Evidence) map[string]string {
	cs, read := Cases(ev), corpus.WasRead(ev)
	out := map[string]string{}
	for _, r := range (Options{}).rules() {
		var candidates []Result
		if r.All != nil {
			candidates = r.All(cs)
		} else {
			for _, c := range cs {
				candidates = append(candidates, r.Node(c)...)
			}
		}
		for _, cd := range candidates {
			rules := func(state State) func(Fact) bool {
				return func(f Fact) bool { return f.State == state && read(f.Source) }
			}
			if !slices.ContainsFunc(slices.Concat(cd.Decisive, cd.required), rules(No)) && !slices.ContainsFunc(cd.unless, rules(Yes)) {
				out[r.Code] = cd.Summary
			}
		}
	}
	return out
}
