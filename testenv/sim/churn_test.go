package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"cnictl/capacity/limits"
	"cnictl/capacity/whatif"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
	"cnictl/testenv/aws/ec2model"
)

// TestChurn: fleets whose pods come and go for weeks keep more /28s of their subnets free than if pods got the address that
// was free for longest, and none fewer, whichever addresses EC2 gives, with as many requests to EC2
// (docs/decisions/029-free-blocks.md).
func TestChurn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		place placement
		life  time.Duration
		least float64 // times the free /28s of the other order
	}{
		{placeRandom, 0, 1.1},
		{placeNext, 0, 1.1},
		{placeNext, 24 * time.Hour, 1},
		{placeLowest, 0, 0.99},
	} {
		t.Run(fmt.Sprintf("%s, nodes live %v", row.place, row.life), func(t *testing.T) {
			t.Parallel()
			c := churn{seed: 1, nodes: 45, days: 14, blocks: 60, place: row.place, life: row.life}
			ours := c.run(t)
			c.oldest = true
			oldest := c.run(t)
			t.Logf("free /28s of %d: %.1f, oldest first %.1f, packed %.1f; requests %d, %d",
				zones*c.blocks, ours.free, oldest.free, ours.packed, ours.calls.Requests(), oldest.calls.Requests())
			if ours.free < row.least*oldest.free {
				t.Errorf("%.1f free /28s, oldest first %.1f: want %v times as many", ours.free, oldest.free, row.least)
			}
			if a, b := ours.calls.Requests(), oldest.calls.Requests(); float64(a) > 1.05*float64(b) {
				t.Errorf("%d requests to EC2, oldest first %d", a, b)
			}
		})
	}
}

// placement is where EC2 finds the addresses that it gives, which it does not document.
type placement string

const (
	placeRandom placement = "random" // each anywhere
	placeNext   placement = "next"   // after those given last
	placeLowest placement = "lowest"
)

// churn is a fleet of nodes with one subnet per zone. Its nodes are whatif.Pools; EC2 answers at once, and refuses only
// what a subnet lacks.
type churn struct {
	seed   uint64
	nodes  int
	days   int
	blocks int           // /28s of each subnet
	life   time.Duration // of a node on average; 0: nodes stay
	place  placement
	oldest bool // pods get the secondary IP that was free for longest

	dice *random
	made int // pods and nodes
	out  churned
}

// churned is the result of a churn.
type churned struct {
	free, packed float64 // /28s without a taken address on average, and how many there would be were all taken ones packed
	calls        whatif.Calls
}

const (
	churnStep    = 30 * time.Minute
	churnPodLife = 8 * time.Hour
	churnType    = "m5.xlarge"
)

var churnPolicy = warmpool.Policy{WarmIP: 4, MinIP: 10, Cooldown: 30 * time.Second, ScaleDownInterval: 30 * time.Second, ENIMinAge: time.Minute}

func (c churn) run(t *testing.T) churned {
	c.dice = stream(c.seed, 20)
	subnets := make([]*churnSubnet, zones)
	for z := range subnets {
		subnets[z] = newChurnSubnet(z, c.blocks*ec2model.BlockSize)
	}
	nodes, order := make([]*churnNode, c.nodes), make([]int, c.nodes)
	for i := range nodes {
		nodes[i], order[i] = c.join(subnets[i%zones], 0), i
	}
	samples := 0.0
	for now := time.Duration(0); now < time.Duration(c.days)*24*time.Hour; now += churnStep {
		shuffle(c.dice, order)
		for _, i := range order {
			if n := nodes[i]; c.life > 0 && now >= n.dies {
				n.leave()
				nodes[i] = c.join(n.subnet, now)
			}
			c.step(nodes[i], now)
			if err := nodes[i].Err; err != nil {
				t.Fatal(err)
			}
		}
		if now < 24*time.Hour {
			continue
		}
		samples++
		for _, s := range subnets {
			c.out.free += float64(s.FreeBlocks())
			c.out.packed += float64(s.Free() / ec2model.BlockSize)
		}
	}
	c.out.free, c.out.packed = c.out.free/samples, c.out.packed/samples
	return c.out
}

// step plays half an hour of a node: pods end, and others come, so that their number follows the time of day.
func (c *churn) step(n *churnNode, now time.Duration) {
	n.Now = churnBegin.Add(now)
	for k := len(n.pods) - 1; k >= 0; k-- {
		if n.dice.chance(float64(churnStep) / float64(churnPodLife)) {
			n.end(k)
		}
	}
	wave := 1 + 0.2*math.Sin(2*math.Pi*now.Hours()/24)
	want := int(n.usual*wave) + n.dice.between(-2, 2)
	for len(n.pods) > want+2 {
		n.end(n.dice.Below(len(n.pods)))
	}
	for len(n.pods) < want {
		c.made++
		s := ipam.Sandbox{Network: "aws-cni", ContainerID: strconv.Itoa(c.made), IfName: "eth0"}
		if !n.begin(s, c.oldest) {
			n.Waiting = want - len(n.pods)
			n.Settle(c.count)
			if n.Waiting = 0; !n.begin(s, c.oldest) {
				break
			}
		}
		n.pods = append(n.pods, s)
	}
	n.Settle(c.count)
	n.Now = n.Now.Add(time.Minute) // cooldowns are over
	n.Settle(c.count)
}

func (c *churn) count(op whatif.Operation) {
	switch op.Pending.Kind {
	case warmpool.PendingAttach:
		c.out.calls.NewENIs++
	case warmpool.PendingAssign:
		c.out.calls.Assigns++
	case warmpool.PendingRelease:
		c.out.calls.Releases++
	case warmpool.PendingDetach:
		c.out.calls.Detaches++
	}
}

