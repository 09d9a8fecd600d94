package doctor

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/report"
	"cnictl/tui/components/prose"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/reading"
	"cnictl/tui/theme"
)

// findingPage shows one finding: evidence, fixes with their side effects, links.
type findingPage struct {
	finding *document.Finding
	where   string
	command int // index in commands of the one that is copied
	scroll  prose.Scroll
}

// Name implements pages.Page.
func (*findingPage) Name() string { return "finding" }

// Title implements pages.Page.
func (p *findingPage) Title() string { return show.Safe(p.finding.Code) }

// Busy implements pages.Page.
func (*findingPage) Busy() bool { return false }

// Focus implements pages.Page.
func (p *findingPage) Focus(pages.Context) watch.Focus {
	return watch.Focus{Visible: first(p.finding.Nodes)}
}

// Row implements pages.Page.
func (p *findingPage) Row(pages.Context) any { return p.finding }

// Keys implements pages.Page.
func (*findingPage) Keys() []keymap.Binding { return keymap.Page("finding") }

// Update implements pages.Page.
func (p *findingPage) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pages.Mouse:
		p.scroll.Wheel(msg.Wheel, c.Clock)
	case pages.Do:
		return p.do(c, msg.Action)
	}
	return nil
}

func (p *findingPage) do(c pages.Context, action string) tea.Cmd {
	all := commands(p.finding)
	switch action {
	case keymap.NextCommand:
		p.command = (p.command + 1) % max(len(all), 1)
	case keymap.CopyCommand:
		if len(all) == 0 {
			return say(theme.Faint, "no command to copy")
		}
		return tea.Batch(pages.Copy(all[p.command]), say(theme.Good, "copied "+all[p.command]))
	case keymap.ToNode, keymap.In:
		if len(p.finding.Nodes) > 0 {
			return pages.Go(pages.Open{Screen: "node", Node: p.finding.Nodes[0]})
		}
	case keymap.Logs:
		if len(p.finding.Nodes) > 0 {
			return pages.Go(pages.Open{Screen: "logs", Node: p.finding.Nodes[0]})
		}
	default:
		p.scroll.Do(action, c.Clock)
	}
	return nil
}

func say(role theme.Role, text string) tea.Cmd {
	return func() tea.Msg { return pages.Toast{Text: text, Role: role} }
}

// Lines implements pages.Page.
func (p *findingPage) Lines(c pages.Context) []string {
	sheet := prose.NewSheet(c.Style(), c.Width)
	write(sheet, p.finding, p.where, c.Now, p.command)
	return p.scroll.Window(sheet, c.Height)
}

// commands returns the commands of a finding, in the order in which they are written.
func commands(f *document.Finding) []string {
	var out []string
	add := func(command string) {
		if command != "" {
			out = append(out, show.Safe(command))
		}
	}
	for _, fix := range f.Fix {
		add(fix.Command)
	}
	add(f.Check.Command)
	return out
}

// mostNodes is how many nodes are named.
const mostNodes = 8

func first(nodes []string) []string { return nodes[:min(len(nodes), 50)] }

// write writes a finding and marks the chosen command; -1 marks none.
func write(sheet *prose.Sheet, f *document.Finding, where string, now time.Time, chosen int) {
	sheet.Add(prose.T(reading.SeverityRole(document.Severity(f.Severity)), show.Safe(f.Severity)+": "), prose.T(theme.Title, show.Safe(f.Title)))
	sheet.Field("cause", prose.T(theme.Text, show.Safe(f.Code)), prose.T(theme.Faint, "  "+show.Safe(f.Confidence)))
	sheet.Field("where", prose.T(theme.Text, where))
	if len(f.Nodes) > 1 {
		names := strings.Join(f.Nodes[:min(len(f.Nodes), mostNodes)], ", ")
		if more := len(f.Nodes) - mostNodes; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		sheet.Field("nodes", prose.T(theme.Text, show.Safe(names)))
	}
	for i, n := range f.PerNode[:min(len(f.PerNode), mostNodes)] {
		label := ""
		if i == 0 {
			label = "found"
		}
		sheet.Field(label, prose.T(theme.Text, show.Safe(n.Node+": "+n.Summary)))
	}
	if brief := report.Brief(f); brief != "" && len(f.PerNode) == 0 {
		sheet.Field("found", prose.T(theme.Text, show.Safe(brief)))
	}
	list := func(label string, codes []string) {
		if len(codes) > 0 {
			sheet.Field(label, prose.T(theme.Text, show.Safe(strings.Join(codes, "  "))))
		}
	}
	list("explains", f.Explains)
	list("because of", f.Causes)
	number := 0
	command := func(text string) {
		if text == "" {
			return
		}
		sign := prose.T(theme.Faint, "$")
		if number == chosen {
			sign = prose.T(theme.Cursor, "▸")
		}
		sheet.Item(sign, prose.T(theme.Accent, show.Safe(text)))
		number++
	}
	for i, fix := range f.Fix {
		sheet.Head(fmt.Sprintf("FIX %d", i+1), "risk: "+show.Safe(fix.Risk))
		sheet.Add(prose.T(theme.Text, show.Safe(fix.Text)))
		command(fix.Command)
		if fix.SideEffects != "" {
			sheet.Add(prose.T(theme.Warn, show.Safe(fix.SideEffects)))
		}
		if i == 0 {
			proof(sheet, f, now)
		}
	}
	if f.Check.Text != "" {
		sheet.Head("CHECK", "")
		sheet.Add(prose.T(theme.Text, show.Safe(f.Check.Text)))
		command(f.Check.Command)
	}
	if len(f.Fix) == 0 {
		proof(sheet, f, now)
	}
	if len(f.Links) > 0 || len(f.Versions.Detected) > 0 || f.Versions.Affected != "" {
		sheet.Head("MORE", "")
	}
	list("daemon", f.Versions.Detected)
	if f.Versions.Affected != "" {
		sheet.Field("affected", prose.T(theme.Text, show.Safe(f.Versions.Affected)))
	}
	for _, link := range f.Links {
		sheet.Item(prose.T(theme.Faint, "-"), prose.T(theme.Text, show.Safe(link)))
	}
}

// proof writes the evidence for the finding, the evidence against it, and what could not be read.
func proof(sheet *prose.Sheet, f *document.Finding, now time.Time) {
	if len(f.Evidence) > 0 {
		sheet.Head("EVIDENCE", "")
	}
	for _, holds := range []bool{true, false} {
		for _, e := range f.Evidence {
			if e.Holds != holds {
				continue
			}
			sign, role := "+", theme.Text
			if !holds {
				sign, role = "-", theme.Faint
			}
			from := e.Source
			if !e.ObservedAt.IsZero() {
				from += ", " + show.Since(&e.ObservedAt, now) + " ago"
			}
			if e.Expected != "" {
				from += "; healthy: " + e.Expected
			}
			sheet.Item(prose.T(role, sign), prose.T(role, show.Safe(report.Line(e))), prose.T(theme.Faint, "  ["+show.Safe(from)+"]"))
		}
	}
	if len(f.Missing) > 0 {
		sheet.Head("UNKNOWN", "what would raise the confidence")
	}
	for _, x := range f.Missing {
		sheet.Item(prose.T(theme.Faint, "?"), prose.T(theme.Text, show.Safe(x.WouldDecide+": "+report.Reason(x.Reason))), prose.T(theme.Faint, "  ["+show.Safe(x.Source)+"]"))
	}
}
