package hostnet

import (
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/rtnl"
)

// neighbours are others' rules on a node, in every table that we use.
const neighbours = `for t in iptables-nft iptables-legacy; do $t-restore <<'EOF'
*filter
:FORWARD DROP
:KUBE-FORWARD -
:DOCKER-USER -
-A FORWARD -j DOCKER-USER
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -d 169.254.172.0/22 -m comment --comment mine -j ACCEPT
COMMIT
*mangle
-A PREROUTING -m comment --comment "cali:x" -j MARK --set-xmark 0x1000000/0x1000000
COMMIT
*nat
:KUBE-SERVICES -
:CNI-HOSTPORT-DNAT -
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -s 10.9.9.0/24 -m comment --comment "mine \"quoted\"" -j MASQUERADE
COMMIT
EOF
done
for t in ip6tables-nft ip6tables-legacy; do $t-restore <<'EOF'
*filter
-A FORWARD -d fd00:9::/64 -j ACCEPT
COMMIT
*nat
-A POSTROUTING -s fd00:9::/64 -j MASQUERADE
COMMIT
EOF
done
nft 'add table inet cilium; add chain inet cilium pre { type filter hook prerouting priority -200; }; add rule inet cilium pre meta mark 7 counter'
nft 'add table ip6 aws-cni; add chain ip6 aws-cni x'
ip rule add priority 9 fwmark 0x200/0xf00 lookup 2004
ip rule add priority 512 to 10.55.0.0/16 lookup main
ip rule add priority 30000 from 10.0.0.99 lookup 77
ip -6 rule add priority 1536 from fd00:9::/64 lookup 2
ip link add cali0d7763386da type veth peer name califar; ip link set califar up; ip link set cali0d7763386da up; ip route add 10.0.0.77 dev cali0d7763386da
ip link add eth9 type veth peer name far9; ip link set far9 up; ip link set eth9 up; ip addr add 192.168.9.2/24 dev eth9
ip route add default via 192.168.9.1 dev eth9 table 40
`

var volatile = regexp.MustCompile(`\[\d+:\d+\]|packets \d+ bytes \d+| # handle \d+`)

// node prints everything that uninstalling affects, in both backends and families.
func (n *bed) node() string {
	text := n.sh(`for t in iptables-nft ip6tables-nft iptables-legacy ip6tables-legacy; do echo "# $t"; $t-save | grep -v '^#'; done
echo '# nft'; nft list tables; nft list table inet cilium
echo '# ip'; ip rule; ip -6 rule; ip -4 route show table all | grep -v ^broadcast; ip -4 addr show scope global | grep inet
ip -6 addr show scope global | grep inet6 || true; ip -6 route show table all | grep 'table [1-9]' || true; ip -br link | cut -d' ' -f1`)
	return volatile.ReplaceAllString(text, "")
}

// find looks for leftovers.
func (n *bed) find() *Leftovers {
	n.t.Helper()
	var l *Leftovers
	n.do(func() (err error) {
		l, err = FindLeftovers(n.t.Context(), slog.New(slog.NewTextHandler(n.t.Output(), nil)), "eni")
		return err
	})
	return l
}

// remove removes them and returns the remaining objects.
func (n *bed) remove(l *Leftovers) (failed []string) {
	n.t.Helper()
	n.do(func() error {
		for _, c := range l.Remove(n.t.Context()) {
			if c.Err != nil {
				failed = append(failed, c.Object+": "+c.Err.Error())
			}
		}
		return nil
	})
	return failed
}

// occupy makes everything that a daemon and its plugins make under many settings, in both
// backends.
func (n *bed) occupy() {
	n.t.Helper()
	everything := func(in *rules.NodeInput) { strict(in); moreCIDRs(in); services(in); v6Egress(in) }
	n.setup(ipv6, strict)
	n.setup(everything)
	other := map[string]string{"iptables-nft": "iptables-legacy", "iptables-legacy": "iptables-nft"}[n.tool]
	again := n.restarted(other)
	again.host.inUse().others = nil // it knows no other backend, like upstream
	again.setup(everything)
	n.setupENI()
	n.setupENI(ipv6ENI)
	n.sh(`nft add table ip aws-cni
ip rule add priority 512 to 10.0.0.21 lookup main; ip rule add priority 1536 from 10.0.0.21 lookup 2
ip -6 rule add priority 1536 from fd00:10::21 lookup 10102
ip rule add priority 10 iif vlan.eth.3 lookup 103; ip rule add priority 10 iif vlan0d7763386da lookup 103
iptables-nft -t nat -N CNI-E4-82d2b717654a20b90c9ed
iptables-nft -t nat -A CNI-E4-82d2b717654a20b90c9ed -j SNAT --to-source 10.0.0.10
iptables-nft -t nat -A POSTROUTING -s 169.254.172.7 -m comment --comment 'name: "aws-cni" id: "054c"' -j CNI-E4-82d2b717654a20b90c9ed
ip6tables-legacy -t nat -N CNI-E6-82d2b717654a20b90c9ed
ip6tables-legacy -t nat -A POSTROUTING -s fd00::ac:7 -j CNI-E6-82d2b717654a20b90c9ed`)
}

