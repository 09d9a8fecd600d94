package causes

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/testenv/situation"
	"cnictl/testenv/situation/corpus"
	"cnictl/testenv/text/golden"
)

// unreadable matches what makes a source of a situation missing, or all of a mode's.
var unreadable = regexp.MustCompile(`(?m)^mode: .*\n|^  [a-z0-9.]+: \{missing: (?:forbidden|mode|timeout|notasked|not asked)\}\n`)

// sourceStride is 1 at night: a situation gets one in so many sources by itself, beside all at once.
var sourceStride = 5

// TestMoreReading: reading more never hides a fault. If a source that a situation lacks is read, and
// is healthy, every finding stays, and stays at least probable. In the variants of a situation only a log
// tells, and a better source may show that it is over; but what is still observed stays a finding.
func TestMoreReading(t *testing.T) {
	t.Parallel()
	for i, f := range sampled(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("testdata/" + f.name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			full, err := situation.Load(append(unreadable.ReplaceAll(text, nil), "mode: node\n"...))
			if err != nil {
				t.Fatal(err)
			}
			before := Diagnose(f.ev, Options{})
			more := []*evidence.Evidence{with(f.ev, full, "")}
			for j, id := range corpus.SourceIDs() {
				if (i+j)%sourceStride != 0 {
					continue
				}
				if ev := with(f.ev, full, id); ev != nil {
					more = append(more, ev)
				}
			}
			for n, ev := range more {
				if ev == nil {
					continue
				}
				after := Diagnose(ev, Options{})
				for _, was := range before.Findings {
					if was.Severity == catalogue.Info.String() || was.Confidence == catalogue.Suspected.String() {
						continue
					}
					if strings.Contains(f.name, "@") && !hidden(&before, &after, was.Code) {
						continue
					}
					is := slices.Concat(after.Findings, after.Explained)
					if !slices.ContainsFunc(is, func(now document.Finding) bool {
						return (now.Code == was.Code || explained(was.Code, []string{now.Code})) && now.Confidence != catalogue.Suspected.String()
					}) {
						t.Errorf("with more sources (%d: %v) %s is not found any more:\n%s", n, added(f.ev, ev), was.Code, corpus.Printed(after))
					}
				}
			}
		})
	}
}

// hidden reports whether something above info that a finding explains is still observed, and no
// finding shows it any more.
func hidden(before, after *document.DoctorReport, code string) bool {
	return slices.ContainsFunc(before.Observations, func(was document.Observation) bool {
		return was.Severity != catalogue.Info.String() && slices.Contains(was.ExplainedBy, code) && slices.ContainsFunc(after.Observations, func(is document.Observation) bool {
			return is.Kind == was.Kind && is.Subject == was.Subject && is.Severity != catalogue.Info.String() &&
				!slices.ContainsFunc(slices.Concat(after.Findings, after.Explained), func(f document.Finding) bool {
					return f.Severity != catalogue.Info.String() && (f.Code == is.Kind || explained(is.Kind, []string{f.Code}))
				})
		})
	})
}

// with returns the evidence with one source, or with all, of the same situation read in full. It
// returns nil if that adds nothing.
func with(ev, full *evidence.Evidence, only string) *evidence.Evidence {
	out := *ev
	out.Nodes = slices.Clone(ev.Nodes)
	adds := false
	for i := range out.Nodes {
		for _, at := range [][2]**evidence.Reading{{&out.Nodes[i].First, &full.Nodes[i].First}, {&out.Nodes[i].Second, &full.Nodes[i].Second}} {
			if *at[0] == nil || *at[1] == nil {
				continue
			}
			r := **at[0]
			into, from := reflect.ValueOf(&r).Elem(), reflect.ValueOf(*at[1]).Elem()
			for _, f := range reflect.VisibleFields(into.Type()) {
				id := f.Tag.Get("json")
				if id == "" || id == "-" || only != "" && id != only {
					continue
				}
				missing := into.FieldByIndex(f.Index).FieldByName("Missing").String()
				unread := missing == evidence.MissingMode || missing == evidence.MissingForbidden || missing == evidence.MissingNotAsked
				if unread && from.FieldByIndex(f.Index).FieldByName("Missing").String() == "" {
					into.FieldByIndex(f.Index).Set(from.FieldByIndex(f.Index))
					adds = true
				}
			}
			*at[0] = &r
		}
	}
	if !adds {
		return nil
	}
	return &out
}

// added returns the sources that only the second has.
func added(a, b *evidence.Evidence) (ids []string) {
	had, has := a.Nodes[0].Last().Missing(), b.Nodes[0].Last().Missing()
	for id := range had {
		if _, still := has[id]; !still {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// TestFirstFix: each situation states the fix that must come first for each of its findings, in
// testdata/first-fixes.txt.
func TestFirstFix(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, f := range fixtures(t) {
		text.WriteString(corpus.FirstFixes(f.Situation, Diagnose(f.ev, Options{})))
	}
	golden.File(t, "testdata/first-fixes.txt", []byte(text.String()))
}
