package subnets

import (
	"strconv"
	"strings"

	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// Lines implements pages.Page.
func (m *Model) Lines(c pages.Context) []string {
	s := c.Style()
	m.aim() // the app may sort and filter the table between two updates
	r, ok := m.table.Row()
	shown, _ := m.table.Found()
	m.frame.Need = []int{max(shown, 1) + 1}
	title, note := "Map", ""
	if ok {
		title = strings.TrimSpace("Map of " + r.ID + " " + r.CIDR)
		if len(m.board.cells) > 0 {
			note = human.Plural(len(m.board.cells), "/28", "/28s")
		}
	}
	return m.frame.Draw(s, c.Width, c.Height, []string{m.header(c, s)}, []components.Pane{
		{Title: "Subnets", Weight: 1, Least: 3, Lines: func(s draw.Style, w, h int) []string { return pages.Table(c, s, m.table, w, h) }},
		{Title: title, Note: note, Weight: 2, Least: 4, Lines: func(s draw.Style, w, h int) []string {
			if !ok {
				return []string{draw.NewLine(s, w).Add(draw.Faint, "No subnet selected.").String()}
			}
			return m.draw(s, c.View, r, w, h)
		}},
	})
}

func (m *Model) header(c pages.Context, s draw.Style) string {
	var free, held, wasted, short int
	known := true
	rows := m.table.All()
	for _, r := range rows {
		if r.Available == nil {
			known = false
		} else {
			free += *r.Available
		}
		if r.Held < 1<<30 { // not the addresses of IPv6 prefixes
			held, wasted = held+r.Held, wasted+r.Wasted
		}
		if inventory.SubnetShort(r.SubnetUse) {
			short++
		}
	}
	atLeast := ""
	if !known || c.View != nil && !c.View.Totals.Complete {
		atLeast = s.Pick("≥", ">=")
	}
	l := draw.NewLine(s, c.Width).Add(draw.Text, human.Plural(len(rows), "subnet", "subnets")).Gap(2)
	if len(rows) == 0 {
		return l.String()
	}
	for _, sum := range []struct {
		n    int
		word string
	}{{free, " free"}, {held, " held"}, {wasted, " held free"}} {
		l.Add(draw.Text, atLeast+draw.Thousands(sum.n)+sum.word).Gap(2)
	}
	if short > 0 {
		l.Add(draw.Bad, strconv.Itoa(short)+" short").Gap(2)
	}
	bars(l, s)
	return l.String()
}

// bars writes the legend of the gauges, if it fits.
func bars(l *draw.Line, s draw.Style) {
	signs := []struct {
		role draw.Role
		word string
	}{{draw.BarUsed, "used"}, {draw.BarFree, "held free"}, {draw.BarOthers, "others"}, {draw.BarRoom, "free"}}
	const room = 40
	if s.Linear || l.Room() < room {
		return
	}
	for _, sign := range signs {
		l.Drawn(draw.Strip(s, []draw.Cell{draw.CellOf(sign.role)}), 1).Add(draw.Faint, " "+sign.word).Gap(2)
	}
}

// draw writes what the signs of the map mean, the map, the block under the cursor, and the trend of
// the free addresses.
func (m *Model) draw(s draw.Style, v *store.View, r *row, width, height int) []string {
	sheet := draw.NewSheet(s, width)
	if len(m.board.cells) == 0 {
		switch {
		case r.CIDR == "":
			sheet.Add(draw.T(draw.Faint, "No map: no node reports the CIDR of this subnet (upstream daemons do not)."))
		default:
			sheet.Add(draw.T(draw.Faint, r.CIDR+" is not an IPv4 CIDR of a VPC subnet (/16 to /28): no map."))
		}
		sheet.Add(draw.T(draw.Text, words(r)))
		return draw.Exactly(sheet.Lines(), width, height)
	}
	of := heatOf(r.SubnetUse, m.board.cells)
	m.foot(sheet, v, r)
	foot, head := sheet.Lines(), legend(s, width, of.signs())
	if height < 8 {
		head, foot = head[:min(len(head), 1)], foot[:min(len(foot), 1)]
	}
	blocks := draw.BlockMap{
		Count: len(m.board.cells), Cells: of.block, Cursor: -1,
		Label: func(i int) string { return inventory.PrefixAt(r.Range, i).Addr().String() },
	}
	if m.frame.Focus == paneMap {
		blocks.Cursor = m.board.cursor
	}
	room := max(height-len(head)-len(foot), 0)
	slope := slope{r.Trend, r.Forecast.Left}
	chart := slope.lines(s, width, min(room/3, lowChart))
	blocks.Arrange(width, room-len(chart))
	if rest := min(room-blocks.Rows(), mostChart); len(chart) > 0 && rest > len(chart) { // of a small map
		chart = slope.lines(s, width, rest)
	}
	m.board.wide = blocks.Columns
	lines := append([]string(nil), head...)
	lines = append(lines, blocks.Lines(s, width, min(blocks.Rows(), room-len(chart)))...)
	lines = append(append(lines, foot...), chart...)
	return draw.Exactly(lines, width, height)
}

// Rows of the chart of free addresses: at most beside a large map, and at most.
const lowChart, mostChart = 8, 16

// legend returns the meaning and the count of each sign.
func legend(s draw.Style, width int, signs []sign) []string {
	l := draw.NewLine(s, width)
	var lines []string
	for _, part := range signs {
		count := " " + draw.Thousands(part.count)
		if l.Room() < 1+len(count)+1+len(part.words) && l.Room() < width { // a sign stays with its words
			lines = append(lines, l.String())
			l = draw.NewLine(s, width)
		}
		if !s.Linear {
			l.Add(part.cell.Role, s.Pick(part.cell.Glyph, part.cell.ASCII))
		}
		l.Add(draw.Text, count).Add(draw.Faint, " "+part.words).Gap(2)
	}
	return append(lines, l.String())
}

// foot describes the block under the cursor and the trend of the subnet.
func (m *Model) foot(sheet *draw.Sheet, v *store.View, r *row) {
	b := m.board.cells[m.board.cursor]
	at := b.Prefix.String()
	switch {
	case m.frame.Focus != paneMap:
	case b.Held > 0:
		what := map[store.BlockUse]string{
			store.BlockPrefix: "a prefix", store.BlockMixed: "fragmented by single IPs, unusable as a prefix",
			store.BlockPrimary: "an interface's own address",
		}[b.Use]
		sheet.Add(draw.T(draw.Text, at+"  "), draw.T(draw.Text, what),
			draw.T(draw.Faint, "  "+strconv.Itoa(b.Used)+" used of "+strconv.Itoa(b.Held)+" held"),
			draw.T(draw.Text, "  "+m.holders(v, r, b)))
	case b.Use == inventory.ReservedBlock:
		sheet.Add(draw.T(draw.Text, at), draw.T(draw.Faint, "  contains addresses reserved by EC2, unusable as a prefix"))
	default:
		sheet.Add(draw.T(draw.Text, at), draw.T(draw.Faint, "  not held by any node: free, or used by others"))
	}
	role := draw.Text
	if r.Forecast.Left > 0 {
		role = draw.Warn
	}
	sheet.Add(draw.T(draw.Header, "FREE ADDRESSES  "), draw.T(role, words(r)))
}

// holders names the nodes that have addresses in a block, with how many if they are several.
func (m *Model) holders(v *store.View, r *row, b inventory.SubnetCell) string {
	if v == nil {
		return b.Node
	}
	if m.whole == nil {
		m.whole = new(inventory.SubnetMapOf(v, r.SubnetUse))
	}
	all := m.whole.In(b.Prefix)
	if len(all) < 2 {
		return b.Node
	}
	const most = 4
	var names []string
	for _, h := range all[:min(most, len(all))] {
		names = append(names, h.Node.Metadata.Name+" "+strconv.Itoa(h.Held))
	}
	if more := len(all) - most; more > 0 {
		names = append(names, human.Plural(more, "more node", "more nodes"))
	}
	return strings.Join(names, ", ")
}
