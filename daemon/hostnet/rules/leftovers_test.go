package rules_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
)

func pfx(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// index returns the index of the named link.
func index(link string) (n int32) {
	for _, c := range link {
		n = n*31 + c
	}
	return n
}

func device(name, kind string) netstate.Link {
	return netstate.Link{Name: name, Kind: kind, Index: index(name)}
}

func address(link, prefix string) netstate.Address {
	return netstate.Address{Link: index(link), Prefix: pfx(prefix)}
}

func linkRoute(link, dst, gateway string, table int) netstate.Route {
	r := netstate.Direct(pfx(dst), index(link), table)
	if gateway != "" {
		r = netstate.Route{Dst: pfx(dst), Gateway: netip.MustParseAddr(gateway), Link: index(link), Table: table}
	}
	return r
}

// ourRules has one of each rule that the daemon or the plugin of any release makes.
var ourRules = []netstate.Rule{
	{Priority: 0, From: pfx("fe80:ec2::1/128"), Protocol: 58, Table: 255, IPv6: true},
	{Priority: 10, InLink: "vlan.eth.3", Table: 103},
	{Priority: 10, InLink: "vlan0d7763386da", Table: 103},
	{Priority: 10, InLink: "vlan0d7763386da", Table: 220, IPv6: true},
	{Priority: 20, Table: 255},
	{Priority: 20, Table: 255, IPv6: true},
	{Priority: 512, To: pfx("10.1.0.21/32"), Table: 254},
	{Priority: 512, To: pfx("fd00:10::21/128"), Table: 254, IPv6: true},
	{Priority: 1024, Mark: 0x80, Mask: 0x80, Table: 254},
	{Priority: 1024, Mark: 0x30, Mask: 0x30, Table: 254, IPv6: true},
	{Priority: 1535, To: pfx("172.20.0.0/16"), Table: 254},
	{Priority: 1536, From: pfx("10.1.0.61/32"), Table: 2},
	{Priority: 1536, From: pfx("10.1.0.62/32"), Table: 10102},
	{Priority: 1536, From: pfx("10.1.0.63/32"), Table: 103},
	{Priority: 1536, From: pfx("10.1.0.64/32"), To: pfx("10.1.0.0/16"), Table: 3}, // old releases
	{Priority: 32765, From: pfx("10.1.0.50/32"), Table: 2},
	{Priority: 32765, From: pfx("fd00:10::14/128"), Table: 10102, IPv6: true},
}

// othersRules are rules of the kernel, Calico, Cilium, tailscale, the AMI and people, as
// similar to ours as possible.
var othersRules = []netstate.Rule{
	{Priority: 0, Table: 255},
	{Priority: 0, Table: 255, IPv6: true},
	{Priority: 100, Table: 255},
	{Priority: 9, Mark: 0x200, Mask: 0xf00, Table: 2004},
	{Priority: 10, Mark: 0xa00, Mask: 0xf00, Table: 2005},
	{Priority: 10, InLink: "eth7", Table: 103},
	{Priority: 10, InLink: "vlan.eth.3", Table: 104},
	{Priority: 10, InLink: "vlan0d7763386da", Table: 1103},
	{Priority: 10, InLink: "vlan0d7763386da", From: pfx("10.0.0.0/8"), Table: 103},
	{Priority: 10, InLink: "vlan0d7763386da", Table: 103, Other: true},
	{Priority: 20, To: pfx("10.1.0.9/32"), Table: 254},
	{Priority: 20, Table: 255, Mark: 1, Mask: 1},
	{Priority: 20, Table: 255, Other: true},
	{Priority: 111, From: pfx("10.1.0.9/32"), To: pfx("10.1.0.0/16"), Table: 11},
	{Priority: 512, To: pfx("10.1.0.0/24"), Table: 254},
	{Priority: 512, To: pfx("10.1.0.21/32"), Table: 77},
	{Priority: 512, To: pfx("10.1.0.21/32"), From: pfx("10.1.0.1/32"), Table: 254},
	{Priority: 512, To: pfx("10.1.0.21/32"), InLink: "eth7", Table: 254},
	{Priority: 1024, Mark: 0x80, Mask: 0xff, Table: 254},
	{Priority: 1024, Mark: 0x80, Mask: 0x80, Table: 77},
	{Priority: 1024, From: pfx("10.0.0.0/8"), Mark: 0x80, Mask: 0x80, Table: 254},
	{Priority: 1535, From: pfx("172.20.0.0/16"), Table: 254},
	{Priority: 1535, To: pfx("172.20.0.0/16"), Table: 77},
	{Priority: 1536, From: pfx("10.1.0.0/24"), Table: 2},
	{Priority: 1536, From: pfx("10.1.0.61/32"), Table: 7000},
	{Priority: 1536, From: pfx("10.1.0.61/32"), Mark: 1, Mask: 1, Table: 2},
	{Priority: 5270, Table: 52},
	{Priority: 30000, From: pfx("10.1.0.50/32"), Table: 2},
	{Priority: 32765, From: pfx("10.1.0.50/32"), Table: 7000},
	{Priority: 32765, From: pfx("10.1.0.0/24"), Table: 2},
	{Priority: 32765, To: pfx("10.1.0.50/32"), Table: 2},
	{Priority: 32765, From: pfx("10.1.0.50/32"), Table: 2, Other: true},
	{Priority: 32766, Table: 254},
	{Priority: 32767, Table: 253},
}

var ourRoutes = []netstate.Route{
	linkRoute("ens6", "0.0.0.0/0", "10.1.0.1", 2), linkRoute("ens6", "10.1.0.1/32", "", 2),
	linkRoute("ens7", "0.0.0.0/0", "10.1.0.1", 10102), linkRoute("ens7", "10.1.0.1/32", "", 10102),
	linkRoute("ens6", "::/0", "fe80:ec2::1", 2), linkRoute("ens6", "fe80:ec2::1/128", "", 2),
}

var othersRoutes = []netstate.Route{
	linkRoute("ens5", "0.0.0.0/0", "10.1.0.1", 254), linkRoute("ens5", "10.1.0.0/20", "", 254),
	linkRoute("cali0d7763386da", "10.1.0.9/32", "", 254),                             // Calico
	linkRoute("lxc0d7763386da", "10.1.0.8/32", "", 254),                              // Cilium
	linkRoute("docker0", "172.17.0.0/16", "", 254),                                   // docker
	linkRoute("tailscale0", "100.64.0.9/32", "", 52),                                 // tailscale
	linkRoute("eth9", "0.0.0.0/0", "192.168.9.1", 40),                                // another table, without the route to the router
	linkRoute("eth9", "192.168.9.0/24", "", 40),                                      //
	linkRoute("eth9", "0.0.0.0/0", "10.9.0.1", 300),                                  // not a table of ours
	linkRoute("eth9", "10.9.0.1/32", "", 300),                                        //
	linkRoute("ens5", "0.0.0.0/0", "10.1.0.1", 41),                                   // on the primary link
	linkRoute("ens5", "10.1.0.1/32", "", 41),                                         //
	linkRoute("ens6", "10.77.0.0/16", "", 2),                                         // someone else's route in one of our tables
	linkRoute("ens6", "192.168.0.0/16", "10.1.0.9", 2),                               //
	linkRoute("veth0a1b2c3", "169.254.1.9/32", "", 254),                              // link-local, but not an egress address
	linkRoute("eni0d7763386dz", "10.1.0.7/32", "", 254),                              // not a hash
	linkRoute("", "0.0.0.0/0", "", 50),                                               // no link, no gateway
	linkRoute("", "0.0.0.0/0", "10.1.0.1", 60), linkRoute("", "10.1.0.1/32", "", 60), // several next hops
}

var ourAddresses = []netstate.Address{
	address("ens6", "10.1.0.50/20"), address("ens7", "10.1.0.51/20"), address("ens6", "fd00:10::14/64"),
}

var othersAddresses = []netstate.Address{
	address("lo", "127.0.0.1/8"), address("ens5", "10.1.0.10/20"), address("ens6", "192.168.3.4/24"),
	address("ens6", "fe80::1234/64"), address("eth9", "192.168.9.2/24"), address("docker0", "172.17.0.1/16"),
	address("ens7", "fd00:10::99/64"), // we make no IPv6 routes here
}

var links = []netstate.Link{
	device("lo", ""), device("ens5", ""), device("ens6", ""), device("ens7", ""), device("eth9", ""), device("docker0", "bridge"), device("tailscale0", "tun"),
	device("cali0d7763386da", "veth"), device("lxc0d7763386da", "veth"), device("veth0a1b2c3", "veth"),
	device("eni0d7763386dz", "veth"), device("eni0d7763386db", "veth"), // the latter has no route
	device("vlan.eth.4", "veth"), device("vlan.eth.999", "vlan"), device("eth0.3", "vlan"),
}

var equal = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	got := rules.Leftovers(rules.Kernel{
		VethPrefix: "eni", State: netstate.State{
			Links:     append(slices.Clone(links), device("vlan.eth.3", "vlan")),
			Addresses: slices.Concat(othersAddresses, ourAddresses), Rules: slices.Concat(othersRules, ourRules),
			Routes: slices.Concat(othersRoutes, ourRoutes, []netstate.Route{
				linkRoute("vlan.eth.3", "0.0.0.0/0", "10.1.0.1", 101), linkRoute("vlan.eth.3", "10.1.0.1/32", "", 101), // removed with the device
			}),
		}})
	want := rules.Remnants{Devices: []netstate.Link{device("vlan.eth.3", "vlan")}, Rules: ourRules, Routes: ourRoutes, Addresses: ourAddresses}
	byText := cmpopts.SortSlices(func(a, b netstate.Address) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
	if d := cmp.Diff(want, got, equal, byText); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Running pods are recognized by a route to a link with their name, or to an egress address.
func TestLeftovers_Pods(t *testing.T) {
	t.Parallel()
	veth := func(name string) netstate.Link { return device(name, "veth") }
	k := rules.Kernel{
		VethPrefix: "pod", State: netstate.State{
			Links: append(slices.Clone(links), veth("eni11111111111"), veth("pod22222222222"), veth("vlan33333333333"), veth("veth0a1b2c3d"), veth("veth0a1b2c3e"),
				veth("eni44444444444"), device("eni55555555555", "dummy")),
			Routes: append(slices.Clone(othersRoutes),
				linkRoute("eni11111111111", "10.1.0.21/32", "", 254), linkRoute("pod22222222222", "fd00:10::22/128", "", 254),
				linkRoute("vlan33333333333", "10.1.0.23/32", "", 103), linkRoute("veth0a1b2c3d", "169.254.172.7/32", "", 254),
				linkRoute("veth0a1b2c3e", "fd00::ac:7/128", "", 254), linkRoute("eni44444444444", "10.1.0.0/24", "", 254),
				linkRoute("eni55555555555", "10.1.0.55/32", "", 254)),
		}}
	got := rules.Leftovers(k)
	want := rules.Remnants{Pods: []netstate.Link{veth("eni11111111111"), veth("pod22222222222"), veth("vlan33333333333"), veth("veth0a1b2c3d"), veth("veth0a1b2c3e")}}
	if d := cmp.Diff(want, got, equal); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Where strict mode moved the kernel's rule of the local table, it is restored, and only
// there.
func TestLeftovers_LocalRule(t *testing.T) {
	t.Parallel()
	strict4, strict6 := netstate.Rule{Priority: 20, Table: 255}, netstate.Rule{Priority: 20, Table: 255, IPv6: true}
	kernel4, kernel6 := netstate.Rule{Table: 255}, netstate.Rule{Table: 255, IPv6: true}
	for _, row := range []struct{ have, restore, remove []netstate.Rule }{
		{[]netstate.Rule{kernel4, kernel6}, nil, nil},
		{[]netstate.Rule{strict4, kernel6}, []netstate.Rule{kernel4}, []netstate.Rule{strict4}},
		{[]netstate.Rule{strict4, strict6}, []netstate.Rule{kernel4, kernel6}, []netstate.Rule{strict4, strict6}},
		{[]netstate.Rule{kernel4, strict4}, nil, []netstate.Rule{strict4}}, // interrupted in between
		{[]netstate.Rule{{Priority: 100, Table: 255}}, nil, nil},           // another agent moved it
	} {
		got := rules.Leftovers(rules.Kernel{State: netstate.State{Rules: row.have}})
		if d := cmp.Diff(rules.Remnants{Restore: row.restore, Rules: row.remove}, got, equal); d != "" {
			t.Errorf("%v (-want +got):\n%s", row.have, d)
		}
	}
}

// For any mix of our objects and others', nothing of others is listed and all our rules are;
// without our objects nothing is listed.
func TestLeftovers_NeverOthers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		k := rules.Kernel{
			VethPrefix: "eni", State: netstate.State{
				Links: some(rng, links), Addresses: some(rng, slices.Concat(othersAddresses, ourAddresses)),
				Rules: some(rng, slices.Concat(othersRules, ourRules)), Routes: append(some(rng, slices.Concat(othersRoutes[1:], ourRoutes)), othersRoutes[0]), // every node has a default route
			},
		}
		got := rules.Leftovers(k)
		for _, r := range k.Rules {
			if ours := slices.Contains(ourRules, r); ours != slices.Contains(got.Rules, r) {
				t.Errorf("seed %d: rule %v, ours %t", seed, r, ours)
			}
		}
		for _, r := range got.Routes {
			if !slices.Contains(ourRoutes, r) {
				t.Errorf("seed %d: route %v", seed, r)
			}
		}
		for _, a := range got.Addresses {
			if !slices.Contains(ourAddresses, a) {
				t.Errorf("seed %d: address %v", seed, a)
			}
		}
		if len(got.Pods)+len(got.Devices) > 0 {
			t.Errorf("seed %d: links %v %v", seed, got.Pods, got.Devices)
		}
	}
}

func some[T any](rng *rand.Rand, all []T) (out []T) {
	for _, v := range all {
		if rng.IntN(2) == 0 {
			out = append(out, v)
		}
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// filterChains has our rules and others' by chain.
var filterChains = []struct{ table, chain, own, others string }{
	{"filter", "FORWARD", `-d 169.254.172.0/22 -m conntrack --ctstate NEW -m comment --comment "Block Node Local Pod access via IPv4" -j REJECT --reject-with icmp-port-unreachable
-d fd00::ac:0/118 -m conntrack --ctstate NEW -m comment --comment "Block Node Local Pod access via IPv6" -j REJECT --reject-with icmp6-port-unreachable`,
		`-m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-d 169.254.172.0/22 -j ACCEPT
-m comment --comment "not: Block Node Local Pod access via IPv4" -j ACCEPT
-j DOCKER-USER`},
	{"mangle", "PREROUTING", `-i eth0 -m comment --comment "AWS, primary ENI" -m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-xmark 0x80/0x80
-i eni+ -m comment --comment "AWS, primary ENI" -j CONNMARK --restore-mark --nfmask 0x40 --ctmask 0x40`,
		`-m comment --comment "cali:x" -j MARK --set-xmark 0x1000000/0x1000000
-i eni+ -m comment --comment "AWS, primary ENI, mine" -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80`},
	{"nat", "PREROUTING", `-i eni+ -m comment --comment "AWS, outbound connections" -m state --state NEW -j AWS-CONNMARK-CHAIN-0
-i eni+ -m comment --comment "AWS, outbound connections" -j AWS-CONNMARK-CHAIN-0
-m comment --comment "AWS, CONNMARK" -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80`,
		`-m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-m comment --comment "cilium-feeder: CILIUM_PRE_nat" -j CILIUM_PRE_nat
-p tcp -m comment --comment "say \"AWS, CONNMARK\"" -j ACCEPT`},
	{"nat", "POSTROUTING", `-m comment --comment "AWS SNAT CHAIN" -j AWS-SNAT-CHAIN-0
-s 169.254.172.7/32 -m comment --comment "name: \"aws-cni\" id: \"054c\"" -j CNI-E4-82d2b717654a20b90c9ed`,
		`-s 10.88.0.7/32 -m comment --comment "name: \"podman\" id: \"1\"" -j CNI-1234567890abcdef12345678
-s 10.9.9.0/24 -m comment --comment "mine \"quoted\"" -j MASQUERADE
-m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-s 10.9.9.9/32 -m comment --comment "to CNI-E4-82d2b717654a20b90c9ed" -j ACCEPT`},
	{"nat", "AWS-SNAT-CHAIN-0", `-d 10.0.0.0/16 -m comment --comment "AWS SNAT CHAIN" -j RETURN`, ""},
	{"nat", "AWS-SNAT-CHAIN-3", `-j AWS-CONNMARK-CHAIN-0`, ""},
	{"nat", "AWS-CONNMARK-CHAIN-0", `-m comment --comment "AWS, CONNMARK" -j CONNMARK --set-xmark 0x80/0x80`, ""},
	{"nat", "CNI-E4-82d2b717654a20b90c9ed", `-j SNAT --to-source 10.0.0.10`, ""},
	{"nat", "CNI-E6-000000000000000000000", `-j SNAT --to-source fd00::10`, ""},
	{"nat", "CNI-E4-82d2b717654a20b90c9e", "", `-j ACCEPT`},
	{"nat", "AWS-SNAT-CHAIN", "", `-j ACCEPT`},
	{"nat", "AWS-SNAT-CHAIN-x", "", `-j ACCEPT`},
	{"nat", "KUBE-SERVICES", "", `-d 10.0.0.1/32 -j ACCEPT`},
	{"mangle", "AWS-SNAT-CHAIN-0", "", `-j ACCEPT`}, // someone else's, because of its table
}

// For any mix of our rules and others', exactly ours are removed, and others' keep their
// order.
func TestRemoveRuleset(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var with, without strings.Builder
		for _, table := range []string{"filter", "mangle", "nat"} {
			with.WriteString("*" + table + "\n")
			without.WriteString("*" + table + "\n")
			var bodyWith, bodyWithout strings.Builder
			for _, c := range filterChains {
				if c.table != table {
					continue
				}
				policy := "-"
				if strings.ToUpper(c.chain) == c.chain && !strings.Contains(c.chain, "-") {
					policy = "ACCEPT"
				}
				fmt.Fprintf(&with, ":%s %s [0:0]\n", c.chain, policy)
				if c.own == "" || c.others != "" {
					fmt.Fprintf(&without, ":%s %s [0:0]\n", c.chain, policy)
				}
				for _, spec := range some(rng, append(strings.Split(c.own, "\n"), strings.Split(c.others, "\n")...)) {
					if spec == "" {
						continue
					}
					fmt.Fprintf(&bodyWith, "-A %s %s\n", c.chain, spec)
					if slices.Contains(strings.Split(c.others, "\n"), spec) {
						fmt.Fprintf(&bodyWithout, "-A %s %s\n", c.chain, spec)
					}
				}
			}
			with.WriteString(bodyWith.String() + "COMMIT\n")
			without.WriteString(bodyWithout.String() + "COMMIT\n")
		}
		k, err := parseKernel(with.String())
		if err != nil {
			t.Fatal(err)
		}
		removal := rules.RemoveRuleset(k.Ruleset)
		if err := k.restore(removal.Script); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, removal.Script)
		}
		if d := cmp.Diff(without.String(), k.String()); d != "" {
			t.Errorf("seed %d (-others +left):\n%s", seed, d)
		}
		if again := rules.RemoveRuleset(k.Ruleset); again.Script != "" || again.Objects != nil || again.Held != nil {
			t.Errorf("seed %d: a second time %+v", seed, again)
		}
		if len(removal.Objects) == 0 {
			t.Errorf("seed %d: nothing is reported", seed)
		}
	}
}

func TestRemoveRuleset_HeldByOthers(t *testing.T) {
	t.Parallel()
	k, err := parseKernel(`*nat
:POSTROUTING ACCEPT [0:0]
:MINE - [0:0]
:AWS-SNAT-CHAIN-0 - [0:0]
-A POSTROUTING -m comment --comment "AWS SNAT CHAIN" -j AWS-SNAT-CHAIN-0
-A MINE -j AWS-SNAT-CHAIN-0
-A AWS-SNAT-CHAIN-0 -j RETURN
COMMIT
`)
	if err != nil {
		t.Fatal(err)
	}
	removal := rules.RemoveRuleset(k.Ruleset)
	want := rules.FilterRemoval{
		Script:  "*nat\n:AWS-SNAT-CHAIN-0 - [0:0]\n-D POSTROUTING -m comment --comment \"AWS SNAT CHAIN\" -j AWS-SNAT-CHAIN-0\nCOMMIT\n",
		Objects: []string{`nat/POSTROUTING -m comment --comment "AWS SNAT CHAIN" -j AWS-SNAT-CHAIN-0`},
		Held:    []string{"nat chain AWS-SNAT-CHAIN-0"},
	}
	if d := cmp.Diff(want, removal); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
