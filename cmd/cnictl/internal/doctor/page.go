package doctor

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/report"
)

// Limits on names in the report; -o wide has all codes, -o json all nodes too.
const (
	mostNodes = 8
	mostCodes = 8
)

// reportPage formats a report for people: what is wrong and why, what follows from it, what
// was ruled out, and what could not be checked.
func (o *Options) reportPage(f *cli.Factory, r *document.DoctorReport) []string {
	p := &output.Page{Opts: output.TableOptions(f)}
	class := paint.OK
	if len(r.Findings) > 0 {
		s, _ := report.Severity(r.Findings[0].Severity)
		class = Class(s)
	} else if len(r.Undecided) > 0 {
		class = paint.Warn
	}
	p.Line(table.Cell{Text: r.Verdict, Class: class})
	for i := range r.Findings {
		o.finding(p, f, &r.Findings[i], r.Findings[i].Severity, r.SampledAt)
	}
	if len(r.Explained) > 0 {
		p.Title("Consequences")
		for i := range r.Explained {
			e := &r.Explained[i]
			p.Text(fmt.Sprintf("%s  %s  because of %s", e.Code, e.Title, strings.Join(e.Causes, ", ")))
		}
	}
	for _, said := range r.Reported {
		p.Lines = append(p.Lines, "")
		p.Field("reported", said.Text)
		if len(said.Causes) > 0 {
			p.Field("", "may come from "+strings.Join(said.Causes, ", "))
		}
	}
	p.Lines = append(p.Lines, "")
	switch n := r.Checks.NotRun; {
	case n == 0:
	case output.Wide(f):
		p.Field("not run", strings.Join(r.NotCheckable, "  "))
	default:
		lack := "lack"
		if n == 1 {
			lack = "lacks"
		}
		p.Field("not run", checksOf(n)+" "+lack+" data. To run more, name nodes, add --via exec, --aws or --bundle, or run cnictl local doctor on a node.")
	}
	if len(r.Suppressed) > 0 {
		p.Field("suppressed", strings.Join(r.Suppressed, "  "))
	}
	switch n := len(r.Undecided); {
	case n > mostCodes && !output.Wide(f):
		p.Field("inconclusive", checksOf(n)+"; -o wide lists them")
	case n > 0:
		p.Field("inconclusive", strings.Join(r.Undecided, "  "))
	}
	unread(p, f, r)
	if report.ResultOf(r, catalogue.Warning, false) == report.NoEvidence {
		p.Field("next", "ask for a bundle, which has more evidence: "+f.Name+" bundle")
	}
	return trimmed(p.Lines)
}

func checksOf(n int) string {
	if n == 1 {
		return "1 check"
	}
	return fmt.Sprintf("%d checks", n)
}

// unread adds the sources that could not be read, grouped by reason.
func unread(p *output.Page, f *cli.Factory, r *document.DoctorReport) {
	label := "unread"
	for _, u := range report.Unreads(r) {
		what := u.What()
		if output.Wide(f) {
			what = strings.Join(u.Sources, "  ")
		}
		if len(u.Nodes) < r.Nodes {
			what += " of " + report.Names(u.Nodes, mostNodes)
		}
		p.Field(label, u.Reason+": "+what)
		label = ""
	}
}

