package names

import (
	"strings"

	"cnictl/daemon/fleet/store"
	"cnictl/tui/show"
)

// Nodes shortens the names of nodes by their common domain, to save width.
type Nodes struct{ domain string }

// Learn finds the common domain of the current nodes.
func (n *Nodes) Learn(nodes []*store.Node) {
	n.domain = show.Domain(func(yield func(string) bool) {
		for _, node := range nodes {
			if !yield(node.Metadata.Name) {
				return
			}
		}
	})
}

// Short returns a name as a table shows it.
func (n *Nodes) Short(name string) string { return show.Safe(strings.TrimSuffix(name, n.domain)) }

// Cell returns the short name if column is the node column of a table, else false.
func (n *Nodes) Cell(name, column string) (string, bool) {
	if column != "node" {
		return "", false
	}
	return n.Short(name), true
}

// Host returns the first label of a node's name. An address is returned unchanged.
func Host(name string) string {
	host, _, _ := strings.Cut(name, ".")
	if host == "" || strings.Trim(host, "0123456789") == "" {
		return name
	}
	return host
}
