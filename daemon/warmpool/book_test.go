package warmpool

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

// shell connects the real address book to the planner as the daemon does: actions become
// operations in flight, which end later, in any order, and may fail.
type shell struct {
	t      *testing.T
	d      dice
	book   *ipam.Book
	s      Snapshot
	p      Policy
	now    time.Time
	flying []Action
	enis   int
	cidrs  int
	boxes  int
	pods   []ipam.Sandbox
}

func newShell(t *testing.T, d dice) *shell {
	sh := &shell{t: t, d: d, now: epoch, p: timers(randomPolicy(d))}
	sh.p.MultiNIC = false
	sh.book = ipam.New(ipam.Options{Cooldown: sh.p.Cooldown})
	sh.s.Limits = Limits{IPv4PerENI: 2 + d(8), ENIsByCard: []int{1 + d(5)}}
	sh.s.Waiting = []int{0}
	sh.attach(ipam.ENI{Primary: true, Excluded: sh.p.CustomNetworking}, 0, false)
	return sh
}

func (sh *shell) apply(ev ipam.Event) ipam.Change {
	sh.t.Helper()
	c, err := sh.book.Apply(sh.now, ev)
	if err != nil {
		sh.t.Fatalf("%T%+v: %v", ev, ev, err)
	}
	return c
}

func (sh *shell) fresh(n int, prefixes bool) []netip.Prefix {
	list := make([]netip.Prefix, n)
	for i := range list {
		sh.cidrs++
		a := netip.AddrFrom4([4]byte{10, byte(sh.cidrs >> 12), byte(sh.cidrs >> 4), byte(sh.cidrs << 4)})
		switch list[i] = netip.PrefixFrom(a, 32); {
		case prefixes && sh.p.IPv6:
			list[i] = netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 8: byte(sh.cidrs >> 8), 9: byte(sh.cidrs)}), 80)
		case prefixes:
			list[i] = netip.PrefixFrom(a, 28)
		}
	}
	return list
}

func (sh *shell) attach(e ipam.ENI, n int, prefixes bool) {
	sh.t.Helper()
	sh.enis++
	e.ID = ipam.ENIID(fmt.Sprintf("eni-%03d", sh.enis))
	e.MAC = fmt.Sprintf("02:00:00:00:%02x:%02x", sh.enis>>8, sh.enis&0xff)
	e.PrimaryIP = netip.AddrFrom4([4]byte{172, 16, byte(sh.enis >> 8), byte(sh.enis)})
	e.Subnet = netip.MustParsePrefix("10.0.0.0/8")
	e.SubnetID, e.RouteTable, e.AttachedAt = "subnet-a", 254+e.Device, sh.now
	sh.apply(ipam.AttachENI{ENI: e, CIDRs: sh.fresh(n, prefixes)})
}

func (sh *shell) snapshot() Snapshot {
	s := sh.s
	s.Book = sh.book.Snapshot()
	return s
}

// wake plans and starts the planned actions.
func (sh *shell) wake() {
	sh.t.Helper()
	s := sh.snapshot()
	plan := Plan(s, sh.p, sh.now)
	(&judge{t: sh.t, s: s, p: sh.p, now: sh.now, plan: plan}).judge()
	for _, a := range plan {
		op := Pending{}
		switch a := a.(type) {
		case AttachENI:
			op = Pending{Kind: PendingAttach, Device: a.Device, IPs: a.IPs, Prefixes: a.Prefixes}
		case AssignAddresses:
			op = Pending{Kind: PendingAssign, ENI: a.ENI, IPs: a.Count}
		case AssignPrefixes:
			op = Pending{Kind: PendingAssign, ENI: a.ENI, Prefixes: a.Count}
		case UnassignAddresses:
			sh.apply(ipam.HoldCIDRs{ID: a.ENI, CIDRs: a.CIDRs})
			op = Pending{Kind: PendingRelease, ENI: a.ENI}
			sh.s.LastScaleDown = sh.now
		case UnassignPrefixes:
			sh.apply(ipam.HoldCIDRs{ID: a.ENI, CIDRs: a.CIDRs})
			op = Pending{Kind: PendingRelease, ENI: a.ENI}
			sh.s.LastScaleDown = sh.now
		case DetachENI:
			sh.apply(ipam.HoldENI{ID: a.ENI})
			op = Pending{Kind: PendingDetach, ENI: a.ENI}
			sh.s.LastScaleDown = sh.now
		case Wait:
			continue
		}
		sh.flying = append(sh.flying, a)
		sh.s.Pending = append(sh.s.Pending, op)
	}
}

