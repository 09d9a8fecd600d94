package inventory

import (
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// HeldAddress is an address with the time of its report, by the node's clock.
type HeldAddress struct {
	document.AddressItem
	At *time.Time
}

// Addresses returns the addresses of a node.
func Addresses(n document.NodeIPAM) []HeldAddress {
	items := document.FlattenAddresses(n.Metadata.Name, n.ENIs)
	rows := make([]HeldAddress, len(items))
	for i, item := range items {
		rows[i] = HeldAddress{item, n.SampledAt}
	}
	return rows
}

// AddressItems returns the documents of addresses.
func AddressItems(rows []HeldAddress) []document.AddressItem {
	items := make([]document.AddressItem, len(rows))
	for i, r := range rows {
		items[i] = r.AddressItem
	}
	return items
}

// ENIItems returns the ENIs of a node with its name.
func ENIItems(node string, enis []introspect.NodeENI) []document.ENIItem {
	items := make([]document.ENIItem, len(enis))
	for i, e := range enis {
		items[i] = document.ENIItem{Node: node, NodeENI: e}
	}
	return items
}

// ENIKind is the kind of an ENI.
func ENIKind(e introspect.NodeENI) string {
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{{e.Primary, "primary"}, {e.Trunk, "trunk"}, {e.EFA, "efa"}, {e.Excluded, "excluded"}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	if len(words) == 0 {
		return "secondary"
	}
	return strings.Join(words, ",")
}
