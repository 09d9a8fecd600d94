package vpc_test

import (
	"net/netip"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
)

func TestAddress_ReachableExactlyWhileAssigned(t *testing.T) {
	t.Parallel()
	l := newLab(t, vpc.Options{})
	a, b, far := l.host(0), l.host(0), l.host(1)
	x := l.assign(b.primary)
	b.own(x)
	for _, from := range []*host{a, far} { // on-link with ARP, and through the gateway
		from.reaches(anyAddr, x)
		from.reaches(anyAddr, b.primary.PrimaryIP)
	}
	b.reaches(x, a.primary.PrimaryIP)
	b.reaches(x, far.primary.PrimaryIP)

	l.unassign(b.primary, x)
	// The host still has the address, but the VPC neither delivers to it nor accepts
	// packets from it.
	a.misses(anyAddr, x)
	far.misses(anyAddr, x)
	b.misses(x, a.primary.PrimaryIP)
	a.reaches(anyAddr, b.primary.PrimaryIP)

	if _, err := l.world.Assign(b.primary.ID, fakeaws.AssignSpec{Addresses: []netip.Addr{x}}); err != nil {
		t.Fatal(err)
	}
	a.reaches(anyAddr, x)
}

func TestSourceCheck(t *testing.T) {
	t.Parallel()
	l := newLab(t, vpc.Options{})
	a, b := l.host(1), l.host(0)
	second := b.attach(0, 1)
	b.configure(second, 2)
	x := l.assign(second)
	b.own(x)

	// The main table sends the packet through the primary ENI, which does not own the
	// address.
	b.misses(x, a.primary.PrimaryIP)
	// The first packet waits for the gateway's neighbour entry: on a busy machine the ping
	// may give up before it leaves.
	testenv.Eventually(t, "dropped packets of the primary ENI", func() bool {
		n, err := l.fabric.SourceDrops(b.primary.ID)
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
	if n, err := l.fabric.SourceDrops(second.ID); err != nil || n != 0 {
		t.Errorf("dropped packets of the second ENI: %d, error %v; want none", n, err)
	}
	a.misses(anyAddr, x) // the reply is dropped as well
	b.from(x, 2)
	a.reaches(anyAddr, x)
	b.reaches(x, a.primary.PrimaryIP)
}

func TestOutside_AnswersPrimaryAddressesOnly(t *testing.T) {
	t.Parallel()
	l := newLab(t, vpc.Options{})
	b := l.host(0)
	x := l.assign(b.primary)
	b.own(x)
	for _, network := range []string{"tcp", "udp"} {
		saw, err := b.ns.AskEcho(t.Context(), network, anyAddr, vpc.Outside, testenv.Left(t))
		if err != nil || saw.Addr() != b.primary.PrimaryIP {
			t.Errorf("%s: outside saw %v, error %v; want %v", network, saw, err, b.primary.PrimaryIP)
		}
		before, err := l.fabric.PrivateDrops()
		if err != nil {
			t.Fatal(err)
		}
		if saw, err := b.ns.AskEcho(t.Context(), network, x, vpc.Outside, denial); err == nil {
			t.Errorf("%s: outside answered %v", network, saw)
		}
		after, err := l.fabric.PrivateDrops()
		if err != nil || after <= before {
			t.Errorf("%s: private packets dropped: %d before, %d after, error %v", network, before, after, err)
		}
	}
	b.reaches(anyAddr, vpc.Outside.Addr())
}
