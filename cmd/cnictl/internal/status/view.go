package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
	"cnictl/tui/show"
)

// Frame is the area to draw in.
type Frame struct {
	Width, Height int // of the terminal; 0: none, lines of any length
	ASCII         bool
	Palette       paint.Palette
	Command       string        // how the user calls the tool
	SameNodes     string        // flags by which other commands find the same nodes
	Every         time.Duration // between two frames; 0: a single frame
	Upstream      time.Duration // minimum time between two readings of an upstream node; 0: no such node
	Dated         bool          // the nodes may have been read on another day
	NoHeaders     bool
	All           bool // every node and problem, however long the page
}

func (fr Frame) style() draw.Style {
	return draw.Style{Theme: fr.Palette, ASCII: fr.ASCII}
}

func (fr Frame) more() string {
	if fr.ASCII {
		return "..."
	}
	return "…"
}

// View draws the page, a string per line: at most Height−1 lines, none wider than Width. It
// is for triage: the totals; problems by cause; one line about nodes that could not be read;
// the subnets, fullest first; and the nodes, worst first.
func View(v *store.View, s document.FleetStatus, fr Frame) []string {
	shown, unread := fr.readable(v.Nodes)
	nodes := slices.Clone(shown)
	slices.SortStableFunc(nodes, func(a, b *store.Node) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	short := shortNames(v.Nodes)
	found := findings(shown, s.Subnets)
	out := fr.head(s)
	var note []string
	switch {
	case len(unread) > 0:
		note = []string{fr.unreadable(unread)}
	case len(found) == 0:
		note = []string{fr.Palette.Paint(paint.OK, "no problems")}
	}
	top := len(out) + len(note)
	if len(found) == 0 {
		top++ // for the blank line before the note
	}
	room := fr.share(top, parts{len(found), len(s.Subnets), len(nodes)})
	reporters := reported(v)
	clock := func(name string) time.Time { return clockOf(v.Node(name), s) }
	var wrong []string
	if room.causes > 0 {
		wrong = fr.causes(found, short, clock, room.causes)
	}
	sections := [][]string{append(wrong, note...)}
	if room.subnets > 0 {
		sections = append(sections, fr.subnets(s.Subnets, func(i int) time.Time { return clock(reporters[i].Node) }, room.subnets))
	}
	if room.nodes > 0 {
		sections = append(sections, fr.nodes(nodes, short, room.nodes))
	}
	if problems := withSubnets(s); fr.All && len(problems) > 0 {
		sections = append(sections, fr.problems(problems, short, clock))
	}
	for _, section := range sections {
		if len(section) > 0 {
			out = append(append(out, ""), section...)
		}
	}
	return fr.clip(out)
}

// readable returns the nodes that have something to show, and counts the others by reason,
// the most frequent first. -o wide shows the others too.
func (fr Frame) readable(nodes []*store.Node) (shown []*store.Node, unread []document.ReasonCount) {
	var failed []*store.Node
	for _, n := range nodes {
		lost := fleet.Failed(n.NodeIPAM) && n.State != document.StateLive
		if lost {
			failed = append(failed, n)
		}
		if !lost || n.Summary != nil || fr.All {
			shown = append(shown, n)
		}
	}
	return shown, sweepOf(failed, nil).FailedBy
}

// place is where a problem is.
type place struct {
	subnet   bool // otherwise a node
	name     string
	problems []document.Problem
	node     *store.Node
}

type (
	finding  = inventory.Cause[place]
	affected = inventory.Affected[place]
)

// findings returns the causes of problems of nodes and subnets, the worst first. Reasons why
// nodes could not be read are left out: they have their own line.
func findings(nodes []*store.Node, subnets []document.SubnetFill) []*finding {
	var places []place
	exhausted := false
	for _, n := range nodes {
		p := place{name: n.Metadata.Name, node: n, problems: n.Problems}
		if fleet.Excused(n.NodeIPAM) || fleet.Failed(n.NodeIPAM) && n.State != document.StateLive {
			p.problems = slices.DeleteFunc(slices.Clone(p.problems), func(q document.Problem) bool {
				return n.Error != nil && q.Code == string(n.Error.Reason) || q.Code == fleet.CodeNoDaemon || q.Code == fleet.CodeMetricsOnly
			})
		}
		exhausted = exhausted || slices.ContainsFunc(p.problems, waited)
		places = append(places, p)
	}
	var first []place
	for _, p := range subnetProblems(subnets, exhausted) {
		first = append(first, place{subnet: true, name: p.Node, problems: []document.Problem{p}})
	}
	places = append(first, places...)
	return inventory.Causes(places, func(p place) inventory.NodeReport {
		r := inventory.NodeReport{Name: p.name}
		if p.node != nil {
			r = inventory.ReportOf(p.node)
		}
		r.Problems = p.problems
		return r.Found()
	})
}

// clip enforces the limits of View on terminals too small for the page.
func (fr Frame) clip(lines []string) []string {
	if fr.Height > 1 && !fr.All && len(lines) > fr.Height-1 {
		lines = lines[:fr.Height-1]
	}
	if fr.Width > 0 {
		for i, l := range lines {
			if paint.Width(l) > fr.Width {
				lines[i] = show.Clip(plain(l), fr.Width)
			}
		}
	}
	return lines
}

// plain removes the colours from a line that must be cut.
func plain(line string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(line, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, line, _ = strings.Cut(rest, "m")
	}
}

// rankOf ranks a node by its worst problem; informational ones do not count.
func rankOf(n *store.Node) int { return min(n.Severity.Rank(), document.SeverityInfo.Rank()) }

// shortNames removes the domain from node names if all share it; nil otherwise. A target
// without a name goes by its address, which has no domain.
func shortNames(items []*store.Node) map[string]string {
	domain := show.Domain(func(yield func(string) bool) {
		for _, n := range items {
			if !yield(n.Metadata.Name) {
				return
			}
		}
	})
	if domain == "" {
		return nil
	}
	short := make(map[string]string, len(items))
	for _, n := range items {
		short[n.Metadata.Name] = strings.TrimSuffix(n.Metadata.Name, domain)
	}
	return short
}

// nameIn returns a node's name as shown.
func nameIn(short map[string]string, name string) string {
	if s, ok := short[name]; ok {
		return s
	}
	return name
}

// clockOf returns a node's own clock: ages are relative to it, so that a laptop's wrong clock
// does not matter.
func clockOf(n *store.Node, s document.FleetStatus) time.Time {
	if n != nil && n.SampledAt != nil {
		return *n.SampledAt
	}
	return s.SampledAt
}

// head is the top block: nodes by state, the total pool, current activity.
func (fr Frame) head(s document.FleetStatus) []string {
	p := fr.Palette
	left := fr.counts(s.Nodes) + "  " + fr.enis(s)
	right := s.SampledAt.UTC().Format("15:04:05") + " UTC"
	if fr.Dated {
		right = s.SampledAt.UTC().Format(time.DateOnly) + " " + right
	}
	if fr.Every > 0 {
		right += "  every " + human.Age(fr.Every)
		if fr.Upstream > fr.Every {
			right += " (upstream " + human.Age(fr.Upstream) + ")"
		}
	}
	gap := 4
	if fr.Width > 0 {
		gap = fr.Width - paint.Width(left) - paint.Width(right)
		if gap < 2 && fr.Dated {
			right = s.SampledAt.UTC().Format("01-02 15:04") // the day matters more than the seconds
			gap = fr.Width - paint.Width(left) - paint.Width(right)
		}
	}
	first := left
	if gap >= 2 {
		first += strings.Repeat(" ", gap) + p.Paint(paint.Dim, right)
	}
	return append([]string{first}, fr.totals(s)...)
}

// barFrom is the minimum height of a screen to have a line for the bar of all nodes.
const barFrom = 20

func (fr Frame) enis(s document.FleetStatus) string {
	out := "ENIs " + fr.atLeast(s, s.ENIs.Attached)
	if s.ENIs.Limit != nil {
		out += "/" + show.Count(*s.ENIs.Limit)
	}
	return out
}

// atLeast formats a sum that may be missing nodes.
func (fr Frame) atLeast(s document.FleetStatus, sum *int) string {
	if sum == nil {
		return show.Unknown
	}
	return fr.least(s) + show.Count(*sum)
}

// least marks sums that are missing nodes: they are lower bounds.
func (fr Frame) least(s document.FleetStatus) string {
	switch {
	case s.Nodes.Live == s.Nodes.Total:
		return ""
	case fr.ASCII:
		return ">= "
	}
	return "≥ "
}

func (fr Frame) counts(n document.NodeCounts) string {
	p := fr.Palette
	parts := []string{p.Paint(paint.Head, fmt.Sprintf("NODES %d", n.Total)), p.Paint(paint.OK, fmt.Sprintf("%d live", n.Live))}
	if n.Live == 0 {
		parts[1] = "0 live"
	}
	for _, c := range []struct {
		n     int
		word  string
		class paint.Class
	}{
		{n.Unreachable, "unreachable", paint.Bad},
		{n.Forbidden, "forbidden", paint.Bad},
		{n.Stale, "stale", paint.Bad},
		{n.MetricsOnly, "metrics only", paint.Warn},
		{n.NoDaemon, "no daemon", paint.Dim},
		{n.APIOnly, "not read", paint.Dim},
	} {
		if c.n > 0 {
			parts = append(parts, p.Paint(c.class, fmt.Sprintf("%d %s", c.n, c.word)))
		}
	}
	return strings.Join(parts, "  ")
}

// totals shows the sums; if nodes are missing, they are marked as lower bounds.
func (fr Frame) totals(s document.FleetStatus) []string {
	p := fr.Palette
	a := s.Addresses
	legend := strings.Join([]string{
		p.Paint(paint.Assigned, show.Used.Pick(fr.ASCII)) + " " + fr.atLeast(s, a.Assigned) + " used",
		p.Paint(paint.Cooling, show.Cooling.Pick(fr.ASCII)) + " " + show.Int(a.Cooling) + " cooling",
		p.Paint(paint.Free, show.Free.Pick(fr.ASCII)) + " " + show.Int(a.Free) + " free",
	}, "  ")
	if a.Room != nil && a.Total != nil {
		legend += "  " + p.Paint(paint.Dim, show.Room.Pick(fr.ASCII)) + " " + show.Count(*a.Room) + " room"
	}
	lines := []string{p.Paint(paint.Dim, "addresses  ") + legend}
	if fr.Height == 0 || fr.Height >= barFrom {
		var pool draw.Pool // counts unknown values as 0
		for _, part := range []struct {
			to   *int
			from *int
		}{{&pool.Assigned, a.Assigned}, {&pool.Cooling, a.Cooling}, {&pool.Free, a.Free}} {
			if part.from != nil {
				*part.to = *part.from
			}
		}
		if a.Room != nil && a.Total != nil {
			pool.Limit = *a.Total + *a.Room
		}
		const label = 11
		width := 60
		if fr.Width > 0 {
			width = max(barLeast, fr.Width-label)
		}
		lines = append(lines, strings.Repeat(" ", label)+pool.Gauge(fr.style(), width))
	}
	var doing []string
	act := s.Activity
	least := ""
	switch {
	case act.Partial && fr.ASCII:
		least = " >="
	case act.Partial:
		least = " ≥"
	}
	doing = append(doing, fr.activity("ADDs"+least, act.ADDs, act.FailedADDs, act.WaitingADDs)...)
	ec2 := fr.activity("EC2 calls"+least, act.EC2Calls, act.EC2Errors, nil)
	const label = "activity   "
	full := append(append(slices.Clone(doing), fr.activity("DELs"+least, act.DELs, nil, nil)...), ec2...)
	if doing = append(doing, ec2...); fr.Width <= 0 || len(label)+paint.Width(strings.Join(full, "  ")) <= fr.Width {
		doing = full
	}
	if len(doing) > 0 {
		lines = append(lines, p.Paint(paint.Dim, label)+strings.Join(doing, "  "))
	}
	if out := fr.runsOut(s.Subnets); out != "" {
		lines = append(lines, p.Paint(paint.Dim, "subnets    ")+out)
	}
	lines = append(lines, fr.largest(s.Subnets)...)
	if fr.All {
		lines = append(lines, p.Paint(paint.Dim, "sweep      ")+fr.sweep(s.Sweep))
	}
	return lines
}

// activity formats one counter with how many failed and wait; nil if unknown.
func (fr Frame) activity(name string, n, failed, waiting *int) []string {
	if n == nil {
		return nil
	}
	var notes []string
	if failed != nil && *failed > 0 {
		notes = append(notes, fr.Palette.Paint(paint.Warn, fmt.Sprintf("%d failed", *failed)))
	}
	if waiting != nil && *waiting > 0 {
		notes = append(notes, fr.Palette.Paint(paint.Bad, fmt.Sprintf("%d waiting", *waiting)))
	}
	out := fmt.Sprintf("%s %d", name, *n)
	if len(notes) > 0 {
		out += " (" + strings.Join(notes, ", ") + ")"
	}
	return []string{out}
}

// sweep summarises how reading the nodes went.
func (fr Frame) sweep(s document.SweepStats) string {
	parts := []string{fmt.Sprintf("%d of %d nodes read", s.Read, s.Nodes)}
	if s.Failed > 0 {
		var reasons []string
		for _, r := range s.FailedBy {
			reasons = append(reasons, fmt.Sprintf("%s %d", show.Safe(fleet.ReasonText(r.Reason)), r.Nodes))
		}
		parts = append(parts, fr.Palette.Paint(paint.Bad, fmt.Sprintf("%d failed", s.Failed))+" ("+strings.Join(reasons, ", ")+")")
	}
	if s.Seconds != nil {
		parts = append(parts, fmt.Sprintf("in %.1f s", *s.Seconds))
	}
	if s.LatencyP50Seconds != nil && s.LatencyP99Seconds != nil {
		parts = append(parts, fmt.Sprintf("latency p50 %s p99 %s", milliseconds(*s.LatencyP50Seconds), milliseconds(*s.LatencyP99Seconds)))
	}
	return strings.Join(parts, "  ")
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.0f ms", 1000*seconds) }
