package sim

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// Fleet is a set of nodes in one account and region that join a cluster and get pods, without
// faults except EC2's request limits.
type Fleet struct {
	Seed  uint64
	Type  string // instance type
	Nodes int
	// Wave is the time in which the nodes come up, evenly spread.
	Wave time.Duration
	// Subnets is the number of subnets, with 32,768 addresses each, in each of the three
	// availability zones: 1 or 2.
	Subnets int
	// PodsFrom and PodsTo bound the number of pods that a node gets when its daemon first
	// serves (which is when the node becomes Ready).
	PodsFrom, PodsTo int
	Policy           warmpool.Policy // without MaxPods
	Pace             Pace
	Client           ClientSpec // of our daemons
	Unlimited        bool       // EC2 throttles nothing
	// Crowd divides the request limits: other clients of the account use the rest. 0 means 1.
	Crowd float64
	// Refuse is the number of initial CreateNetworkInterface calls that EC2 answers with
	// InsufficientFreeAddressesInSubnet.
	Refuse   int
	Limit    time.Duration // the run ends then, even if pods still wait
	Progress func(clock time.Duration, running, pods int)
	Go       func() bool // false ends the run; if nil, it never ends early
}

// ScaleUp returns nodes that come up within a minute, each with pods for one more ENI.
func ScaleUp(nodes int) Fleet {
	return Fleet{
		Seed: 1, Type: "m5.4xlarge", Nodes: nodes, Wave: time.Minute, Subnets: 2, PodsFrom: 30, PodsTo: 58,
		Policy: DefaultPolicy(), Pace: Realistic(), Client: Shipped(), Limit: 4 * time.Hour,
	}
}

// OneNode returns the scale-up of docs/performance.md: 150 pods on a fresh m5.4xlarge.
func OneNode(pace Pace) Fleet {
	return Fleet{
		Seed: 1, Type: "m5.4xlarge", Nodes: 1, Subnets: 1, PodsFrom: 150, PodsTo: 150,
		Policy: DefaultPolicy(), Pace: pace, Client: Shipped(), Unlimited: true, Limit: time.Hour,
	}
}

// DefaultPolicy returns the policy in the environment of both manifests.
func DefaultPolicy() warmpool.Policy {
	return warmpool.Policy{WarmENI: 1, WarmPrefix: 1, Cooldown: 30 * time.Second, ScaleDownInterval: 30 * time.Second, ENIMinAge: time.Minute}
}

// Outcome is the result of a fleet's run.
type Outcome struct {
	Nodes, Pods int
	Running     int
	// Waits are the times that pods waited for their addresses, from the start of their
	// node's daemon, in ascending order.
	Waits []time.Duration
	// All is when the last pod ran, since the start of the wave; Up is the same since its
	// node's daemon began to serve.
	All, Up time.Duration
	Failed  int            // failed ADDs
	Starts  int            // starts of daemons
	Calls   map[string]int // requests to EC2, by action, until the last pod ran
	Refused map[string]int // the throttled ones among Calls
	ENIs    int            // attached, except primary ones
	Loose   int            // unattached: not yet attached, or already detached
	Failure *Failure       // nil if every invariant held
}

// Total returns the number of requests to EC2.
func (o *Outcome) Total() (calls, throttled int) { return total(o.Calls), total(o.Refused) }

func total(m map[string]int) (n int) {
	for _, c := range m {
		n += c
	}
	return n
}

// Wait returns a quantile of the pods' waits.
func (o *Outcome) Wait(part float64) time.Duration {
	if len(o.Waits) == 0 {
		return 0
	}
	return o.Waits[min(int(part*float64(len(o.Waits))), len(o.Waits)-1)]
}

// Ours runs the fleet with our daemons.
func (f Fleet) Ours() Outcome {
	return f.run(func(n *node, k *kubelet) {
		k.add = n.addPod
		born := n.w.clock
		n.onServe = func() { k.run(born) }
		n.start()
	})
}

// Upstream runs the fleet with the model of upstream.
func (f Fleet) Upstream() Outcome {
	return f.run(func(n *node, k *kubelet) {
		o := newUpstream(n)
		k.add = o.addPod
		born := n.w.clock
		n.onServe = func() { k.run(born) }
		n.w.begin(o.life)
	})
}

