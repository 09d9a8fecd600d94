package netstate_test

import (
	"net/netip"
	"testing"

	"cnictl/daemon/netstate"
)

func TestMAC(t *testing.T) {
	t.Parallel()
	mac := netstate.MAC{2, 0xab, 0, 0x0c, 0xff, 0x10}
	if got := mac.String(); got != "02:ab:00:0c:ff:10" {
		t.Error(got)
	}
	if got := mac.LinkLocal().String(); got != "fe80::ab:ff:fe0c:ff10" {
		t.Error(got)
	}
}

func TestRule_String(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rule netstate.Rule
		want string // as `ip rule` prints it, with a space for the tab
	}{
		{netstate.Rule{Priority: 512, To: netip.MustParsePrefix("10.0.0.12/32"), Table: 254}, "512: from all to 10.0.0.12 lookup main"},
		{netstate.Rule{Priority: 1024, Mark: 0x80, Mask: 0x80, Table: 254}, "1024: from all fwmark 0x80/0x80 lookup main"},
		{netstate.Rule{Priority: 1024, Mark: 0x80, Mask: 0xffffffff, Table: 254}, "1024: from all fwmark 0x80 lookup main"},
		{netstate.Rule{Priority: 1535, To: netip.MustParsePrefix("172.20.0.0/16"), Table: 254}, "1535: from all to 172.20.0.0/16 lookup main"},
		{netstate.Rule{Table: 255}, "0: from all lookup local"},
		{netstate.Rule{From: netip.MustParsePrefix("fe80:ec2::1/128"), Protocol: 58, Table: 255, IPv6: true}, "0: from fe80:ec2::1 ipproto ipv6-icmp lookup local"},
		{netstate.Rule{Priority: 10, InLink: "vlan.eth.3", Table: 103}, "10: from all iif vlan.eth.3 lookup 103"},
		{netstate.Rule{Priority: 10, Table: 0, InLink: "vlan0d7763386da"}, "10: from all iif vlan0d7763386da"}, // to delete it from any table
		{netstate.Rule{Priority: 32765, From: netip.MustParsePrefix("10.0.0.20/32"), Table: 2}, "32765: from 10.0.0.20 lookup 2"},
	} {
		if got := row.rule.String(); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

func TestRoute_String(t *testing.T) {
	t.Parallel()
	gateway, pod := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::7")
	subnet := netstate.Direct(netip.MustParsePrefix("10.0.0.0/20"), 3, 254)
	subnet.Source = netip.MustParseAddr("10.0.0.9")
	for _, row := range []struct {
		route netstate.Route
		link  string
		want  string // as `ip route show table all` prints it
	}{
		{netstate.Default(gateway, 3, 2), "eth1", "default via 10.0.0.1 dev eth1 table 2"},
		{netstate.Route{Gateway: gateway}, "", "default via 10.0.0.1"},
		{netstate.Direct(netstate.Only(gateway), 3, 2), "eth1", "10.0.0.1 dev eth1 table 2 scope link"},
		{netstate.Direct(netstate.Only(pod), 3, 254), "eni1", "fd00::7 dev eni1"},
		{subnet, "", "10.0.0.0/20 scope link src 10.0.0.9"},
	} {
		if got := row.route.Over(row.link); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}
