package pagetest

import (
	"fmt"
	"time"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// shape describes the nodes of an instance type.
type shape struct {
	limits.Instance
	pods     int // kubelet's max-pods
	share    int // percentage of its addresses in use
	prefixes bool
}

var shapes = []shape{
	kind("m5.large", 85, false),
	kind("c5.4xlarge", 35, false),
	kind("m6i.large", 40, false),
	kind("m5.24xlarge", 12, false),
	kind("r6g.xlarge", 55, true),
	kind("t3.medium", 70, false),
}

func kind(instance string, share int, prefixes bool) shape {
	facts, _ := limits.Lookup(instance)
	s := shape{facts, maxpods.Nodeadm(facts), share, prefixes}
	if prefixes {
		s.pods = 110
	}
	return s
}

// slots returns the number of secondary addresses of an ENI.
func (s shape) slots() int { return s.IPv4PerENI - 1 }

var zones = []string{"eu-west-1a", "eu-west-1b", "eu-west-1c"}

var subnets = []introspect.Subnet{
	{ID: "subnet-0aa11bb22cc33dd44", CIDR: "10.0.0.0/19"},
	{ID: "subnet-0bb22cc33dd44ee55", CIDR: "10.0.32.0/19"},
	{ID: "subnet-0cc33dd44ee55ff66", CIDR: "10.0.64.0/20"},
}

var free = []int{1801, 402, 96}

// NodeName returns the name of a node.
func NodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", i/6000, i/200%32, 4+i%200)
}

// node makes a node. Its number determines its kind.
func node(i int) document.NodeIPAM {
	s := shapes[i%len(shapes)]
	begun := Start().Add(-time.Duration(37*(i+1)) * time.Minute)
	zone := i % len(zones)
	subnet := subnets[zone]
	subnet.Available, subnet.AsOf = new(free[zone]), new(Start().Add(-time.Minute))
	n := document.NodeIPAM{
		APIVersion: introspect.APIVersion, Kind: document.KindNode,
		Metadata: document.ObjectMeta{Name: NodeName(i)},
		State:    document.StateLive, Source: document.SourceSummary, Via: document.ViaPortForward,
		Object: &document.NodeObject{
			Zone: zones[zone], InstanceType: s.Type, InstanceID: fmt.Sprintf("i-%017x", 0x1000+i), OS: "linux", Architecture: "amd64",
			InternalIP: fmt.Sprintf("10.0.%d.%d", i/200%32, 4+i%200), CreatedAt: new(begun), Ready: new(true), MaxPods: new(s.pods),
			Labels: map[string]string{"team": []string{"shop", "data", "infra"}[i%3]},
			Daemon: &document.DaemonPod{Namespace: "kube-system", Name: fmt.Sprintf("aws-node-%05x", i*7919%0xfffff), UID: fmt.Sprintf("uid-%d", i), Phase: "Running", Ready: true, StartedAt: new(begun)},
		},
	}
	sum := &introspect.Summary{
		APIVersion: introspect.APIVersion, Kind: introspect.KindSummary, Version: "v0.6.0", Node: n.Metadata.Name,
		InstanceID: n.Object.InstanceID, InstanceType: s.Type, IPFamily: "ipv4", StartedAt: new(begun),
		Targets:         introspect.Targets{WarmENI: new(1), WarmIP: new(5), MinimumIP: new(10), WarmPrefix: new(0), MaxENI: new(0)},
		Subnets:         []introspect.Subnet{subnet},
		CooldownSeconds: new(30.0),
		WaitingADDs:     new(0),
		MaxPods:         &introspect.MaxPods{Value: new(s.pods), Source: "node", Verdict: introspect.MaxPodsOK, IPCapacity: new(s.pods)},
		ADDs:            &introspect.RequestCounts{Failed: new(0)}, DELs: &introspect.RequestCounts{Failed: new(0)},
	}
	mode := introspect.ModeSecondaryIP
	if s.prefixes {
		mode = introspect.ModePrefix
	}
	sum.Cards = []introspect.CardSummary{{Mode: mode, ENILimit: new(s.MaxENIs), SlotsPerENI: new(s.slots()), AddressLimit: new(s.MaxENIs * s.slots()), OtherENIs: new(0)}}
	if i%5 == 1 && s.BranchENIs > 0 {
		sum.Trunk = &introspect.Trunk{Enabled: true, Supported: new(true), ENIID: fmt.Sprintf("eni-%017x", i), BranchLimit: new(s.BranchENIs), BranchUsed: new(s.BranchENIs / 4)}
	}
	n.Summary = sum
	return n
}

