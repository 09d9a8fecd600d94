package causes

import (
	"fmt"
	"slices"
	"testing"

	"cnictl/doctor/causes/catalogue"
)

// TestMutations: every fact that a rule requires matters. Removing or negating any of them changes
// the answer for some situation.
func TestMutations(t *testing.T) {
	t.Parallel()
	type place struct {
		code string
		list string
		at   int
	}
	type run struct {
		candidates []Result
		ceiling    catalogue.Confidence
	}
	runs := map[string][]run{}
	for _, f := range fixtures(t) {
		cs := Cases(f.ev)
		for _, r := range (Options{}).rules() {
			entry, ok := catalogue.Lookup(r.Code)
			if !ok {
				t.Fatalf("there is a rule for %s, which the catalogue does not have", r.Code)
			}
			ceiling := entry.Ceiling.Of(string(f.ev.Mode))
			if r.All != nil {
				runs[r.Code] = append(runs[r.Code], run{r.All(cs), ceiling})
				continue
			}
			for _, c := range cs {
				runs[r.Code] = append(runs[r.Code], run{r.Node(c), ceiling})
			}
		}
	}
	// matters reports whether changing the fact at a place changes any answer.
	matters := func(p place, change func(*Fact)) bool {
		for _, r := range runs[p.code] {
			for _, cd := range r.candidates {
				before := cd.confidence(r.ceiling)
				cd.Decisive, cd.required, cd.unless = slices.Clone(cd.Decisive), slices.Clone(cd.required), slices.Clone(cd.unless)
				list := map[string][]Fact{"decisive": cd.Decisive, "required": cd.required, "unless": cd.unless}[p.list]
				if p.at >= len(list) {
					continue
				}
				change(&list[p.at])
				if cd.confidence(r.ceiling) != before {
					return true
				}
			}
		}
		return false
	}
	for _, code := range catalogue.Codes() {
		most := map[string]int{}
		for _, r := range runs[code] {
			for _, cd := range r.candidates {
				most["decisive"], most["required"] = max(most["decisive"], len(cd.Decisive)), max(most["required"], len(cd.required))
				most["unless"] = max(most["unless"], len(cd.unless))
			}
		}
		for list, n := range most {
			for at := range n {
				p := place{code, list, at}
				t.Run(fmt.Sprintf("%s/%s/%d", code, list, at), func(t *testing.T) {
					if !matters(p, func(f *Fact) { f.State = Yes }) {
						t.Error("the fact can be dropped: no situation is ruled out by it alone")
					}
					if !matters(p, func(f *Fact) { f.State = No }) {
						t.Error("the fact can be turned around: no situation depends on it")
					}
				})
			}
		}
	}
}
