package hostnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/rtnl"
	"cnictl/testenv"
)

const eniMAC = "02:fa:4e:00:00:03"

func eni(change ...func(*rules.ENIInput)) rules.ENIInput {
	in := rules.ENIInput{
		MAC: eniMAC, Device: 1, MTU: 9001,
		PrimaryIP: netip.MustParseAddr("10.0.0.20"), Subnet: netip.MustParsePrefix("10.0.0.0/18"),
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

// attach makes an ENI's link appear.
func (n *bed) attach(name string) {
	n.sh("ip link add " + name + " address " + eniMAC + " type veth peer name far0; ip link set far0 up")
}

func (n *bed) setupENI(change ...func(*rules.ENIInput)) {
	n.t.Helper()
	n.do(func() error { return n.host.SetupENI(n.t.Context(), eni(change...)) })
}

// eniState prints what SetupENI configures, for a link.
func (n *bed) eniState(name string) string {
	return n.sh("ip -4 -br addr show dev " + name + " scope global; ip route show table all dev " + name +
		" | grep -v '^local\\|^broadcast\\|^fe80\\|^multicast\\|^ff00' || true; ip rule | grep -v 'from all'; ip link show " + name + " | grep -o 'mtu [0-9]*'")
}

// As recorded (data of two ENIs), with the link's name.
const recordedENI = `ens6@far0        UP             10.0.0.20/18 
default via 10.0.0.1 table 2 
10.0.0.1 table 2 scope link 
32765:	from 10.0.0.20 lookup 2
mtu 9001
`

func TestSetupENI(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	n.setupENI()
	if d := cmp.Diff(recordedENI, n.eniState("ens6")); d != "" {
		t.Errorf("(-want +kernel):\n%s", d)
	}
	if a := n.sh("ip -4 addr show dev ens6"); !strings.Contains(a, "inet 10.0.0.20/18 brd 10.0.63.255 scope global ens6\n") {
		t.Errorf("address differs from the recorded one:\n%s", a)
	}
	if r := n.sh("ip route show 10.0.0.0/18"); r != "10.0.0.0/18 dev eth0 proto kernel scope link src 10.0.0.10 \n" {
		t.Errorf("routes to the subnet in main:\n%s", r)
	}
	before := n.everything()
	n.setupENI()
	if d := cmp.Diff(before, n.everything()); d != "" {
		t.Errorf("a second time (-before +after):\n%s", d)
	}
}

// Anything removed or in the way is repaired.
func TestSetupENI_Repairs(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	n.setupENI()
	for _, damage := range []string{
		"ip link set ens6 down",
		"ip link set ens6 mtu 1500",
		"ip addr flush dev ens6",
		"ip addr add 10.0.0.77/18 dev ens6; ip addr add 172.16.0.5/12 dev ens6",
		"ip addr del 10.0.0.20/18 dev ens6; ip addr add 10.0.0.77/18 dev ens6; ip addr add 10.0.0.20/18 dev ens6",
		"ip route flush table 2",
		"ip route replace default via 10.0.0.1 dev eth0 onlink table 2",
		"ip route del default table 2; ip route add default dev ens6 table 2",
		"ip route append default via 10.0.0.9 dev ens6 onlink table 2",
		"ip route prepend default via 10.0.0.9 dev ens6 onlink table 2",
		"ip route append 10.0.0.0/18 dev ens6 src 10.0.0.20",
		"ip rule del priority 32765",
	} {
		n.sh(damage)
		n.setupENI()
		if d := cmp.Diff(recordedENI, n.eniState("ens6")); d != "" {
			t.Errorf("after %q (-want +kernel):\n%s", damage, d)
		}
	}
}

func TestSetupENI_LateLinkOfAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ens6", "eth1", "veth0a1b2c3", "x"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newBed(t, "iptables-nft")
			done := make(chan error, 1)
			go func() {
				done <- n.ns.Do(func() error { return n.host.SetupENI(t.Context(), eni()) })
			}()
			testenv.Eventually(t, "SetupENI listens for links", func() bool { return n.listeners() == 1 })
			n.sh("ip link add other type veth peer name another") // another link
			n.attach(name)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got := n.eniState(name); !strings.Contains(got, "default via 10.0.0.1 table 2") || !strings.Contains(got, "32765:\tfrom 10.0.0.20 lookup 2") {
				t.Errorf("%s", got)
			}
			testenv.Eventually(t, "the subscription is closed", func() bool { return n.listeners() == 0 })
		})
	}
}

