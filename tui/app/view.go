package app

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/human"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/show"
)

// The smallest terminal on which the screens are legible.
const (
	leastWidth  = 60
	leastHeight = 15
)

// hintsFrom is the least height at which the hints have their own line.
const hintsFrom = 18

// headerLines returns the height above the page: the fleet, and problems with reading it.
func (m *Model) headerLines() int {
	if m.banner() != "" {
		return 2
	}
	return 1
}

// banner returns the problem with reading nodes, "" if none. While no node is known, the
// problem is shown in place of the page.
func (m *Model) banner() string {
	stats := m.src.stats
	if stats.Problem == "" || len(m.view.Nodes) == 0 {
		return ""
	}
	why, lasts := stats.Problem, human.Age(max(m.now.Sub(stats.ProblemAt), 0))
	switch {
	case stats.ProblemAt.IsZero():
		return why
	case !stats.Outage():
		return why + " (for " + lasts + ")"
	}
	if _, cause, ok := strings.Cut(why, " unreachable: "); ok {
		why = cause
	}
	retry := "now"
	if wait := stats.RetryAt.Sub(m.now); wait >= time.Second {
		retry = "in " + human.Age(wait)
	}
	gone := "API server unreachable for " + lasts
	if full := gone + "; retrying " + retry + ": " + why; draw.Width(full)+len(" ! ") <= m.width {
		return full
	}
	return gone + ": " + why
}

// View draws the screen. Nothing else makes a tea.View.
func (m *Model) View() tea.View {
	if !m.drawn.fresh {
		m.drawn = frame{strings.Join(m.clean(m.lines()), "\n"), true}
	}
	v := tea.NewView(m.drawn.content)
	v.AltScreen = true
	v.ReportFocus = true
	v.WindowTitle = "cnictl " + show.Safe(m.o.Source.Title())
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// clean escapes what a page did not: nothing from a node may control the terminal.
func (m *Model) clean(lines []string) []string {
	for i, l := range lines {
		lines[i] = m.theme.Clean(l)
	}
	return lines
}

func (m *Model) small() bool { return m.width < leastWidth || m.height < leastHeight }

func (m *Model) footerLines() int {
	if m.height < hintsFrom {
		return 1
	}
	if _, ok := m.recording(); ok {
		return 3
	}
	return 2
}

// body returns the height of the page.
func (m *Model) body() int {
	rest := m.height - m.headerLines() - m.footerLines()
	if m.toasting() { // a message gets its own line, so it covers no row, filter or key
		rest--
	}
	return max(rest, 0)
}

// lines returns the full frame: exactly height lines, none wider than width.
func (m *Model) lines() []string {
	if m.width <= 0 || m.height <= 0 {
		return nil
	}
	s := m.style()
	if m.small() {
		says := "terminal too small: needs " + strconv.Itoa(leastWidth) + "x" + strconv.Itoa(leastHeight)
		return draw.Exactly([]string{draw.NewLine(s, m.width).Add(draw.Warn, says).String()}, m.width, m.height)
	}
	out := make([]string, 0, m.height)
	out = append(out, m.header(s))
	if says := m.banner(); says != "" {
		out = append(out, draw.NewLine(s, m.width).Gap(1).Add(draw.Bad, s.Clip("! "+says, m.width-1)).String())
	}
	body := m.pageLines(s)
	if m.mode == choosing {
		over := m.choiceLines(s)
		over = over[:min(len(over), len(body)-1)]
		body = append(body[:len(body)-len(over):len(body)-len(over)], over...)
	}
	out = append(out, body...)
	if m.toasting() {
		out = append(out, draw.NewLine(s, m.width).Gap(1).Add(m.toast.Role, s.Clip(m.toast.Text, m.width-1)).String())
	}
	if r, ok := m.recording(); ok && m.footerLines() > 2 {
		out = append(out, m.playbackLine(s, r))
	}
	out = append(out, m.status(s))
	if m.footerLines() > 1 {
		out = append(out, m.hints(s))
	}
	return out
}

// choiceLines returns the choices of the palette, under a rule, or says that there are none.
func (m *Model) choiceLines(s draw.Style) []string {
	rule := draw.NewLine(s, m.width).Add(draw.BorderFocused, draw.Repeat(s.Pick("━", "="), m.width)).String()
	choices := paletteLines(s, m.width, m.found, m.picked)
	if len(choices) == 0 {
		choices = append(choices, draw.NewLine(s, m.width).Gap(2).Add(draw.Faint, "no match").String())
	}
	return append([]string{rule}, choices...)
}

// pageLines returns the lines of the page. If the nodes cannot be listed, every screen
// would be empty, so it shows the reason and what to do instead.
func (m *Model) pageLines(s draw.Style) []string {
	problem := m.src.stats.Problem
	if problem == "" || len(m.view.Nodes) > 0 || m.overlaid() {
		return draw.Exactly(m.page().Lines(m.context()), m.width, m.body())
	}
	sheet := draw.NewSheet(s, max(m.width-4, 1))
	sheet.Add(draw.T(draw.Title, "Cannot list the nodes"))
	sheet.Blank()
	sheet.Item(draw.T(draw.Bad, "!"), draw.T(draw.Text, problem))
	sheet.Blank()
	again := "Retrying"
	if at := m.src.stats.ProblemAt; !at.IsZero() {
		again += " for " + human.Age(m.now.Sub(at))
	}
	sheet.Add(draw.T(draw.Faint, again+". "), draw.T(draw.Key, m.keys.First(keymap.Diagnose)), draw.T(draw.Faint, " shows diagnostics, "),
		draw.T(draw.Key, m.keys.First(keymap.Back)), draw.T(draw.Faint, " quits."))
	lines := []string{draw.Blank(m.width)}
	for _, l := range sheet.Lines() {
		lines = append(lines, draw.NewLine(s, m.width).Gap(2).Drawn(l, m.width-4).String())
	}
	return draw.Exactly(lines, m.width, m.body())
}
