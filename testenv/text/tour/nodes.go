package tour

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// Nodes that pages name.
const (
	Starved  = "ip-10-0-1-17.eu-west-1.compute.internal" // its subnet has no free address
	OverWarm = "ip-10-0-5-67.eu-west-1.compute.internal" // holds far more than it uses
	Trunk    = "ip-10-0-8-41.eu-west-1.compute.internal" // prefixes, and branch ENIs
	Upstream = "ip-10-0-9-12.eu-west-1.compute.internal" // runs upstream's daemon
	Dead     = "ip-10-0-4-30.eu-west-1.compute.internal" // stops answering
)

// The recording: a quarter of an hour, with a sample of each node every 20 s.
const (
	Steps = 44 // one more would add a key frame at the end
	Every = 20 * time.Second

	// opened is the step from which addresses and documents of nodes were read.
	opened = Steps - 10

	// branchWait is how long a pod has been waiting for its branch ENI at the end.
	branchWait = 90 * time.Second
)

// End is the time of the last sample.
func End() time.Time { return time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC) }

func at(d time.Duration) *time.Time { return new(End().Add(-d)) }

// zone is an availability zone with its one subnet.
type zone struct {
	name, subnet, cidr string
	free               func(step int) int
}

var zones = []zone{
	{"eu-west-1a", "subnet-0aa11bb22cc33dd44", "10.0.0.0/23", func(step int) int { return max(0, 46-3*step/2) }},
	{"eu-west-1b", "subnet-0bb22cc33dd44ee55", "10.0.4.0/22", func(step int) int { return 612 - step/4 }},
	{"eu-west-1c", "subnet-0cc33dd44ee55ff66", "10.0.8.0/21", func(step int) int { return 1533 - step/2 }},
}

// machine is a node of the recording.
type machine struct {
	name  string
	zone  int
	shape limits.Instance
	i     int
}

// slots is the number of an ENI's addresses for pods.
func (m machine) slots() int { return m.shape.IPv4PerENI - 1 }

