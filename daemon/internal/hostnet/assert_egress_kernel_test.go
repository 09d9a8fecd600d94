package hostnet

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/hostnet/egress"
	"cnictl/daemon/iptables"
)

// egressBed is a node with pods that have egress of one family.
type egressBed struct {
	*bed
	v6      bool
	tool    string // the family's program
	now     time.Time
	holders []egress.Holder
	known   egress.Living
}

// newEgressBed makes what egress-cni makes for two pods.
func newEgressBed(t *testing.T, n *bed, v6 bool) *egressBed {
	e := &egressBed{bed: n, v6: v6, tool: n.tool, now: time.Unix(1000, 0)}
	node, ip, address := netip.MustParseAddr("10.0.0.10"), "169.254.172.1%d", "ip addr add 169.254.172.1/32 dev vethN scope link"
	if v6 {
		e.tool = "ip6" + strings.TrimPrefix(n.tool, "ip")
		node, ip, address = netip.MustParseAddr("2001:db8::1"), "fd00::ac:1%d", "ip link set vethN addrgenmode none; ip addr add fe80::N:1/64 dev vethN nodad"
	}
	for i := range 2 {
		x := egress.Holder{Address: netip.MustParseAddr(fmt.Sprintf(ip, i)), ContainerID: fmt.Sprint("sandbox-", i)}
		e.holders = append(e.holders, x)
		s, err := egress.Wanted(egress.DefaultNetwork, x.ContainerID, x.Address, node, egress.RandomFully)
		if err != nil {
			t.Fatal(err)
		}
		n.sh(strings.NewReplacer("N", strconv.Itoa(i), "IP", x.Address.String()).Replace("ip link add vethN type veth peer name farN; ip link set farN up\n"+
			address+"; ip link set vethN up; ip route add IP dev vethN") + "\n" + e.tool + "-restore --noflush <<'EOF'\n" + s.Add() + "EOF")
	}
	return e
}

// observe looks once, and returns the findings of egress.Living.
func (e *egressBed) observe() (nat iptables.Table, lost, ended []egress.Loss) {
	e.t.Helper()
	e.do(func() error {
		view, err := e.host.EgressView(e.v6)
		if err != nil {
			return err
		}
		if nat, err = e.host.EgressNAT(e.t.Context(), e.v6); err != nil {
			return err
		}
		view.NAT = &nat
		lost, ended, _ = e.known.Observe(e.now, egress.DefaultNetwork, e.holders, view)
		return nil
	})
	return nat, lost, ended
}

// settle looks and repairs until nothing is lost.
func (e *egressBed) settle() (all []egress.Loss) {
	e.t.Helper()
	for range 8 {
		e.now = e.now.Add(egress.LossSettles)
		nat, lost, _ := e.observe()
		if len(lost) == 0 {
			continue
		}
		e.do(func() error {
			done, err := e.host.RepairEgress(e.t.Context(), e.v6, nat, lost)
			if len(done) != len(lost) {
				e.t.Errorf("did %v of %v", done, lost)
			}
			return err
		})
		for _, l := range lost {
			e.known.Made(e.now, l.Holder)
		}
		all = append(all, lost...)
	}
	return all
}

// state lists what egress-cni made, line by line.
func (e *egressBed) state() []string {
	e.t.Helper()
	family := map[bool]string{false: "-4", true: "-6"}[e.v6]
	text := withoutComments(e.sh(fmt.Sprintf(`%s-save -t nat | sed 's/ \[.*//'; ip %s route | grep 'veth[01]'; ip %[2]s -o addr | grep 'veth[01]' | sed 's/ *valid.*//'`, e.tool, family)))
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return lines
}

func TestRepairEgress(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		for _, v6 := range []bool{false, true} {
			e := newEgressBed(t, n, v6)
			if got := e.settle(); len(got) > 0 {
				t.Fatalf("pods that lack nothing: %v", got)
			}
			address := e.holders[0].Address.String()
			family, onLink := "-4", "169.254.172.1/32"
			if v6 {
				family, onLink = "-6", "fe80::0:1/64"
			}
			chain := egress.Chain(v6, egress.DefaultNetwork, e.holders[0].ContainerID)
			for what, wipe := range map[string]string{
				"route":     "ip " + family + " route del " + address,
				"address":   "ip addr del " + onLink + " dev veth0",
				"link":      "ip link set veth0 down",
				"rules":     e.tool + " -t nat -F " + chain,
				"jumps":     e.tool + " -t nat -F POSTROUTING",
				"nat table": e.tool + " -t nat -F; " + e.tool + " -t nat -X",
			} {
				before := e.state()
				n.sh(wipe)
				if slices.Equal(before, e.state()) {
					t.Fatalf("%s: nothing was taken", what)
				}
				done := e.settle()
				if d := cmp.Diff(before, e.state()); d != "" || len(done) == 0 {
					t.Errorf("v6 %t: %s: did %v (-before +after):\n%s", v6, what, done, d)
				}
			}
			e.takesBack(chain)
		}
	})
}

// takesBack checks that the objects of a pod whose lease is gone are removed, and nothing
// else.
func (e *egressBed) takesBack(chain string) {
	e.t.Helper()
	gone := e.holders[0].Address.String()
	e.holders = e.holders[1:]
	_, lost, ended := e.observe()
	if len(lost) > 0 || len(ended) == 0 {
		e.t.Fatalf("lost %v, ended %v", lost, ended)
	}
	want := slices.DeleteFunc(e.state(), func(line string) bool { return strings.Contains(line, chain) || strings.Contains(line, gone+" dev") })
	for range 2 { // missing objects are no error
		e.do(func() error { return e.host.TakeBackEgress(e.t.Context(), e.v6, ended) })
	}
	if d := cmp.Diff(want, e.state()); d != "" {
		e.t.Errorf("v6 %t: after a pod's end (-want +have):\n%s", e.v6, d)
	}
	e.sh("ip link del veth0; ip link del veth1")
}
