package rtnl

import (
	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// RouteAdd adds a route. EEXIST: one to that destination exists.
func (b *Batch) RouteAdd(r netstate.Route) {
	b.begin("add route", unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	b.route(r, unix.RTPROT_BOOT, unix.RTN_UNICAST)
}

// RouteReplace adds a route, replacing one to the same destination.
func (b *Batch) RouteReplace(r netstate.Route) {
	b.begin("replace route", unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	b.route(r, unix.RTPROT_BOOT, unix.RTN_UNICAST)
}

// RouteDel deletes the first matching route: zero members match any, and so does Scope
// Nowhere. ESRCH: there is none.
func (b *Batch) RouteDel(r netstate.Route) {
	b.begin("delete route", unix.RTM_DELROUTE, 0)
	b.route(r, unix.RTPROT_UNSPEC, unix.RTN_UNSPEC)
}

func (b *Batch) route(r netstate.Route, proto, kind uint8) {
	fam := uint8(unix.AF_INET)
	switch {
	case r.Dst.IsValid():
		fam = Family(r.Dst.Addr())
	case r.Gateway.IsValid():
		fam = Family(r.Gateway)
	}
	table := r.Table
	if table == 0 {
		table = unix.RT_TABLE_MAIN
	}
	small := uint8(unix.RT_TABLE_UNSPEC) // RTA_TABLE carries larger numbers
	if table <= 255 {
		small = uint8(table)
	}
	bits := 0
	if r.Dst.IsValid() {
		bits = r.Dst.Bits()
	}
	b.buf = append(b.buf, fam, uint8(bits), 0, 0, small, proto, uint8(r.Scope), kind)
	b.buf = appendU32(b.buf, 0)
	if bits > 0 {
		b.attrAddr(unix.RTA_DST, r.Dst.Addr())
	}
	if r.Gateway.IsValid() {
		b.attrAddr(unix.RTA_GATEWAY, r.Gateway)
	}
	if r.Source.IsValid() {
		b.attrAddr(unix.RTA_PREFSRC, r.Source)
	}
	if r.Link != 0 {
		b.attrU32(unix.RTA_OIF, uint32(r.Link))
	}
	b.attrU32(unix.RTA_TABLE, uint32(table))
	b.end()
}
