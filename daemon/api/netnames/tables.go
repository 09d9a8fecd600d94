package netnames

// MainTable is the kernel's main route table, which serves the primary ENI.
const MainTable = 254

// RouteTable is the route table of an ENI: main for the primary one (card 0,
// device 0), device+1 for the others on card 0, and 10000 + 100·card + device on
// further network cards, the numbering that amazon-ec2-net-utils and nodeadm use.
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

// LegacyRouteTable is the route table that older releases gave the ENIs of further
// network cards: device + 1 + card·(ENIs of a card). Nodes that were upgraded still
// have rules into it.
func LegacyRouteTable(card, device, enisPerCard int) int { return device + 1 + card*enisPerCard }

// IsENITable reports whether a route table can be that of a secondary ENI: see
// [RouteTable]. No instance type has more than 100 ENIs on a card.
func IsENITable(table int) bool {
	return 2 <= table && table <= 101 || 10100 <= table && table < 20000
}

// BranchTable is the route table of a branch ENI; false for a VLAN id that none has. The
// tables of higher ids would be the kernel's own.
func BranchTable(vlan int) (table int, ok bool) {
	if vlan < 1 || vlan > MaxVLAN {
		return 0, false
	}
	return 100 + vlan, true
}

// MaxVLAN is the highest VLAN id that the VPC resource controller gives a branch ENI; the
// lowest is 1.
const MaxVLAN = 120

// LocalTable is the kernel's table of the node's own addresses.
const LocalTable = 255

// IsMain reports whether a table number read from a result or from the wire means
// the main table; releases before the numbering of [RouteTable] stored 1 for it.
// 0 is not among them: in a rule it matches any table.
func IsMain(table int) bool { return table == MainTable || table == 1 }