// finding adds one finding as a card. word says how bad it is.
func (o *Options) finding(p *output.Page, f *cli.Factory, x *document.Finding, word string, now time.Time) {
	most := mostNodes
	if output.Wide(f) {
		most = max(len(x.Nodes), len(x.PerNode))
	}
	c := report.CardOf(x, now, most, func(node string) string { return node })
	head(p, x, word, x.Code+", "+x.Confidence)
	field(p, "where", c.Where)
	label := "found"
	for _, found := range c.Found {
		p.Field(label, found)
		label = ""
	}
	if c.Unsaid > 0 {
		p.Field("", fmt.Sprintf("%d more nodes: -o wide", c.Unsaid))
	}
	if len(c.Fixes) == 0 {
		Step(p, f, "check", c.Check)
	} else {
		Step(p, f, "fix", c.Fixes[0])
		if n := len(c.Fixes) - 1; n > 0 {
			p.Field("", fmt.Sprintf("%d more: --fix, or %s doctor explain %s", n, f.Name, x.Code))
		}
	}
	o.evidence(p, f, x, c)
	label = "unknown"
	for i, m := range c.Open {
		if x.Confidence == catalogue.Confirmed.String() && !output.Wide(f) {
			break // nothing depends on it
		}
		p.Cells(label, sourced(m.Text, cmp.Or(wideOnly(f, x.Missing[i].Source), m.From))...)
		label = ""
	}
	if len(x.Explains) > 0 {
		p.Field("explains", strings.Join(x.Explains, "  "))
	}
}

// head adds the first line of a card.
func head(p *output.Page, x *document.Finding, word, code string) {
	s, _ := report.Severity(x.Severity)
	gap := table.Cell{Text: "  "}
	p.Lines = append(p.Lines, "")
	p.Line(table.Cell{Text: word, Class: Class(s)}, gap, table.Cell{Text: x.Title, Class: paint.Head}, gap,
		table.Cell{Text: "(" + code + ")", Class: paint.Dim})
}

// evidence adds what was read, the facts that support the finding only unless all are wanted.
func (o *Options) evidence(p *output.Page, f *cli.Factory, x *document.Finding, c report.Card) {
	label, lines := "evidence", 0
	if output.Wide(f) {
		for _, e := range x.Evidence {
			p.Cells(label, sourced(fmt.Sprintf("%s: %s  (holds: %v, healthy: %s)", e.Path, e.Value, e.Holds, e.Expected), e.Source)...)
			label = ""
		}
		return
	}
	for _, e := range c.Proofs {
		if !e.Holds {
			continue
		}
		if lines++; lines > o.EvidenceLines {
			continue
		}
		p.Cells(label, sourced(e.Text, e.From)...)
		label = ""
	}
	if more := lines - o.EvidenceLines; more > 0 && o.EvidenceLines > 0 {
		p.Field(label, fmt.Sprintf("%d more: -o wide", more))
	}
}

// wideOnly returns the id of a source if all is wanted.
func wideOnly(f *cli.Factory, id string) string {
	if output.Wide(f) {
		return id
	}
	return ""
}

// sourced is a text with where it was read.
func sourced(text, from string) []table.Cell {
	return []table.Cell{{Text: text + "  "}, {Text: "(" + from + ")", Class: paint.Dim}}
}

// planPage lists what to do, finding by finding.
func planPage(f *cli.Factory, r *document.DoctorReport) []string {
	p := &output.Page{Opts: output.TableOptions(f)}
	p.Text(r.Verdict)
	for i := range r.Findings {
		x := &r.Findings[i]
		c := report.CardOf(x, r.SampledAt, mostNodes, func(node string) string { return node })
		head(p, x, x.Severity, x.Code)
		field(p, "where", c.Where)
		if len(c.Fixes) == 0 {
			Step(p, f, "check", c.Check)
		}
		for n, fix := range c.Fixes {
			Step(p, f, fmt.Sprintf("%d", n+1), fix)
		}
	}
	if len(r.Findings) > 0 {
		p.Lines = append(p.Lines, "")
		p.Line(table.Cell{Text: "Nothing was changed. In commands, replace words in CAPITALS.", Class: paint.Dim})
	}
	return p.Lines
}

// Step adds something to do, with its risk and side effects.
func Step(p *output.Page, f *cli.Factory, label string, s report.Step) {
	p.Field(label, s.Text)
	Command(p, f, s.Command)
	if warning := s.Warning(); warning != "" {
		p.Field("", warning)
	}
}

// field adds a text unless it is empty.
func field(p *output.Page, label, text string) {
	if text != "" {
		p.Field(label, text)
	}
}

// trimmed removes empty lines from the end.
func trimmed(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
