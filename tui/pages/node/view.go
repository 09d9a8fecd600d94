package node

import (
	"strconv"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// Lines implements pages.Page.
func (m *Model) Lines(c pages.Context) []string {
	s := c.Style()
	n := c.View.Node(m.name)
	shown, _ := m.table.Found()
	need := max(shown, 1) + 1
	if c.Height >= roomy {
		need += m.blockRows(c.Width)
	}
	m.frame.Need = []int{need}
	above := header(s, c.Width, c.Height, n, m.name, c.Now)
	if n != nil {
		above = append(above, verdict(s, c.Width, n, c.Now)...)
	}
	placed := 0 // sections below the ENIs, which the pool need not repeat
	notes := pages.Age(m.docs.Read[watch.WantENIs], c.Now, 3*pages.Pace(c, n))
	return m.frame.Draw(s, c.Width, c.Height, above, []components.Pane{
		{Title: "ENIs", Note: notes, Least: 3, Lines: func(s draw.Style, w, h int) (lines []string) {
			lines, placed = m.enis(c, s, n, w, h)
			return lines
		}},
		{Title: m.second(), Note: sampled(n, c.Now), Least: 4, Lines: func(s draw.Style, w, h int) []string {
			sheet := draw.NewSheet(s, w)
			if m.sizing && n != nil && n.Summary != nil {
				maxPods(sheet, n)
			} else {
				m.pool(c, n, sheet, h, placed)
			}
			return m.scroll.Window(sheet, h)
		}},
	})
}

// second returns the title of the second pane.
func (m *Model) second() string {
	if m.sizing {
		return "Max-pods"
	}
	return "Warm pool"
}

// roomy is the least height that fits what can be dropped: the daemon's version, and the addresses of
// an ENI above the pool.
const roomy = 30

// sampled returns the age of the summary.
func sampled(n *store.Node, now time.Time) string {
	if n == nil || n.SampledAt == nil {
		return ""
	}
	return "as of " + show.Since(n.SampledAt, now) + " ago"
}

// header describes the node and its state in a line or two.
func header(s draw.Style, width, height int, n *store.Node, name string, now time.Time) []string {
	word, role := pages.StateOf(n, now)
	if n != nil {
		if _, faulty := n.Worst(); faulty || unreadable(n) {
			word = "" // the verdict says more
		}
	}
	name = show.Safe(name)
	if draw.Width(name)+2+draw.Width(word) > width {
		name = pages.Host(name) // its state matters more than its domain
	}
	l := draw.NewLine(s, width).Add(draw.Title, name).Gap(2)
	if n == nil {
		return []string{l.Add(role, word).String()}
	}
	if l.Add(role, word); word != "" {
		l.Gap(2)
	}
	more := draw.NewLine(s, width)
	say := func(l *draw.Line, text string) {
		if text != "" && text != show.Unknown {
			l.Add(draw.Faint, text).Gap(2)
		}
	}
	summary, object := n.Summary, n.Object
	if summary == nil {
		summary = &introspect.Summary{}
	}
	if object == nil {
		object = &document.NodeObject{}
	}
	say(l, first(summary.InstanceType, object.InstanceType))
	say(l, object.Zone)
	say(l, first(summary.InstanceID, object.InstanceID))
	say(l, summary.IPFamily)
	if object.Unschedulable || summary.Cordoned != nil && *summary.Cordoned {
		l.Add(draw.Warn, "cordoned").Gap(2)
	}
	switch {
	case n.Source == document.SourceV1:
		what := "upstream daemon, or an older one"
		if version := n.DaemonVersion(); version != "" {
			what = "daemon " + version
		}
		say(more, what+": addresses only, read every "+pages.UpstreamPace.String()+" at most")
	case n.DaemonVersion() != "":
		up := ""
		if summary.StartedAt != nil {
			up = ", up " + show.Since(summary.StartedAt, now)
		}
		say(more, "daemon "+n.DaemonVersion()+up)
	}
	if n.Via != "" {
		say(more, "via "+n.Via)
	}
	if n.LatencySeconds != nil {
		say(more, strconv.Itoa(int(*n.LatencySeconds*1000))+" ms")
	}
	if summary.CustomNetworking != nil && *summary.CustomNetworking {
		say(more, "custom networking")
	}
	if object.Daemon != nil && object.Daemon.Restarts > 0 {
		say(more, human.Plural(object.Daemon.Restarts, "restart", "restarts"))
	}
	if height < roomy {
		return []string{l.String()}
	}
	return []string{l.String(), more.String()}
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// section is a part of the pool's sheet.
type section func(*draw.Sheet, *store.Node, time.Time)

// sections returns the sections that move below the ENIs if they fit there.
func sections() []section {
	return []section{func(sheet *draw.Sheet, n *store.Node, _ time.Time) { goals(sheet, n) }, activity}
}
