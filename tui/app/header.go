package app

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
)

// header summarises the fleet in one line. What matters least is left out of a narrow one.
func (m *Model) header(s draw.Style) string {
	outage := m.src.stats.Outage()
	if outage {
		s.Theme = s.Theme.Faded()
	}
	state, pace := m.clock()
	sums := totals{m.view.Totals, s}
	return joined(s, m.width, []piece{
		{m.title(s), 9}, {sums.nodes(), 5}, {sums.read(outage), 6}, {sums.unread(), 3}, {sums.faults(), 8},
		{sums.pods(), 4}, {sums.addresses(), 3}, {pace, 2}, {m.sweep(), 1}, {state, 7},
	})
}

// title names the cluster.
func (m *Model) title(s draw.Style) []draw.Span {
	title, room := m.o.Source.Title(), max(m.width/4, 16)
	if draw.Width(title) > room { // the end of an ARN identifies it
		title = s.Clip(title[strings.LastIndexByte(title, '/')+1:], room)
	}
	return []draw.Span{draw.T(draw.Title, "cnictl "), draw.T(draw.Accent, title)}
}

// clock is the time of what is shown, and how fast it changes.
func (m *Model) clock() (state, pace []draw.Span) {
	r, recorded := m.recording()
	switch {
	case recorded && m.paused:
		return []draw.Span{draw.T(draw.Warn, "PAUSED "+m.utc(r.Now()))}, nil
	case recorded:
		state = []draw.Span{draw.T(draw.Faint, m.utc(r.Now()))}
		if m.footerLines() < 3 { // else it is there
			pace = []draw.Span{draw.T(draw.Faint, m.speed(r))}
		}
		return state, pace
	case m.paused:
		return []draw.Span{draw.T(draw.Warn, "PAUSED")}, nil
	}
	state, pace = []draw.Span{draw.T(draw.Faint, m.utc(m.now))}, []draw.Span{draw.T(draw.Faint, short(m.interval))}
	if longer := m.src.stats.Interval; longer > m.interval {
		pace[0] = draw.T(draw.Warn, short(longer)+" (large)")
	}
	return state, pace
}

// sweep is how long it took to read all nodes.
func (m *Model) sweep() []draw.Span {
	took := m.src.stats.SweepTook
	if took <= 0 {
		return nil
	}
	return []draw.Span{draw.T(draw.Faint, "sweep "), draw.T(draw.Text, took.Round(100*time.Millisecond).String())}
}

// spelt is the width from which the header spells out the time zone.
const spelt = 140

// utc formats a time of day with its zone, in a form that --at accepts.
func (m *Model) utc(at time.Time) string {
	if m.width < spelt {
		return at.UTC().Format("15:04:05Z")
	}
	return at.UTC().Format("15:04:05 UTC")
}

// totals words the sums over the fleet.
type totals struct {
	store.Totals
	style draw.Style
}

// least marks a sum that lacks some nodes as a lower bound.
func (t totals) least() string { return t.style.Pick("≥", ">=") }

// sum writes a sum over the nodes that were read.
func (t totals) sum(n int) string {
	if !t.Complete && t.Nodes > 0 {
		return t.least() + draw.Thousands(n)
	}
	return draw.Thousands(n)
}

func (t totals) nodes() []draw.Span {
	return []draw.Span{draw.T(draw.Faint, "nodes "), draw.T(draw.Title, draw.Thousands(t.Nodes))}
}

// read counts the nodes by how well they could be read.
func (t totals) read(outage bool) []draw.Span {
	live := "live "
	if outage {
		live = "last seen live "
	}
	out := []draw.Span{draw.T(draw.Faint, live), draw.T(draw.Good, draw.Thousands(t.Live))}
	out = append(out, counted(draw.Warn, " partial ", t.Partial)...)
	return append(out, counted(draw.Bad, " down ", t.Down)...)
}

// unread counts the nodes of which nothing is known.
func (t totals) unread() []draw.Span {
	pending := counted(draw.Faint, "pending ", t.Unasked)
	between := ""
	if pending != nil {
		between = " "
	}
	return append(pending, counted(draw.Faint, between+fleet.WordNoDaemon+" ", t.NoDaemon)...)
}

func (t totals) faults() (out []draw.Span) {
	if t.Errors > 0 {
		out = append(out, draw.T(draw.Bad, draw.Thousands(t.Errors)+plural(t.Errors, " error", " errors")))
	}
	if t.Warnings > 0 {
		if out != nil {
			out = append(out, draw.T(draw.Faint, " "))
		}
		out = append(out, draw.T(draw.Warn, draw.Thousands(t.Warnings)+plural(t.Warnings, " warning", " warnings")))
	}
	return out
}

func (t totals) pods() []draw.Span {
	text := t.sum(t.Assigned)
	if t.Pods != nil {
		text += "/" + draw.Thousands(*t.Pods)
	}
	return []draw.Span{draw.T(draw.Faint, "pods "), draw.T(draw.Text, text)}
}

// addresses sums up the pools.
func (t totals) addresses() []draw.Span {
	out := []draw.Span{
		draw.T(draw.Faint, "IPs held "), draw.T(draw.Text, t.sum(t.Held)), draw.T(draw.Faint, " free "), draw.T(draw.Text, t.sum(t.Free)),
	}
	if t.Cooling.Known && t.Cooling.N > 0 {
		cooling := draw.Thousands(t.Cooling.N)
		if t.Cooling.Bound {
			cooling = t.least() + cooling
		}
		out = append(out, draw.T(draw.Faint, " cooling "), draw.T(draw.BarCooling, cooling))
	}
	return append(out, counted(draw.Bad, " waiting ", t.Activity.Waiting.N)...)
}

// counted writes a name and a number, nothing for 0.
func counted(r draw.Role, name string, n int) []draw.Span {
	if n == 0 {
		return nil
	}
	return []draw.Span{draw.T(draw.Faint, name), draw.T(r, draw.Thousands(n))}
}

// piece is a part of a line that is dropped when it does not fit.
type piece struct {
	parts []draw.Span
	keep  int // the highest has room first
}

func (p piece) width() int {
	n := 0
	for _, x := range p.parts {
		n += draw.Width(x.Text)
	}
	return n
}

// joined writes the pieces that fit, separated by bars: first those to keep, then what else has room.
func joined(s draw.Style, width int, pieces []piece) string {
	bar := s.Pick(" ▏", " | ")
	order := make([]int, len(pieces))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(pieces[b].keep, pieces[a].keep) })
	fits, room := make([]bool, len(pieces)), width-1
	for n, i := range order {
		need := pieces[i].width()
		if n > 0 {
			need += draw.Width(bar)
		}
		if fits[i] = pieces[i].width() > 0 && (need <= room || n == 0); fits[i] {
			room -= need
		}
	}
	l, first := draw.NewLine(s, width).Gap(1), true
	for i, p := range pieces {
		if !fits[i] {
			continue
		}
		if !first {
			l.Add(draw.Border, bar)
		}
		first = false
		for _, x := range p.parts {
			l.Add(x.Role, x.Text)
		}
	}
	return l.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
