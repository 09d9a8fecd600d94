package node

import (
	"fmt"
	"strconv"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// enis draws the table of ENIs, below it the blocks of the one under the cursor, and then
// the sections of the pool that fit completely. placed is the number of these sections.
func (m *Model) enis(c pages.Context, s draw.Style, n *store.Node, width, height int) (lines []string, placed int) {
	_, all := m.table.Found()
	if all == 0 {
		sheet := draw.NewSheet(s, width)
		if n != nil && n.Known && m.docs.Has(watch.WantENIs) {
			sheet.Add(draw.T(draw.Faint, "No ENIs managed by the daemon on this node."))
		} else {
			sheet.Add(draw.T(draw.Faint, pages.Missing(c, &m.docs, watch.WantENIs, n, "The ENIs")))
		}
		return draw.Exactly(sheet.Lines(), width, height), 0
	}
	shown, _ := m.table.Found()
	rows := min(shown+1, max(height*3/5, 3))
	if height < 6 {
		rows = height
	}
	lines = m.table.Lines(s, width, rows)
	if r, ok := m.table.Row(); ok && height-rows > 2 {
		sheet := draw.NewSheet(s, width)
		m.blocks(c, n, sheet, r, height-rows)
		lines = append(lines, draw.Exactly(sheet.Lines(), width, min(sheet.Len(), height-rows))...)
	}
	if c.Width < components.SideBySide || n == nil || n.Summary == nil {
		return draw.Exactly(lines, width, height), 0
	}
	for _, write := range sections() {
		sheet := draw.NewSheet(s, width)
		write(sheet, n, c.Now)
		if len(lines)+1+sheet.Len() > height {
			break
		}
		placed++
		if sheet.Len() > 0 {
			lines = append(append(lines, draw.Blank(width)), sheet.Lines()...)
		}
	}
	return draw.Exactly(lines, width, height), placed
}

// blockWidth is the width of a prefix with its cells.
const blockWidth = 38

// blockRows returns how many rows the addresses of the ENI under the cursor take, including
// the title above them.
func (m *Model) blockRows(width int) int {
	r, ok := m.table.Row()
	if !ok {
		return 0
	}
	perRow := max(width/blockWidth, 1)
	return 3 + (max(r.Prefixes, 1)+perRow-1)/perRow - 1
}

// blocks draws the addresses of an ENI: single ones first, then prefixes.
func (m *Model) blocks(c pages.Context, n *store.Node, sheet *draw.Sheet, r eniRow, height int) {
	s := c.Style()
	sheet.Drawn(draw.Blank(sheet.Width()))
	l := draw.NewLine(s, sheet.Width()).Add(draw.Header, r.ID).Gap(2)
	draw.AddressSigns(l, s, true)
	sheet.Drawn(l.String())
	if !r.Detailed {
		sheet.Add(draw.T(draw.Faint, pages.Missing(c, &m.docs, watch.WantENIs, n, "Its addresses")))
		return
	}
	var singles []draw.Cell
	var blocks []introspect.NodeCIDR
	for _, cidr := range r.CIDRs {
		if cidr.IsPrefix() {
			blocks = append(blocks, cidr)
		} else {
			singles = append(singles, draw.AddressCells(cidr)...)
		}
	}
	if len(singles) > 0 || len(blocks) == 0 {
		if r.Slots != nil && r.PerSlot == 1 {
			for range *r.Slots - len(singles) - len(blocks) {
				singles = append(singles, draw.CellEmpty)
			}
		}
		addresses(s, sheet, singles)
	}
	const name = 20
	perRow := max(sheet.Width()/blockWidth, 1)
	room := (height - sheet.Len()) * perRow
	for i := 0; i < len(blocks); i += perRow {
		if i >= room-perRow && len(blocks) > room {
			sheet.Add(draw.T(draw.Faint, "and "+strconv.Itoa(len(blocks)-i)+" more prefixes: enter shows all"))
			return
		}
		l := draw.NewLine(s, sheet.Width())
		for j := i; j < min(i+perRow, len(blocks)); j++ {
			l.To((j-i)*blockWidth).Add(draw.Text, s.Fit(blocks[j].CIDR.String(), name, false))
			if cells := draw.AddressCells(blocks[j]); cells != nil && !s.Linear {
				l.Drawn(draw.Strip(s, cells), len(cells))
			} else {
				l.Add(draw.Faint, show.Count(blocks[j].Assigned)+" used of "+show.Count(blocks[j].Total))
			}
		}
		sheet.Drawn(l.String())
	}
}

// counted describes cells in words.
func counted(cells []draw.Cell) string {
	n := map[draw.Cell]int{}
	for _, c := range cells {
		n[c]++
	}
	return fmt.Sprintf("slots: %d used, %d cooling, %d free, %d empty",
		n[draw.CellUsed], n[draw.CellCooling], n[draw.CellFree], n[draw.CellEmpty])
}

// addresses draws single addresses, one cell per slot.
func addresses(s draw.Style, sheet *draw.Sheet, cells []draw.Cell) {
	if len(cells) == 0 {
		sheet.Add(draw.T(draw.Faint, "No addresses for pods on this ENI."))
		return
	}
	if s.Linear {
		sheet.Add(draw.T(draw.Text, counted(cells)))
		return
	}
	width := max(sheet.Width()-6, 1)
	for i := 0; i < len(cells); i += width {
		part := cells[i:min(i+width, len(cells))]
		label := ""
		if i == 0 {
			label = "slots"
		}
		sheet.Drawn(draw.NewLine(s, sheet.Width()).Add(draw.Faint, s.Fit(label, 6, false)).Drawn(draw.Strip(s, part), len(part)).String())
	}
}
