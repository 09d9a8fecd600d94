package store

import (
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// nodeColumns is the number of columns in nodeTable.
const nodeColumns = 37

// nodeCells holds the texts of a node's columns, as a terminal shows them. They are built once per
// sample, since filters and orders read them for every row.
type nodeCells struct {
	text  string
	lower string // text with ASCII letters in lower case
	ends  [nodeColumns]uint32
}

func cellsOf(n *Node) *nodeCells {
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
	query.Column[*Node]
	text func(*Node) string
}

// NodeColumns returns all columns of nodes in display order, for cnictl nodes and the
// overview.
func NodeColumns() []query.Column[*Node] {
	out := make([]query.Column[*Node], len(nodeTable))
	for i := range nodeTable {
		c, text := nodeTable[i].Column, nodeTable[i].text
		c.Text = func(n *Node) string {
			if n.cells != nil {
				return n.cells.at(i)
			}
			return text(n)
		}
		c.Joined = joined
		out[i] = c
	}
	return out
}

func joined(n *Node) string {
	if n.cells != nil {
		return n.cells.lower
	}
	return cellsOf(n).lower
}
