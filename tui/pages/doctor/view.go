package doctor

import (
	"slices"
	"strconv"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// Lines implements pages.Page.
func (m *Model) Lines(c pages.Context) []string {
	m.drawn = m.panes(c)
	m.frame.Focus, m.frame.Need = max(slices.Index(m.drawn, m.pane), 0), nil
	var all []components.Pane
	for _, pane := range m.drawn {
		p, need := m.draw(c, pane)
		all, m.frame.Need = append(all, p), append(m.frame.Need, need)
	}
	return m.frame.Draw(c.Style(), c.Width, c.Height, m.header(c.Style(), c), all)
}

// panes returns the panes to show: the findings above the card of the one under the cursor, or above
// its nodes and what one of them says.
func (m *Model) panes(c pages.Context) []int {
	switch {
	case c.Linear:
		return []int{paneFindings, paneFinding, paneNodes, paneEvidence}
	case !m.onFindings(), !c.Examines:
		return []int{paneFindings, paneEvidence, paneNodes}
	case c.Width < components.SideBySide:
		return []int{paneFindings, paneFinding}
	}
	return []int{paneFindings, paneFinding, paneNodes}
}

// draw makes a pane. need is how many rows it can fill; 0 = many.
func (m *Model) draw(c pages.Context, pane int) (p components.Pane, need int) {
	switch pane {
	case paneFindings:
		found, _ := m.findings.Found()
		return components.Pane{Title: "Findings", Weight: 3, Least: 2, Lines: m.findingLines}, max(found, 1) + 1 + len(m.rest())
	case paneFinding:
		title := "Finding"
		if _, ok := m.findings.Row(); !ok && m.exam.whole() != nil {
			title = "Checked"
		}
		return components.Pane{Title: title, Weight: 3, Least: 2, Lines: func(s draw.Style, w, h int) []string {
			sheet := draw.NewSheet(s, w)
			if r, ok := m.findings.Row(); ok && r.finding != nil {
				from, count := card{r.finding, m.names.Short, m.proofs, -1}.write(sheet, c.Now)
				if m.unfold {
					m.beside.Show(from, count)
					m.unfold = false
				}
			} else if ok {
				m.onlyReported(sheet, r.group, c.Now)
			} else if r := m.exam.whole(); r != nil { // the pane has room for all of it
				for _, line := range restOf(r) {
					sheet.Add(draw.T(draw.Faint, line))
				}
			}
			return m.beside.Window(sheet, h)
		}}, 0
	case paneNodes:
		found, _ := m.nodes.Found()
		p := components.Pane{Title: "Nodes", Weight: 2, Least: 2, Lines: func(s draw.Style, w, h int) []string { return m.nodes.Lines(s, w, h) }}
		if r, chosen := m.findings.Row(); chosen {
			p.Title += " with " + r.code()
		}
		return p, max(found, 1) + 1
	}
	return components.Pane{
		Title: evidenceOf(m.names.Short(m.docs.Node)), Weight: 3, Least: 2,
		Note: pages.Age(m.docs.Read[watch.WantFailures], c.Now, 3*pages.Pace(c, nil)),
		Lines: func(s draw.Style, w, h int) []string {
			sheet := draw.NewSheet(s, w)
			m.evidence(c, sheet)
			return m.scroll.Window(sheet, h)
		},
	}, 0
}

// onlyReported writes what nodes report and the doctor has not found, or not yet.
func (m *Model) onlyReported(sheet *draw.Sheet, g *group, now time.Time) {
	headline(sheet, g.Severity, inventory.CauseTitle(g.Code))
	sheet.Field("cause", draw.T(draw.Text, g.Code), draw.T(draw.Faint, "  reported by the nodes, not by the doctor"))
	if g.Times > 0 {
		sheet.Field("ADDs failed", draw.T(draw.Text, strconv.Itoa(g.Times)+" since the daemons started"))
	}
	sheet.Head("REPORTED BY", human.Plural(len(g.Nodes), "node", "nodes"))
	for _, a := range g.Nodes[:min(len(g.Nodes), mostNodes)] {
		sheet.Add(draw.T(draw.Text, a.Name))
		for _, p := range a.Problems {
			sheet.Item(pages.Sign(sheet.Style(), p.Severity), draw.T(draw.Text, p.Message), draw.T(draw.Faint, when(p, now)))
		}
	}
	if more := len(g.Nodes) - mostNodes; more > 0 {
		sheet.Add(draw.T(draw.Faint, "and "+strconv.Itoa(more)+" more"))
	}
}

func evidenceOf(node string) string {
	if node == "" {
		return "Evidence"
	}
	return "Evidence of " + node
}

func (m *Model) header(s draw.Style, c pages.Context) []string {
	l := draw.NewLine(s, c.Width)
	if c.Examines {
		m.state(l, c)
		return []string{l.Add(draw.Info, m.scope.title).String()}
	}
	l.Add(draw.Faint, "As reported by the daemons.").Gap(2)
	errors, warnings := m.count()
	l.Add(draw.Text, human.Plural(len(m.findings.All()), "cause", "causes")).Gap(2)
	if errors > 0 {
		l.Add(draw.Bad, human.Plural(errors, "error", "errors")).Gap(2)
	}
	if warnings > 0 {
		l.Add(draw.Warn, human.Plural(warnings, "warning", "warnings")).Gap(2)
	}
	l.Add(draw.Info, m.scope.title)
	return []string{l.String()}
}

// count returns how many causes are errors, and how many are warnings.
func (m *Model) count() (errors, warnings int) {
	for _, r := range m.findings.All() {
		switch {
		case r.severity().Harms():
			errors++
		case r.severity() == document.SeverityWarning:
			warnings++
		}
	}
	return errors, warnings
}

// evidence writes everything that a node reports about the cause.
func (m *Model) evidence(c pages.Context, sheet *draw.Sheet) {
	a, ok := m.nodes.Row()
	if !ok {
		sheet.Add(draw.T(draw.Faint, "No node selected."))
		return
	}
	sheet.Add(draw.T(pages.SeverityRole(a.Severity), string(a.Severity)+": "), draw.T(draw.Text, m.code+", "+inventory.CauseTitle(m.code)))
	for _, p := range a.Problems {
		sheet.Item(pages.Sign(sheet.Style(), p.Severity), draw.T(draw.Text, p.Message), draw.T(draw.Faint, when(p, c.Now)))
	}
	if a.Times > 0 {
		sheet.Field("ADDs failed", draw.T(draw.Text, strconv.Itoa(a.Times)+" with this cause since the daemon started"))
	}
	word, role := pages.StateOf(a.Node, c.Now)
	sheet.Field("state", draw.T(role, word))
	if a.Node.Error != nil && a.Node.State == document.StateLive { // otherwise the state shows it
		sheet.Field("reading", draw.T(draw.Bad, pages.Reason(*a.Node.Error)))
	}
	clocks(sheet, a.Node, m.code, c.Now)
	m.failures(c, sheet, a.Node)
}

// when returns how long ago a problem occurred, or how long it has lasted or will last.
func when(p document.Problem, now time.Time) string {
	switch {
	case p.At != nil:
		return "  " + show.Since(p.At, now) + " ago"
	case p.Since != nil:
		return "  for " + show.Since(p.Since, now)
	case p.Until != nil:
		return "  " + show.Until(p.Until, now) + " left"
	}
	return ""
}

// clocks writes the back-offs and last errors, and highlights those with the cause.
func clocks(sheet *draw.Sheet, n *store.Node, code string, now time.Time) {
	if n.Summary == nil {
		return
	}
	s := n.Summary
	if len(s.Backoffs) > 0 {
		sheet.Head("BACK-OFFS", "")
	}
	for _, b := range s.Backoffs {
		left := "over"
		if b.Until.After(now) {
			left = show.Until(&b.Until, now) + " left"
		}
		sheet.Row(left, 10, draw.T(same(b.Cause, code), b.Object()), draw.T(draw.Faint, "  "+catalogue.Named(b.Cause)))
	}
	if len(s.LastErrors) > 0 {
		sheet.Head("LAST ERRORS", "")
	}
	for _, e := range s.LastErrors {
		at := show.Unknown
		if !e.At.IsZero() {
			at = show.Since(&e.At, now) + " ago"
		}
		sheet.Row(at, 10, draw.T(same(e.Cause, code), e.Operation+": "+e.Message),
			draw.T(draw.Faint, "  "+catalogue.Named(e.Cause)+times(e.Count)))
	}
}

// same returns the role that highlights entries with the wanted cause.
func same(code, wanted string) draw.Role {
	if catalogue.Named(code) == wanted {
		return draw.Text
	}
	return draw.Faint
}

func times(n int) string {
	if n < 2 {
		return ""
	}
	return ", " + strconv.Itoa(n) + " times"
}

// failures writes the last failed ADDs with the cause, and counts the others.
func (m *Model) failures(c pages.Context, sheet *draw.Sheet, n *store.Node) {
	if n.Summary == nil {
		return
	}
	sheet.Head("FAILED ADDS", "newest first")
	f := m.docs.Last.Failures
	if f == nil {
		sheet.Add(draw.T(draw.Faint, pages.Missing(c, &m.docs, watch.WantFailures, n, "The failures")))
		return
	}
	const most = 30
	shown, others := 0, 0
	for _, x := range f.Items {
		if catalogue.Named(x.Cause) != m.code {
			others++
			continue
		}
		if shown++; shown > most {
			continue
		}
		retry := ""
		if x.Transient {
			retry = ", kubelet's next retry may succeed"
		}
		sheet.Row(draw.Clock(x.At, c.Now), 10, draw.T(draw.Text, pages.PodName(x.Pod.Namespace, x.Pod.Name)+"  "+x.Detail),
			draw.T(draw.Faint, "  waited "+human.Milliseconds(x.WaitedMS)+retry))
	}
	if shown > most {
		sheet.Add(draw.T(draw.Faint, "and "+strconv.Itoa(shown-most)+" more"))
	}
	if shown == 0 {
		sheet.Add(draw.T(draw.Faint, "None with this cause in the daemon's history."))
	}
	if others > 0 {
		sheet.Add(draw.T(draw.Faint, human.Plural(others, "failure", "failures")+" with other causes."))
	}
}
