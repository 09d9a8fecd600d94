package subnets

import (
	"strconv"

	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/subnets"
	"cnictl/tui/components"
	"cnictl/tui/components/prose"
	"cnictl/tui/pages"
	"cnictl/tui/pages/reading"
	"cnictl/tui/theme"
)

// Cells of the map. Signs differ in shape, not only in colour.
var (
	cellUnknown  = components.CellOf(theme.BarRoom)
	cellPrefix   = components.CellOf(theme.BarUsed)
	cellMixed    = components.Cell{Glyph: "×", ASCII: "x", Role: theme.BarCooling}
	cellPrimary  = components.Cell{Glyph: "○", ASCII: "o", Role: theme.Info}
	cellReserved = components.Cell{Glyph: "R", ASCII: "R", Role: theme.Faint}
)

func cellOf(use store.BlockUse) components.Cell {
	switch use {
	case store.BlockPrefix:
		return cellPrefix
	case store.BlockMixed:
		return cellMixed
	case store.BlockPrimary:
		return cellPrimary
	case subnets.Reserved:
		return cellReserved
	}
	return cellUnknown
}

// Lines implements pages.Page.
func (m *Model) Lines(c pages.Context) []string {
	s := c.Style()
	m.aim() // the app may sort and filter the table between two updates
	r, ok := m.table.Row()
	shown, _ := m.table.Found()
	m.frame.Need = []int{max(shown, 1) + 1}
	title, note := "Map of /28s", ""
	if ok {
		title += " of " + show.Safe(r.ID)
		if len(m.board.cells) > 0 {
			note = strconv.Itoa(m.board.cursor+1) + "/" + strconv.Itoa(len(m.board.cells))
		}
	}
	return m.frame.Draw(s, c.Width, c.Height, []string{m.header(c, s)}, []components.Pane{
		{Title: "Subnets", Weight: 3, Least: 3, Lines: func(s components.Style, w, h int) []string { return reading.Table(c, s, m.table, w, h) }},
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
		if subnets.Short(r.SubnetUse) {
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
	l.Add(theme.Text, atLeast+components.Thousands(free)+" free").Gap(2).Add(theme.Text, atLeast+components.Thousands(held)+" held").Gap(2).Add(theme.Text, atLeast+components.Thousands(wasted)+" wasted").Gap(2)
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
	}{{theme.BarUsed, "used"}, {theme.BarFree, "wasted"}, {theme.BarOthers, "others'"}, {theme.BarRoom, "free"}}
	const room = 40
	if s.Linear || l.Room() < room {
		return
	}
	for _, sign := range signs {
		l.Drawn(components.Strip(s, []components.Cell{components.CellOf(sign.role)}), 1).Add(theme.Faint, " "+sign.word).Gap(2)
	}
}

// draw writes a legend, the map, and the block under the cursor.
func (m *Model) draw(s components.Style, r *row, width, height int) []string {
	sheet := prose.NewSheet(s, width)
	if len(m.board.cells) == 0 {
		switch {
		case r.CIDR == "":
			sheet.Add(prose.T(theme.Faint, "No map: no node reports the CIDR of this subnet (upstream daemons do not)."))
		default:
			sheet.Add(prose.T(theme.Faint, show.Safe(r.CIDR)+" is not an IPv4 CIDR of a VPC subnet (/16 to /28): no map."))
		}
		sheet.Add(prose.T(theme.Text, words(r)))
		return components.Exactly(sheet.Lines(), width, height)
	}
	m.foot(sheet, r)
	foot := sheet.Lines()
	head := legend(s, width, m.board.cells)
	if height < 8 {
		head = head[:min(len(head), 1)]
		foot = foot[:min(len(foot), 1)]
	}
	cursor := -1
	if m.frame.Focus == paneMap {
		cursor = m.board.cursor
	}
	blocks := components.BlockMap{
		Count: len(m.board.cells), Cell: func(i int) components.Cell { return cellOf(m.board.cells[i]) }, Cursor: cursor,
		Label: func(i int) string { return subnets.PrefixAt(r.Range, i).Addr().String() },
	}
	m.board.wide = blocks.Columns(width)
	rows := (len(m.board.cells) + m.board.wide - 1) / m.board.wide
	room := max(min(rows, height-len(head)-len(foot)), 0)
	lines := append([]string(nil), head...)
	lines = append(lines, blocks.Lines(s, width, room)...)
	lines = append(lines, foot...)
	return components.Exactly(lines, width, height)
}

// legend returns the meaning and the count of each sign.
func legend(s components.Style, width int, cells []store.BlockUse) []string {
	l := components.NewLine(s, width)
	var lines []string
	for _, part := range []struct {
		use  store.BlockUse
		word string
	}{
		{0, "free or used by others"}, {store.BlockPrefix, "prefixes of nodes"}, {store.BlockMixed, "fragmented by single IPs"},
		{store.BlockPrimary, "interfaces' own addresses"}, {subnets.Reserved, "reserved by EC2"},
	} {
		n := subnets.Count(cells, part.use)
		if n == 0 && part.use != 0 {
			continue
		}
		cell := cellOf(part.use)
		count := " " + strconv.Itoa(n)
		if l.Room() < 1+len(count)+1+len(part.word) && l.Room() < width { // a sign stays with its words
			lines = append(lines, l.String())
			l = components.NewLine(s, width)
		}
		l.Add(cell.Role, s.Pick(cell.Glyph, cell.ASCII)).Add(theme.Text, count).Add(theme.Faint, " "+part.word).Gap(2)
	}
	return append(lines, l.String())
}

// foot describes the block under the cursor and the trend of the subnet.
func (m *Model) foot(sheet *prose.Sheet, r *row) {
	at := subnets.PrefixAt(r.Range, m.board.cursor).String()
	b, known := subnets.BlockAt(r.SubnetUse, m.board.cursor)
	switch {
	case known:
		what := map[store.BlockUse]string{store.BlockPrefix: "a prefix", store.BlockMixed: "fragmented by single IPs, unusable as a prefix", store.BlockPrimary: "an interface's own address"}[b.Use]
		sheet.Add(prose.T(theme.Text, at+"  "), prose.T(theme.Text, what), prose.T(theme.Faint, "  "+strconv.Itoa(b.Used)+" used of "+strconv.Itoa(b.Held)+" held"), prose.T(theme.Text, "  "+show.Safe(b.Node)))
	case m.board.cells[m.board.cursor] == subnets.Reserved:
		sheet.Add(prose.T(theme.Text, at), prose.T(theme.Faint, "  contains addresses reserved by EC2, unusable as a prefix"))
	default:
		sheet.Add(prose.T(theme.Text, at), prose.T(theme.Faint, "  free, or used by others"))
	}
	sheet.Add(prose.T(theme.Faint, "free addresses: "), prose.T(theme.Text, words(r)))
}
