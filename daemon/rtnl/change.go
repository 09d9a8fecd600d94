package rtnl

import (
	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// Change appends a change, as one message. A change that is already in place is not a
// failure.
func (b *Batch) Change(c netstate.Change) {
	switch c.Do {
	case netstate.SetUp:
		b.LinkUp(c.Link.Index)
	case netstate.SetMTU:
		b.LinkMTU(c.Link.Index, c.Link.MTU)
	case netstate.SetMAC:
		b.LinkMAC(c.Link.Index, c.Link.MAC)
	case netstate.AddVLAN:
		b.VLAN(c.Link.Name, c.Link.Parent, c.Link.VLAN, c.Link.MAC)
		b.Tolerate(unix.EEXIST)
	case netstate.DelLink:
		if c.Link.Index != 0 {
			b.LinkDel(c.Link.Index)
		} else {
			b.LinkDelName(c.Link.Name)
		}
		b.Tolerate(unix.ENODEV)
	case netstate.AddAddress:
		b.AddrReplace(c.Address)
	case netstate.DelAddress:
		b.AddrDel(c.Address)
		b.Tolerate(unix.EADDRNOTAVAIL)
	case netstate.AddRoute:
		b.RouteAdd(c.Route)
		b.Tolerate(unix.EEXIST)
	case netstate.PutRoute:
		b.RouteReplace(c.Route)
	case netstate.DelRoute:
		b.RouteDel(c.Route)
		b.Tolerate(unix.ESRCH)
	case netstate.AddRule:
		b.RuleAdd(c.Rule)
		b.Tolerate(unix.EEXIST)
	case netstate.DelRule:
		b.RuleDel(c.Rule)
		b.Tolerate(unix.ENOENT)
	}
}

// Took reports whether message i of a sent batch took effect, or did not need to.
func (b *Batch) Took(i int) bool {
	return b.msgs[i].errno == 0 || b.msgs[i].errno == b.msgs[i].tolerated
}