// listeners counts the namespace's sockets that listen for link changes.
func (n *bed) listeners() int {
	count := 0
	n.do(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/netlink")
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line) // sk Eth Pid Groups ...
			if len(f) < 4 || f[1] != "0" {
				continue
			}
			if groups, err := strconv.ParseUint(f[3], 16, 32); err == nil && groups&1 != 0 {
				count++
			}
		}
		return err
	})
	return count
}

func TestSetupENI_LinkNeverAppears(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	ctx, stop := context.WithDeadline(t.Context(), testenv.Soon())
	defer stop()
	err := n.ns.Do(func() error { return n.host.SetupENI(ctx, eni()) })
	var missing *LinkError
	if !errors.As(err, &missing) || !errors.Is(err, context.DeadlineExceeded) ||
		!strings.HasPrefix(err.Error(), "setupENINetwork: failed to find the link which uses MAC address 02:fa:4e:00:00:03") {
		t.Errorf("%v", err)
	}
	testenv.Eventually(t, "the subscription is closed", func() bool { return n.listeners() == 0 })
}

func TestSetupENI_RefusesThePrimary(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	err := n.ns.Do(func() error {
		return n.host.SetupENI(t.Context(), eni(func(in *rules.ENIInput) { in.Device = 0 }))
	})
	if err == nil || err.Error() != "setupENINetwork should never be called on the primary ENI" {
		t.Errorf("%v", err)
	}
}

func TestRetryRoutes(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft") // for its Host
	route := fmt.Errorf("x: %w", &rtnl.Error{Op: "replace route", Errno: unix.ENETUNREACH})
	other := &rtnl.Error{Op: "add rule", Errno: unix.EPERM}
	for _, row := range []struct {
		name  string
		fails []error
		tries int
		want  error
	}{
		{"at once", nil, 1, nil},
		{"third time", []error{route, route}, 3, nil},
		{"never", []error{route, route, route, route, route, route}, 5, route},
		{"not a route", []error{other}, 1, other},
	} {
		tries := 0
		err := n.host.retryRoutes(t.Context(), func() error {
			tries++
			if tries <= len(row.fails) {
				return row.fails[tries-1]
			}
			return nil
		})
		if tries != row.tries || !errors.Is(err, row.want) {
			t.Errorf("%s: %d tries, %v", row.name, tries, err)
		}
	}
	n.host.opts.RouteBackoff = time.Hour
	ctx, stop := context.WithCancel(t.Context())
	err := n.host.retryRoutes(ctx, func() error { stop(); return route })
	if !errors.Is(err, context.Canceled) || !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSetupENI_FurtherCard(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	card := func(in *rules.ENIInput) { in.Card = 1 }
	n.setupENI(card)
	if got := n.eniState("ens6"); !strings.Contains(got, "default via 10.0.0.1 table 10101") || !strings.Contains(got, "32765:\tfrom 10.0.0.20 lookup 10101") {
		t.Errorf("%s", got)
	}
	// An AMI's rule wins, and stays the only one.
	n.sh("ip rule del priority 32765; ip rule add priority 30000 from 10.0.0.20 lookup 77")
	n.setupENI(card, func(in *rules.ENIInput) { in.RouteTable = 77 })
	if got := n.sh("ip rule | grep 10.0.0.20"); got != "30000:\tfrom 10.0.0.20 lookup 77\n" {
		t.Errorf("rules:\n%s", got)
	}
}

// Several rules for the address, made by an AMI or an older release: one of them is used,
// none is added and none removed.
func TestSetupENI_SeveralRulesOfOthers(t *testing.T) {
	t.Parallel()
	for rule, table := range map[string]int{"lookup 77": 10101, "lookup 6": 6} { // 6 = device 1 + 1 + card 1 of 4 ENIs
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			n := newBed(t, "iptables-nft")
			n.attach("ens6")
			n.sh("ip rule add priority 30000 from 10.0.0.20 lookup 78; ip rule add priority 32765 from 10.0.0.20 " + rule)
			before := n.sh("ip rule")
			var got int
			n.do(func() (err error) {
				got, err = n.host.TableFor(t.Context(), 1, 1, netip.MustParseAddr("10.0.0.20"), 4)
				return err
			})
			if got != table {
				t.Errorf("table %d, want %d", got, table)
			}
			n.setupENI(func(in *rules.ENIInput) { in.Card, in.RouteTable = 1, got })
			if d := cmp.Diff(before, n.sh("ip rule")); d != "" {
				t.Errorf("rules (-before +after):\n%s", d)
			}
			if r := n.sh("ip route show table " + strconv.Itoa(table)); !strings.Contains(r, "default via 10.0.0.1 dev ens6") {
				t.Errorf("routes of table %d:\n%s", table, r)
			}
		})
	}
}

