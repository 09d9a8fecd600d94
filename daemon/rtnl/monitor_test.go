package rtnl

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// notices returns the notices in a batch as if the kernel had sent it to a watch.
func notices(t *testing.T, b *Batch) (out []Notice) {
	t.Helper()
	b.seal(1)
	if err := Notices(b.buf, func(n Notice) { out = append(out, n) }); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNotices(t *testing.T) {
	t.Parallel()
	pod := netip.MustParsePrefix("10.0.0.21/32")
	subnet := netip.MustParsePrefix("10.0.0.0/18")
	var b Batch
	b.RuleAdd(netstate.Rule{Priority: 512, To: pod, Table: 254})
	b.RouteAdd(netstate.Route{Dst: pod, Link: 7, Table: 254, Scope: netstate.OnLink})
	b.AddrAdd(netstate.Address{Link: 3, Prefix: netip.MustParsePrefix("10.0.0.50/18")})
	b.AddrAdd(netstate.Address{Link: 3, Prefix: netip.MustParsePrefix("fe80::1/64")}) // each link has one
	b.RouteAdd(netstate.Route{Dst: netip.MustParsePrefix("fe80::/64"), Link: 7, Table: 254})
	b.RouteAdd(netstate.Route{Dst: netip.MustParsePrefix("ff00::/8"), Link: 7, Table: 255})
	b.RouteAdd(netstate.Route{Dst: subnet, Link: 7, Table: 2, Scope: netstate.OnLink})
	b.LinkMTU(9, 1500)
	want := []Notice{
		{Kind: NoticeRule, Rule: netstate.Rule{Priority: 512, To: pod, Table: 254}},
		{Kind: NoticeRoute, Route: netstate.Route{Dst: pod, Link: 7, Table: 254, Scope: netstate.OnLink}},
		{Kind: NoticeAddress, Address: netstate.Address{Link: 3, Prefix: netip.MustParsePrefix("10.0.0.50/18")}},
		{Kind: NoticeRoute, Route: netstate.Route{Dst: subnet, Link: 7, Table: 2, Scope: netstate.OnLink}},
		{Kind: NoticeLink, Link: netstate.Link{Index: 9, MTU: 1500}},
	}
	got := notices(t, &b)
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i, host := range []string{"10.0.0.21", "10.0.0.21", "", "", ""} {
		if a := got[i].Host(); a.IsValid() != (host != "") || a.IsValid() && a.String() != host {
			t.Errorf("notice %d is about %v, want %q", i, a, host)
		}
	}
}

// filterMessage builds a change as the kernel reports it.
func filterMessage(kind uint16, family byte, attrs ...string) []byte {
	var b Batch
	b.begin("", unix.NFNL_SUBSYS_NFTABLES<<8|kind, 0)
	b.buf = append(b.buf, family, 0, 0, 0)
	for i, a := range attrs {
		if a != "" {
			b.attrText(uint16(i+1), a)
		}
	}
	b.end()
	return b.buf
}

func TestFilterNotices(t *testing.T) {
	t.Parallel()
	datagram := bytes.Join([][]byte{
		filterMessage(unix.NFT_MSG_NEWGEN, 0),
		filterMessage(unix.NFT_MSG_DELRULE, unix.NFPROTO_IPV4, "nat", "POSTROUTING"),
		filterMessage(unix.NFT_MSG_NEWCHAIN, unix.NFPROTO_IPV6, "nat", "", "CNI-E6-x"),
		filterMessage(unix.NFT_MSG_DELTABLE, unix.NFPROTO_IPV4, "aws-cni"),
	}, nil)
	var got []string
	if err := FilterNotices(datagram, func(n FilterNotice) {
		got = append(got, map[bool]string{true: "ip6 "}[n.IPv6]+string(n.Table)+"/"+string(n.Chain)+map[bool]string{true: " rule"}[n.Rule]+map[bool]string{true: " gone"}[n.Gone])
	}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"nat/POSTROUTING rule gone", "ip6 nat/CNI-E6-x", "aws-cni/ gone"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// FuzzNotices: any datagram is read to its end or refused, and routes, rules and addresses
// in notices equal what the dump's decoders read from the same messages.
func FuzzNotices(f *testing.F) {
	var b Batch
	b.RuleDel(netstate.Rule{Priority: 1536, From: netip.MustParsePrefix("10.0.0.21/32"), Table: 2})
	b.RouteDel(netstate.Route{Dst: netip.MustParsePrefix("10.0.0.21/32"), Link: 3})
	b.AddrDel(netstate.Address{Link: 3, Prefix: netip.MustParsePrefix("2001:db8::1/64")})
	b.LinkUp(4)
	f.Add(b.buf)
	f.Add(filterMessage(unix.NFT_MSG_DELRULE, unix.NFPROTO_IPV4, "nat", "POSTROUTING"))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		n := 0
		err := Notices(datagram, func(got Notice) {
			n++
			_ = got.Host()
			if got.Kind == 0 || got.Kind > NoticeSetting {
				t.Errorf("notice of no kind: %+v", got)
			}
		})
		if most := len(datagram) / unix.SizeofNlMsghdr; n > most {
			t.Errorf("%d notices in a datagram with room for %d", n, most)
		}
		for rest := datagram; err == nil && len(rest) > 0; {
			if _, rest, err = cutMessage(rest); err != nil {
				t.Errorf("a datagram that ends within a message was taken: %v", err)
			}
		}
	})
}

// FuzzFilterNotices: names are decoded as encoded, whatever surrounds them.
func FuzzFilterNotices(f *testing.F) {
	f.Add(uint8(unix.NFT_MSG_DELRULE), byte(unix.NFPROTO_IPV4), "nat", "AWS-SNAT-CHAIN-0", []byte{})
	f.Add(uint8(unix.NFT_MSG_DELCHAIN), byte(unix.NFPROTO_IPV6), "nat", "CNI-E6-0", []byte{1, 2, 3})
	f.Add(uint8(unix.NFT_MSG_DELTABLE), byte(0), "aws-cni", "", []byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, kind uint8, family byte, table, chain string, tail []byte) {
		// Any content is read to its end or refused.
		_ = FilterNotices(tail, func(n FilterNotice) {
			if !bytes.Contains(tail, n.Table) || !bytes.Contains(tail, n.Chain) {
				t.Errorf("%q and %q are not in %x", n.Table, n.Chain, tail)
			}
		})
		if bytes.ContainsRune([]byte(table+chain), 0) || table == "" || len(table)+len(chain) > 1<<10 {
			return
		}
		_ = FilterNotices(filterMessage(uint16(kind), family, table, chain, chain), func(n FilterNotice) {
			if string(n.Table) != table || len(n.Chain) > 0 && string(n.Chain) != chain || n.IPv6 != (family == unix.NFPROTO_IPV6) {
				t.Errorf("%+v of table %q chain %q family %d", n, table, chain, family)
			}
		})
	})
}
