package reading

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/doctor/evidence"
)

var byValue = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})

func TestRules(t *testing.T) {
	t.Parallel()
	got := Rules(`0:	from all lookup local
10:	from all iif vlan.eth.1 lookup 101 proto static
512:	from all to 10.0.0.12 lookup main
1024:	from all fwmark 0x80/0x80 lookup main
1025:	from all fwmark 0x8 lookup main
1536:	from 10.0.0.0/28 lookup 2
2000:	not from all fwmark 0xca6c lookup 51820
2001:	from all lookup main suppress_prefixlength 0
2002:	from all to 10.0.0.1 unreachable
2003:	from all lookup eth1_rt
2004:	from all ipproto tcp lookup 3
x:	from all lookup main
32767:	from all lookup default
`, 4)
	p := netip.MustParsePrefix
	want := []evidence.Rule{
		{Family: 4, Table: "local"},
		{Family: 4, Priority: 10, IIF: "vlan.eth.1", Table: "101"},
		{Family: 4, Priority: 512, To: p("10.0.0.12/32"), Table: "main"},
		{Family: 4, Priority: 1024, FWMark: "0x80/0x80", Table: "main"},
		{Family: 4, Priority: 1025, FWMark: "0x8/0xffffffff", Table: "main"},
		{Family: 4, Priority: 1536, From: p("10.0.0.0/28"), Table: "2"},
		{Family: 4, Priority: 32767, Table: "default"},
	}
	if diff := cmp.Diff(want, got, byValue); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	const printed = `default via 10.0.0.1 dev eth1 table 2 
10.0.0.1 dev eth1 table 2 scope link 
default via 10.0.0.1 dev eth0 
10.0.0.12 dev eni0d7763386da scope link 
10.1.0.0/16 proto static 
	nexthop via 10.0.0.2 dev eth0 weight 1 
	nexthop via 10.0.0.3 dev eth0 weight 1 
10.2.0.0/16 via inet6 fe80::1 dev eth0
blackhole 10.9.0.0/16
unreachable default dev lo table unspec proto kernel metric 4294967295
10.3.0.0/16 dev eth2 table eth2_rt
	nexthop via 10.0.0.9 dev eth0
local 10.0.0.10 dev eth0 table local proto kernel scope host src 10.0.0.10 
10.0.0.11 dev eth0 table local
fe80::/64 dev eth0 proto kernel metric 256 pref medium
default via fe80::1 dev eth0 proto ra metric 1024 pref medium
2600::7 dev eni0d7763386da metric 1024 pref medium
`
	a := netip.MustParseAddr
	want := []evidence.Route{
		{Family: 4, Table: 2, To: "default", Via: a("10.0.0.1"), Dev: "eth1"},
		{Family: 4, Table: 2, To: "10.0.0.1/32", Dev: "eth1"},
		{Family: 4, Table: 254, To: "default", Via: a("10.0.0.1"), Dev: "eth0"},
		{Family: 4, Table: 254, To: "10.0.0.12/32", Dev: "eni0d7763386da"},
		{Family: 4, Table: 254, To: "10.1.0.0/16", Via: a("10.0.0.2"), Dev: "eth0"},
		{Family: 4, Table: 254, To: "10.2.0.0/16", Via: a("fe80::1"), Dev: "eth0"},
	}
	if diff := cmp.Diff(want, Routes(printed, 4), byValue); diff != "" {
		t.Errorf("IPv4 (-want +got):\n%s", diff)
	}
	want = []evidence.Route{
		{Family: 6, Table: 254, To: "fe80::/64", Dev: "eth0"},
		{Family: 6, Table: 254, To: "default", Via: a("fe80::1"), Dev: "eth0"},
		{Family: 6, Table: 254, To: "2600::7/128", Dev: "eni0d7763386da"},
	}
	if diff := cmp.Diff(want, Routes(printed, 6), byValue); diff != "" {
		t.Errorf("IPv6 (-want +got):\n%s", diff)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	want := []evidence.Link{
		{Name: "eth0", Kind: "device", MAC: "02:fa:4e:00:00:01", MTU: new(9001), Up: new(true), Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.10/18")}},
		{Name: "eni0d7763386da", Kind: "veth", MAC: "06:00:00:00:00:02", MTU: new(9001), Up: new(true)},
		{Name: "eth1", Kind: "device", MAC: "02:fa:4e:00:00:03", MTU: new(1500), Up: new(false)},
	}
	for name, printed := range map[string]string{
		"ifconfig": `eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 9001
        inet 10.0.0.10  netmask 255.255.192.0  broadcast 10.0.63.255
        ether 02:FA:4e:00:00:01  txqueuelen 1000  (Ethernet)

eni0d7763386da: flags=4163<UP,BROADCAST>  mtu 9001
        ether 06:00:00:00:00:02  txqueuelen 0  (Ethernet)
eth1: flags=4098<BROADCAST,MULTICAST>  mtu 1500
        ether 02:fa:4e:00:00:03  txqueuelen 1000  (Ethernet)
`,
		"ip addr": `2: eth0@if3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9001 qdisc noqueue state UP group default
    link/ether 02:fa:4e:00:00:01 brd ff:ff:ff:ff:ff:ff link-netnsid 0
    inet 10.0.0.10/18 brd 10.0.63.255 scope global eth0
3: eni0d7763386da@if2: <BROADCAST,UP> mtu 9001 qdisc noqueue
    link/ether 06:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff
4: eth1: <BROADCAST> mtu 1500 qdisc noop state DOWN
    link/ether 02:fa:4e:00:00:03 brd ff:ff:ff:ff:ff:ff
`,
	} {
		if diff := cmp.Diff(want, Links(printed), byValue); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := Links("vlan.eth.7@eth0: <UP> mtu 9001\n  \nx\n"); len(got) != 1 || got[0].Kind != "vlan" || *got[0].VLAN != 7 || got[0].Parent != "eth0" {
		t.Errorf("VLAN device: %+v", got)
	}
}

// FuzzText: no text breaks a reader.
func FuzzText(f *testing.F) {
	f.Add("512:\tfrom all to 10.0.0.12 lookup main")
	f.Add("default via 10.0.0.1 dev eth0 table 2\n\tnexthop via 10.0.0.2 dev eth0")
	f.Add("eth0: flags=4163<UP>  mtu 9001\n        ether 02:fa:4e:00:00:01")
	f.Add(saved)
	f.Add("systemd-252.23-1.amzn2023.x86_64\nii a b\n● a.service loaded active x\n")
	f.Add("net.ipv4.conf.all.rp_filter = 0\nnet.netfilter.nf_conntrack_count = 1\npps_allowance_exceeded: 1")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range append(Rules(text, 4), Rules(text, 6)...) {
			if r.Table == "" {
				t.Fatalf("a rule without a table: %+v", r)
			}
		}
		for _, r := range append(Routes(text, 4), Routes(text, 6)...) {
			if r.To == "" || r.Table == 255 {
				t.Fatalf("route %+v", r)
			}
		}
		for _, l := range Links(text) {
			if l.Name == "" || l.Up == nil {
				t.Fatalf("link %+v", l)
			}
		}
		if got, err := IPTables("nft", Saves{NFT: text, NFT6: text, Tables: &text}); err == nil && got.Forward == "" {
			t.Fatalf("no policy: %+v", got)
		}
		Sysctls(text)
		Conntrack(text, text)
		for _, l := range mostly(Listeners(text)) {
			if l.Address == "" {
				t.Fatalf("listener %+v", l)
			}
		}
		Packages(text, text, map[string]string{"/etc/systemd/networkd.conf": text})
	})
}

func mostly[T any](content T, _ error) T { return content }
