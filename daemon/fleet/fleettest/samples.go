package fleettest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// Start is when the daemons of samples have run for an hour.
func Start() time.Time { return time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC) }

// Sample is a live node with counts.
func Sample(name string, at time.Time, assigned, cooling, free int) document.NodeIPAM {
	return document.NodeIPAM{
		APIVersion: introspect.APIVersion, Kind: document.KindNode, Metadata: document.ObjectMeta{Name: name},
		State: document.StateLive, Source: document.SourceSummary, SampledAt: &at, Via: document.ViaPortForward,
		Summary: &introspect.Summary{
			APIVersion: introspect.APIVersion, Kind: introspect.KindSummary, InstanceType: "m5.large", InstanceID: "i-" + name, StartedAt: new(Start().Add(-time.Hour)),
			Cards: []introspect.CardSummary{{
				Mode: introspect.ModeSecondaryIP, ENIs: new(2), ENILimit: new(3), AddressLimit: new(27),
				Total: assigned + cooling + free, Assigned: assigned, Cooling: &cooling, Free: free, Prefixes: new(0), FreePrefixes: new(0),
			}},
			MaxPods:     &introspect.MaxPods{Value: new(29), Verdict: introspect.MaxPodsOK},
			WaitingADDs: new(0), ADDs: &introspect.RequestCounts{Total: assigned, Failed: new(0)}, DELs: &introspect.RequestCounts{Failed: new(0)},
		},
	}
}

// Failed is a node that could not be read.
func Failed(name string, reason introspect.Reason) document.NodeIPAM {
	return document.NodeIPAM{
		Metadata: document.ObjectMeta{Name: name}, State: document.StateUnreachable,
		Error: &document.NodeError{Reason: reason, Message: "no answer in 5s"},
	}
}

// Random fills a node with anything that it may have.
func Random(r *rand.Rand, name string, at time.Time) document.NodeIPAM {
	switch r.IntN(8) {
	case 0:
		return Failed(name, introspect.ReasonTimeout)
	case 1:
		n := document.NodeIPAM{Metadata: document.ObjectMeta{Name: name}, State: document.StateNoDaemon}
		if r.IntN(2) == 0 {
			n.Error = &document.NodeError{Reason: introspect.ReasonNoPod}
			n.Object = &document.NodeObject{OS: []string{"linux", "windows"}[r.IntN(2)]}
		}
		return n
	case 2:
		return document.NodeIPAM{Metadata: document.ObjectMeta{Name: name}, State: document.StateAPIOnly, Object: &document.NodeObject{MaxPods: new(r.IntN(100)), InternalIP: "10.0.0.9"}}
	}
	n := Sample(name, at, r.IntN(10), r.IntN(3), r.IntN(5))
	sum := n.Summary
	if r.IntN(9) == 0 {
		sum.Cards[0].AddressLimit = nil
	}
	if r.IntN(9) == 0 {
		sum.MaxPods = nil
	}
	if r.IntN(3) == 0 {
		sum.Trunk = &introspect.Trunk{Enabled: true, ENIID: []string{"", "eni-t"}[r.IntN(2)], BranchUsed: new(r.IntN(9)), BranchLimit: new(9)}
	}
	sum.WaitingADDs = new(r.IntN(3))
	for i := range r.IntN(4) {
		sub := introspect.Subnet{ID: fmt.Sprint("subnet-", i), CIDR: fmt.Sprintf("10.0.%d.0/24", i)}
		if r.IntN(4) > 0 {
			sub.Available, sub.AsOf = new(r.IntN(200)), new(Start().Add(time.Duration(r.IntN(1000))*time.Second))
		}
		sum.Subnets = append(sum.Subnets, sub)
	}
	for i := range r.IntN(4) {
		e := introspect.NodeENI{ID: fmt.Sprint(name, i), SubnetID: fmt.Sprint("subnet-", r.IntN(4)), Total: 16, Free: r.IntN(16)}
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, e.SubnetID[7] - '0', byte(r.IntN(4)) * 16}), 28)
		if r.IntN(2) == 0 {
			p = netip.PrefixFrom(p.Addr().Next(), 32)
		}
		e.CIDRs = append(e.CIDRs, introspect.NodeCIDR{CIDR: p, Total: 16, Assigned: 3})
		sum.ENIs = append(sum.ENIs, introspect.ENISummary{ID: e.ID, Total: e.Total, Free: e.Free})
		if r.IntN(2) == 0 {
			n.ENIs = append(n.ENIs, e)
		}
	}
	return n
}

// Busy is a node with 20 to 22 pods and all that a summary has.
func Busy(i int, at time.Time) document.NodeIPAM {
	n := Sample(fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i/65536, i/256%256, i%256), at, 20+at.Second()%3, 2, 5)
	sum := n.Summary
	sum.Version = "v1.0.0"
	sum.MaxPods.Terms = make([]introspect.MaxPodsTerm, 12)
	for j := range 3 {
		sum.ENIs = append(sum.ENIs, introspect.ENISummary{ID: fmt.Sprintf("eni-%017d", i*3+j), Total: 9, Assigned: 7, Free: 2, Device: j, Flags: []string{}, SubnetID: "subnet-0123456789abcdef0"})
		sum.Subnets = append(sum.Subnets, introspect.Subnet{ID: fmt.Sprintf("subnet-0123456789abcdef%d", j), CIDR: fmt.Sprintf("10.%d.0.0/16", j), Available: new(4000 - i%100), AsOf: new(at.Add(-time.Duration(i%60) * time.Second))})
		sum.EC2Calls = append(sum.EC2Calls, introspect.EC2Calls{Action: []string{"CreateNetworkInterface", "DescribeSubnets", "AssignPrivateIpAddresses"}[j], Calls: 5, LastAt: new(at)})
	}
	n.Object = &document.NodeObject{Zone: "eu-central-1a", InstanceType: "m5.large", InstanceID: "i-0123456789", OS: "linux", Architecture: "amd64", InternalIP: "10.0.0.9", CreatedAt: new(Start()), MaxPods: new(29), Labels: map[string]string{"team": "a", "zone": "b"}}
	return n
}
