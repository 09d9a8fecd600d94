package doctor

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/report"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// findingPage shows one finding: evidence, fixes with their side effects, links.
type findingPage struct {
	finding *document.Finding
	name    func(node string) string
	proofs  bool // the evidence is unfolded
	unfold  bool // it was just unfolded: scroll to it
	command int  // index in commands of the one that is copied
	scroll  components.Scroll
}

// Name implements pages.Page.
func (*findingPage) Name() string { return "finding" }

// Title implements pages.Page.
func (p *findingPage) Title() string { return p.finding.Code }

// Focus implements pages.Page.
func (p *findingPage) Focus(pages.Context) watch.Focus {
	return watch.Focus{Visible: first(p.finding.Nodes)}
}

// Row implements pages.Page.
func (p *findingPage) Row(pages.Context) any { return p.finding }

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
	case keymap.Evidence:
		p.proofs = !p.proofs
		p.unfold = p.proofs
	case keymap.NextCommand:
		p.command = (p.command + 1) % max(len(all), 1)
	case keymap.CopyCommand:
		if len(all) == 0 {
			return say(draw.Faint, "no command to copy")
		}
		return tea.Batch(pages.Copy(all[p.command]), say(draw.Good, "copied "+all[p.command]))
	case keymap.In:
		if to, ok := pages.Jump(p, c, keymap.ToNode); ok {
			return pages.Go(to)
		}
	default:
		p.scroll.Do(action, c.Clock)
	}
	return nil
}

// At implements pages.Pointing: the first node of the finding.
func (p *findingPage) At(pages.Context) (pages.Object, bool) {
	if len(p.finding.Nodes) == 0 {
		return pages.Object{}, false
	}
	return pages.Object{Node: p.finding.Nodes[0]}, true
}

func say(role draw.Role, text string) tea.Cmd {
	return func() tea.Msg { return pages.Toast{Text: text, Role: role} }
}

// Lines implements pages.Page.
func (p *findingPage) Lines(c pages.Context) []string {
	sheet := draw.NewSheet(c.Style(), c.Width)
	from, count := card{p.finding, p.name, p.proofs, p.command}.write(sheet, c.Now)
	if p.unfold {
		p.scroll.Show(from, count)
		p.unfold = false
	}
	return p.scroll.Window(sheet, c.Height)
}

// commands returns the commands of a finding, in the order in which they are written.
func commands(f *document.Finding) []string {
	var out []string
	add := func(command string) {
		if command != "" {
			out = append(out, command)
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

// card draws a finding.
type card struct {
	*document.Finding
	name   func(node string) string
	proofs bool // the evidence is unfolded
	chosen int  // the command that is marked; -1 = none
}

// write writes the card: headline, where, what was found, the fixes, and what shows it. It returns where
// the evidence is.
func (x card) write(sheet *draw.Sheet, now time.Time) (from, count int) {
	f, c := x.Finding, report.CardOf(x.Finding, now, mostNodes, x.name)
	headline(sheet, document.Severity(f.Severity), f.Title)
	sheet.Field("where", draw.T(draw.Text, c.Where))
	for i, found := range c.Found {
		sheet.Field([]string{"found", ""}[min(i, 1)], draw.T(draw.Text, found))
	}
	if c.Unsaid > 0 {
		sheet.Field("", draw.T(draw.Faint, fmt.Sprintf("and %d more nodes", c.Unsaid)))
	}
	number := 0
	step := func(s report.Step) {
		sheet.Add(draw.T(draw.Text, s.Text))
		if s.Command != "" {
			sign := draw.T(draw.Faint, "$")
			if number == x.chosen {
				sign = draw.T(draw.Cursor, sheet.Style().Pick("▸", ">"))
			}
			sheet.Item(sign, draw.T(draw.Accent, s.Command))
			number++
		}
		if s.Risk != "" {
			sheet.Add(draw.T(draw.Warn, "risk: "+s.Risk+"."), draw.T(draw.Text, " "+s.Note))
		} else if s.Note != "" {
			sheet.Add(draw.T(draw.Faint, s.Note))
		}
	}
	for i, fix := range c.Fixes {
		title, note := "FIX", ""
		if n := len(c.Fixes); n > 1 {
			title = fmt.Sprintf("FIX %d of %d", i+1, n)
		}
		if i == 0 && len(c.Fixes) > 1 {
			note = "choose one"
		}
		sheet.Head(title, note)
		step(fix)
	}
	from = sheet.Len()
	x.evidence(sheet, c)
	count = sheet.Len() - from
	if c.Check.Text != "" {
		sheet.Head("CHECK", "")
		step(c.Check)
	}
	x.more(sheet)
	return from, count
}

// more writes the cause, what follows from it, and where to read on.
func (x card) more(sheet *draw.Sheet) {
	f := x.Finding
	list := func(label string, codes []string) {
		if len(codes) > 0 {
			sheet.Field(label, draw.T(draw.Text, strings.Join(codes, "  ")))
		}
	}
	sheet.Head("MORE", "")
	sheet.Field("cause", draw.T(draw.Text, f.Code), draw.T(draw.Faint, "  "+f.Confidence))
	list("explains", f.Explains)
	list("because of", f.Causes)
	list("daemon", f.Versions.Detected)
	if f.Versions.Affected != "" {
		sheet.Field("affected", draw.T(draw.Text, f.Versions.Affected))
	}
	for _, link := range f.Links {
		sheet.Item(draw.T(draw.Faint, "-"), draw.T(draw.Text, link))
	}
}

// headline writes what is wrong, as the strongest line of a card.
func headline(sheet *draw.Sheet, s document.Severity, title string) {
	sheet.Banner(draw.T(pages.SeverityRole(s), strings.ToUpper(string(s))+"  "), draw.T(draw.Title, title))
}

// evidence writes what supports the finding, what contradicts it and what could not be read; folded,
// only how much of each.
func (x card) evidence(sheet *draw.Sheet, c report.Card) {
	yes, no := sheet.Style().Pick("✓", "+"), sheet.Style().Pick("✗", "-")
	var held int
	for _, p := range c.Proofs {
		if p.Holds {
			held++
		}
	}
	var sums []string
	for _, sum := range []struct {
		n    int
		word string
	}{{held, yes + " for it"}, {len(c.Proofs) - held, no + " against it"}, {len(c.Open), "? not read"}} {
		if sum.n > 0 {
			sums = append(sums, fmt.Sprintf("%d %s", sum.n, sum.word))
		}
	}
	if len(sums) == 0 {
		return
	}
	fold := sheet.Style().Pick("▸ ", "> ")
	if x.proofs {
		fold = sheet.Style().Pick("▾ ", "v ")
	}
	sheet.Head(fold+"EVIDENCE", strings.Join(sums, "  "))
	if !x.proofs {
		return
	}
	for _, p := range c.Proofs {
		sign, role := draw.T(draw.Good, yes), draw.Text
		if !p.Holds {
			sign, role = draw.T(draw.Faint, no), draw.Faint
		}
		sheet.Item(sign, draw.T(role, p.Text), draw.T(draw.Faint, "  ("+p.From+")"))
	}
	for _, p := range c.Open {
		sheet.Item(draw.T(draw.Warn, "?"), draw.T(draw.Text, p.Text), draw.T(draw.Faint, "  ("+p.From+")"))
	}
}
