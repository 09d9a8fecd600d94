package rtnl_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

func open(t *testing.T, ns *netns.NS) *rtnl.Conn {
	t.Helper()
	c, err := rtnl.OpenIn(ns.FD())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func mustDo(t *testing.T, c *rtnl.Conn, b *rtnl.Batch) {
	t.Helper()
	if err := c.Do(b); err != nil {
		t.Fatal(err)
	}
}

// pair makes a veth pair between two namespaces, both ends up.
func pair(t *testing.T, near, far *netns.NS) (a, b *rtnl.Conn) {
	t.Helper()
	a, b = open(t, near), open(t, far)
	var batch rtnl.Batch
	batch.Veth(
		netstate.End{Name: "near", Index: 70000, MAC: netstate.MAC{2, 0, 0, 0, 0, 1}},
		netstate.End{Name: "far", Index: 7, MAC: netstate.MAC{2, 0, 0, 0, 0, 2}}, 1400, far.FD())
	mustDo(t, a, &batch)
	batch.Reset()
	batch.LinkUp(7)
	mustDo(t, b, &batch)
	return a, b
}

func TestReadBack(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	a, b := pair(t, netns.New(t), netns.New(t))
	var batch rtnl.Batch
	addresses := []netstate.Address{
		{Link: 70000, Prefix: netip.MustParsePrefix("10.0.0.1/24")},
		{Link: 70000, Prefix: netip.MustParsePrefix("10.0.1.1/32")},
	}
	addresses6 := []netstate.Address{{Link: 70000, Prefix: netip.MustParsePrefix("fd00::1/64"), NoDAD: true}}
	for _, x := range slices.Concat(addresses, addresses6) {
		batch.AddrAdd(x)
	}
	routes := []netstate.Route{
		{Dst: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("10.0.0.9"), Link: 70000, Table: 7},
		{Dst: netip.MustParsePrefix("10.9.0.0/16"), Gateway: netip.MustParseAddr("10.0.0.9"), Source: netip.MustParseAddr("10.0.1.1"), Link: 70000, Table: 7},
		{Dst: netip.MustParsePrefix("10.9.9.9/32"), Link: 70000, Table: 7, Scope: netstate.OnLink},
	}
	routeLarge := netstate.Route{Dst: netip.MustParsePrefix("10.9.9.8/32"), Link: 70000, Table: 10102, Scope: netstate.OnLink}
	route6 := netstate.Route{Dst: netip.MustParsePrefix("fd01::/64"), Gateway: netip.MustParseAddr("fd00::9"), Link: 70000, Table: 7}
	for _, r := range slices.Concat(routes, []netstate.Route{routeLarge, route6}) {
		batch.RouteAdd(r)
	}
	rules := []netstate.Rule{
		{Priority: 100, From: netip.MustParsePrefix("10.0.0.0/24"), To: netip.MustParsePrefix("10.9.0.0/16"), Table: 7},
		{Priority: 101, Mark: 0x80, Mask: 0x80, Table: 254},
		{Priority: 102, InLink: "near", Table: 10102},
	}
	rules6 := []netstate.Rule{
		{Priority: 103, Mark: 0x80, Mask: 0xffffffff, Table: 254, IPv6: true},
		{Priority: 104, To: netip.MustParsePrefix("fd01::/64"), Table: 7, IPv6: true},
		{Priority: 105, From: netip.MustParsePrefix("fe80:ec2::1/128"), Protocol: unix.IPPROTO_ICMPV6, Table: 255, IPv6: true},
	}
	for _, r := range slices.Concat(rules, rules6) {
		batch.RuleAdd(r)
	}
	mustDo(t, a, &batch)

	links, err := a.Links()
	if err != nil {
		t.Fatal(err)
	}
	want := netstate.Link{Index: 70000, Name: "near", Kind: "veth", MAC: netstate.MAC{2, 0, 0, 0, 0, 1}, MTU: 1400, Parent: 7}
	if len(links) != 2 {
		t.Fatalf("links: %+v", links)
	}
	if diff := cmp.Diff(want, links[1], cmpopts.IgnoreFields(netstate.Link{}, "Flags")); diff != "" {
		t.Error(diff)
	}
	if links[1].Flags&(unix.IFF_UP|unix.IFF_RUNNING) != unix.IFF_UP|unix.IFF_RUNNING {
		t.Errorf("flags %#x", links[1].Flags)
	}
	checkLookups(t, a, links[1])
	checkList(t, "IPv4 addresses", slices.Concat([]netstate.Address{{Link: 1, Prefix: netip.MustParsePrefix("127.0.0.1/8")}}, addresses), unix.AF_INET, a.Addresses)
	checkList(t, "routes of table 7", routes, unix.AF_INET, func(fam uint8) ([]netstate.Route, error) { return a.Routes(fam, 7) })
	checkList(t, "routes of table 10102", []netstate.Route{routeLarge}, unix.AF_INET, func(fam uint8) ([]netstate.Route, error) { return a.Routes(fam, 10102) })
	checkList(t, "IPv6 routes", []netstate.Route{route6}, unix.AF_INET6, func(fam uint8) ([]netstate.Route, error) { return a.Routes(fam, 7) })
	local := netstate.Rule{Table: 255}
	tail := []netstate.Rule{{Priority: 32766, Table: 254}, {Priority: 32767, Table: 253}}
	checkList(t, "rules", slices.Concat([]netstate.Rule{local}, rules, tail), unix.AF_INET, a.Rules)
	checkList(t, "IPv6 rules", slices.Concat([]netstate.Rule{{Table: 255, IPv6: true}}, rules6, []netstate.Rule{{Priority: 32766, Table: 254, IPv6: true}}), unix.AF_INET6, a.Rules)
	six, err := a.Addresses(unix.AF_INET6)
	if err != nil || !slices.Contains(six, addresses6[0]) {
		t.Errorf("IPv6 addresses %v, %v", six, err)
	}

	// Then everything is removed again.
	batch.Reset()
	for _, r := range slices.Concat(rules, rules6) {
		batch.RuleDel(r)
	}
	for _, r := range slices.Concat(routes, []netstate.Route{routeLarge, route6}) {
		batch.RouteDel(r)
	}
	for _, x := range addresses {
		batch.AddrDel(x)
	}
	batch.LinkDelName("near")
	mustDo(t, a, &batch)
	if _, found, err := b.LinkByName("far"); found || err != nil {
		t.Errorf("the far end is there: %t, %v", found, err)
	}
	checkList(t, "rules at the end", slices.Concat([]netstate.Rule{local}, tail), unix.AF_INET, a.Rules)
	checkList(t, "routes at the end", nil, unix.AF_INET, func(fam uint8) ([]netstate.Route, error) { return a.Routes(fam, 7) })
}

func checkLookups(t *testing.T, c *rtnl.Conn, want netstate.Link) {
	t.Helper()
	for name, find := range map[string]func() (netstate.Link, bool, error){
		"by name":  func() (netstate.Link, bool, error) { return c.LinkByName(want.Name) },
		"by index": func() (netstate.Link, bool, error) { return c.LinkByIndex(want.Index) },
	} {
		if got, found, err := find(); got != want || !found || err != nil {
			t.Errorf("%s: %+v, %t, %v", name, got, found, err)
		}
	}
	for name, find := range map[string]func() (netstate.Link, bool, error){
		"by name":  func() (netstate.Link, bool, error) { return c.LinkByName("none") },
		"by index": func() (netstate.Link, bool, error) { return c.LinkByIndex(99999) },
	} {
		if got, found, err := find(); found || err != nil {
			t.Errorf("missing, %s: %+v, %t, %v", name, got, found, err)
		}
	}
}

func checkList[T any](t *testing.T, what string, want []T, fam uint8, list func(uint8) ([]T, error)) {
	t.Helper()
	got, err := list(fam)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestDo_FirstFailure: the kernel continues after a refused message; the batch returns the
// first one refused, ignoring tolerated ones.
func TestDo_FirstFailure(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	a, _ := pair(t, netns.New(t), netns.New(t))
	rule := netstate.Rule{Priority: 50, From: netip.MustParsePrefix("10.0.0.1/32"), Table: 3}
	var b rtnl.Batch
	b.RuleAdd(rule)
	b.RuleAdd(rule)
	b.Tolerate(unix.EEXIST)
	b.RouteAdd(netstate.Route{Gateway: netip.MustParseAddr("10.0.0.9"), Link: 70000})
	b.RuleDel(rule)
	b.RuleDel(rule)
	err := a.Do(&b)
	var refused *rtnl.Error
	if !errors.As(err, &refused) || refused.Index != 2 || refused.Errno != unix.ENETUNREACH || refused.Op != "add route" || refused.Detail == "" {
		t.Errorf("got %+v", err)
	}
	var got []unix.Errno
	for i := range b.Len() {
		got = append(got, b.Errno(i))
	}
	if diff := cmp.Diff([]unix.Errno{0, unix.EEXIST, unix.ENETUNREACH, 0, unix.ENOENT}, got); diff != "" {
		t.Error(diff)
	}
	// The connection is still in sync: the next batch gets its own answers.
	b.Reset()
	b.LinkMTU(70000, 1300)
	b.LinkMAC(70000, netstate.MAC{2, 0, 0, 0, 0, 9})
	mustDo(t, a, &b)
	if l, _, err := a.LinkByIndex(70000); err != nil || l.MTU != 1300 || l.MAC != (netstate.MAC{2, 0, 0, 0, 0, 9}) {
		t.Errorf("%+v, %v", l, err)
	}
	if err := a.Do(&rtnl.Batch{}); err != nil {
		t.Errorf("empty batch: %v", err)
	}
}

// TestDump_UnderChurn: links come and go during a dump; a list is either complete or an
// error, never partial.
func TestDump_UnderChurn(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	ns := netns.New(t)
	a, other := open(t, ns), open(t, ns)
	const steady = 40
	if err := ns.Do(func() error {
		for i := range steady / 2 {
			l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprint("s", i)}, PeerName: fmt.Sprint("t", i)}
			if err := netlink.LinkAdd(l); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	churned := make(chan error, 1)
	go func() {
		churned <- func() error {
			for i := 0; ctx.Err() == nil; i++ {
				var b rtnl.Batch
				b.RuleAdd(netstate.Rule{Priority: 2000 + i%100, Table: 3})
				b.Tolerate(unix.EEXIST)
				b.RuleDel(netstate.Rule{Priority: 2000 + i%100, Table: 3})
				b.LinkMTU(2, 1000+i%100)
				if err := other.Do(&b); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	for range 200 {
		links, err := a.Links()
		if err != nil {
			t.Fatal(err)
		}
		if len(links) != steady+1 {
			t.Fatalf("%d links, want %d", len(links), steady+1)
		}
		if _, err := a.Rules(unix.AF_INET); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-churned; err != nil {
		t.Error(err)
	}
}

// TestRules_FurtherConditions: a rule with conditions that Rule does not represent is
// recognized as different.
func TestRules_FurtherConditions(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	ns := netns.New(t)
	a := open(t, ns)
	for i, further := range []func(*netlink.Rule){
		func(r *netlink.Rule) { r.Invert = true },
		func(r *netlink.Rule) { r.OifName = "lo" },
		func(r *netlink.Rule) { r.Tos = 8 },
		func(r *netlink.Rule) { r.SuppressPrefixlen = 0 },
		func(r *netlink.Rule) { r.Sport = netlink.NewRulePortRange(1, 9) },
		func(r *netlink.Rule) { r.Dport = netlink.NewRulePortRange(1, 9) },
		func(r *netlink.Rule) { r.UIDRange = netlink.NewRuleUIDRange(1, 9) },
		func(r *netlink.Rule) {},
	} {
		if err := ns.Do(func() error {
			r := netlink.NewRule()
			r.Src, r.Table, r.Priority = &net.IPNet{IP: net.IPv4(10, 0, 0, 1).To4(), Mask: net.CIDRMask(32, 32)}, 3, 100+i
			further(r)
			return netlink.RuleAdd(r)
		}); err != nil {
			t.Fatal(i, err)
		}
	}
	list, err := a.Rules(unix.AF_INET)
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for _, r := range list {
		if r.Table == 3 {
			got = append(got, r.Other)
		}
	}
	if diff := cmp.Diff([]bool{true, true, true, true, true, true, true, false}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNeighbours(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	ns := netns.New(t)
	a, _ := pair(t, ns, netns.New(t))
	n := netstate.Neighbour{Link: 70000, IP: netip.MustParseAddr("169.254.1.1"), MAC: netstate.MAC{2, 0, 0, 0, 0, 5}}
	var b rtnl.Batch
	b.NeighAdd(n)
	b.NeighAdd(n)
	b.Tolerate(unix.EEXIST)
	n.MAC[5] = 6
	b.NeighReplace(n)
	mustDo(t, a, &b)
	if b.Errno(1) != unix.EEXIST {
		t.Errorf("second add: %v", b.Errno(1))
	}
	if err := ns.Do(func() error {
		list, err := netns.Dump(func() ([]netlink.Neigh, error) { return netlink.NeighList(70000, netlink.FAMILY_V4) })
		if err != nil {
			return err
		}
		if len(list) != 1 || list[0].HardwareAddr.String() != "02:00:00:00:00:06" || list[0].State != netlink.NUD_PERMANENT {
			return fmt.Errorf("neighbours %v", list)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestOpenIn_NotANamespace(t *testing.T) {
	t.Parallel()
	testenv.RequireRoot(t)
	fd, err := unix.Open("/proc/self/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if c, err := rtnl.OpenIn(fd); !errors.Is(err, unix.EINVAL) || c != nil {
		t.Errorf("got %v, %v", c, err)
	}
}
