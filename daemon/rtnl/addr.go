package rtnl

import (
	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// AddrAdd adds an address. EEXIST: the link already has it.
func (b *Batch) AddrAdd(a netstate.Address) {
	b.begin("add address", unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	b.addr(a)
}

// AddrReplace adds an address, or keeps an existing one.
func (b *Batch) AddrReplace(a netstate.Address) {
	b.begin("replace address", unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	b.addr(a)
}

// AddrDel deletes an address. EADDRNOTAVAIL: it does not exist.
func (b *Batch) AddrDel(a netstate.Address) {
	b.begin("delete address", unix.RTM_DELADDR, 0)
	b.addr(a)
}

func (b *Batch) addr(a netstate.Address) {
	var flags, scope uint8 = 0, unix.RT_SCOPE_UNIVERSE
	if a.NoDAD {
		flags = unix.IFA_F_NODAD
	}
	if a.OnLink {
		scope = unix.RT_SCOPE_LINK
	}
	ip := a.Prefix.Addr()
	b.buf = append(b.buf, Family(ip), uint8(a.Prefix.Bits()), flags, scope)
	b.buf = appendU32(b.buf, uint32(a.Link))
	b.attrAddr(unix.IFA_LOCAL, ip)
	b.attrAddr(unix.IFA_ADDRESS, ip)
	if a.Broadcast.IsValid() {
		b.attrAddr(unix.IFA_BROADCAST, a.Broadcast)
	}
	b.end()
}
