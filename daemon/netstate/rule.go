package netstate

import (
	"net/netip"
	"strconv"
)

// Rule is a policy rule that looks up a table. A zero member sets no condition. For
// deletion a zero Table matches any.
type Rule struct {
	Priority int
	From, To netip.Prefix
	Table    int
	Mark     uint32
	Mask     uint32 // of Mark; 0 with a Mark reads as all ones
	InLink   string // the link by which the packet came in
	Protocol uint8  // IP protocol; kernels before 4.17 lack it
	IPv6     bool
	Other    bool // only listed: it has further conditions, or is inverted; never ours
}

// Restricted reports whether the rule has conditions that our rules for addresses never
// have.
func (r Rule) Restricted() bool { return r.Other || r.InLink != "" || r.Protocol != 0 }

// String prints the rule as `ip rule` does.
func (r Rule) String() string {
	text := strconv.Itoa(r.Priority) + ": from " + rangeText(r.From)
	if r.To.IsValid() {
		text += " to " + rangeText(r.To)
	}
	if r.Mark != 0 || r.Mask != 0 {
		text += " fwmark 0x" + strconv.FormatUint(uint64(r.Mark), 16)
		if r.Mask != 0 && r.Mask != 0xffffffff {
			text += "/0x" + strconv.FormatUint(uint64(r.Mask), 16)
		}
	}
	if r.InLink != "" {
		text += " iif " + r.InLink
	}
	switch r.Protocol {
	case 0:
	case ICMPv6:
		text += " ipproto ipv6-icmp"
	default:
		text += " ipproto " + strconv.Itoa(int(r.Protocol))
	}
	if r.Table != 0 {
		text += " lookup " + tableName(r.Table)
	}
	return text
}

// ICMPv6 is its IP protocol number.
const ICMPv6 = 58