// move sets the counts of a node for a step and returns its sample.
func move(n *document.NodeIPAM, i int, step uint64, now time.Time) document.NodeIPAM {
	s := shapes[i%len(shapes)]
	limit := s.MaxENIs * s.slots()
	wave := int((uint64(i)*2654435761 + step*uint64(1+i%4)) % 17)
	used := min(limit*s.share/100*(90+wave)/100, limit)
	cooling := int((uint64(i) + step) % 5)
	if i%97 == 3 { // starved
		used, cooling = limit, 0
	}
	held := min(max(used+cooling+5, limit/3), limit)
	cooling = min(cooling, held-used)
	sum := *n.Summary
	card := sum.Cards[0]
	card.Assigned, card.Cooling, card.Total, card.Free = used, &cooling, held, held-used-cooling
	card.ENIs, card.Prefixes, card.FreePrefixes = new((held+s.slots()-1)/s.slots()), new(0), new(0)
	if s.prefixes {
		card.Prefixes = new((held + 15) / 16)
		card.ENIs = new(1)
	}
	sum.Cards = []introspect.CardSummary{card}
	sum.ENIs = nil
	for e := range *card.ENIs {
		sum.ENIs = append(sum.ENIs, introspect.ENISummary{ID: fmt.Sprintf("eni-%08x%09x", i, e), Device: e, Total: min(s.slots(), held), Assigned: min(s.slots(), used)})
	}
	sum.ADDs = &introspect.RequestCounts{Total: int(step) * (i % 7), Failed: new(0)}
	sum.DELs = &introspect.RequestCounts{Total: int(step) * (i % 5), Failed: new(0)}
	if i%97 == 3 {
		since := Start().Add(-90 * time.Second)
		sum.WaitingADDs, sum.WaitingSince = new(3), &since
		sum.LastErrors = []introspect.LastError{{At: now, Operation: "AssignPrivateIpAddresses", Cause: string(cause.SubnetExhausted), Message: "the subnet has no free addresses", Count: 12}}
	}
	n.Summary = &sum
	out := *n
	at, latency := now, float64(20+(i*37)%180)/1000
	out.SampledAt, out.LatencySeconds = &at, &latency
	switch {
	case i%83 == 41: // it answered at first
		if step > 2 {
			out.State, out.Summary, out.SampledAt, out.LatencySeconds = document.StateUnreachable, nil, nil, nil
			out.Error = &document.NodeError{Node: out.Metadata.Name, Reason: introspect.ReasonTimeout, Message: "no answer within 5s"}
		}
	case i%149 == 77:
		out.State, out.Summary, out.SampledAt, out.LatencySeconds, out.Via, out.Source = document.StateAPIOnly, nil, nil, nil, "", ""
	case i%211 == 50:
		out.State, out.Summary, out.SampledAt, out.LatencySeconds, out.Via, out.Source = document.StateForbidden, nil, nil, nil, "", ""
		out.Error = &document.NodeError{Node: out.Metadata.Name, Reason: introspect.ReasonForbidden, Message: "pods/portforward in kube-system is not allowed"}
	case i%61 == 30:
		out.State, out.Summary, out.SampledAt, out.LatencySeconds, out.Via, out.Source = document.StateNoDaemon, nil, nil, nil, "", ""
		out.Object = &document.NodeObject{OS: "windows", InstanceType: s.Type, Labels: map[string]string{"kubernetes.io/os": "windows"}}
	}
	return out
}
