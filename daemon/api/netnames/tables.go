package netnames

// MainTable is the kernel's main route table, which the primary ENI uses.
const MainTable = 254

// RouteTable returns the route table of an ENI: main for the primary one (card 0, device
// 0), device+1 for the others on card 0, and 10000 + 100·card + device on further network
// cards, the numbering that amazon-ec2-net-utils and nodeadm use.
func RouteTable(card, device int) int {
	switch {
	case card > 0:
		return 10000 + 100*card + device
	case device > 0:
		return device + 1
	default:
		return MainTable
	}
}

// LegacyRouteTable returns the route table that older releases gave the ENIs of further
// network cards: device + 1 + card·(ENIs of a card). Upgraded nodes still have rules that
// use it.
func LegacyRouteTable(card, device, enisPerCard int) int { return device + 1 + card*enisPerCard }

// IsENITable reports whether a route table can belong to a secondary ENI, see [RouteTable].
// No instance type has more than 100 ENIs on a card.
func IsENITable(table int) bool {
	return 2 <= table && table <= 101 || 10100 <= table && table < 20000
}

// BranchTable returns the route table of a branch ENI, or false for a VLAN id outside 1 to
// MaxVLAN. Higher ids would lead to the kernel's own tables.
func BranchTable(vlan int) (table int, ok bool) {
	if vlan < 1 || vlan > MaxVLAN {
		return 0, false
	}
	return 100 + vlan, true
}

// MaxVLAN is the highest VLAN id that the VPC resource controller assigns to a branch ENI;
// the lowest is 1.
const MaxVLAN = 120

// LocalTable is the kernel's table for the node's own addresses.
const LocalTable = 255

// IsMain reports whether a table number from a result or from the wire means the main
// table. Releases before the numbering of [RouteTable] stored 1 for it. 0 does not: in a
// rule it matches any table.
func IsMain(table int) bool { return table == MainTable || table == 1 }
