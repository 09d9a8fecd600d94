package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/query"
	"cnictl/doctor/catalogue"
	"cnictl/doctor/causes"
)

// Suppression is a finding that somebody accepts.
type Suppression struct {
	Code  string    // may hold *
	Scope string    // name of a node, pod, interface or subnet, or cluster; may hold *
	Until time.Time // zero: for ever
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

// Suppress takes accepted findings out of a report. A finding on several nodes loses those
// that are accepted. It returns the suppressions that have run out.
func Suppress(r *introspect.DoctorReport, all []Suppression, now time.Time) (expired []Suppression) {
	var active []Suppression
	for _, s := range all {
		if s.Until.IsZero() || now.Before(s.Until) {
			active = append(active, s)
		} else {
			expired = append(expired, s)
		}
	}
	accepted := func(code, name string) bool {
		return name != "" && slices.ContainsFunc(active, func(s Suppression) bool { return s.covers(code, name) })
	}
	wholly := func(f introspect.Finding) bool {
		for _, name := range []string{f.Scope.Pod, f.Scope.ENI, f.Scope.Subnet} {
			if accepted(f.Code, name) {
				return true
			}
		}
		if f.Scope.Cluster {
			return accepted(f.Code, "cluster")
		}
		return len(f.Nodes) > 0 && !slices.ContainsFunc(f.Nodes, func(n string) bool { return !accepted(f.Code, n) })
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f introspect.Finding) bool {
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
	return expired
}
