package whatif

import (
	"fmt"
	"math"
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// Lines implements pages.Page.
func (m *Model) Lines(c pages.Context) []string {
	s := c.Style()
	settings, outcome := 6, 7            // so that the longest setting fits 120 columns
	if c.Width < components.SideBySide { // the focused pane gets more
		settings, outcome = 1, 5
	}
	return m.frame.Draw(s, c.Width, c.Height, m.above(s, c), []components.Pane{
		{Title: "Settings", Weight: settings, Least: 3, Lines: func(s draw.Style, w, h int) []string {
			if m.last.today == nil {
				return draw.Exactly([]string{draw.NewLine(s, w).Add(draw.Faint, "Simulating ...").String()}, w, h)
			}
			return m.table.Lines(s, w, h)
		}},
		{Title: "Outcome", Note: m.progress(), Weight: outcome, Least: 4, Lines: func(s draw.Style, w, h int) []string {
			sheet := draw.NewSheet(s, w)
			m.outcome(c, sheet)
			return m.scroll.Window(sheet, h)
		}},
	})
}

// above returns the lines above the panes: the nodes, and what the plan assumes that is not so now.
func (m *Model) above(s draw.Style, c pages.Context) []string {
	lines := []string{m.header(s, c)}
	if text := m.warning(); text != "" {
		lines = append(lines, draw.NewLine(s, c.Width).Add(draw.Warn, text).String())
	}
	return lines
}

// warning says that subnets are full now.
func (m *Model) warning() string {
	o := m.last
	switch n := len(o.full); {
	case o.dry == 0:
		return ""
	case o.nodes == 1 && n == 1:
		return o.full[0] + " of this node has no free address now; the plan assumes it has."
	case o.nodes == 1:
		return "This node's subnets have no free address now; the plan assumes they have."
	}
	return "The subnets of " + human.Plural(o.dry, "node", "nodes") + " have no free address now; the plan assumes they have."
}

// header names the nodes, and counts those that are not simulated.
func (m *Model) header(s draw.Style, c pages.Context) string {
	l := draw.NewLine(s, c.Width)
	switch n := m.last.nodes; {
	case m.last.today == nil:
		return l.String()
	case n == 1 && m.opened.Node != "":
		l.Add(draw.Title, m.title).Gap(2).Add(draw.Text, m.last.instance+", "+human.Plural(m.last.pods, "pod", "pods"))
	default:
		l.Add(draw.Title, m.title).Gap(2).Add(draw.Text, human.Plural(n, "node", "nodes")+", "+draw.Thousands(m.last.pods)+" pods")
	}
	if n := m.last.left(); n > 0 {
		l.Gap(2).Add(draw.Warn, draw.Thousands(n)+" not simulated")
	}
	return l.Gap(2).Add(draw.Faint, "as of "+draw.Clock(m.at, c.Now)).String()
}

// progress describes the progress of the simulation.
func (m *Model) progress() string {
	if m.last.done < m.last.nodes || !m.last.set.equal(m.set) {
		return "simulating: " + draw.Thousands(m.last.done) + " of " + human.Plural(m.last.nodes, "node", "nodes")
	}
	return ""
}

// outcome writes the effect of the changes.
func (m *Model) outcome(c pages.Context, sheet *draw.Sheet) {
	o := m.last
	if o.today == nil {
		if why := pages.Unread(c.View); why != "" {
			sheet.Add(draw.T(draw.Faint, why))
		}
		return
	}
	if o.nodes == 0 {
		m.cannot(c, sheet)
		return
	}
	if o.done == 0 {
		sheet.Add(draw.T(draw.Faint, "Simulating ..."))
		return
	}
	bars(c.Style(), sheet, o.was, o.will)
	compare(sheet, "", "TODAY", "CHANGED", "", draw.Header)
	for _, x := range []struct {
		label     string
		was, will float64
		worse     draw.Role
	}{
		{"addresses held", o.was.held, o.will.held, draw.Warn},
		{"used by no pod", o.was.wasted, o.will.wasted, draw.Warn},
		{"EC2 calls/h", o.was.calls, o.will.calls, draw.Warn},
		{"ADDs waited", float64(o.was.waited), float64(o.will.waited), draw.Warn},
		{"ADDs failed", float64(o.was.failed), float64(o.will.failed), draw.Bad},
		{"ENIs attached", float64(o.was.enis), float64(o.will.enis), draw.Text},
	} {
		line(sheet, x.label, x.was, x.will, x.worse)
	}
	m.next(sheet)
	sheet.Head("EC2 CALLS", "per hour; an attach takes 4, a detach 3")
	for _, x := range []struct {
		label     string
		was, will float64
	}{
		{"attach ENIs", o.was.attaches, o.will.attaches}, {"assign", o.was.assigns, o.will.assigns},
		{"release", o.was.releases, o.will.releases}, {"detach ENIs", o.was.detaches, o.will.detaches},
	} {
		line(sheet, x.label, x.was, x.will, draw.Text)
	}
	if text := m.command(); text != "" {
		sheet.Head("THE SAME AS A COMMAND", "")
		sheet.Add(draw.T(draw.Key, text))
	}
	if m.set.differs() {
		sheet.Head("NO COMMAND", "")
		sheet.Add(draw.T(draw.Faint, "A command and a patch set one value on all nodes; this changes each node's own."))
	}
	if text := m.patch(); text != "" {
		sheet.Head("PATCH FOR THE DAEMONSET", "")
		for text := range strings.Lines(text) {
			sheet.Drawn(draw.NewLine(c.Style(), sheet.Width()).Add(draw.Text, strings.TrimRight(text, "\n")).String())
		}
	}
	m.cannot(c, sheet)
	sheet.Head("ASSUMED", "")
	sheet.Add(draw.T(draw.Faint, "Pools settle with the current pods; then each node replaces one pod a minute for an hour. Subnets have room, and EC2 takes its usual time."))
}

// bars draws the addresses held before and after, on one scale, with what they are for.
func bars(s draw.Style, sheet *draw.Sheet, was, will sum) {
	if s.Linear {
		return
	}
	const label, least = 10, 30
	whole := max(was.held, will.held)
	width := min(sheet.Width()-label-8, 60)
	if whole <= 0 || sheet.Width() < least {
		return
	}
	for _, x := range []struct {
		name string
		of   sum
	}{{"TODAY", was}, {"CHANGED", will}} {
		l := draw.NewLine(s, sheet.Width()).Add(draw.Header, x.name).To(label)
		l.Drawn(draw.Gauge(s, width, whole,
			draw.Part{Value: x.of.held - x.of.wasted, Role: draw.BarUsed}, draw.Part{Value: x.of.cooling, Role: draw.BarCooling},
			draw.Part{Value: x.of.wasted - x.of.cooling, Role: draw.BarFree}), width)
		sheet.Drawn(l.Gap(1).Add(draw.Text, number(x.of.held)).String())
	}
	l := draw.NewLine(s, sheet.Width()).To(label)
	for _, sign := range []struct {
		role draw.Role
		word string
	}{{draw.BarUsed, "used"}, {draw.BarCooling, "cooling"}, {draw.BarFree, "free"}} {
		l.Drawn(draw.Strip(s, []draw.Cell{draw.CellOf(sign.role)}), 1).Add(draw.Faint, " "+sign.word).Gap(2)
	}
	sheet.Drawn(l.String())
	sheet.Blank()
}

// next writes what the planner does first after the change.
func (m *Model) next(sheet *draw.Sheet) {
	sheet.Head("NEXT", "")
	for _, d := range m.last.next {
		sheet.Item(draw.T(draw.Accent, ">"), draw.T(draw.Text, d.text(m.last.nodes)))
		if title := d.reason.Title(); title != "" {
			sheet.Item(draw.T(draw.Text, ""), draw.T(draw.Faint, "because "+title))
		}
	}
	switch {
	case len(m.last.next) > 0:
	case m.last.dry > 0:
		sheet.Add(draw.T(draw.Text, "Nothing once the subnets have room: all targets would be met."))
	default:
		sheet.Add(draw.T(draw.Good, "Nothing: "), draw.T(draw.Text, "all targets are met."))
	}
}

// cannot writes why nodes are not simulated.
func (m *Model) cannot(c pages.Context, sheet *draw.Sheet) {
	if len(m.last.cannot) == 0 {
		if m.last.nodes == 0 {
			why := pages.Unread(c.View)
			if why == "" {
				why = "No such nodes."
			}
			sheet.Add(draw.T(draw.Faint, why))
		}
		return
	}
	sheet.Head("NOT SIMULATED", "")
	for _, r := range m.last.cannot {
		sheet.Item(pages.Sign(sheet.Style(), document.SeverityWarning),
			draw.T(draw.Warn, human.Plural(r.count, "node", "nodes")+": "), draw.T(draw.Text, r.text))
	}
}

// line writes a current and a changed number, with the difference.
func line(sheet *draw.Sheet, label string, was, will float64, worse draw.Role) {
	role, by := draw.Faint, ""
	switch d := will - was; {
	case number(was) == number(will):
		by = "="
	case d > 0:
		role, by = worse, "+"+number(d)
	default:
		role, by = draw.Good, "-"+number(-d)
	}
	compare(sheet, label, number(was), number(will), by, role)
}

// compare writes a line of the comparison.
func compare(sheet *draw.Sheet, label, was, will, by string, role draw.Role) {
	first := draw.Text
	if role == draw.Header {
		first = role
	}
	sheet.Row(label, 16, draw.T(first, fmt.Sprintf("%9s %9s", was, will)), draw.T(role, fmt.Sprintf(" %9s", by)))
}

// number formats a sum or a rate.
func number(v float64) string {
	if v >= 1000 || v == math.Trunc(v) {
		return draw.Thousands(int(math.Round(v)))
	}
	return fmt.Sprintf("%.1f", v)
}