// After any setup, the node ends up as it was before, with others' objects unchanged byte
// for byte, and a second run finds nothing.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		n.sh(neighbours)
		n.attach("ens6")
		before := n.node()
		if l := n.find(); len(l.Objects()) > 0 || len(l.Pods) > 0 {
			t.Fatalf("before the daemon ever ran: %q %q", l.Objects(), l.Pods)
		}
		n.occupy()
		full := n.node()
		l := n.find()
		listed := strings.Join(l.Objects(), "\n")
		for _, object := range []string{
			"iptables-nft nat chain AWS-SNAT-CHAIN-0", "iptables-legacy nat chain AWS-SNAT-CHAIN-0", "iptables-nft mangle/PREROUTING -i eth0",
			"iptables-legacy mangle/PREROUTING -i eth0", "iptables-nft nat chain CNI-E4-82d2b717654a20b90c9ed", "ip6tables-legacy nat chain CNI-E6-",
			"ip6tables-nft filter/FORWARD -d fd00::ac:0/118", "ip6tables-legacy filter/FORWARD -d fd00::ac:0/118", "nft table ip aws-cni",
			"(back to its place) ip rule 0: from all lookup local", "ip rule 20: from all lookup local", "ip rule 512: from all to 10.0.0.21 lookup main",
			"ip rule 10: from all iif vlan.eth.3 lookup 103", "ip rule 1024: ", "ip rule 1535: from all to 172.20.0.0/16 lookup main",
			"ip rule 1536: from 10.0.0.21 lookup 2", "ip -6 rule 1536: from fd00:10::21 lookup 10102", "ip rule 32765: from 10.0.0.20 lookup 2",
			"ip -6 rule 32765: from fd00:10::14 lookup 2", "address 10.0.0.20/18 of link ens6", "address fd00:10::14/64 of link ens6",
			"route default via 10.0.0.1 dev ens6 table 2", "route default via fe80:ec2::1 dev ens6 table 2",
		} {
			if !strings.Contains(listed, object) {
				t.Errorf("not listed: %s", object)
			}
		}
		if d := cmp.Diff(full, n.node()); d != "" {
			t.Errorf("looking changed the node (-before +after):\n%s", d)
		}
		if failed := n.remove(l); failed != nil {
			t.Errorf("left: %q", failed)
		}
		if d := cmp.Diff(before, n.node()); d != "" {
			t.Errorf("(-before the daemon +after uninstalling):\n%s", d)
		}
		if l := n.find(); len(l.Objects()) > 0 || n.remove(l) != nil {
			t.Errorf("a second time: %q", l.Objects())
		}
	})
}

// interrupted is what a run did before it ended. At night more follow.
var interrupted = []string{
	"ip addr del 10.0.0.20/18 dev ens6; ip -6 addr flush dev ens6 scope global",
	"ip route flush table 2; ip rule add priority 0 lookup local",
	"nft delete table ip aws-cni",
	"iptables-nft -t nat -F AWS-SNAT-CHAIN-0; iptables-nft -t nat -F CNI-E4-82d2b717654a20b90c9ed",
}

// A run that was interrupted after any of its parts is completed by the next one.
func TestLeftovers_HalfDone(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.sh(neighbours)
	n.attach("ens6")
	before := n.node()
	for _, done := range interrupted {
		n.occupy()
		n.sh(done)
		if failed := n.remove(n.find()); failed != nil {
			t.Errorf("after %q: left %q", done, failed)
		}
		if d := cmp.Diff(before, n.node()); d != "" {
			t.Errorf("after %q (-before +after):\n%s", done, d)
		}
	}
}

