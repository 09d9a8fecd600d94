package causes

import (
	"cmp"
	"slices"
	"strings"

	"cnictl/doctor/catalogue"
	"cnictl/doctor/evidence"
)

// rule decides about one cause on one node. It states what it found; how sure that is, and
// whether it is reported, is the engine's business.
type rule struct {
	code  string
	check func(c *Case) []candidate
}

// candidate is what may be a finding. With several telling or required facts all must hold.
type candidate struct {
	scope   Scope
	summary string

	telling    []Fact // what tells this cause from others
	required   []Fact // what must hold besides
	supporting []Fact // what makes it surer
	context    []Fact // symptom and configuration: enough to suspect the cause

	severity *catalogue.Severity // in place of the catalogue's
}

// confidence turns the facts of a candidate into how sure it is.
func (cd *candidate) confidence(ceiling catalogue.Confidence) catalogue.Confidence {
	telling, required := all(cd.telling...), all(cd.required...)
	sure := catalogue.None
	switch {
	case telling == No || required == No:
	case telling == Yes && required == Yes && all(cd.supporting...) == Yes:
		sure = catalogue.Confirmed
	case telling == Yes && (required == Yes || len(cd.required) > 0):
		sure = catalogue.Probable
	case len(cd.context) > 0 && all(cd.context...) == Yes:
		sure = catalogue.Suspected
	}
	return min(sure, ceiling)
}

// facts are those of a candidate that were read, the telling ones first.
func (cd *candidate) facts() (read []Fact, missing []Missing) {
	for _, f := range slices.Concat(cd.telling, cd.required, cd.supporting, cd.context) {
		if f.State != Unread {
			read = append(read, f)
		} else if f.Source != "" {
			missing = append(missing, Missing{Source: f.Source, Reason: f.Reason, WouldDecide: f.Expected})
		}
	}
	return read, missing
}

// Diagnose says which causes the evidence shows.
func Diagnose(ev *evidence.Evidence, o Options) Report {
	var r Report
	for i := range ev.Nodes {
		c := newCase(ev, &ev.Nodes[i])
		var found []Finding
		for _, rule := range rules {
			if !o.wants(rule.code) {
				continue
			}
			entry, _ := catalogue.Find(rule.code) // TestRules: there is one for each
			ceiling, limited := entry.Ceiling[ev.Mode]
			if !limited {
				ceiling = catalogue.Confirmed
			}
			for _, cd := range rule.check(c) {
				sure := cd.confidence(ceiling)
				if sure == catalogue.None {
					continue
				}
				found = append(found, finding(c, entry, cd, sure))
			}
			r.unchecked(c, entry)
		}
		found, explained := suppress(found)
		r.Findings, r.Explained = append(r.Findings, found...), append(r.Explained, explained...)
	}
	r.group()
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.Confidence, a.Confidence), strings.Compare(a.Code, b.Code), strings.Compare(a.Scope.String(), b.Scope.String()))
	})
	return r
}

// suppress takes away findings that another one of the same node explains, and notes them
// there. Only what is at least probable explains anything.
func suppress(found []Finding) (left, explained []Finding) {
	by := map[string][]string{} // code to the codes that explain it
	for _, f := range found {
		if f.Confidence < catalogue.Probable {
			continue
		}
		for _, pattern := range f.entry.Explains {
			for _, other := range found {
				if matchCode(pattern, other.Code) && other.Code != f.Code {
					by[other.Code] = append(by[other.Code], f.Code)
				}
			}
		}
	}
	for _, f := range found {
		if len(by[f.Code]) > 0 && !f.entry.Shown {
			f.ExplainedBy = slices.Compact(slices.Sorted(slices.Values(by[f.Code])))
			explained = append(explained, f)
			continue
		}
		left = append(left, f)
	}
	for i := range left {
		for _, e := range explained {
			if slices.Contains(e.ExplainedBy, left[i].Code) {
				left[i].Explains = append(left[i].Explains, e.Code)
			}
		}
		slices.Sort(left[i].Explains)
		left[i].Explains = slices.Compact(left[i].Explains)
	}
	return left, explained
}

// matchCode reports whether a pattern, a code or "group/*", names a code.
func matchCode(pattern, code string) bool {
	if group, ok := strings.CutSuffix(pattern, "/*"); ok {
		return strings.HasPrefix(code, group+"/")
	}
	return pattern == code
}