// land ends one operation in flight.
func (sh *shell) land(i int, ok bool) {
	sh.t.Helper()
	a := sh.flying[i]
	sh.flying = append(sh.flying[:i:i], sh.flying[i+1:]...)
	sh.s.Pending = append(sh.s.Pending[:i:i], sh.s.Pending[i+1:]...)
	switch a := a.(type) {
	case AttachENI:
		if ok {
			sh.attach(ipam.ENI{Device: a.Device}, a.IPs+a.Prefixes, a.Prefixes > 0)
		}
	case AssignAddresses:
		if ok {
			sh.apply(ipam.AddCIDRs{ID: a.ENI, CIDRs: sh.fresh(a.Count, false)})
		}
	case AssignPrefixes:
		if ok {
			sh.apply(ipam.AddCIDRs{ID: a.ENI, CIDRs: sh.fresh(a.Count, true)})
		}
	case UnassignAddresses:
		sh.released(a.ENI, a.CIDRs, ok)
	case UnassignPrefixes:
		sh.released(a.ENI, a.CIDRs, ok)
	case DetachENI:
		if ok {
			sh.apply(ipam.DetachENI{ID: a.ENI})
		} else {
			sh.apply(ipam.UnholdENI{ID: a.ENI})
		}
	}
}

func (sh *shell) released(id ipam.ENIID, cidrs []netip.Prefix, ok bool) {
	sh.t.Helper()
	if ok {
		sh.apply(ipam.RemoveCIDRs{ID: id, CIDRs: cidrs})
	} else {
		sh.apply(ipam.UnholdCIDRs{ID: id, CIDRs: cidrs})
	}
}

func (sh *shell) kind() ipam.Kind {
	if sh.p.PrefixDelegation {
		return ipam.Prefixes
	}
	return ipam.SecondaryIPs
}

func (sh *shell) family() ipam.Family {
	if sh.p.IPv6 {
		return ipam.IPv6
	}
	return ipam.IPv4
}

// add starts a pod, or makes it wait. The book must have an address exactly if the planner
// counts one as free.
func (sh *shell) add() {
	sh.t.Helper()
	s := sh.snapshot()
	free := newPool(&s, &sh.p, sh.now, 0).free()
	sh.boxes++
	box := ipam.Sandbox{Network: "aws-cni", ContainerID: fmt.Sprint("box-", sh.boxes), IfName: "eth0"}
	_, err := sh.book.Apply(sh.now, ipam.Assign{Sandbox: box, Pod: ipam.Pod{Namespace: "default", Name: box.ContainerID}, Kind: sh.kind(), Family: sh.family()})
	switch {
	case err != nil && !errors.Is(err, ipam.ErrNoAddress):
		sh.t.Fatalf("assign: %v", err)
	case (err == nil) != (free > 0):
		sh.t.Fatalf("the planner counts %d free addresses, the book says %v", free, err)
	case err == nil:
		sh.pods = append(sh.pods, box)
	default:
		sh.s.Waiting[0]++
	}
}

// TestPlan_WithBook runs both together: in whatever order operations end, the plan fits the
// book, and every pod within the limits gets its address.
func TestPlan_WithBook(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		d := seeded(seed)
		sh := newShell(t, d)
		for range 60 {
			sh.event()
			sh.wake()
			if err := sh.book.Check(); err != nil {
				t.Fatal(err)
			}
		}
		sh.finish()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (sh *shell) event() {
	sh.t.Helper()
	d := sh.d
	switch {
	case len(sh.flying) > 0 && d.one(2):
		sh.land(d(len(sh.flying)), !d.one(6))
	case len(sh.pods) > 0 && d.one(4):
		i := d(len(sh.pods))
		sh.apply(ipam.Unassign{Sandbox: sh.pods[i]})
		sh.pods = append(sh.pods[:i:i], sh.pods[i+1:]...)
	case d.one(3):
		sh.now = sh.now.Add(time.Duration(d(40)) * time.Second)
	default:
		sh.add()
	}
	sh.retry()
}

// retry serves as many waiting pods as possible.
func (sh *shell) retry() {
	sh.t.Helper()
	for range sh.s.Waiting[0] {
		sh.s.Waiting[0]--
		sh.add()
	}
}

// finish ends all operations and checks that pods still waiting are really blocked.
func (sh *shell) finish() {
	sh.t.Helper()
	for range 100 {
		for len(sh.flying) > 0 {
			sh.land(0, true)
		}
		sh.retry()
		sh.wake()
		sh.now = sh.now.Add(5 * time.Second)
	}
	if len(sh.flying) > 0 {
		sh.t.Errorf("still busy: %s", text(sh.flying))
	}
	if sh.s.Waiting[0] == 0 {
		return
	}
	if code, why, blocked := Blocked(sh.snapshot(), sh.p, sh.now, 0); !blocked {
		sh.t.Errorf("%d pods wait and nothing is in the way: %s %s", sh.s.Waiting[0], code, why)
	}
}
