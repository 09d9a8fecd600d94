package egress_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/hostnet/egress"
	"cnictl/daemon/iptables"
	"cnictl/daemon/netstate"
	"cnictl/testenv/text/golden"
)

const sandbox = "054c9853b64776d97f4782d2e281e98d8daa22b4ae7ac7339f623e505318424f"

// TestChain: a chain's name is upstream's, for a sandbox whose chain is known.
func TestChain(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		v6                bool
		network, id, want string
	}{
		{false, "aws-cni", sandbox, "CNI-E4-82d2b717654a20b90c9ed"},
		{true, "aws-cni", sandbox, "CNI-E6-82d2b717654a20b90c9ed"},
	} {
		if got := egress.Chain(row.v6, row.network, row.id); got != row.want || len(got) != 28 {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
	if egress.Chain(false, "aws-cni", "1") == egress.Chain(false, "aws-cn", "i2") {
		t.Error("two networks have one chain")
	}
}

func TestParseRandom(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		word  string
		fully bool
		want  egress.Random
	}{
		{"none", true, egress.RandomNone}, {"none", false, egress.RandomNone},
		{"hashrandom", true, egress.RandomHash}, {"hashrandom", false, egress.RandomHash},
		{"prng", true, egress.RandomFully}, {"prng", false, egress.RandomHash},
		{"", true, egress.RandomFully}, {"x", true, egress.RandomFully}, {"NONE", true, egress.RandomFully},
	} {
		if got := egress.ParseRandom(row.word, row.fully); got != row.want {
			t.Errorf("%q %t: %q, want %q", row.word, row.fully, got, row.want)
		}
	}
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func wanted(t *testing.T, id, podIP, nodeIP string, random egress.Random) egress.SNAT {
	t.Helper()
	s, err := egress.Wanted("aws-cni", id, addr(podIP), addr(nodeIP), random)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWanted(t *testing.T) {
	t.Parallel()
	const comment = ` -m comment --comment "name: \"aws-cni\" id: \"` + sandbox + `\"" -j `
	for _, row := range []struct {
		pod, node string
		random    egress.Random
		want      string
	}{
		{"169.254.172.2", "10.0.0.1", egress.RandomFully, ":CNI-E4-82d2b717654a20b90c9ed - [0:0]\n" +
			"-A POSTROUTING -s 169.254.172.2/32" + comment + "CNI-E4-82d2b717654a20b90c9ed\n" +
			"-A CNI-E4-82d2b717654a20b90c9ed -d 224.0.0.0/4" + comment + "ACCEPT\n" +
			"-A CNI-E4-82d2b717654a20b90c9ed" + comment + "SNAT --to-source 10.0.0.1 --random-fully\n"},
		{"fd00::ac:2", "2001:db8::1", egress.RandomNone, ":CNI-E6-82d2b717654a20b90c9ed - [0:0]\n" +
			"-A POSTROUTING -s fd00::ac:2/128" + comment + "CNI-E6-82d2b717654a20b90c9ed\n" +
			"-A CNI-E6-82d2b717654a20b90c9ed -d ff00::/8" + comment + "ACCEPT\n" +
			"-A CNI-E6-82d2b717654a20b90c9ed" + comment + "SNAT --to-source 2001:db8::1\n"},
	} {
		if diff := cmp.Diff(row.want, wanted(t, sandbox, row.pod, row.node, row.random).String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for _, bad := range [][2]netip.Addr{
		{addr("10.0.0.1"), addr("fd00::1")}, {addr("fd00::1"), addr("10.0.0.1")}, {{}, addr("10.0.0.1")}, {addr("10.0.0.1"), {}},
		{addr("::ffff:10.0.0.1"), addr("::ffff:10.0.0.1")}, {addr("fd00::1%eth0"), addr("fd00::1")}, {addr("fd00::2"), addr("fd00::1%-j")},
	} {
		if s, err := egress.Wanted("aws-cni", sandbox, bad[0], bad[1], egress.RandomNone); err == nil {
			t.Errorf("%v: %v", bad, s)
		}
	}
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	s := wanted(t, "c1", "169.254.172.2", "10.0.0.1", egress.RandomHash)
	other := wanted(t, "c2", "169.254.172.3", "10.0.0.1", egress.RandomHash)
	text := func(lines ...string) string { return "*nat\n" + strings.Join(lines, "\n") + "\nCOMMIT\n" }
	del := func(rule string) string { return "-D" + strings.TrimPrefix(rule, "-A") }
	table := func(lines ...string) string {
		return "# by iptables-save\n*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [5:300]\n" + strings.Join(lines, "\n") +
			"\nCOMMIT\n*filter\n:" + s.Chain + " - [0:0]\n-A FORWARD -j " + s.Chain + "\nCOMMIT\n"
	}
	nat := func(lines ...string) iptables.Table { return egress.NAT(table(lines...)) }
	chain := func(s egress.SNAT) string { return ":" + s.Chain + " - [0:0]" }
	all := append([]string{chain(s), s.Jump()}, s.Rules()...)
	oldJump := strings.Replace(s.Jump(), "172.2/", "172.9/", 1)
	for _, row := range []struct{ name, got, want string }{
		{"add", s.Add(), text("-N "+s.Chain, s.Rules()[0], s.Rules()[1], s.Jump())},
		{"delete", s.Delete(), text(del(s.Jump()), "-F "+s.Chain, "-X "+s.Chain)},
		{"repair nothing", egress.Repair(nat(all...), s), ""},
		{"repair all", egress.Repair(nat(), s), text(chain(s), s.Rules()[0], s.Rules()[1], s.Jump())},
		{"repair beside another", egress.Repair(nat(chain(other), other.Jump()), s), text(chain(s), s.Rules()[0], s.Rules()[1], s.Jump())},
		{"repair rules", egress.Repair(nat(chain(s), s.Jump(), s.Rules()[1]), s), text(del(s.Jump()), chain(s), s.Rules()[0], s.Rules()[1], s.Jump())},
		{"repair jump", egress.Repair(nat(append(all, oldJump)...), s), text(del(s.Jump()), del(oldJump), chain(s), s.Rules()[0], s.Rules()[1], s.Jump())},
		{"remove nothing", egress.Remove(nat(), s.Chain), ""},
		{"remove nothing of another", egress.Remove(nat(chain(other), other.Jump()), s.Chain), ""},
		{"remove", egress.Remove(nat(all...), s.Chain), text(del(s.Jump()), "-F "+s.Chain, "-X "+s.Chain)},
		{"remove chain without jump", egress.Remove(nat(chain(s)), s.Chain), text("-F "+s.Chain, "-X "+s.Chain)},
		{"remove jumps without chain", egress.Remove(nat(s.Jump(), oldJump), s.Chain), text(del(s.Jump()), del(oldJump))},
		{"remove two", egress.Remove(nat(append(all, chain(other), other.Jump())...), s.Chain, other.Chain),
			text(del(s.Jump()), "-F "+s.Chain, del(other.Jump()), "-F "+other.Chain, "-X "+s.Chain, "-X "+other.Chain)},
	} {
		if diff := cmp.Diff(row.want, row.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
	if got := egress.Stale(nat(append(all, chain(other), other.Jump())...), "aws-cni", func(id string) bool { return id == "c1" }); got != nil {
		t.Errorf("a chain without rules of its own: %v", got)
	}
	withOther := nat(append(all, chain(other), other.Jump(), other.Rules()[0], ":CNI-E4-foreign - [0:0]", "-A CNI-E4-foreign -j RETURN")...)
	for _, row := range []struct {
		network, keep string
		want          []string
	}{
		{"aws-cni", "c1", []string{other.Chain}}, {"aws-cni", "c2", []string{s.Chain}}, {"aws-cni", "", []string{s.Chain, other.Chain}}, {"second", "", nil},
	} {
		got := egress.Stale(withOther, row.network, func(id string) bool { return id == row.keep })
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s keeps %s (-want +got):\n%s", row.network, row.keep, diff)
		}
	}
}

func lease(prefix, gateway, dst string) egress.Lease {
	return egress.Lease{Address: netip.MustParsePrefix(prefix), Gateway: addr(gateway), Routes: []netstate.Route{{Dst: netip.MustParsePrefix(dst)}}}
}

// TestPod checks a pod's layout as text.
func TestPod(t *testing.T) {
	t.Parallel()
	var random [20]byte
	for i := range random {
		random[i] = byte(0x11 * (i + 1))
	}
	for file, row := range map[string]egress.Lease{
		"v4.txt": lease("169.254.172.2/22", "169.254.172.1", "0.0.0.0/0"),
		"v6.txt": lease("fd00::ac:2/118", "fd00::ac:1", "::/0"),
	} {
		p, err := egress.NewPod(egress.NewPair(row.Address.Addr().Is6(), random, 9001), row, "eth0")
		if err != nil {
			t.Fatal(err)
		}
		golden.File(t, "testdata/TestPod/"+file, []byte(p.String()))
	}
	for _, bad := range []egress.Lease{{}, {Address: netip.MustParsePrefix("169.254.172.2/22")},
		{Address: netip.MustParsePrefix("169.254.172.2/22"), Gateway: addr("fd00::1")}, {Address: netip.MustParsePrefix("::ffff:1.2.3.4/128")}} {
		if p, err := egress.NewPod(egress.Pair{}, bad, "eth0"); err == nil {
			t.Errorf("%v: %v", bad, p)
		}
	}
}

// TestNewPair: for any random draw, names fit, and indexes and addresses are of the right
// kind.
func TestNewPair(t *testing.T) {
	t.Parallel()
	for _, b := range []byte{0, 0x55, 0x80, 0xff} {
		var random [20]byte
		for i := range random {
			random[i] = b
		}
		p := egress.NewPair(true, random, 1500)
		if len(p.Host.Name) != 12 || p.Host.Index <= 0 || p.Pod.Index <= 2 || p.Host.MAC[0]&3 != 2 || p.Pod.MAC[0]&3 != 2 || !p.Host.MAC.LinkLocal().IsLinkLocalUnicast() {
			t.Errorf("%+v", p)
		}
	}
	if got := (netstate.MAC{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}).LinkLocal(); got != addr("fe80::11:22ff:fe33:4455") {
		t.Errorf("link-local address %v", got)
	}
}
