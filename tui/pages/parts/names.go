package parts

import (
	"strings"

	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
)

// Names writes the names of nodes without the domain that all of them have, where a
// table has little room.
type Names struct{ domain string }

// Learn takes the names that there are now.
func (n *Names) Learn(nodes []*store.Node) { n.domain = domain(nodes) }

// Short is a name as a table shows it.
func (n *Names) Short(name string) string { return show.Safe(strings.TrimSuffix(name, n.domain)) }

// Cell is the name for the column of nodes of a table; false: it is another column.
func (n *Names) Cell(name, column string) (string, bool) {
	if column != "node" {
		return "", false
	}
	return n.Short(name), true
}

// domain is what all names have from their first dot on; "" = they differ.
func domain(nodes []*store.Node) string {
	if len(nodes) == 0 {
		return ""
	}
	first := nodes[0].Metadata.Name
	dot := strings.IndexByte(first, '.')
	if dot <= 0 {
		return ""
	}
	for _, n := range nodes {
		if name := n.Metadata.Name; strings.IndexByte(name, '.') <= 0 || name[strings.IndexByte(name, '.'):] != first[dot:] {
			return ""
		}
	}
	return first[dot:]
}
