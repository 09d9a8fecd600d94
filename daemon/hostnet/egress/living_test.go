package egress_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/egress"
	"cnictl/daemon/netstate"
)

// living is a host of an IPv6 cluster whose pods have IPv4 egress, and the daemon's
// knowledge of it.
type living struct {
	now     time.Time
	holders []egress.Holder
	host    egress.Host
	chains  map[egress.Holder]egress.SNAT
	known   egress.Living
}

func holder(n int) egress.Holder {
	return egress.Holder{Address: netip.AddrFrom4([4]byte{169, 254, 172, byte(2 + n)}), ContainerID: fmt.Sprint("sandbox-", n)}
}

var gateway = netip.MustParsePrefix("169.254.172.1/32")

// add sets up a complete pod.
func (l *living) add(t *testing.T, n int) {
	t.Helper()
	x, index := holder(n), int32(100+n)
	l.holders = append(l.holders, x)
	l.host.Links = append(l.host.Links, netstate.Link{Index: index, Name: fmt.Sprint("veth", n), Flags: netstate.Up | netstate.Running})
	l.host.Addresses = append(l.host.Addresses, netstate.Address{Link: index, Prefix: gateway, OnLink: true})
	l.host.Routes = append(l.host.Routes, netstate.Direct(netstate.Only(x.Address), index, netnames.MainTable))
	s, err := egress.Wanted(egress.DefaultNetwork, x.ContainerID, x.Address, netip.MustParseAddr("10.0.0.10"), egress.RandomFully)
	if err != nil {
		t.Fatal(err)
	}
	if l.chains == nil {
		l.chains = map[egress.Holder]egress.SNAT{}
	}
	l.chains[x] = s
}

func (l *living) dropRoute(n int) {
	l.host.Routes = slices.DeleteFunc(l.host.Routes, func(r netstate.Route) bool { return r.Dst.Addr() == holder(n).Address })
}

func (l *living) dropLease(n int) {
	l.holders = slices.DeleteFunc(l.holders, func(x egress.Holder) bool { return x == holder(n) })
}

func (l *living) dropLink(n int) {
	l.host.Links = slices.DeleteFunc(l.host.Links, func(x netstate.Link) bool { return x.Index == int32(100+n) })
	l.host.Routes = slices.DeleteFunc(l.host.Routes, func(r netstate.Route) bool { return r.Link == int32(100+n) })
	l.host.Addresses = slices.DeleteFunc(l.host.Addresses, func(a netstate.Address) bool { return a.Link == int32(100+n) })
}

// observe looks once, including at the table.
func (l *living) observe() (lost, ended []egress.Loss, again time.Duration) {
	var chains, jumps strings.Builder
	for _, s := range l.chains {
		fmt.Fprintf(&chains, ":%s - [0:0]\n", s.Chain)
		jumps.WriteString(strings.Join(append(s.Rules(), s.Jump()), "\n") + "\n")
	}
	nat := egress.NAT("*nat\n:POSTROUTING ACCEPT [0:0]\n" + chains.String() + jumps.String() + "COMMIT\n")
	h := l.host
	h.NAT = &nat
	return l.known.Observe(l.now, egress.DefaultNetwork, l.holders, h)
}

// repair applies the requested repairs.
func (l *living) repair(list []egress.Loss) {
	for _, x := range list {
		switch x.Kind {
		case egress.LostChain:
			l.chains[x.Holder] = x.SNAT
		case egress.LostRoute:
			l.host.Routes = append(l.host.Routes, x.Change.Route)
		case egress.LostAddress:
			l.host.Addresses = append(l.host.Addresses, x.Change.Address)
		case egress.LostLink:
			for i := range l.host.Links {
				if l.host.Links[i].Index == x.Change.Link.Index {
					l.host.Links[i].Flags |= netstate.Up
				}
			}
		}
		l.known.Made(l.now, x.Holder)
	}
}

func kinds(list []egress.Loss) (out []string) {
	for _, x := range list {
		out = append(out, x.Kind+" of "+x.Holder.ContainerID)
	}
	slices.Sort(out)
	return out
}

