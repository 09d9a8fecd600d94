package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/show"
	"cnictl/doctor/catalogue"
	"cnictl/doctor/evidence"
)

// Markdown is a report for an issue or a chat.
func Markdown(r *introspect.DoctorReport) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", text(r.Verdict))
	if len(r.Findings) > 0 {
		b.WriteString("| severity | cause | confidence | where |\n|---|---|---|---|\n")
		for i := range r.Findings {
			f := &r.Findings[i]
			fmt.Fprintf(&b, "| %s | `%s` %s | %s | %s |\n", f.Severity, f.Code, cell(f.Title), f.Confidence, cell(Where(f)))
		}
		b.WriteByte('\n')
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintf(&b, "## %s: %s\n\n%s.\n\n", f.Code, text(f.Title), text(f.Summary))
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "- `%s` %s: %s", e.Source, text(e.Path), text(e.Value))
			if e.Expected != "" {
				fmt.Fprintf(&b, " (healthy: %s)", text(e.Expected))
			}
			b.WriteByte('\n')
		}
		for _, m := range f.Missing {
			fmt.Fprintf(&b, "- not checked: `%s` %s (%s)\n", m.Source, text(m.WouldDecide), text(m.Reason))
		}
		b.WriteByte('\n')
		for n, fix := range f.Fix {
			fmt.Fprintf(&b, "%d. %s\n", n+1, strings.TrimSpace(fmt.Sprintf("%s Risk: %s. %s", text(fix.Text), fix.Risk, text(fix.SideEffects))))
			if fix.Command != "" {
				fmt.Fprintf(&b, "\n   ```sh\n   %s\n   ```\n", strings.ReplaceAll(fix.Command, "`", "'"))
			}
		}
		if len(f.Explains) > 0 {
			fmt.Fprintf(&b, "\nExplains: %s.\n", strings.Join(f.Explains, ", "))
		}
		b.WriteByte('\n')
	}
	missing := slices.DeleteFunc(slices.Clone(r.NotChecked), func(m introspect.MissingEvidence) bool {
		return m.Reason == evidence.MissingAbsent || m.Reason == evidence.MissingMode || m.Reason == evidence.MissingNotAsked
	})
	if len(missing) > 0 {
		b.WriteString("## Not checked\n\n| source | reason | nodes |\n|---|---|---|\n")
		for _, m := range missing {
			fmt.Fprintf(&b, "| `%s` | %s | %d |\n", m.Source, cell(m.Reason), len(m.Nodes))
		}
		b.WriteByte('\n')
	}
	if len(r.Undecided) > 0 {
		fmt.Fprintf(&b, "Undecided: %s.\n\n", strings.Join(r.Undecided, ", "))
	}
	fmt.Fprintf(&b, "Causes ruled out: %d. Not checkable from here: %d.\n", len(r.RuledOut), len(r.NotCheckable))
	return []byte(b.String())
}

var escaped = strings.NewReplacer("<", "&lt;", "&", "&amp;", "\n", " ", "`", "'")

// text is a text of evidence that Markdown takes as it is.
func text(s string) string { return escaped.Replace(show.Safe(s)) }

func cell(s string) string { return strings.ReplaceAll(text(s), "|", `\|`) }

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure"`
	Skipped *junitMessage `xml:"skipped"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit is a test for each cause: failed by a finding at or above the threshold, skipped
// where it could not be decided.
func JUnit(r *introspect.DoctorReport, threshold catalogue.Severity) ([]byte, error) {
	var out junitSuites
	for _, g := range catalogue.Groups() {
		suite := junitSuite{Name: "cnictl doctor: " + g.Title}
		for _, entry := range g.Entries {
			c := junitCase{Class: "cnictl.doctor." + g.Name, Name: entry.Code + ": " + entry.Title}
			if at := slices.IndexFunc(r.Findings, func(f introspect.Finding) bool { return f.Code == entry.Code }); at >= 0 {
				f := &r.Findings[at]
				words := fmt.Sprintf("%s (%s): %s", Where(f), f.Confidence, f.Summary)
				if s, _ := Severity(f.Severity); s >= threshold {
					c.Failure = &junitMessage{Message: f.Title, Type: f.Severity, Text: words}
					suite.Failures++
				} else {
					c.Output = f.Severity + ": " + words
				}
			} else if slices.Contains(r.Undecided, entry.Code) {
				c.Skipped = &junitMessage{Message: "not enough evidence"}
				suite.Skipped++
			} else if !slices.Contains(r.RuledOut, entry.Code) && !slices.ContainsFunc(r.Explained, func(f introspect.Finding) bool { return f.Code == entry.Code }) {
				continue // this mode cannot see it, or it was not asked for
			}
			suite.Cases = append(suite.Cases, c)
			suite.Tests++
		}
		if suite.Tests > 0 {
			out.Suites = append(out.Suites, suite)
			out.Tests, out.Failures, out.Skipped = out.Tests+suite.Tests, out.Failures+suite.Failures, out.Skipped+suite.Skipped
		}
	}
	b, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode JUnit: %w", err)
	}
	return append([]byte(xml.Header), append(b, '\n')...), nil
}

type object = map[string]any

// SARIF is a log of SARIF 2.1.0.
func SARIF(r *introspect.DoctorReport, version string) ([]byte, error) {
	rules, results := []object{}, []object{}
	for i := range r.Findings {
		f := &r.Findings[i]
		help := f.Check.Text
		for _, fix := range f.Fix {
			help += "\n- " + fix.Text
		}
		rule := object{"id": f.Code, "shortDescription": object{"text": f.Title}, "help": object{"text": help}}
		if len(f.Links) > 0 {
			rule["helpUri"] = f.Links[0]
		}
		locations := []object{}
		for _, place := range places(f) {
			locations = append(locations, object{"logicalLocations": []object{{"kind": place[0], "name": place[1], "fullyQualifiedName": place[0] + "/" + place[1]}}})
		}
		rules = append(rules, rule)
		results = append(results, object{
			"ruleId": f.Code, "ruleIndex": i, "level": level(f.Severity), "message": object{"text": f.Summary}, "locations": locations,
			"properties": object{"severity": f.Severity, "confidence": f.Confidence, "explains": f.Explains, "nodes": len(f.Nodes)},
		})
	}
	log := object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{
			"tool":        object{"driver": object{"name": "cnictl doctor", "version": version, "rules": rules}},
			"results":     results,
			"invocations": []object{{"executionSuccessful": true, "endTimeUtc": r.SampledAt.UTC().Format("2006-01-02T15:04:05Z")}},
		}},
	}
	b, err := json.MarshalIndent(log, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode SARIF: %w", err)
	}
	return append(b, '\n'), nil
}

// places are what a finding is about: kind and name.
func places(f *introspect.Finding) (out [][2]string) {
	for _, node := range f.Nodes {
		out = append(out, [2]string{"node", node})
	}
	for _, p := range [][2]string{{"pod", f.Scope.Pod}, {"interface", f.Scope.ENI}, {"subnet", f.Scope.Subnet}} {
		if p[1] != "" {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		out = append(out, [2]string{"cluster", "cluster"})
	}
	return out
}

// level is SARIF's word for a severity.
func level(severity string) string {
	switch s, _ := Severity(severity); {
	case s >= catalogue.Error:
		return "error"
	case s == catalogue.Warning:
		return "warning"
	}
	return "note"
}
