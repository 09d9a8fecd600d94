package rtnl

import (
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// written returns the body of a batch's only message, as cutMessage reads it.
func written(t *testing.T, b *Batch) []byte {
	t.Helper()
	b.seal(1)
	msg, rest, err := cutMessage(b.buf)
	if err != nil || len(rest) > 0 || msg.seq != 1 || b.Len() != 1 {
		t.Fatalf("own message: %v, %d bytes left over, sequence %d", err, len(rest), msg.seq)
	}
	return msg.body
}

func prefixOf(address []byte, bits uint8) netip.Prefix {
	ip, ok := netip.AddrFromSlice(address)
	if !ok || ip.Is4In6() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(ip, int(bits)%(ip.BitLen()+1))
}

// FuzzRoundTrip: rules, routes and addresses are decoded from a dump as they were encoded,
// because the kernel uses the same format in both directions.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte{10, 0, 0, 12}, uint8(32), 512, 254, uint32(0), uint32(0), "", int32(3))
	f.Add([]byte{10, 0, 0, 21}, uint8(32), 1536, 2, uint32(0x80), uint32(0x80), "vlan.eth.1", int32(4))
	f.Add([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, uint8(128), 10, 10100, uint32(1), uint32(0), "eni0d7763386da", int32(-1))
	f.Add([]byte{}, uint8(0), 0, 256, uint32(0), uint32(1), "lo", int32(0))
	f.Fuzz(func(t *testing.T, address []byte, bits uint8, priority, table int, mark, mask uint32, link string, index int32) {
		p := prefixOf(address, bits)
		if table < 1 || int(uint32(table)) != table || priority < 0 || int(uint32(priority)) != priority || strings.ContainsRune(link, 0) || len(link) >= unix.IFNAMSIZ {
			return // the kernel cannot have such numbers and names
		}
		var b Batch
		want := netstate.Rule{Priority: priority, Table: table, Mark: mark, Mask: mask, InLink: link}
		if p.IsValid() && p.Bits() > 0 {
			want.From, want.To, want.IPv6 = p, p, p.Addr().Is6()
		}
		b.RuleAdd(want)
		if got, ok, err := parseRule(written(t, &b)); err != nil || !ok || got != (ListedRule{Rule: want}) {
			t.Errorf("rule %+v, %t, %v; want %+v", got, ok, err, want)
		}
		if !p.IsValid() {
			return
		}
		b.Reset()
		route := netstate.Route{Dst: p.Masked(), Gateway: p.Addr(), Source: p.Addr(), Link: index, Table: table, Scope: netstate.OnLink}
		b.RouteAdd(route)
		if got, ok, err := parseRoute(written(t, &b)); err != nil || !ok || got != route {
			t.Errorf("route %+v, %t, %v; want %+v", got, ok, err, route)
		}
		b.Reset()
		addr := netstate.Address{Link: index, Prefix: p, NoDAD: mark > 0}
		b.AddrAdd(addr)
		if got, err := parseAddress(written(t, &b)); err != nil || got != addr {
			t.Errorf("address %+v, %v; want %+v", got, err, addr)
		}
	})
}
