package keeper

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// idle is an environment that does nothing and responds at once.
type idle struct {
	k   *Keeper
	now time.Time
	img Image
}

func (n *idle) Begin(Task)              {}
func (n *idle) Write(i Image)           { n.img = i }
func (n *idle) Record(time.Time, Event) {}

// BenchmarkAddDel measures an ADD and a DEL with their writes, on a node with that many
// pods: a plan, an encoding and a copy of the file each.
func BenchmarkAddDel(b *testing.B) {
	for _, pods := range []int{10, 200, 700} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			n := &idle{now: time.Unix(1_790_000_000, 0)}
			n.k = New(Options{
				Settings: Settings{Policy: warmpool.Policy{WarmENI: 15, MaxPods: 800, ScaleDownInterval: 30 * time.Second, ENIMinAge: time.Minute}, Provisioning: true},
				Limits:   warmpool.Limits{IPv4PerENI: 50, ENIsByCard: []int{15}}, Outside: n, Jitter: middle, Now: n.now,
			})
			for e := range 15 {
				var cidrs []netip.Prefix
				for i := range 49 {
					cidrs = append(cidrs, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, byte(e), byte(i + 1)}), 32))
				}
				n.k.apply(n.now, ipam.AttachENI{CIDRs: cidrs, ENI: ipam.ENI{
					ID: ipam.ENIID(fmt.Sprintf("eni-%02d", e)), Primary: e == 0, Device: e, SubnetID: testSubnet, RouteTable: e + 1,
					PrimaryIP: netip.AddrFrom4([4]byte{10, 2, 0, byte(e + 1)}), Subnet: netip.MustParsePrefix("10.0.0.0/8"),
				}})
			}
			for i := range pods {
				n.add(b, fmt.Sprint("pod-", i))
			}
			b.ReportAllocs()
			for b.Loop() {
				n.add(b, "one-more")
				n.del(b, "one-more")
			}
		})
	}
}

func (n *idle) settle(b *testing.B, m Message) {
	n.now = n.now.Add(time.Millisecond)
	n.k.Handle(n.now, m)
	n.k.Step(n.now)
	n.k.Handle(n.now, Committed{Gen: n.img.Gen})
	n.k.Step(n.now)
}

func (n *idle) add(b *testing.B, name string) {
	done := false
	n.settle(b, &Add{
		Request: &cniwire.AddRequest{PodName: name, PodNamespace: "shop", ContainerID: name, IfName: "eth0", NetworkName: "aws-cni"},
		Arrived: n.now, Deadline: n.now, Reply: func(r *cniwire.AddReply) { done = r.Success },
	})
	if !done {
		b.Fatal("no address for " + name)
	}
}

func (n *idle) del(b *testing.B, name string) {
	done := false
	n.settle(b, &Del{
		Request: &cniwire.DelRequest{PodName: name, PodNamespace: "shop", ContainerID: name, IfName: "eth0", NetworkName: "aws-cni"},
		Reply:   func(r *cniwire.DelReply) { done = r.Success },
	})
	if !done {
		b.Fatal("not released: " + name)
	}
}
