package warmpool

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

// fullNode is the largest ordinary node: 15 ENIs × 50 addresses, 700 pods. Half of the
// assigned addresses had a pod before, a few are in cooldown.
func fullNode(prefixes bool) Snapshot {
	s := Snapshot{Limits: Limits{IPv4PerENI: 50, ENIsByCard: []int{15}}, Waiting: []int{0}, LastScaleDown: epoch.Add(-time.Hour)}
	for _, id := range []string{"subnet-a", "subnet-b", "subnet-c"} {
		s.Subnets = append(s.Subnets, Subnet{ID: id, AvailableIPs: 4000})
	}
	pods := 700
	for d := range 15 {
		e := ipam.ENIState{ENI: ipam.ENI{ID: ipam.ENIID(fmt.Sprintf("eni-%02d", d)), Device: d, Primary: d == 0,
			SubnetID: "subnet-a", AttachedAt: epoch.Add(-time.Hour)}}
		for i := range 49 {
			c := ipam.CIDRState{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(d), 0, byte(i)}), 32)}
			size := 1
			if prefixes {
				c.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(d), byte(i), 0}), 28)
				size = 16
			}
			for a := c.Prefix.Addr(); size > 0 && (pods > 0 || i%16 == 0); a = a.Next() {
				r := ipam.AddressState{Address: a}
				switch {
				case pods > 0:
					r.Sandbox = ipam.Sandbox{Network: "aws-cni", ContainerID: a.String(), IfName: "eth0"}
					if pods%2 == 0 {
						r.UnassignedAt = epoch.Add(-time.Hour)
					}
					c.Assigned++
					pods--
				default:
					r.UnassignedAt = epoch.Add(-time.Second)
				}
				c.Records = append(c.Records, r)
				size--
			}
			e.CIDRs = append(e.CIDRs, c)
		}
		s.Book.ENIs = append(s.Book.ENIs, e)
	}
	return s
}

func timers(p Policy) Policy {
	p.Cooldown, p.ScaleDownInterval, p.ENIMinAge = 30*time.Second, 30*time.Second, 60*time.Second
	return p
}

func BenchmarkPlan(b *testing.B) {
	cases := []struct {
		name     string
		prefixes bool
		policy   Policy
		waiting  int
	}{
		{"secondary/at-rest", false, Policy{WarmENI: 1, MaxPods: 737}, 0},
		{"secondary/shrink", false, Policy{WarmIP: 2, MinIP: 10, MaxPods: 737}, 0},
		{"secondary/150-waiting", false, Policy{WarmENI: 1, MaxPods: 1000}, 150},
		{"prefix/shrink", true, Policy{PrefixDelegation: true, WarmPrefix: 1, MaxPods: 737}, 0},
		{"prefix/150-waiting", true, Policy{PrefixDelegation: true, WarmPrefix: 1, MaxPods: 12000}, 150},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			s, p := fullNode(c.prefixes), timers(c.policy)
			s.Waiting[0] = c.waiting
			b.ReportAllocs()
			for b.Loop() {
				Plan(s, p, epoch)
			}
		})
	}
}