func TestLiving(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		take func(l *living)
		want []string
	}{
		{"nothing", func(*living) {}, nil},
		{"chain", func(l *living) { delete(l.chains, holder(0)) }, []string{"chain of sandbox-0"}},
		{"another's rules in the chain", func(l *living) {
			s := l.chains[holder(0)]
			s.NodeIP = netip.MustParseAddr("10.0.0.99")
			s.Comment = "else"
			l.chains[holder(0)] = s
		}, []string{"chain of sandbox-0"}},
		{"all chains", func(l *living) { clear(l.chains) }, []string{"chain of sandbox-0", "chain of sandbox-1"}},
		{"route", func(l *living) { l.dropRoute(1) }, []string{"route of sandbox-1"}},
		{"address", func(l *living) { l.host.Addresses = l.host.Addresses[1:] }, []string{"address of sandbox-0"}},
		{"link is down", func(l *living) { l.host.Links[0].Flags = netstate.Running; l.dropRoute(0) }, []string{"link of sandbox-0", "route of sandbox-0"}},
		{"a sandbox whose link is gone", func(l *living) { l.dropLink(0); delete(l.chains, holder(0)) }, nil},
		{"a sandbox whose other end is gone", func(l *living) { l.host.Links[0].Flags = netstate.Up; delete(l.chains, holder(0)) }, nil},
		{"another link of that index", func(l *living) { l.host.Links[0].Name = "vethelse"; l.dropRoute(0) }, nil},
		{"a pod that ended", func(l *living) { l.dropLease(0); l.dropRoute(0); delete(l.chains, holder(0)) }, nil},
		{"a new node address", func(l *living) {
			s := l.chains[holder(0)]
			s.NodeIP = netip.MustParseAddr("10.0.0.11")
			l.chains[holder(0)] = s
		}, nil},
	} {
		l := &living{now: time.Unix(1000, 0)}
		l.add(t, 0)
		l.add(t, 1)
		if lost, ended, again := l.observe(); len(lost)+len(ended) > 0 || again != 0 {
			t.Fatalf("whole: %v, %v, again %v", lost, ended, again)
		}
		row.take(l)
		l.now = l.now.Add(time.Second)
		if lost, _, again := l.observe(); len(lost) > 0 || (again == egress.LossSettles) != (row.want != nil) {
			t.Errorf("%s: at once %v, again %v", row.name, kinds(lost), again)
		}
		l.now = l.now.Add(egress.LossSettles)
		lost, ended, _ := l.observe()
		if d := cmp.Diff(row.want, kinds(lost)); d != "" || len(ended) > 0 {
			t.Errorf("%s (-want +got):\n%s", row.name, d)
		}
		for range 3 { // addresses and routes follow their link
			l.repair(lost)
			l.now = l.now.Add(egress.LossSettles)
			lost, _, _ = l.observe()
		}
		if len(lost) > 0 {
			t.Errorf("%s: after the repair %v", row.name, kinds(lost))
		}
	}
}

// TestLiving_NeverWhole: the daemon does not complete a running ADD, but looks again.
func TestLiving_NeverWhole(t *testing.T) {
	t.Parallel()
	l := &living{now: time.Unix(1000, 0)}
	l.add(t, 0)
	l.dropRoute(0)
	clear(l.chains)
	looks := 0
	for again := time.Nanosecond; again != 0 && looks < 100; looks++ {
		var lost []egress.Loss
		l.now = l.now.Add(again)
		if lost, _, again = l.observe(); len(lost) > 0 {
			t.Fatal(kinds(lost))
		}
	}
	if looks < 5 || looks > 20 {
		t.Errorf("%d looks at a pod that never becomes whole", looks)
	}
}

// TestLiving_Del: whenever the daemon looks during a DEL, nothing remains afterwards.
func TestLiving_Del(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := &living{now: time.Unix(1000, 0)}
		l.add(t, 0)
		l.add(t, 1)
		l.observe()
		steps := []func(){func() { delete(l.chains, holder(0)) }, func() { l.dropRoute(0) }, func() { l.dropLease(0) }, func() {}}
		for _, step := range steps {
			step()
			for range random.IntN(4) {
				l.now = l.now.Add(time.Duration(random.IntN(500)) * time.Millisecond)
				lost, ended, _ := l.observe()
				l.repair(lost)
				l.takeBack(ended)
			}
		}
		_, ended, _ := l.observe()
		l.takeBack(ended)
		if _, left := l.chains[holder(0)]; left || len(l.host.Routes) != 1 || len(l.chains) != 1 {
			t.Fatalf("seed %d: %v and %v are left", seed, l.chains, l.host.Routes)
		}
	}
}

func (l *living) takeBack(list []egress.Loss) {
	for _, x := range list {
		switch x.Kind {
		case egress.LostChain:
			delete(l.chains, x.Holder)
		case egress.LostRoute:
			l.host.Routes = slices.DeleteFunc(l.host.Routes, func(r netstate.Route) bool { return r == x.Change.Route })
		}
	}
}

func TestParseHolder(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		want       egress.Holder
	}{
		{"169.254.172.2", "c1\r\neth0", egress.Holder{Address: netip.MustParseAddr("169.254.172.2"), ContainerID: "c1"}},
		{"fd00::ac:2", "c1\r\neth0", egress.Holder{Address: netip.MustParseAddr("fd00::ac:2"), ContainerID: "c1"}},
		{"169.254.172.2", "of-old_releases.1", egress.Holder{Address: netip.MustParseAddr("169.254.172.2"), ContainerID: "of-old_releases.1"}},
		{"last_reserved_ip.0", "169.254.172.2", egress.Holder{}},
		{"lock", "", egress.Holder{}},
		{"169.254.172.2", "", egress.Holder{}},
		{"169.254.172.2", "c1\" -j DROP\r\neth0", egress.Holder{}},
		{"fe80::1%eth0", "c1", egress.Holder{}},
	} {
		got, ok := egress.ParseHolder(row.name, row.text)
		if ok != (row.want != egress.Holder{}) || ok && got != row.want {
			t.Errorf("%s %q: %v %t", row.name, row.text, got, ok)
		}
	}
}
