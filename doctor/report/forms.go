package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/show"
)

// Markdown returns the report for an issue or a chat.
func Markdown(r *document.DoctorReport) []byte {
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
		fmt.Fprintf(&b, "## %s: %s\n\n", f.Code, text(f.Title))
		if brief := Brief(f); brief != "" {
			fmt.Fprintf(&b, "%s.\n\n", text(brief))
		}
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "- `%s` %s", e.Source, text(Line(e)))
			if e.Expected != "" {
				fmt.Fprintf(&b, " (healthy: %s)", text(e.Expected))
			}
			b.WriteByte('\n')
		}
		for _, m := range f.Missing {
			fmt.Fprintf(&b, "- not checked: `%s` %s (%s)\n", m.Source, text(m.WouldDecide), text(Reason(m.Reason)))
		}
		b.WriteByte('\n')
		for n, fix := range f.Fix {
			fmt.Fprintf(&b, "%d. %s\n", n+1, text(fixText(fix)))
			if fix.Command != "" {
				b.WriteString(shell(fix.Command))
			}
		}
		if len(f.Explains) > 0 {
			fmt.Fprintf(&b, "\nExplains: %s.\n", strings.Join(f.Explains, ", "))
		}
		b.WriteByte('\n')
	}
	if unread := Unreads(r); len(unread) > 0 {
		b.WriteString("## Not read\n\n| what | reason | nodes |\n|---|---|---|\n")
		for _, u := range unread {
			fmt.Fprintf(&b, "| %s | %s | %d |\n", cell(u.What()), cell(u.Reason), len(u.Nodes))
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

// text escapes a text of evidence for Markdown.
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

// JUnit returns a test for each cause: failed if it has a finding at or above the threshold,
// skipped if it could not be decided.
func JUnit(r *document.DoctorReport, threshold catalogue.Severity) ([]byte, error) {
	var out junitSuites
	for _, g := range catalogue.Groups() {
		suite := junitSuite{Name: "cnictl doctor: " + g.Title}
		for _, entry := range g.Entries {
			c := junitCase{Class: "cnictl.doctor." + g.Name, Name: entry.Code + ": " + entry.Title}
			if at := slices.IndexFunc(r.Findings, func(f document.Finding) bool { return f.Code == entry.Code }); at >= 0 {
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
			} else if !slices.Contains(r.RuledOut, entry.Code) &&
				!slices.ContainsFunc(r.Explained, func(f document.Finding) bool { return f.Code == entry.Code }) {
				continue // not visible in this mode, or not requested
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

// SARIF returns a log in SARIF 2.1.0.
func SARIF(r *document.DoctorReport, version string) ([]byte, error) {
	rules, results := []object{}, []object{}
	for i := range r.Findings {
		f := &r.Findings[i]
		index := slices.IndexFunc(rules, func(rule object) bool { return rule["id"] == f.Code })
		if index < 0 {
			index, rules = len(rules), append(rules, rule(f))
		}
		locations := []object{}
		for _, place := range places(f) {
			locations = append(locations, object{"logicalLocations": []object{{"kind": place[0], "name": place[1],
				"fullyQualifiedName": place[0] + "/" + place[1]}}})
		}
		results = append(results, object{
			"ruleId": f.Code, "ruleIndex": index, "level": level(f.Severity), "message": object{"text": f.Summary}, "locations": locations,
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

// rule describes the cause of a finding, and what to do about it.
func rule(f *document.Finding) object {
	plain, marked := "Check: "+f.Check.Text, "Check: "+text(f.Check.Text)
	command := func(command string) {
		if command != "" {
			plain += "\n   " + show.Safe(command)
			marked += shell(command)
		}
	}
	command(f.Check.Command)
	for i, fix := range f.Fix {
		plain += fmt.Sprintf("\n%d. %s", i+1, fixText(fix))
		marked += fmt.Sprintf("\n%d. %s", i+1, text(fixText(fix)))
		command(fix.Command)
	}
	page := catalogue.Page(f.Code)
	out := object{
		"id": f.Code, "name": f.Code, "shortDescription": object{"text": f.Title}, "defaultConfiguration": object{"level": level(f.Severity)},
		"help": object{"text": plain + "\nSee " + page + ".", "markdown": marked + "\nSee `" + page + "`."},
	}
	if len(f.Links) > 0 {
		out["helpUri"] = f.Links[0] // must be absolute
	}
	return out
}

// fixText says what a fix does, with its risk.
func fixText(fix document.CauseFix) string {
	return strings.TrimSpace(fmt.Sprintf("%s Risk: %s. %s", fix.Text, fix.Risk, fix.SideEffects))
}

// shell formats a command in an item of a Markdown list.
func shell(command string) string {
	return fmt.Sprintf("\n\n   ```sh\n   %s\n   ```\n", strings.ReplaceAll(show.Safe(command), "`", "'"))
}

// places returns what a finding is about: kind and name.
func places(f *document.Finding) (out [][2]string) {
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

// level returns SARIF's word for a severity.
func level(severity string) string {
	switch s, _ := Severity(severity); {
	case s >= catalogue.Error:
		return "error"
	case s == catalogue.Warning:
		return "warning"
	}
	return "note"
}
