package sim

import (
	"fmt"
	"net/netip"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// Scenario is what one run simulates. The floats are probabilities, except Crowd.
type Scenario struct {
	Seed    uint64
	Nodes   []NodeSpec
	Subnets []SubnetSpec
	Mistake Mistake // "" if none
	Strict  bool    // the whole book is checked after every turn
	VPC     []netip.Prefix
	Pace    *Pace // nil if times are drawn
	Client  ClientSpec

	Unlimited bool // EC2's buckets throttle nothing

	Busy time.Duration // how long pods come and go and faults occur
	Rest time.Duration // how long nothing happens afterwards

	LowestFirst bool          // EC2 assigns the lowest free address, not a random one
	ListLag     time.Duration // how old EC2's lists may be; 0 if they never lag
	Crowd       float64       // divisor of the request limits, for the account's other nodes

	CallFaults   float64 // of calls to EC2
	Stuck        float64 // of attachments and detachments
	HostFaults   float64 // of calls to the node
	DiskFaults   float64 // of writes, for each kind
	DiskLoss     float64 // of crashes: the file is damaged
	PluginFaults float64 // of ADDs
	LostDELs     int     // of 100 ends of pods

	CrashAtCall, CrashAtTurn, CrashAtWrite float64
	DownTime                               time.Duration // maximum, after a crash

	Drains   time.Duration // between two; 0 if none
	Meddling time.Duration // between two acts of other people; 0 if none
	Crowding time.Duration // between two times that others take or free addresses; 0 if none
	Reboots  time.Duration // between two; 0 if none
}

// NodeSpec is one node.
type NodeSpec struct {
	Type           string
	Limits         warmpool.Limits // what the daemon knows about the type
	Takes          warmpool.Limits // what EC2 takes, if that is less; zero if it is the same
	Policy         warmpool.Policy // without MaxPods
	MaxPods        int
	AddWait        time.Duration
	MetadataLag    time.Duration // maximum
	ManageUntagged bool
	Subnet         int // of the primary ENI, among the scenario's

	Pods int           // wanted at a time
	Life time.Duration // of a pod, mean
	Gap  time.Duration // between two new pods, mean
}

// SubnetSpec is one subnet.
type SubnetSpec struct {
	CIDR          netip.Prefix
	AZ            int
	TakenByOthers int // addresses in use outside the cluster
	Tags          map[string]string
}

// ScenarioOf draws the scenario of a seed.
func ScenarioOf(seed uint64) Scenario {
	d := stream(seed, 0)
	s := Scenario{
		Seed: seed, VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Strict: seed%16 == 0, Busy: d.span(4*time.Minute, 12*time.Minute), Rest: 90 * time.Minute, LowestFirst: d.chance(0.5), Crowd: 1,
		DownTime: d.span(4*time.Second, 90*time.Second),
	}
	// Each kind of fault is absent from some worlds, so that the others get time to show.
	some := func(part float64, of ...float64) float64 {
		if !d.chance(part) {
			return 0
		}
		return pick(d, of...)
	}
	s.CallFaults = some(0.7, 0.01, 0.05, 0.2, 0.4)
	s.Stuck = some(0.4, 0.1, 0.5)
	s.HostFaults = some(0.4, 0.01, 0.1)
	s.DiskFaults = some(0.4, 0.01, 0.05, 0.2)
	s.DiskLoss = some(0.3, 0.5)
	s.PluginFaults = some(0.5, 0.02, 0.2)
	s.LostDELs = int(some(0.5, 2, 10, 40))
	s.CrashAtCall = some(0.6, 0.002, 0.01, 0.05)
	s.CrashAtTurn = some(0.4, 0.0005, 0.005)
	s.CrashAtWrite = some(0.4, 0.003, 0.03)
	s.Crowd = max(1, some(0.2, 4, 20, 50))
	s.ListLag = time.Duration(some(0.2, 0.5, 2, 5) * float64(time.Second))
	s.Drains = time.Duration(some(0.3, 60, 200) * float64(time.Second))
	s.Meddling = time.Duration(some(0.4, 20, 120) * float64(time.Second))
	s.Crowding = time.Duration(some(0.3, 15, 60) * float64(time.Second))
	s.Reboots = time.Duration(some(0.1, 300) * float64(time.Second))
	nodes := 1
	if d.chance(0.15) {
		nodes = d.between(2, 4)
	}
	for range nodes {
		s.Nodes = append(s.Nodes, nodeOf(d))
	}
	s.Subnets = subnetsOf(d, len(s.Nodes))
	lower := stream(seed, 6) // its own, so that it changes nothing else about the scenario
	for i := range s.Nodes {
		s.Nodes[i].Takes = takesOf(lower, s.Nodes[i].Limits)
	}
	return s
}

// takesOf draws what EC2 takes of a node.
func takesOf(d *random, ofType warmpool.Limits) warmpool.Limits {
	enis, slots := d.chance(0.15), d.chance(0.15)
	if !enis && !slots {
		return warmpool.Limits{}
	}
	takes := warmpool.Limits{IPv4PerENI: ofType.IPv4PerENI, ENIsByCard: []int{ofType.ENIsByCard[0]}}
	if enis {
		takes.ENIsByCard[0] = d.between(1, ofType.ENIsByCard[0])
	}
	if slots {
		takes.IPv4PerENI = d.between(2, ofType.IPv4PerENI)
	}
	return takes
}

var instanceTypes = []string{"t3.nano", "t3.small", "t3.medium", "m5.large", "m5.large", "m5.xlarge", "c5.2xlarge", "m5.4xlarge"}

func nodeOf(d *random) NodeSpec {
	typ := pick(d, instanceTypes...)
	facts, ok := limits.Lookup(typ)
	if !ok {
		panic("sim: unknown instance type " + typ)
	}
	n := NodeSpec{
		Type: typ, Limits: warmpool.Limits{IPv4PerENI: facts.IPv4PerENI, ENIsByCard: []int{facts.MaxENIs}},
		AddWait:     pick(d, 0, time.Second, 10*time.Second, 10*time.Second, 25*time.Second),
		MetadataLag: pick(d, 0, 2*time.Second, 15*time.Second, 45*time.Second), ManageUntagged: d.chance(0.7),
		Life: pick(d, 3*time.Second, 20*time.Second, time.Minute, 5*time.Minute),
		Policy: warmpool.Policy{
			PrefixDelegation: d.chance(0.4), Cooldown: pick(d, time.Second, 5*time.Second, 30*time.Second, 30*time.Second, time.Minute),
			ScaleDownInterval: 30 * time.Second, ENIMinAge: time.Minute, ManageUnschedulable: d.chance(0.3),
		},
	}
	p := &n.Policy
	switch d.Below(5) {
	case 0, 1:
		p.WarmENI = d.between(0, 2)
	case 2:
		p.WarmIP = d.between(1, 12)
	case 3:
		p.WarmIP, p.MinIP = d.between(0, 4), d.between(1, 25)
	default:
		p.WarmENI, p.WarmPrefix = 1, d.between(0, 2)
	}
	if d.chance(0.2) {
		p.MaxENI = d.between(1, facts.MaxENIs)
	}
	room := facts.MaxENIs * (facts.IPv4PerENI - 1)
	if p.PrefixDelegation {
		room *= 16
	}
	n.MaxPods = min(room+2, 110)
	if d.chance(0.2) {
		n.MaxPods = d.between(4, n.MaxPods)
	}
	n.Pods = max(1, min(d.between(1, n.MaxPods+3), 40))
	n.Gap = max(time.Second, n.Life/time.Duration(n.Pods))
	return n
}

func subnetsOf(d *random, nodes int) []SubnetSpec {
	var out []SubnetSpec
	count := d.between(1, 3)
	for i := range count {
		bits := pick(d, 22, 24, 24, 26, 27, 28)
		if i == 0 {
			bits = min(bits, 28-nodes) // room for the primary ENIs
		}
		s := SubnetSpec{CIDR: netip.MustParsePrefix(fmt.Sprintf("10.0.%d.0/%d", 16*i, bits))}
		if d.chance(0.3) {
			s.TakenByOthers = d.Below(1<<(32-bits)) / 2
		}
		if i > 0 {
			s.Tags = map[string]string{resync.TagSubnetRole: pick(d, "1", "1", "1", "0")}
		}
		out = append(out, s)
	}
	return out
}