// Running pods are reported, and their links and rules are removed too.
func TestLeftovers_LivingPods(t *testing.T) {
	t.Parallel()
	n := newPodBed(t)
	n.setup()
	l := n.find()
	if len(l.Pods) == 0 {
		t.Fatal("no pods are found")
	}
	if failed := n.remove(l); failed != nil {
		t.Errorf("left: %q", failed)
	}
	links := n.sh("ip -br link")
	for _, name := range l.Pods {
		if strings.Contains(links, name) {
			t.Errorf("link %s is left", name)
		}
	}
	if l := n.find(); len(l.Objects()) > 0 {
		t.Errorf("a second time: %q", l.Objects())
	}
}

// Secondary ENIs that the AMI's network configuration manages are kept, and reported.
func TestLeftovers_ManagedByOthers(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	n.sh(`ip link add ens7 type veth peer name far7; ip link set far7 up; ip link set ens7 up
ip addr add 10.0.0.71/18 dev ens7 valid_lft 3600 preferred_lft 3600
ip link add ens8 type veth peer name far8; ip link set far8 up; ip link set ens8 up; ip addr add 10.0.0.81/18 dev ens8
for n in 7 8; do ip route add 10.0.0.1 dev ens$n table 1010$n; ip route add default via 10.0.0.1 dev ens$n table 1010$n
  ip rule add priority 32765 from 10.0.0.${n}1 lookup 1010$n protocol static; done
ip rule del priority 32765 from 10.0.0.71; ip rule add priority 32765 from 10.0.0.71 lookup 10107 protocol 0`)
	lifetime := regexp.MustCompile(`valid_lft .*|mtu \d+`)
	state := func() string {
		return lifetime.ReplaceAllString(n.sh("ip rule; ip -4 route show table all; ip -4 addr show scope global"), "")
	}
	before := state()
	n.setup()
	n.setupENI()
	l := n.find()
	want := []string{"link ens7, with its addresses, rules of priority 32765 and routes: its address 10.0.0.71/18 expires",
		"link ens8, with its addresses, rules of priority 32765 and routes: another program made the rule for 10.0.0.81"}
	if !slices.EqualFunc(want, l.Kept, func(want, got string) bool { return strings.HasPrefix(got, want) }) {
		t.Errorf("kept: %q", l.Kept)
	}
	if failed := n.remove(l); failed != nil {
		t.Errorf("left: %q", failed)
	}
	if d := cmp.Diff(before, state()); d != "" {
		t.Errorf("(-before the daemon +after uninstalling):\n%s", d)
	}
}

// One of our chains that someone else's rule jumps to is emptied and reported as left.
func TestLeftovers_Held(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		n.setup()
		n.sh(n.tool + " -t nat -N MINE; " + n.tool + " -t nat -A MINE -j AWS-SNAT-CHAIN-0")
		for range 2 {
			failed := n.remove(n.find())
			if len(failed) != 1 || !strings.HasPrefix(failed[0], n.tool+" nat chain AWS-SNAT-CHAIN-0: only flushed") {
				t.Errorf("%q", failed)
			}
		}
		n.sh(n.tool + " -t nat -F MINE")
		if failed := n.remove(n.find()); failed != nil {
			t.Errorf("after the rule went: %q", failed)
		}
		if l := n.find(); len(l.Objects()) > 0 {
			t.Errorf("left: %q", l.Objects())
		}
	})
}

// A state has the routes of all tables of the requested families.
func TestReadState_Tables(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.sh("ip route add 10.9.0.0/16 dev eth0 table 2; ip route add 10.9.0.0/16 dev eth0 table 10102; ip -6 route add fd00:9::/64 dev eth0 table 7")
	n.do(func() error {
		return with(func(c *rtnl.Conn) error {
			for want, families := range map[string][]uint8{"2 10102": {unix.AF_INET}, "7": {unix.AF_INET6}, "2 10102 7": {unix.AF_INET, unix.AF_INET6}} {
				s, err := readState(c, families...)
				if err != nil {
					return err
				}
				var tables []string
				for _, r := range s.Routes {
					if r.Dst.String() == "10.9.0.0/16" || r.Dst.String() == "fd00:9::/64" {
						tables = append(tables, strconv.Itoa(r.Table))
					}
				}
				if got := strings.Join(tables, " "); got != want {
					t.Errorf("families %v: tables %s, want %s", families, got, want)
				}
			}
			return nil
		})
	})
}

// A program without usable output is an error, not an empty rule set.
func TestLeftovers_Unreadable(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	l := &Leftovers{host: &Host{opts: Options{Log: slog.New(slog.DiscardHandler)}}}
	n.do(func() error {
		for _, program := range []string{"false", "/proc/no-such-program"} {
			if _, err := l.readFilter(t.Context(), pair{name: program, save: program}); err == nil {
				t.Errorf("%s: no error", program)
			}
		}
		return nil
	})
}
