package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/query"
)

// Suppression accepts findings.
type Suppression struct {
	Code  string    // may contain *
	Scope string    // name of a node, pod, interface or subnet, or cluster; may contain *
	Until time.Time // zero means for ever
}

// ParseSuppression reads CODE=SCOPE[@UNTIL]; UNTIL is a date or a time.
func ParseSuppression(text string) (s Suppression, err error) {
	code, scope, ok := strings.Cut(text, "=")
	if !ok || code == "" || scope == "" {
		return s, fmt.Errorf("want CODE=SCOPE[@UNTIL], such as eni/leaked=cluster@2026-12-31, not %q", text)
	}
	if !slices.ContainsFunc(catalogue.Codes(), func(c string) bool { return query.Glob(c, code) }) {
		return s, fmt.Errorf("no cause matches %q", code)
	}
	s = Suppression{Code: code, Scope: scope}
	if at := strings.LastIndexByte(scope, '@'); at >= 0 {
		until := scope[at+1:]
		s.Scope = scope[:at]
		if s.Until, err = time.Parse(time.RFC3339, until); err != nil {
			if s.Until, err = time.Parse(time.DateOnly, until); err != nil {
				return s, fmt.Errorf("want a date (2026-12-31) or a time (2026-12-31T08:00:00Z) after @, not %q", until)
			}
			s.Until = s.Until.AddDate(0, 0, 1) // to the end of the day
		}
	}
	return s, nil
}

func (s Suppression) covers(code, name string) bool {
	return query.Glob(code, s.Code) && query.Glob(name, s.Scope)
}

// Expired reports whether a suppression no longer applies.
func (s Suppression) Expired(now time.Time) bool { return !s.Until.IsZero() && !now.Before(s.Until) }

// Suppress removes accepted findings from a report. A finding on several nodes loses the nodes
// where it is accepted. It returns the suppressions without effect: expired, or without a
// finding.
func Suppress(r *document.DoctorReport, all []Suppression, now time.Time) (idle []Suppression) {
	used := make([]bool, len(all))
	accepted := func(code, name string) (yes bool) {
		for i, s := range all {
			if name != "" && !s.Expired(now) && s.covers(code, name) {
				yes, used[i] = true, true
			}
		}
		return yes
	}
	wholly := func(f document.Finding) (yes bool) {
		for _, name := range []string{f.Scope.Pod, f.Scope.ENI, f.Scope.Subnet} {
			yes = accepted(f.Code, name) || yes
		}
		if f.Scope.Cluster {
			return accepted(f.Code, "cluster") || yes
		}
		left := 0
		for _, n := range f.Nodes {
			if !accepted(f.Code, n) {
				left++
			}
		}
		return yes || len(f.Nodes) > 0 && left == 0
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f document.Finding) bool {
		if wholly(f) {
			r.Suppressed = append(r.Suppressed, f.Code)
			return true
		}
		return false
	})
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Nodes = slices.DeleteFunc(f.Nodes, func(n string) bool { return accepted(f.Code, n) })
	}
	r.Verdict = causes.Verdict(r)
	for i, s := range all {
		if !used[i] {
			idle = append(idle, s)
		}
	}
	return idle
}
