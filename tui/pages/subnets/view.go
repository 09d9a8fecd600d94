package subnets

import (
	"strconv"
	"strings"

	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/components"
	"cnictl/tui/components/prose"
	"cnictl/tui/pages"
	"cnictl/tui/pages/reading"
	"cnictl/tui/show"
	"cnictl/tui/theme"
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
			note = show.Plural(len(m.board.cells), "/28", "/28s")
		}
	}
	return m.frame.Draw(s, c.Width, c.Height, []string{m.header(c, s)}, []components.Pane{
		{Title: "Subnets", Weight: 1, Least: 3, Lines: func(s components.Style, w, h int) []string { return reading.Table(c, s, m.table, w, h) }},
		{Title: title, Note: note, Weight: 2, Least: 4, Lines: func(s components.Style, w, h int) []string {
			if !ok {
				return []string{components.NewLine(s, w).Add(theme.Faint, "No subnet selected.").String()}
			}
			return m.draw(s, r, w, h)
		}},
	})
}

func (m *Model) header(c pages.Context, s components.Style) string {
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
	l := components.NewLine(s, c.Width).Add(theme.Text, show.Plural(len(rows), "subnet", "subnets")).Gap(2)
	if len(rows) == 0 {
		return l.String()
	}
	l.Add(theme.Text, atLeast+components.Thousands(free)+" free").Gap(2).Add(theme.Text, atLeast+components.Thousands(held)+" held").Gap(2).Add(theme.Text, atLeast+components.Thousands(wasted)+" held free").Gap(2)
	if short > 0 {
		l.Add(theme.Bad, strconv.Itoa(short)+" short").Gap(2)
	}
	bars(l, s)
	return l.String()
}

// bars writes the legend of the gauges, if it fits.
func bars(l *components.Line, s components.Style) {
	signs := []struct {
		role theme.Role
		word string
	}{{theme.BarUsed, "used"}, {theme.BarFree, "held free"}, {theme.BarOthers, "others"}, {theme.BarRoom, "free"}}
	const room = 40
	if s.Linear || l.Room() < room {
		return
	}
	for _, sign := range signs {
		l.Drawn(components.Strip(s, []components.Cell{components.CellOf(sign.role)}), 1).Add(theme.Faint, " "+sign.word).Gap(2)
	}
}

// draw writes what the signs of the map mean, the map, the block under the cursor, and the trend of
// the free addresses.
func (m *Model) draw(s components.Style, r *row, width, height int) []string {
	sheet := prose.NewSheet(s, width)
	if len(m.board.cells) == 0 {
		switch {
		case r.CIDR == "":
			sheet.Add(prose.T(theme.Faint, "No map: no node reports the CIDR of this subnet (upstream daemons do not)."))
		default:
			sheet.Add(prose.T(theme.Faint, r.CIDR+" is not an IPv4 CIDR of a VPC subnet (/16 to /28): no map."))
		}
		sheet.Add(prose.T(theme.Text, words(r)))
		return components.Exactly(sheet.Lines(), width, height)
	}
	of := heatOf(r.SubnetUse, m.board.cells)
	m.foot(sheet, r)
	foot, head := sheet.Lines(), legend(s, width, of.signs())
	if height < 8 {
		head, foot = head[:min(len(head), 1)], foot[:min(len(foot), 1)]
	}
	blocks := components.BlockMap{
		Count: len(m.board.cells), Cells: of.block, Cursor: -1,
		Label: func(i int) string { return inventory.PrefixAt(r.Range, i).Addr().String() },
	}
	if m.frame.Focus == paneMap {
		blocks.Cursor = m.board.cursor
	}
	room := max(height-len(head)-len(foot), 0)
	slope := slope{r.Trend, r.Forecast.Left}
	chart := slope.lines(s, width, min(room/3, mostChart))
	blocks.Arrange(width, room-len(chart))
	m.board.wide = blocks.Columns
	lines := append([]string(nil), head...)
	lines = append(lines, blocks.Lines(s, width, min(blocks.Rows(), room-len(chart)))...)
	lines = append(append(lines, foot...), chart...)
	return components.Exactly(lines, width, height)
}

// mostChart is the most rows of the chart of free addresses.
const mostChart = 8

// legend returns the meaning and the count of each sign.
func legend(s components.Style, width int, signs []sign) []string {
	l := components.NewLine(s, width)
	var lines []string
	for _, part := range signs {
		count := " " + components.Thousands(part.count)
		if l.Room() < 1+len(count)+1+len(part.words) && l.Room() < width { // a sign stays with its words
			lines = append(lines, l.String())
			l = components.NewLine(s, width)
		}
		if !s.Linear {
			l.Add(part.cell.Role, s.Pick(part.cell.Glyph, part.cell.ASCII))
		}
		l.Add(theme.Text, count).Add(theme.Faint, " "+part.words).Gap(2)
	}
	return append(lines, l.String())
}

// foot describes the block under the cursor and the trend of the subnet.
func (m *Model) foot(sheet *prose.Sheet, r *row) {
	at := inventory.PrefixAt(r.Range, m.board.cursor).String()
	b, known := inventory.BlockAt(r.SubnetUse, m.board.cursor)
	switch {
	case m.frame.Focus != paneMap:
	case known:
		what := map[store.BlockUse]string{
			store.BlockPrefix: "a prefix", store.BlockMixed: "fragmented by single IPs, unusable as a prefix", store.BlockPrimary: "an interface's own address",
		}[b.Use]
		sheet.Add(prose.T(theme.Text, at+"  "), prose.T(theme.Text, what),
			prose.T(theme.Faint, "  "+strconv.Itoa(b.Used)+" used of "+strconv.Itoa(b.Held)+" held"), prose.T(theme.Text, "  "+b.Node))
	case m.board.cells[m.board.cursor] == inventory.ReservedBlock:
		sheet.Add(prose.T(theme.Text, at), prose.T(theme.Faint, "  contains addresses reserved by EC2, unusable as a prefix"))
	default:
		sheet.Add(prose.T(theme.Text, at), prose.T(theme.Faint, "  not held by any node: free, or used by others"))
	}
	role := theme.Text
	if r.Forecast.Left > 0 {
		role = theme.Warn
	}
	sheet.Add(prose.T(theme.Header, "FREE ADDRESSES  "), prose.T(role, words(r)))
}
