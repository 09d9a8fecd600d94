package logs

import (
	"strconv"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// head is the number of lines above the log.
const head = 1

// Lines implements pages.Page.
func (m *Model) Lines(c pages.Context) []string {
	if c.Height <= 0 || c.Width <= 0 {
		return nil
	}
	s := c.Style()
	lines := []string{m.header(s, c.Width)}
	room := c.Height - head
	if m.view.Len() > 0 {
		return draw.Exactly(append(lines, m.view.Lines(s, c.Width, room)...), c.Width, c.Height)
	}
	sheet := draw.NewSheet(s, c.Width)
	m.empty(c, sheet)
	return draw.Exactly(append(lines, sheet.Lines()...), c.Width, c.Height)
}

func (m *Model) header(s draw.Style, width int) string {
	l := draw.NewLine(s, width).Add(draw.Title, m.followed()).Gap(2)
	switch {
	case m.paused:
		l.Add(draw.Warn, "PAUSED").Gap(1).Add(draw.Text, strconv.Itoa(m.fresh)+" new").Gap(2)
	case m.view.Following():
		l.Add(draw.Good, "following").Gap(2)
	default:
		l.Add(draw.Info, "scrolled back (G: jump to end)").Gap(2)
	}
	level := m.level.String() + " and above"
	if m.level == logline.Debug {
		level = "all levels"
	}
	if m.access {
		level += ", access lines"
	}
	l.Add(draw.Text, level).Gap(2)
	for _, only := range []string{m.pod, m.eni, m.ip} {
		if only != "" {
			l.Add(draw.Info, "only "+only+" (a: all)").Gap(2)
		}
	}
	if m.dropped > 0 {
		l.Add(draw.Faint, strconv.FormatUint(m.dropped, 10)+" older lines dropped").Gap(2)
	}
	if m.view.Len() > 0 {
		for _, t := range m.tails {
			if t.silent != "" {
				l.Add(draw.Warn, "no log from "+m.names.Short(t.docs.Node)+": "+t.silent).Gap(2)
				break
			}
		}
	}
	if m.grouped > 0 {
		l.Add(draw.Faint, human.Plural(m.grouped, "repeat", "repeats")+" grouped (u: each line)").Gap(2)
	}
	return l.String()
}

// empty writes why there are no lines.
func (m *Model) empty(c pages.Context, sheet *draw.Sheet) {
	if len(m.all) > 0 {
		sheet.Add(draw.T(draw.Faint, "No lines match ("+strconv.Itoa(len(m.all))+" read). "+
			"v changes the min level, a shows all pods' lines, A access lines."))
		return
	}
	if len(m.tails) == 0 {
		sheet.Add(draw.T(draw.Faint, "No nodes with a daemon yet. Logs and events of the worst nodes will appear here."))
		return
	}
	for _, t := range m.tails {
		n := c.View.Node(t.docs.Node)
		read := t.docs.Has(watch.WantLogs) || t.docs.Has(watch.WantEvents) ||
			t.docs.Has(watch.WantContainerLog) || t.docs.Has(watch.WantKubeEvents)
		switch {
		case t.silent != "":
			sheet.Add(draw.T(draw.Text, t.docs.Node+" "), draw.T(draw.Warn, "no log: "+t.silent), draw.T(draw.Faint, emptyOtherwise(read)))
		case read:
			sheet.Add(draw.T(draw.Text, t.docs.Node+" "), draw.T(draw.Faint, "has no log lines, and Kubernetes has no events for it."))
		default:
			sheet.Add(draw.T(draw.Faint, pages.Missing(c, &t.docs, watch.WantContainerLog, n, "The log")))
		}
	}
}

func emptyOtherwise(read bool) string {
	if read {
		return "  There are no events either."
	}
	return ""
}