// machines returns all thirty.
func machines() []machine {
	var out []machine
	add := func(name string, zone int, kind string) {
		shape, _ := limits.Lookup(kind)
		out = append(out, machine{name, zone, shape, len(out)})
	}
	add(Starved, 0, "m5.xlarge")
	add(OverWarm, 1, "c5.4xlarge")
	add(Trunk, 2, "m5.4xlarge")
	add(Upstream, 2, "m5.large")
	add(Dead, 1, "m5.large")
	kinds := []string{"m5.large", "m5.xlarge", "r6g.xlarge", "m5.large", "t3.medium"}
	for i := range 25 {
		z := i % 3
		add(fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", 4*z+i%2, 21+8*i), z, kinds[i%len(kinds)])
	}
	return out
}

// counts are the addresses of a pool.
type counts struct{ assigned, cooling, held int }

// pool returns the counts of a machine's pool at a step.
func (m machine) pool(step int) counts {
	switch m.name {
	case Starved:
		used := min(20+2*step/3, 42)
		held := max(min(28+2*step/3, 42), used) // one more ENI, then the subnet was exhausted
		return counts{used, 0, held}
	case OverWarm:
		return counts{9 + step/15, 0, 116}
	case Trunk:
		return counts{58 + step/8, 1, 112}
	case Upstream:
		return counts{11 + step/12, step / Steps, 18}
	}
	limit := m.shape.MaxENIs * m.slots()
	used := limit * (30 + m.i*13%50) / 100
	moved := 0
	if m.i%5 == 1 { // some are busy
		moved = (step/3*(1+m.i%3) + m.i) % 5
	}
	cooling := min(moved, 2)
	return counts{used + moved, cooling, min(limit, used+8)}
}

// sample returns a machine's data as read at a step.
func (m machine) sample(step int) document.NodeIPAM {
	now := End().Add(-Every * time.Duration(Steps-step))
	begun := End().Add(-time.Duration(26+7*m.i) * time.Hour)
	z := zones[m.zone]
	n := document.NodeIPAM{
		APIVersion: introspect.APIVersion, Kind: document.KindNode, Metadata: document.ObjectMeta{Name: m.name},
		State: document.StateLive, Source: document.SourceSummary, Via: document.ViaPortForward,
		SampledAt: &now, LatencySeconds: new(float64(38+7*(m.i%9)) / 1000),
		Object: &document.NodeObject{
			Zone: z.name, InstanceType: m.shape.Type, InstanceID: fmt.Sprintf("i-%017x", 0xa1b2c3d4e50+m.i), OS: "linux", Architecture: "amd64",
			InternalIP: m.address().String(), CreatedAt: &begun, Ready: new(true), MaxPods: new(m.maxPods()),
			Daemon: &document.DaemonPod{Namespace: "kube-system", Name: fmt.Sprintf("aws-node-%05x", (m.i+3)*7919), UID: fmt.Sprintf("00000000-0000-4000-8000-%012d", m.i), Phase: "Running", Ready: true, StartedAt: &begun, Image: "example.com/aws-node:v1.0.0"},
		},
	}
	n.Summary = m.summary(step, now, begun)
	switch {
	case m.name == Upstream:
		n.Source, n.ENIs = document.SourceV1, m.enis(step, now)
		n.Object.Daemon.Image = "example.com/amazon-k8s-cni:v1.19.2"
		s := n.Summary
		card := introspect.CardSummary{ENIs: s.Cards[0].ENIs, Total: s.Cards[0].Total, Assigned: s.Cards[0].Assigned, Cooling: s.Cards[0].Cooling, Free: s.Cards[0].Free, Prefixes: new(0), FreePrefixes: new(0), Mode: introspect.ModeSecondaryIP}
		n.Summary = &introspect.Summary{APIVersion: s.APIVersion, Kind: s.Kind, IPFamily: "ipv4", Targets: s.Targets, Cards: []introspect.CardSummary{card}}
	case m.name == Dead && step > Steps-12:
		n.State, n.Source, n.Summary, n.SampledAt, n.LatencySeconds = document.StateUnreachable, "", nil, nil, nil
		n.Error = &document.NodeError{Node: m.name, Reason: introspect.ReasonTimeout, Message: "no complete answer in time"}
	case step >= opened:
		n.ENIs = m.enis(step, now)
	}
	return n
}

func (m machine) address() netip.Addr {
	name, _, _ := strings.Cut(strings.TrimPrefix(m.name, "ip-"), ".")
	return netip.MustParseAddr(strings.ReplaceAll(name, "-", "."))
}

func (m machine) eni(device int) string {
	return fmt.Sprintf("eni-0%02x%014x", m.i+0xa0, 0x5c1d2e3f40+device)
}

// summary returns the summary of the machine's daemon.
func (m machine) summary(step int, now, begun time.Time) *introspect.Summary {
	z, c := zones[m.zone], m.pool(step)
	asOf := now.Truncate(5 * time.Minute).Add(-70 * time.Second) // the daemon reads subnets every 5 minutes
	s := &introspect.Summary{
		APIVersion: introspect.APIVersion, Kind: introspect.KindSummary, Version: "v1.0.0", Node: m.name,
		InstanceID: fmt.Sprintf("i-%017x", 0xa1b2c3d4e50+m.i), InstanceType: m.shape.Type, IPFamily: "ipv4", StartedAt: &begun,
		Targets:         introspect.Targets{WarmENI: new(0), WarmIP: new(5), MinimumIP: new(10), WarmPrefix: new(0), MaxENI: new(0)},
		Subnets:         []introspect.Subnet{{ID: z.subnet, CIDR: z.cidr, Available: new(z.free(int(asOf.Sub(End().Add(-Every*Steps)) / Every))), AsOf: &asOf}},
		CooldownSeconds: new(30.0), WaitingADDs: new(0), ConfigProblems: new(0), Unplaced: new(0),
		ADDs: &introspect.RequestCounts{Total: 300 + 11*m.i + c.assigned, Failed: new(0)}, DELs: &introspect.RequestCounts{Total: 300 + 11*m.i, Failed: new(0)},
		EC2Calls: []introspect.EC2Calls{{Action: "AssignPrivateIpAddresses", Calls: 4 + m.i, LastAt: at(time.Duration(m.i) * time.Hour)}},
	}
	in := maxpods.Input{InstanceType: m.shape.Type, MaxPods: m.maxPods()}
	card := introspect.CardSummary{
		Mode: introspect.ModeSecondaryIP, ENIs: new((c.held + m.slots() - 1) / m.slots()), OtherENIs: new(0), ENILimit: new(m.shape.MaxENIs),
		SlotsPerENI: new(m.slots()), AddressLimit: new(m.shape.MaxENIs * m.slots()), Total: c.held, Assigned: c.assigned, Cooling: new(c.cooling), Free: c.held - c.assigned - c.cooling,
		Prefixes: new(0), FreePrefixes: new(0),
	}
	switch m.name {
	case OverWarm:
		s.Targets = introspect.Targets{WarmENI: new(3), WarmIP: new(0), MinimumIP: new(0), WarmPrefix: new(0), MaxENI: new(0)}
	case Trunk:
		s.Targets = introspect.Targets{WarmENI: new(1), WarmIP: new(0), MinimumIP: new(0), WarmPrefix: new(1), MaxENI: new(0)}
		s.Trunk = &introspect.Trunk{Enabled: true, Supported: new(true), ENIID: m.eni(7), BranchLimit: new(m.shape.BranchENIs), BranchUsed: new(2 + step/30), BranchWaiting: new(0)}
		if since := End().Add(-branchWait); !now.Before(since) {
			s.Trunk.BranchWaiting, s.Trunk.WaitingSince = new(1), &since
		}
		card.Mode, card.ENIs, card.Prefixes, card.FreePrefixes = introspect.ModePrefix, new(1), new(c.held/16), new(2)
		card.ENILimit, card.AddressLimit = new(7), new(7*m.slots()*16)
		in.PrefixDelegation, in.PodENI, in.TrunkAttached = true, true, true
	case Starved:
		s.EC2Calls = []introspect.EC2Calls{{Action: "AssignPrivateIpAddresses", Calls: 22 + step/5, Errors: max(0, step/5-6), LastAt: at(11 * time.Second)}, {Action: "CreateNetworkInterface", Calls: 5, Errors: 2, LastAt: at(41 * time.Second)}}
		if left := Steps - step; left < 5 { // from here on pods wait
			wait := End().Add(-96 * time.Second)
			s.WaitingADDs, s.WaitingSince = new(5-left), &wait
			s.Backoffs = []introspect.Backoff{{Scope: "subnet", ID: z.subnet, Until: now.Add(24 * time.Second), Cause: string(cause.SubnetExhausted)}}
			s.LastErrors = []introspect.LastError{{At: now.Add(-11 * time.Second), Operation: "AssignPrivateIpAddresses", Cause: string(cause.SubnetExhausted), Message: z.subnet + " has no free addresses, next attempt in 24s", Count: 9 - left}}
			s.ADDs.Failed, s.ADDs.Causes = new(5-left), map[string]int{string(cause.SubnetExhausted): 5 - left}
		}
	}
	s.MaxPods = terms(in)
	s.Cards, s.ENIs = []introspect.CardSummary{card}, m.eniSummaries(c)
	return s
}

// maxPods is kubelet's setting: on one node it is too large for its addresses.
func (m machine) maxPods() int {
	if m.i == 9 {
		return 110
	}
	return maxpods.Nodeadm(m.shape)
}

// terms returns max-pods as a daemon reports it.
func terms(in maxpods.Input) *introspect.MaxPods {
	return introspect.MaxPodsOf(new(in.MaxPods), "node", maxpods.Compute(in))
}
