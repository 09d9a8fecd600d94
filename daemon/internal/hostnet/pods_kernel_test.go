package hostnet

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/resync"
)

// threePods makes the recorded state of pods (data of two ENIs), and similar foreign
// objects.
const threePods = `i=0
for p in eni0d7763386da eni0761ccbeace eni9fb0db7f13e vlan9fb0db7f13e; do
	i=$((i+1)); ip link add $p type veth peer name pod$i netns $POD; ip link set $p up
done
ip route add 10.0.0.12 dev eni0d7763386da scope link
ip route add 10.0.0.21 dev eni0761ccbeace scope link
ip route add 10.0.0.22 dev eni9fb0db7f13e scope link
for a in 12 21 22; do ip rule add priority 512 to 10.0.0.$a lookup main; done
for a in 21 22; do ip rule add priority 1536 from 10.0.0.$a lookup 2; done
ip rule add priority 512 to 10.0.0.40 lookup main
ip rule add priority 1536 from 10.0.0.40 lookup 3
ip rule add priority 1024 fwmark 0x80/0x80 lookup main
ip rule add priority 1535 to 10.0.0.50 lookup main
ip rule add priority 32765 from 10.0.0.20 lookup 2
ip route add 169.254.169.254 dev eth0 scope link
ip route add 10.0.0.60 via 10.0.0.1 dev eth0
ip route add 10.8.0.0/16 dev eni0d7763386da scope link`

func newPodBed(t *testing.T) *bed {
	n := newBed(t, "iptables-nft")
	pod := newBed(t, "iptables-nft").ns
	n.sh("POD=" + pod.Path + "\n" + threePods)
	return n
}

func (n *bed) podRoutesAre(want ...resync.PodRoute) {
	n.t.Helper()
	n.do(func() error {
		got, err := n.host.PodRoutes(n.t.Context())
		if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); d != "" {
			n.t.Errorf("(-want +got):\n%s", d)
		}
		return err
	})
}

func podRoute(addr, link string, table int) resync.PodRoute {
	return resync.PodRoute{Address: netip.MustParseAddr(addr), HostLink: link, Table: table, ToRule: true}
}

func TestPodRoutes(t *testing.T) {
	t.Parallel()
	n := newPodBed(t)
	n.podRoutesAre(
		podRoute("10.0.0.12", "eni0d7763386da", 254),
		podRoute("10.0.0.21", "eni0761ccbeace", 2),
		podRoute("10.0.0.22", "eni9fb0db7f13e", 2),
		podRoute("10.0.0.40", "", 3),
	)
	n.sh("ip rule del priority 512 to 10.0.0.22")
	wiped := podRoute("10.0.0.22", "eni9fb0db7f13e", 2)
	wiped.ToRule = false
	n.podRoutesAre(
		podRoute("10.0.0.12", "eni0d7763386da", 254), podRoute("10.0.0.21", "eni0761ccbeace", 2), wiped, podRoute("10.0.0.40", "", 3),
	)
}

func TestDropPod(t *testing.T) {
	t.Parallel()
	n := newPodBed(t)
	n.sh("ip rule add priority 1536 from 10.0.0.21 to 10.0.0.0/16 lookup 2; ip rule add priority 1536 from 10.0.0.21 lookup 3")
	for range 2 { // also if nothing is left
		for _, a := range []string{"10.0.0.12", "10.0.0.21", "10.0.0.40", "10.0.0.99"} {
			n.do(func() error { return n.host.DropPod(t.Context(), netip.MustParseAddr(a)) })
		}
	}
	n.podRoutesAre(podRoute("10.0.0.22", "eni9fb0db7f13e", 2))
	const want = `0:	from all lookup local
512:	from all to 10.0.0.22 lookup main
1024:	from all fwmark 0x80/0x80 lookup main
1535:	from all to 10.0.0.50 lookup main
1536:	from 10.0.0.22 lookup 2
32765:	from 10.0.0.20 lookup 2
32766:	from all lookup main
32767:	from all lookup default
`
	if d := cmp.Diff(want, n.sh("ip rule")); d != "" {
		t.Errorf("(-want +kernel):\n%s", d)
	}
	routes := n.sh("ip route")
	for _, kept := range []string{"169.254.169.254 dev eth0", "10.0.0.60 via", "10.8.0.0/16 dev", "10.0.0.22 dev"} {
		if !strings.Contains(routes, kept) {
			t.Errorf("%s is gone:\n%s", kept, routes)
		}
	}
}

func TestDropPod_IPv6(t *testing.T) {
	t.Parallel()
	n := newPodBed(t)
	n.sh("ip -6 route add fd00::21 dev eni0761ccbeace; ip -6 rule add priority 512 to fd00::21 lookup main; ip -6 rule add priority 1536 from fd00::21 lookup 2")
	n.do(func() error { return n.host.DropPod(t.Context(), netip.MustParseAddr("fd00::21")) })
	if got := n.sh("ip -6 rule; ip -6 route"); strings.Contains(got, "fd00") {
		t.Errorf("left:\n%s", got)
	}
}