func TestSetupENI_Trunk(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	n.setupENI(func(in *rules.ENIInput) { in.Trunk = true })
	if got := n.sh("ip rule"); strings.Contains(got, "10.0.0.20") {
		t.Errorf("a trunk got a rule:\n%s", got)
	}
}

func TestTeardownENI(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	n.setupENI()
	n.sh("ip rule add priority 30000 from 10.0.0.20 lookup 77; ip rule add priority 1536 from 10.0.0.21 lookup 2")
	for range 2 { // also if nothing is left
		n.do(func() error { return n.host.TeardownENI(t.Context(), netip.MustParseAddr("10.0.0.20")) })
		if d := cmp.Diff("0:\tfrom all lookup local\n1536:\tfrom 10.0.0.21 lookup 2\n32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n", n.sh("ip rule")); d != "" {
			t.Errorf("(-want +kernel):\n%s", d)
		}
	}
}

// TestDropENIRules removes rules of removed ENIs and no others.
func TestDropENIRules(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.attach("ens6")
	n.setupENI()
	kept := "0:\tfrom all lookup local\n1536:\tfrom 10.0.0.21 lookup 2\n"
	n.sh("ip rule add priority 32765 from 10.0.0.66 lookup 3; ip rule add priority 32765 from 10.0.0.67 lookup 10102; ip rule add priority 1536 from 10.0.0.21 lookup 2")
	others := "32765:\tfrom 10.0.0.68 lookup 7000\n32765:\tfrom 10.0.0.0/24 lookup 3\n32765:\tfrom all to 10.0.0.69 lookup 3\n"
	n.sh("ip rule add priority 32765 from 10.0.0.68 lookup 7000; ip rule add priority 32765 from 10.0.0.0/24 lookup 3; ip rule add priority 32765 to 10.0.0.69 lookup 3")
	own := "32765:\tfrom 10.0.0.20 lookup 2\n"
	for i, want := range []int{2, 0} {
		n.do(func() error {
			gone, err := n.host.DropENIRules(t.Context(), []netip.Addr{netip.MustParseAddr("10.0.0.20")})
			if len(gone) != want {
				t.Errorf("run %d removed %v", i, gone)
			}
			return err
		})
		if d := cmp.Diff(kept+own+others+"32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n", n.sh("ip rule")); d != "" {
			t.Errorf("(-want +kernel):\n%s", d)
		}
	}
}

// The device is found, not another link on top of it with the same MAC.
func TestSetupENI_SharedMAC(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.sh("ip link add base type veth peer name basefar; ip link add link base name above address " + eniMAC + " type macvlan")
	n.attach("ens6")
	n.setupENI()
	if d := cmp.Diff(recordedENI, n.eniState("ens6")); d != "" {
		t.Errorf("(-want +kernel):\n%s", d)
	}
}