func (f Fleet) run(begin func(*node, *kubelet)) (out Outcome) {
	w := newWorld(f.scenario(), nil)
	w.settling = true
	w.ec2.shortages = f.Refuse
	kubelets := make([]*kubelet, 0, f.Nodes)
	defer func() {
		if r := recover(); r != nil {
			w.violate("no panic", "%v", withStack(r))
		}
		w.close()
		out = f.outcome(w, kubelets)
	}()
	pods := f.podsByNode()
	for i, n := range w.nodes {
		k := &kubelet{w: w, pods: pods[i]}
		kubelets = append(kubelets, k)
		w.after(time.Duration(i)*f.Wave/time.Duration(f.Nodes), func() { begin(n, k) })
	}
	f.play(w, kubelets)
	return out
}

// podsByNode returns the number of pods of each node.
func (f Fleet) podsByNode() []int {
	d := stream(f.Seed, 9)
	out := make([]int, f.Nodes)
	for i := range out {
		out[i] = d.between(f.PodsFrom, f.PodsTo)
	}
	return out
}

// play runs the world until all pods run.
func (f Fleet) play(w *World, kubelets []*kubelet) {
	const look = 250 * time.Millisecond
	wanted := 0
	for _, k := range kubelets {
		wanted += k.pods
	}
	for reported := w.clock; w.fail == nil && w.clock < f.Limit && (f.Go == nil || f.Go()); {
		w.runUntil(w.clock + look)
		running := 0
		for _, k := range kubelets {
			running += len(k.waits)
		}
		if running == wanted {
			return
		}
		if f.Progress != nil && w.clock-reported >= time.Minute {
			reported = w.clock
			f.Progress(w.clock, running, wanted)
		}
	}
}

func (f Fleet) outcome(w *World, kubelets []*kubelet) Outcome {
	o := Outcome{Nodes: f.Nodes, Starts: w.stats.Starts, Calls: maps.Clone(w.stats.Calls), Refused: maps.Clone(w.stats.Refused), Failure: w.fail}
	for _, k := range kubelets {
		o.Pods += k.pods
		o.Running += len(k.waits)
		o.Waits = append(o.Waits, k.waits...)
		o.Failed += k.failed
		o.All, o.Up = max(o.All, k.ended), max(o.Up, k.ended-k.served)
	}
	slices.Sort(o.Waits)
	for _, x := range w.ec2.enis {
		switch {
		case x.node == nil:
			o.Loose++
		case x != x.node.primary:
			o.ENIs++
		}
	}
	return o
}

// zones is the number of a fleet's availability zones.
const zones = 3

func (f Fleet) facts() limits.Instance {
	facts, ok := limits.Lookup(f.Type)
	if !ok {
		panic("sim: unknown instance type " + f.Type)
	}
	return facts
}

func (f Fleet) scenario() Scenario {
	facts := f.facts()
	s := Scenario{Seed: f.Seed, Crowd: max(1, f.Crowd), Pace: &f.Pace, Client: f.Client, Unlimited: f.Unlimited}
	for zone := range zones {
		vpc := netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", zone))
		s.VPC = append(s.VPC, vpc)
		for half := range f.Subnets {
			s.Subnets = append(s.Subnets, SubnetSpec{
				AZ: zone, CIDR: netip.MustParsePrefix(fmt.Sprintf("10.%d.%d.0/17", zone, 128*half)), Tags: map[string]string{resync.TagSubnetRole: "1"},
			})
		}
	}
	for i := range f.Nodes {
		s.Nodes = append(s.Nodes, NodeSpec{
			Type: f.Type, Limits: warmpool.Limits{IPv4PerENI: facts.IPv4PerENI, ENIsByCard: []int{facts.MaxENIs}},
			Policy: f.Policy, MaxPods: facts.MaxENIs*(facts.IPv4PerENI-1) + 2, AddWait: addWait, ManageUntagged: true, Subnet: f.Subnets * (i % zones),
		})
	}
	return s
}

// addWait is the default of CNI_ADD_WAIT.
const addWait = 10 * time.Second