// sixPods makes the state of IPv6 pods, and of branch pods.
const sixPods = `ip -6 route add fd00:10::12 dev eni0d7763386da
ip -6 route add fd00:10::21 dev eni0761ccbeace
for a in 12 21 40; do ip -6 rule add priority 512 to fd00:10::$a lookup main; done
ip -6 rule add priority 1536 from fd00:10::21 lookup 10101
ip -6 rule add priority 1536 from fd00:10::40 lookup 3
ip -6 route add fd00:10:0:1::/64 dev eni0d7763386da
ip -6 route add fd00:10::60 via fe80::9 dev eth0
ip -6 rule add priority 32765 from fd00:10::14 lookup 2`

func TestPodRoutes_IPv6(t *testing.T) {
	t.Parallel()
	n := newPodBed(t)
	n.sh(sixPods)
	four := []resync.PodRoute{
		podRoute("10.0.0.12", "eni0d7763386da", 254), podRoute("10.0.0.21", "eni0761ccbeace", 2), podRoute("10.0.0.22", "eni9fb0db7f13e", 2), podRoute("10.0.0.40", "", 3),
	}
	n.podRoutesAre(append(four,
		podRoute("fd00:10::12", "eni0d7763386da", 254), podRoute("fd00:10::21", "eni0761ccbeace", 10101), podRoute("fd00:10::40", "", 3),
	)...)
	n.do(func() error { return n.host.FixPodTable(t.Context(), netip.MustParseAddr("fd00:10::21"), 254) })
	n.do(func() error { return n.host.DropPod(t.Context(), netip.MustParseAddr("fd00:10::40")) })
	n.do(func() error { return n.host.FixPodTable(t.Context(), netip.MustParseAddr("fd00:10::12"), 3) })
	n.podRoutesAre(append(four,
		podRoute("fd00:10::12", "eni0d7763386da", 3), podRoute("fd00:10::21", "eni0761ccbeace", 254),
	)...)
	n.do(func() error { return n.host.DropPod(t.Context(), netip.MustParseAddr("fd00:10::12")) })
	if got := n.sh("ip -6 rule; ip -6 route"); strings.Contains(got, "fd00:10::12") || !strings.Contains(got, "fd00:10:0:1::/64 dev eni0d7763386da") {
		t.Errorf("after the drop:\n%s", got)
	}
}

// A branch pod of standard mode looks like any other, except for its table: its address came
// from no pool.
func TestPodRoutes_BranchPods(t *testing.T) {
	t.Parallel()
	n := newPodBed(t)
	n.sh("ip rule del priority 1536 from 10.0.0.21; ip rule add priority 1536 from 10.0.0.21 lookup 103; ip link add vlan.eth.3 type veth peer name trunkfar")
	others := []resync.PodRoute{podRoute("10.0.0.12", "eni0d7763386da", 254), podRoute("10.0.0.22", "eni9fb0db7f13e", 2), podRoute("10.0.0.40", "", 3)}
	n.podRoutesAre(others...)
	n.sh("ip link add vlan.eth.154 type veth peer name farther") // not a branch ENI's: its table would be main
	n.podRoutesAre(others...)
	n.sh("ip link del vlan.eth.3") // what remains blocks the next owner of the address
	n.podRoutesAre(others[0], podRoute("10.0.0.21", "eni0761ccbeace", 103), others[1], others[2])
}

func TestFixPodTable(t *testing.T) {
	t.Parallel()
	n := newPodBed(t)
	rulesOf := func(addr string) string { return n.sh("ip rule | grep -w " + addr + " || true") }
	n.sh("ip rule add priority 1536 from 10.0.0.21 to 10.0.0.0/16 lookup 9; ip rule del priority 512 to 10.0.0.21")
	for _, row := range []struct {
		table int
		want  string
	}{
		{3, "512:\tfrom all to 10.0.0.21 lookup main\n1536:\tfrom 10.0.0.21 lookup 3\n"},
		{10102, "512:\tfrom all to 10.0.0.21 lookup main\n1536:\tfrom 10.0.0.21 lookup 10102\n"},
		{254, "512:\tfrom all to 10.0.0.21 lookup main\n"},
		{2, "512:\tfrom all to 10.0.0.21 lookup main\n1536:\tfrom 10.0.0.21 lookup 2\n"},
	} {
		for range 2 {
			n.do(func() error { return n.host.FixPodTable(t.Context(), netip.MustParseAddr("10.0.0.21"), row.table) })
			if d := cmp.Diff(row.want, rulesOf("10.0.0.21")); d != "" {
				t.Errorf("table %d (-want +kernel):\n%s", row.table, d)
			}
		}
	}
	if d := cmp.Diff("512:\tfrom all to 10.0.0.22 lookup main\n1536:\tfrom 10.0.0.22 lookup 2\n", rulesOf("10.0.0.22")); d != "" {
		t.Errorf("another pod (-want +kernel):\n%s", d)
	}
}

func TestPodLinks(t *testing.T) {
	t.Parallel()
	n := newPodBed(t)
	n.do(func() error {
		links, err := n.host.PodLinks(t.Context())
		for _, name := range []string{"eth0", "eni0d7763386da", "vlan9fb0db7f13e"} {
			if links[name] == 0 {
				t.Errorf("no %s in %v", name, links)
			}
		}
		return err
	})
}

func TestEndsWithHash(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"eni0d7763386da": true, "vlan0d7763386da": true, "0d7763386da": true,
		"eth0": false, "": false, "ens5": false, "eni0d7763386dz": false, "d7763386da": false, "abcde0d7763386da": false,
	} {
		if endsWithHash(name) != want {
			t.Errorf("endsWithHash(%q) = %t", name, !want)
		}
	}
}
