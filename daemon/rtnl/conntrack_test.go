package rtnl

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// tuple makes the content of a CTA_TUPLE_* attribute.
func tuple(src, dst netip.Addr) []byte {
	var b Batch
	kinds := [2]uint16{ctaV4Src, ctaV4Dst}
	if src.Is6() {
		kinds = [2]uint16{ctaV6Src, ctaV6Dst}
	}
	ip := b.nest(ctaTupleIP | unix.NLA_F_NESTED)
	b.attrAddr(kinds[0], src)
	b.attrAddr(kinds[1], dst)
	b.endNest(ip)
	b.attr(2|unix.NLA_F_NESTED, []byte{5, 0, 1, 0, 6, 0, 0, 0}) // CTA_TUPLE_PROTO: TCP
	return b.buf
}

// flow makes the body of a message about an entry.
func flow(family uint8, orig, reply []byte, zone bool) []byte {
	var b Batch
	b.nfgen(family)
	b.attr(ctaTupleOrig|unix.NLA_F_NESTED, orig)
	b.attr(ctaTupleReply|unix.NLA_F_NESTED, reply)
	b.attr(3, []byte{0, 0, 0, 8}) // CTA_STATUS
	if zone {
		b.attr(ctaZone, []byte{0, 7})
	}
	b.attr(ctaID, []byte{1, 2, 3, 4})
	return b.buf
}

// TestFlowDeleter_Take: an entry is taken if any of its four addresses is wanted, and it is
// deleted by its original tuple, zone and ID.
func TestFlowDeleter_Take(t *testing.T) {
	t.Parallel()
	addr := netip.MustParseAddr
	for name, row := range map[string]struct {
		family                             uint8
		src, dst, replySrc, replyDst, want string
		taken                              bool
	}{
		"client":             {unix.AF_INET, "10.0.0.10", "10.0.0.1", "10.0.0.1", "10.0.0.10", "10.0.0.10", true},
		"server":             {unix.AF_INET, "10.0.0.1", "10.0.0.10", "10.0.0.10", "10.0.0.1", "10.0.0.10", true},
		"behind DNAT":        {unix.AF_INET, "10.0.0.1", "172.20.0.10", "10.0.0.10", "10.0.0.1", "10.0.0.10", true},
		"behind SNAT":        {unix.AF_INET, "10.0.0.10", "8.8.8.8", "8.8.8.8", "192.168.0.4", "10.0.0.10", true},
		"SNAT to it":         {unix.AF_INET, "192.168.0.9", "8.8.8.8", "8.8.8.8", "10.0.0.10", "10.0.0.10", true},
		"DNAT from it":       {unix.AF_INET, "192.168.0.9", "10.0.0.10", "8.8.8.8", "192.168.0.9", "10.0.0.10", true},
		"another's":          {unix.AF_INET, "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.1", "10.0.0.10", false},
		"IPv6":               {unix.AF_INET6, "2001:db8::1", "fd00::10", "2001:db8::10", "2001:db8::1", "2001:db8::10", true},
		"IPv6, another's":    {unix.AF_INET6, "2001:db8::1", "fd00::10", "2001:db8::11", "2001:db8::1", "2001:db8::10", false},
		"IPv6, same ending":  {unix.AF_INET6, "2001:db8::a00:a", "::ffff:10.0.0.10", "2001:db8::11", "2001:db8::1", "10.0.0.10", false},
		"IPv4, as bytes six": {unix.AF_INET, "10.0.0.10", "10.0.0.1", "10.0.0.1", "10.0.0.10", "::ffff:10.0.0.10", false},
	} {
		for _, zone := range []bool{false, true} {
			orig := tuple(addr(row.src), addr(row.dst))
			body := flow(row.family, orig, tuple(addr(row.replySrc), addr(row.replyDst)), zone)
			var d flowDeleter
			want := addr(row.want)
			if err := d.take(body, func(a netip.Addr) bool { return a == want }); err != nil {
				t.Fatal(err)
			}
			if (d.batch.Len() == 1) != row.taken {
				t.Errorf("%s: %d deletions, want it taken: %t", name, d.batch.Len(), row.taken)
			}
			if !row.taken {
				continue
			}
			got := written(t, &d.batch)
			var b Batch
			b.nfgen(row.family)
			b.attr(ctaTupleOrig|unix.NLA_F_NESTED, orig)
			if zone {
				b.attr(ctaZone, []byte{0, 7})
			}
			b.attr(ctaID, []byte{1, 2, 3, 4})
			if string(got) != string(b.buf) {
				t.Errorf("%s: deletes\n%x, want\n%x", name, got, b.buf)
			}
		}
	}
}

// TestFlowDeleter_AllocatesNothing for entries of other addresses: a table has up to some
// 100,000.
func TestFlowDeleter_AllocatesNothing(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), map[netip.Addr]bool{netip.MustParseAddr("10.0.0.9"): true}
	body := flow(unix.AF_INET, tuple(a, b), tuple(b, a), false)
	var d flowDeleter
	of := func(a netip.Addr) bool { return c[a] }
	if n := testing.AllocsPerRun(100, func() { _ = d.take(body, of) }); n != 0 {
		t.Errorf("%v allocations for an entry that stays", n)
	}
}
