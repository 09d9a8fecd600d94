package tables

import (
	"cnictl/daemon/fleet/store"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// nodeColumns is the number of columns in nodeTable.
const nodeColumns = 37

// nodeCells holds the texts of a node's columns, as a terminal shows them.
type nodeCells struct {
	text  string
	lower string // text with ASCII letters in lower case
	ends  [nodeColumns]uint32
}

// NodeCells makes the texts of a node's columns once per sample, for [store.Store.Prepare]: filters
// and orders of a screen read them for every row, again and again.
func NodeCells(n *store.Node) any { return cellsOf(n) }

func cellsOf(n *store.Node) *nodeCells {
	c := &nodeCells{}
	buf := make([]byte, 0, 256)
	for i := range nodeTable {
		buf = append(buf, show.Safe(nodeTable[i].text(n))...)
		c.ends[i] = uint32(len(buf))
	}
	c.text = string(buf)
	for i, b := range buf {
		if 'A' <= b && b <= 'Z' {
			buf[i] += 'a' - 'A'
		}
	}
	c.lower = string(buf)
	return c
}

func (c *nodeCells) at(i int) string {
	if i == 0 {
		return c.text[:c.ends[0]]
	}
	return c.text[c.ends[i-1]:c.ends[i]]
}

// nodeColumn is a column of nodeTable before its texts are cached.
type nodeColumn struct {
	query.Column[*store.Node]
	text func(*store.Node) string
}

// Nodes returns all columns of nodes in display order, for cnictl nodes and the overview.
func Nodes() []query.Column[*store.Node] {
	out := make([]query.Column[*store.Node], len(nodeTable))
	for i := range nodeTable {
		c, text := nodeTable[i].Column, nodeTable[i].text
		c.Text = func(n *store.Node) string {
			if made, ok := n.Derived().(*nodeCells); ok {
				return made.at(i)
			}
			return show.Safe(text(n))
		}
		c.Joined = joined
		switch c.Name {
		case "assigned":
			c = c.Headed("USED")
		case "limit":
			c = c.Headed("MAX")
		}
		out[i] = c
	}
	return out
}

func joined(n *store.Node) string {
	if made, ok := n.Derived().(*nodeCells); ok {
		return made.lower
	}
	return cellsOf(n).lower
}
