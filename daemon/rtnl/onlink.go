package rtnl

import (
	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// AddrAddOnLink is AddrAdd with link scope: the address is no source of packets that
// leave by other links.
func (b *Batch) AddrAddOnLink(a netstate.Address) {
	const scope = 3 // of struct ifaddrmsg
	b.begin("add address", unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	start := len(b.buf)
	b.addr(a)
	b.buf[start+scope] = unix.RT_SCOPE_LINK
}