// churnBegin is when the fleet begins.
var churnBegin = time.Unix(1700000000, 0)

// churnNode is a node and its EC2.
type churnNode struct {
	whatif.Pool
	subnet *churnSubnet
	place  placement
	dice   *random
	pods   []ipam.Sandbox
	usual  float64 // pods, on average
	dies   time.Duration
	made   int // interfaces
}

func (c *churn) join(s *churnSubnet, now time.Duration) *churnNode {
	facts, _ := limits.Lookup(churnType)
	c.made++
	n := &churnNode{subnet: s, place: c.place, dice: stream(c.seed, 1000+uint64(c.made)), usual: float64(c.dice.between(6, 26))}
	n.dies = now + n.dice.span(0, 2*c.life+1)
	n.Pool = whatif.Pool{
		Book: ipam.New(ipam.Options{Cooldown: churnPolicy.Cooldown}), Plan: warmpool.Plan, Policy: churnPolicy, EC2: n, Now: churnBegin.Add(now),
		Limits: warmpool.Limits{IPv4PerENI: facts.IPv4PerENI, ENIsByCard: []int{facts.MaxENIs}}, ENIBackoff: map[ipam.ENIID]time.Time{},
	}
	n.Pool.Attach(warmpool.AttachENI{})
	return n
}

// leave returns everything that the node holds.
func (n *churnNode) leave() {
	for _, e := range n.Book.Snapshot().ENIs {
		n.subnet.Mark(netip.PrefixFrom(e.PrimaryIP, 32), false)
		for _, x := range e.CIDRs {
			n.subnet.Mark(x.Prefix, false)
		}
	}
}

func (n *churnNode) end(k int) {
	n.Apply(ipam.Unassign{Sandbox: n.pods[k]})
	n.pods = slices.Delete(n.pods, k, k+1)
}

// begin assigns an address to a pod.
func (n *churnNode) begin(s ipam.Sandbox, oldest bool) bool {
	pod := ipam.Pod{Name: s.ContainerID, Interfaces: 1}
	if !oldest {
		_, ok := n.Assign(s, pod)
		return ok
	}
	var chosen ipam.Restore
	most, since := -1, time.Time{}
	for _, e := range n.Book.Snapshot().ENIs {
		assigned := 0
		for i := range e.CIDRs {
			assigned += e.CIDRs[i].Assigned
		}
		if assigned <= most || e.Held {
			continue
		}
		for i := range e.CIDRs {
			at, ok := n.freeSince(&e.CIDRs[i])
			if ok && (assigned > most || at.Before(since)) {
				most, since = assigned, at
				chosen = ipam.Restore{Sandbox: s, Pod: pod, Address: e.CIDRs[i].Prefix.Addr(), AssignedAt: n.Now}
			}
		}
	}
	if most < 0 {
		return false
	}
	n.Apply(chosen)
	return true
}

// freeSince is when a secondary IP was unassigned, zero if it never was assigned; false if a pod cannot get it.
func (n *churnNode) freeSince(c *ipam.CIDRState) (at time.Time, ok bool) {
	if c.Held || c.Assigned > 0 || c.Cooling(n.Now, churnPolicy.Cooldown) > 0 {
		return at, false
	}
	for i := range c.Records {
		at = c.Records[i].UnassignedAt
	}
	return at, true
}

func (n *churnNode) Subnet(time.Time) (string, int)       { return "", n.subnet.Free() }
func (n *churnNode) Takes(whatif.Operation) time.Duration { return 0 }
func (n *churnNode) Refuses(whatif.Operation) cause.Code  { return "" }
func (n *churnNode) Take(ips, _ int) []netip.Prefix       { return n.subnet.take(ips, n.place, n.dice) }
func (n *churnNode) Give(cidrs []netip.Prefix) {
	for _, c := range cidrs {
		n.subnet.Mark(c, false)
	}
}

// Attach creates an interface with an address of its own.
func (n *churnNode) Attach(a warmpool.AttachENI) (ipam.ENI, []netip.Prefix) {
	n.made++
	cidrs := n.Take(1+a.IPs, 0)
	return ipam.ENI{ID: ipam.ENIID("eni-" + strconv.Itoa(n.made)), Device: a.Device, Primary: n.made == 1, PrimaryIP: cidrs[0].Addr(), AttachedAt: n.Now}, cidrs[1:]
}

// churnSubnet is a subnet of any number of /28s: the rest of its space is taken.
type churnSubnet struct {
	*ec2model.Space
	first uint32
	size  int
	next  int // after the address given last
}

func newChurnSubnet(zone, size int) *churnSubnet {
	cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(zone), 0, 0}), 16)
	b := cidr.Addr().As4()
	s := &churnSubnet{Space: ec2model.NewSpace(cidr), first: binary.BigEndian.Uint32(b[:]), size: size}
	for i := size; i < s.Size(); i++ {
		s.Mark(s.address(i), true)
	}
	return s
}

func (s *churnSubnet) address(i int) netip.Prefix {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], s.first+uint32(i))
	return netip.PrefixFrom(netip.AddrFrom4(b), 32)
}

// take takes n addresses.
func (s *churnSubnet) take(n int, p placement, dice *random) []netip.Prefix {
	var out []netip.Prefix
	for range n {
		from := 0
		switch p {
		case placeRandom:
			for from = dice.Below(s.size); !s.IsFree(s.address(from)) && s.Free() > 0; {
				from = dice.Below(s.size)
			}
		case placeNext:
			from = s.next
		}
		found := s.Find(1, from)
		if len(found) == 0 {
			break
		}
		b := found[0].Addr().As4()
		s.next = (int(binary.BigEndian.Uint32(b[:])-s.first) + 1) % s.size
		s.Mark(found[0], true)
		out = append(out, found[0])
	}
	return out
}
