package node

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/components"
	"cnictl/tui/pages"
	"cnictl/tui/pages/parts"
	"cnictl/tui/source"
	"cnictl/tui/theme"
)

// Lines draws the screen.
func (m *Model) Lines(c pages.Context) []string {
	s := c.Style()
	n := c.View.Node(m.name)
	shown, _ := m.table.Found()
	need := max(shown, 1) + 1
	if m.frame.Focus == paneENIs || c.Height >= roomy {
		need += m.blockRows(c.Width)
	}
	m.frame.Need = []int{need}
	notes := parts.Age(m.docs.Read[source.WantENIs], c.Now, 3*parts.Pace(c, n))
	return m.frame.Draw(s, c.Width, c.Height, header(s, c.Width, c.Height, n, m.name, c.Now), []components.Pane{
		{Title: "ENIs", Note: notes, Least: 3, Lines: func(w, h int) []string { return m.enis(c, n, w, h) }},
		{Title: "Warm pool", Note: sampled(n, c.Now), Least: 4, Lines: func(w, h int) []string {
			sheet := parts.NewSheet(s, w)
			m.pool(c, n, sheet, h)
			return m.scroll.Window(sheet, h)
		}},
	})
}

// roomy is a height with room for an ENI's addresses while the pool is read below them,
// and in the pool for all that is set before what goes on.
const roomy = 30

// sampled says how old the summary is.
func sampled(n *store.Node, now time.Time) string {
	if n == nil || n.SampledAt == nil {
		return ""
	}
	return "as of " + show.Since(n.SampledAt, now) + " ago"
}

// header says in a line or two what the node is and how it is.
func header(s components.Style, width, height int, n *store.Node, name string, now time.Time) []string {
	word, role := parts.StateOf(n, now)
	l := components.NewLine(s, width).Add(theme.Title, show.Safe(name)).Gap(2)
	if n == nil {
		return []string{l.Add(role, word).String()}
	}
	l.Add(role, word).Gap(2)
	more := components.NewLine(s, width)
	say := func(l *components.Line, text string) {
		if text != "" && text != show.Unknown {
			l.Add(theme.Faint, text).Gap(2)
		}
	}
	summary, object := n.Summary, n.Object
	if summary == nil {
		summary = &introspect.Summary{}
	}
	if object == nil {
		object = &introspect.NodeObject{}
	}
	say(l, show.Safe(first(summary.InstanceType, object.InstanceType)))
	say(l, show.Safe(object.Zone))
	say(l, show.Safe(first(summary.InstanceID, object.InstanceID)))
	say(l, show.Safe(summary.IPFamily))
	if object.Unschedulable || summary.Cordoned != nil && *summary.Cordoned {
		l.Add(theme.Warn, "cordoned").Gap(2)
	}
	switch {
	case n.Source == introspect.SourceV1:
		say(more, "daemon: the original, or older; it tells addresses and little else, and is asked every "+parts.OriginalPace.String()+" at most")
	case summary.Version != "":
		up := ""
		if summary.StartedAt != nil {
			up = ", up " + show.Since(summary.StartedAt, now)
		}
		say(more, "daemon "+show.Safe(summary.Version)+up)
	}
	if n.Via != "" {
		say(more, "via "+show.Safe(n.Via))
	}
	if n.LatencySeconds != nil {
		say(more, strconv.Itoa(int(*n.LatencySeconds*1000))+" ms")
	}
	if summary.CustomNetworking != nil && *summary.CustomNetworking {
		say(more, "custom networking")
	}
	if object.Daemon != nil && object.Daemon.Restarts > 0 {
		say(more, show.Plural(object.Daemon.Restarts, "restart", "restarts"))
	}
	if height < 14 {
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

// enis draws the table of ENIs and, beneath, the blocks of the one under the cursor.
func (m *Model) enis(c pages.Context, n *store.Node, width, height int) []string {
	s := c.Style()
	_, all := m.table.Found()
	if all == 0 {
		sheet := parts.NewSheet(s, width)
		if n != nil && n.Known && m.docs.Has(source.WantENIs) {
			sheet.Add(parts.T(theme.Faint, "The daemon manages no network interface on this node."))
		} else {
			sheet.Add(parts.T(theme.Faint, parts.Missing(c, &m.docs, source.WantENIs, n, "The ENIs")))
		}
		return components.Exactly(sheet.Lines(), width, height)
	}
	shown, _ := m.table.Found()
	rows := min(shown+1, max(height*3/5, 3))
	if height < 6 {
		rows = height
	}
	lines := m.table.Lines(s, width, rows)
	if r, ok := m.table.Row(); ok && height-rows > 2 {
		sheet := parts.NewSheet(s, width)
		m.blocks(c, n, sheet, r, height-rows)
		lines = append(lines, components.Exactly(sheet.Lines(), width, height-rows)...)
	}
	return components.Exactly(lines, width, height)
}

// blockWidth is that of a prefix with its cells.
const blockWidth = 38

// blockRows is how many rows the addresses of the ENI under the cursor take, the title
// above them included.
func (m *Model) blockRows(width int) int {
	r, ok := m.table.Row()
	if !ok {
		return 0
	}
	perRow := max(width/blockWidth, 1)
	return 3 + (max(r.Prefixes, 1)+perRow-1)/perRow - 1
}

// blocks draws the addresses of an ENI, a prefix a line.
func (m *Model) blocks(c pages.Context, n *store.Node, sheet *parts.Sheet, r eniRow, height int) {
	s := c.Style()
	sheet.Drawn(components.Blank(sheet.Width()))
	l := components.NewLine(s, sheet.Width()).Add(theme.Header, show.Safe(r.ID)).Gap(2)
	for _, part := range []struct {
		cell components.Cell
		word string
	}{{parts.CellUsed, "used"}, {parts.CellCooling, "cooling"}, {parts.CellFree, "free"}, {parts.CellEmpty, "empty"}} {
		l.Drawn(components.Strip(s, []components.Cell{part.cell}), 1).Add(theme.Faint, " "+part.word+"  ")
	}
	sheet.Drawn(l.String())
	if !r.Detailed {
		sheet.Add(parts.T(theme.Faint, parts.Missing(c, &m.docs, source.WantENIs, n, "Its addresses")))
		return
	}
	var singles []components.Cell
	var blocks []introspect.NodeCIDR
	for _, cidr := range r.CIDRs {
		if cidr.IsPrefix() {
			blocks = append(blocks, cidr)
		} else {
			singles = append(singles, parts.Cells(cidr)...)
		}
	}
	if len(singles) > 0 || len(blocks) == 0 {
		if r.Slots != nil && r.PerSlot == 1 {
			for range *r.Slots - len(singles) - len(blocks) {
				singles = append(singles, parts.CellEmpty)
			}
		}
		addresses(s, sheet, singles)
	}
	const name = 20
	perRow := max(sheet.Width()/blockWidth, 1)
	room := (height - sheet.Len()) * perRow
	for i := 0; i < len(blocks); i += perRow {
		if i >= room-perRow && len(blocks) > room {
			sheet.Add(parts.T(theme.Faint, "and "+strconv.Itoa(len(blocks)-i)+" more prefixes: enter shows all"))
			return
		}
		l := components.NewLine(s, sheet.Width())
		for j := i; j < min(i+perRow, len(blocks)); j++ {
			l.To((j-i)*blockWidth).Add(theme.Text, s.Fit(blocks[j].CIDR.String(), name, false))
			if cells := parts.Cells(blocks[j]); cells != nil {
				l.Drawn(components.Strip(s, cells), len(cells))
			} else {
				l.Add(theme.Faint, show.Count(blocks[j].Assigned)+" used of "+show.Count(blocks[j].Total))
			}
		}
		sheet.Drawn(l.String())
	}
}

// addresses draws single addresses, a slot a cell.
func addresses(s components.Style, sheet *parts.Sheet, cells []components.Cell) {
	if len(cells) == 0 {
		sheet.Add(parts.T(theme.Faint, "It holds no address for pods."))
		return
	}
	width := max(sheet.Width()-6, 1)
	for i := 0; i < len(cells); i += width {
		part := cells[i:min(i+width, len(cells))]
		label := ""
		if i == 0 {
			label = "slots"
		}
		sheet.Drawn(components.NewLine(s, sheet.Width()).Add(theme.Faint, s.Fit(label, 6, false)).Drawn(components.Strip(s, part), len(part)).String())
	}
}

// pool writes what the warm pool has, wants and does.
func (m *Model) pool(c pages.Context, n *store.Node, sheet *parts.Sheet, height int) {
	if n == nil || n.Summary == nil {
		if n != nil && n.Error != nil {
			sheet.Add(parts.T(theme.Bad, "Not read: "+parts.Reason(*n.Error)))
		} else {
			sheet.Add(parts.T(theme.Faint, parts.Missing(c, &m.docs, 0, n, "The pool")))
		}
		kubernetes(sheet, n)
		return
	}
	if n.State != introspect.StateLive {
		word, _ := parts.StateOf(n, c.Now)
		sheet.Add(parts.T(theme.Stale, "Old values: "+word))
	}
	numbers(c.Style(), sheet, n)
	problems(sheet, n, c.Now)
	// Where little room is, what goes on comes before what is set, and what was comes last.
	small := height < 12
	if !small {
		chart(c.Style(), sheet, n, height)
	}
	if height < roomy {
		clocks(sheet, n, c.Now)
		m.plan(c, sheet, n)
		goals(sheet, n)
	} else {
		goals(sheet, n)
		m.plan(c, sheet, n)
		clocks(sheet, n, c.Now)
	}
	m.decisions(c, sheet, n)
	activity(sheet, n, c.Now)
	verdict(sheet, n)
	if small {
		chart(c.Style(), sheet, n, 24)
	}
	if n.Source == introspect.SourceV1 {
		sheet.Head("NOT TOLD", "")
		sheet.Add(parts.T(theme.Faint, "The original's documents give ENIs, addresses and two targets. What its daemon will do next, its back-offs, decisions, EC2 calls and errors and the trunk's branches are not in them."))
	}
}

// kubernetes writes what the API server tells of a node that cannot be read.
func kubernetes(sheet *parts.Sheet, n *store.Node) {
	if n == nil || n.Object == nil {
		return
	}
	o := n.Object
	sheet.Head("WHAT KUBERNETES TELLS", "")
	sheet.Field("type", parts.T(theme.Text, show.OrUnknown(show.Safe(o.InstanceType))))
	sheet.Field("max-pods", parts.T(theme.Text, show.Int(o.MaxPods)))
	sheet.Field("branch ENIs", parts.T(theme.Text, show.Int(o.BranchENIs)))
	if d := o.Daemon; d != nil {
		sheet.Field("aws-node", parts.T(theme.Text, show.Safe(d.Name)+"  "+show.Safe(d.Phase)+"  "+show.Plural(d.Restarts, "restart", "restarts")+"  "+show.Safe(d.Image)))
	} else {
		sheet.Field("aws-node", parts.T(theme.Warn, "no such pod is on the node"))
	}
}

// numbers writes the pool of each card: a gauge with its figures.
func numbers(s components.Style, sheet *parts.Sheet, n *store.Node) {
	for _, card := range n.Summary.Cards {
		p := poolOf(card)
		whole := max(p.Limit, p.Held)
		label := "pool"
		if len(n.Summary.Cards) > 1 {
			label = "card " + strconv.Itoa(card.Card)
		}
		figures := [...]string{show.Count(p.Assigned) + " used", show.Count(p.Cooling) + " cooling", show.Count(p.Free) + " free", "limit " + show.Int(card.AddressLimit)}
		taken := len(label) + 2 + 3*(len(figures)-1)
		for _, text := range figures {
			taken += len(text)
		}
		width := min(max(sheet.Width()-taken, 5), 40)
		l := components.NewLine(s, sheet.Width()).Add(theme.Faint, label).Gap(1)
		l.Drawn(components.Gauge(s, width, float64(whole),
			components.Part{Value: float64(p.Assigned), Role: theme.BarUsed},
			components.Part{Value: float64(p.Cooling), Role: theme.BarCooling},
			components.Part{Value: float64(p.Free), Role: theme.BarFree}), width).Gap(1)
		for i, text := range figures {
			r := theme.Text
			if i == 2 {
				r = freeRole(p)
			}
			if i > 0 {
				l.Add(theme.Faint, s.Pick(" · ", " - "))
			}
			l.Add(r, text)
		}
		sheet.Drawn(l.String())
	}
	if len(n.Summary.Cards) == 0 {
		sheet.Add(parts.T(theme.Faint, "The daemon tells of no network card."))
	}
}

func freeRole(p pool) theme.Role {
	if p.Held > 0 && p.Free == 0 {
		return theme.Bad
	}
	return theme.Good
}

func problems(sheet *parts.Sheet, n *store.Node, now time.Time) {
	for _, p := range n.Problems {
		if p.Severity == introspect.SeverityInfo {
			continue
		}
		role := parts.SeverityRole(p.Severity)
		sign := "W"
		if p.Severity == introspect.SeverityError {
			sign = "!"
		}
		sheet.Item(parts.T(role, sign), parts.T(role, show.Safe(p.Code)), parts.T(theme.Text, " "+show.Safe(p.Message)))
	}
}

// chart draws used, cooling and free over time with the targets as lines.
func chart(s components.Style, sheet *parts.Sheet, n *store.Node, height int) {
	if len(n.History) < 2 {
		sheet.Blank()
		sheet.Add(parts.T(theme.Faint, "A chart follows with the next samples."))
		return
	}
	var used, cooling, free []float64
	for _, p := range n.History {
		if p.Gap() {
			nan := math.NaN()
			used, cooling, free = append(used, nan), append(cooling, nan), append(free, nan)
			continue
		}
		used, cooling, free = append(used, float64(p.Assigned)), append(cooling, float64(p.Cooling)), append(free, float64(p.Free))
	}
	c := components.Chart{Areas: []components.Area{
		{Name: "used", Role: theme.BarUsed, Values: used},
		{Name: "cooling", Role: theme.BarCooling, Values: cooling},
		{Name: "free", Role: theme.BarFree, Values: free},
	}, Span: show.Age(n.History[len(n.History)-1].At().Sub(n.History[0].At()))}
	t := n.Summary.Targets
	if t.MinimumIP != nil && *t.MinimumIP > 0 {
		c.Levels = append(c.Levels, components.Level{Name: "MINIMUM", Role: theme.Info, Value: float64(*t.MinimumIP)})
	}
	if t.WarmIP != nil && *t.WarmIP > 0 {
		c.Levels = append(c.Levels, components.Level{Name: "WARM_IP", Role: theme.Good, Value: float64(n.Assigned + *t.WarmIP)})
	}
	// A limit far above the pool would press it flat.
	if v := plainMaxPods(n); v > 0 && v <= 2*max(n.Held, 1) {
		c.Levels = append(c.Levels, components.Level{Name: "max-pods", Role: theme.Warn, Value: float64(v)})
	}
	sheet.Blank()
	sheet.Drawn(c.Lines(s, sheet.Width(), min(max(height/4, 5), 10))...)
}

// plainMaxPods is kubelet's max-pods, 0 when it is not known.
func plainMaxPods(n *store.Node) int {
	switch {
	case n.Summary != nil && n.Summary.MaxPods != nil && n.Summary.MaxPods.Value != nil:
		return *n.Summary.MaxPods.Value
	case n.Object != nil && n.Object.MaxPods != nil:
		return *n.Object.MaxPods
	}
	return 0
}

func goals(sheet *parts.Sheet, n *store.Node) {
	sheet.Head("TARGETS", "")
	for _, t := range targetsOf(*n.Summary) {
		sheet.Row(t.Name, 19, parts.T(theme.Text, pad(t.Want, 5)), parts.T(t.Role, t.Word), parts.T(theme.Faint, between(t.Word, t.Have)))
	}
	if m := n.Summary.Targets.MaxENI; m != nil {
		want, word := show.Int(m), ""
		if *m == 0 {
			word = "not set"
		}
		sheet.Row("MAX_ENI", 19, parts.T(theme.Text, pad(want, 5)), parts.T(theme.Faint, word+between(word, show.Plural(n.ENIs, "ENI", "ENIs"))))
	}
	if cool := n.Summary.CooldownSeconds; cool != nil {
		sheet.Row("IP_COOLDOWN_PERIOD", 19, parts.T(theme.Text, strconv.FormatFloat(*cool, 'f', -1, 64)+" s"))
	}
}

func pad(s string, n int) string { return s + strings.Repeat(" ", max(n-len(s), 1)) }

// between joins what is said with what is had.
func between(word, have string) string {
	if have == "" {
		return ""
	}
	if word == "" {
		return have
	}
	return ", " + have
}

// plan writes what the daemon will do next.
func (m *Model) plan(c pages.Context, sheet *parts.Sheet, n *store.Node) {
	if n.Source == introspect.SourceV1 {
		return
	}
	age := parts.Age(m.docs.Read[source.WantPlan], c.Now, 3*parts.Pace(c, n))
	sheet.Head("NEXT", age)
	p := m.docs.Last.Plan
	if p == nil {
		sheet.Add(parts.T(theme.Faint, parts.Missing(c, &m.docs, source.WantPlan, n, "The plan")))
		return
	}
	if e, failed := m.docs.Error[source.WantPlan]; failed {
		sheet.Add(parts.T(theme.Stale, "Not read again: "+parts.Reason(e)))
	}
	for _, a := range p.Actions {
		text := show.Safe(a.Text)
		if a.Until != nil {
			text += ", in " + show.Until(a.Until, c.Now)
		}
		sheet.Item(parts.T(theme.Accent, ">"), parts.T(theme.Text, text))
		if a.Title != "" {
			sheet.Item(parts.T(theme.Text, ""), parts.T(theme.Faint, "because "+show.Safe(a.Title)))
		}
	}
	for _, b := range p.Blocked {
		sheet.Item(parts.T(theme.Bad, "!"), parts.T(theme.Bad, "blocked "+show.Safe(b.Cause)), parts.T(theme.Text, onCard(n, b.Card)+": "+show.Safe(b.Message)))
	}
	for _, u := range p.Unmet {
		sheet.Item(parts.T(theme.Warn, "W"), parts.T(theme.Warn, show.Safe(u.Target)+" "+strconv.Itoa(u.Wanted)+" is out of reach"),
			parts.T(theme.Text, onCard(n, u.Card)+", "+strconv.Itoa(u.Possible)+" possible: "+show.Safe(first(u.Title, u.Reason))))
	}
	if len(p.Actions)+len(p.Blocked)+len(p.Unmet) == 0 {
		sheet.Add(parts.T(theme.Good, "Nothing: "), parts.T(theme.Text, "the pool has what it is asked to have, or it is on its way."))
	}
}

func onCard(n *store.Node, card int) string {
	if n.Summary == nil || len(n.Summary.Cards) < 2 {
		return ""
	}
	return " on card " + strconv.Itoa(card)
}

// clocks writes what is under way and what holds the pool back, counting down.
func clocks(sheet *parts.Sheet, n *store.Node, now time.Time) {
	if w := n.Summary.WaitingADDs; w != nil && *w > 0 {
		since := ""
		if n.Summary.WaitingSince != nil {
			since = " for " + show.Since(n.Summary.WaitingSince, now)
		}
		sheet.Head("WAITING", "")
		sheet.Add(parts.T(theme.Bad, show.Plural(*w, "ADD waits", "ADDs wait")+" for an address"+since))
	}
	if len(n.Summary.Operations) > 0 {
		sheet.Head("UNDER WAY", "")
	}
	for _, o := range n.Summary.Operations {
		what := show.Safe(o.Kind)
		if o.Prefixes > 0 {
			what += " " + show.Plural(o.Prefixes, "prefix", "prefixes")
		}
		if o.Addresses > 0 {
			what += " " + show.Plural(o.Addresses, "address", "addresses")
		}
		if o.ENIID != "" {
			what += " on " + show.Safe(o.ENIID)
		}
		sheet.Item(parts.T(theme.Accent, ">"), parts.T(theme.Text, what+onCard(n, o.Card)), parts.T(theme.Faint, " for "+show.Since(o.StartedAt, now)+", "+show.OrUnknown(show.Safe(o.Reason))))
	}
	var held []introspect.Backoff
	for _, b := range n.Summary.Backoffs {
		if b.Until.After(now) {
			held = append(held, b)
		}
	}
	if len(held) == 0 {
		return
	}
	sheet.Head("HELD BACK", "")
	for _, b := range held {
		sheet.Item(parts.T(theme.Warn, "W"), parts.T(theme.Warn, pad(show.Until(&b.Until, now), 6)),
			parts.T(theme.Text, strings.TrimSpace(show.Safe(b.Scope)+" "+show.Safe(b.ID))), parts.T(theme.Faint, "  "+show.Safe(b.Cause)+titled(b.Cause)))
	}
}

func titled(code string) string {
	if t := cause.Code(code).Title(); t != "" {
		return ": " + t
	}
	return ""
}

// decisions writes the last changes of the pool, newest first.
func (m *Model) decisions(c pages.Context, sheet *parts.Sheet, n *store.Node) {
	if n.Source == introspect.SourceV1 {
		return
	}
	const most = 12
	sheet.Head("LAST DECISIONS", "")
	if !m.docs.Has(source.WantEvents) {
		sheet.Add(parts.T(theme.Faint, parts.Missing(c, &m.docs, source.WantEvents, n, "The events")))
		return
	}
	shown := 0
	for _, e := range slices.Backward(m.events.Items) {
		if !parts.Decision(e.Kind) {
			continue
		}
		if shown == most {
			break
		}
		shown++
		sheet.Row(parts.Clock(e.At, c.Now), 9, parts.T(parts.EventRole(e.Kind), pad(show.Safe(string(e.Kind)), 15)), parts.T(theme.Text, parts.EventText(e)))
	}
	if shown == 0 {
		sheet.Add(parts.T(theme.Faint, "None since the daemon started, as far as it remembers."))
	}
}

// activity writes requests and EC2 calls with their errors.
func activity(sheet *parts.Sheet, n *store.Node, now time.Time) {
	s := n.Summary
	if s.ADDs == nil && s.DELs == nil && len(s.EC2Calls) == 0 && len(s.LastErrors) == 0 {
		return
	}
	sheet.Head("REQUESTS AND EC2 CALLS", "since the daemon started")
	for _, r := range []struct {
		name string
		n    *introspect.RequestCounts
	}{{"ADDs", s.ADDs}, {"DELs", s.DELs}} {
		if r.n == nil {
			continue
		}
		spans := []parts.Span{parts.T(theme.Text, strconv.Itoa(r.n.Total))}
		if r.n.Failed > 0 {
			spans = append(spans, parts.T(theme.Bad, "  "+strconv.Itoa(r.n.Failed)+" failed"), parts.T(theme.Faint, causes(r.n.Causes)))
		}
		if n.Rates != nil && r.name == "ADDs" {
			spans = append(spans, parts.T(theme.Faint, "  "+strconv.FormatFloat(n.Rates.ADDs, 'f', 1, 64)+"/min now"))
		}
		sheet.Row(r.name, 27, spans...)
	}
	for _, call := range s.EC2Calls {
		spans := []parts.Span{parts.T(theme.Text, strconv.Itoa(call.Calls))}
		if call.Errors > 0 {
			spans = append(spans, parts.T(theme.Bad, "  "+strconv.Itoa(call.Errors)+" failed"))
		}
		if call.Throttled > 0 {
			spans = append(spans, parts.T(theme.Warn, "  "+strconv.Itoa(call.Throttled)+" throttled"))
		}
		if call.LastAt != nil {
			spans = append(spans, parts.T(theme.Faint, "  last "+show.Since(call.LastAt, now)+" ago"))
		}
		sheet.Row(show.Safe(call.Action), 27, spans...)
	}
	for _, e := range s.LastErrors {
		at := show.Unknown
		if !e.At.IsZero() {
			at = show.Since(&e.At, now)
		}
		times := ""
		if e.Count > 1 {
			times = " (" + strconv.Itoa(e.Count) + " times)"
		}
		sheet.Row(at+" ago", 9, parts.T(theme.Bad, show.Safe(e.Cause)), parts.T(theme.Text, " "+show.Safe(e.Operation)+": "+show.Safe(e.Message)+times))
	}
}

// causes lists failures by cause, in the order of the codes.
func causes(counts map[string]int) string {
	codes := make([]string, 0, len(counts))
	for code := range counts {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	var out []string
	for _, code := range codes {
		out = append(out, show.Safe(code)+" "+strconv.Itoa(counts[code]))
	}
	if len(out) == 0 {
		return ""
	}
	return ": " + strings.Join(out, ", ")
}

// verdict writes max-pods with the terms of the arithmetic.
func verdict(sheet *parts.Sheet, n *store.Node) {
	m := n.Summary.MaxPods
	if m == nil {
		if v := plainMaxPods(n); v > 0 {
			sheet.Head("MAX-PODS", "")
			sheet.Add(parts.T(theme.Text, strconv.Itoa(v)+" by the Node object; "), parts.T(theme.Faint, "the daemon tells no terms."))
		}
		return
	}
	role, words := theme.Faint, "the instance type is not in the daemon's table"
	switch m.Verdict {
	case introspect.MaxPodsOK:
		role, words = theme.Good, "the addresses serve them"
	case introspect.MaxPodsOver:
		role, words = theme.Warn, "pods can be scheduled that get no address"
	case introspect.MaxPodsUnder:
		role, words = theme.Info, "addresses can never be used"
	}
	sheet.Head("MAX-PODS", "")
	source := ""
	if m.Source != "" {
		source = " (" + show.Safe(m.Source) + ")"
	}
	sheet.Add(parts.T(theme.Text, show.Int(m.Value)+source+"  "), parts.T(role, show.OrUnknown(show.Safe(m.Verdict))), parts.T(theme.Faint, ": "+words))
	sheet.Add(parts.T(theme.Text, show.Pods(m.IPCapacity)), parts.T(theme.Faint, " by addresses, "), parts.T(theme.Text, show.Pods(m.TotalCapacity)),
		parts.T(theme.Faint, " with branch ENIs, "), parts.T(theme.Text, show.Pods(m.Recommended)), parts.T(theme.Faint, " recommended"))
	for _, t := range m.Terms {
		name := show.Safe(t.Name)
		if long := show.Term(t.Name); long != "" {
			name = long + " (" + name + ")"
		}
		value := show.Pods(&t.Value)
		sheet.Row(strings.Repeat(" ", max(9-len(value), 0))+value, 11, parts.T(theme.Faint, name))
	}
}
