package fleetsim

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// MaxNodes is the number of nodes for which the simulated network has addresses.
const MaxNodes = 5000

// defaultChurn is the mean time between two changes to one node's pods.
const defaultChurn = 30 * time.Second

// Options describe a fleet. The zero value is ten healthy nodes with our daemon.
type Options struct {
	Nodes         int     // default 10
	Seed          uint64  // fleets with the same seed are identical at the same time after their start
	UpstreamShare float64 // share of nodes that run upstream, taking its releases in turn
	IPv6          bool    // an IPv6 cluster

	Churn     time.Duration // mean time between two changes to one node's pods; 0 for 30 s, negative for none
	NodeChurn time.Duration // mean time between two nodes joining or leaving; 0 if none do
	Latency   time.Duration // of every stream to a node
	Sound     bool          // EC2 refuses nothing, and subnets and nodes never run out, except through traits

	// History is how far back the oldest daemon's counts of free addresses go, the others' the less the
	// younger they are; 0 if the daemons keep none.
	History time.Duration

	Shares map[Trait]float64  // share of nodes with each trait; a node gets at most one of these
	Named  map[string][]Trait // additional traits, by node name ([NodeName])

	// Doctor returns what "cnictl local doctor" prints on a node with our daemon. If nil, the
	// command does not exist.
	Doctor func(node string) []byte

	Now func() time.Time // default time.Now
	Log *slog.Logger     // default: none
}

// Trait is a fault or peculiarity of a node.
type Trait string

// Faults of the connection to a node or in its answers.
const (
	Slow      Trait = "slow"       // every answer takes 1.5 s
	Dead      Trait = "dead"       // accepts the connection and never answers
	Refused   Trait = "refused"    // nothing listens on the port
	Half      Trait = "half"       // the connection breaks in the middle of an answer
	Garbage   Trait = "garbage"    // bytes that are not HTTP
	WrongJSON Trait = "wrong-json" // JSON of another kind
	Huge      Trait = "huge"       // an answer of more than 8 MiB
	Endless   Trait = "endless"    // an answer that never ends
	Lying     Trait = "lying"      // counters that contradict its addresses
	Hostile   Trait = "hostile"    // control, escape and bidirectional characters in every string it controls
	Flapping  Trait = "flapping"   // the daemon and the Ready condition come and go
)

// Kinds of nodes.
const (
	NoDaemon   Trait = "no-daemon"   // no aws-node pod
	Fargate    Trait = "fargate"     // a Fargate node: no aws-node pod either
	Windows    Trait = "windows"     // a Windows node: no aws-node pod either
	NotReady   Trait = "not-ready"   // its aws-node pod is not running
	UnixSocket Trait = "unix-socket" // introspection on a Unix socket: only exec reaches it
	Upstream   Trait = "upstream"    // runs upstream, regardless of UpstreamShare
)

// EC2's answers to a node whose pool is full but could grow: its new pods get no address.
// These nodes run our daemon, because upstream's pod log does not show such errors.
const (
	FullSubnet   Trait = "full-subnet"  // its subnet has no free address
	Throttled    Trait = "throttled"    // RequestLimitExceeded
	Unauthorized Trait = "unauthorized" // UnauthorizedOperation
)

// refusals are the traits of nodes for which EC2 refuses everything.
var refusals = []Trait{FullSubnet, Throttled, Unauthorized}

// Traits lists every trait.
func Traits() []Trait {
	return []Trait{FullSubnet, Throttled, Unauthorized, Slow, Dead, Refused, Half, Garbage, WrongJSON, Huge, Endless, Lying, Hostile, Flapping, NoDaemon, Fargate, Windows, NotReady, UnixSocket, Upstream}
}

func (o *Options) fill() error {
	if o.Nodes == 0 {
		o.Nodes = 10
	}
	if o.Nodes < 1 || o.Nodes > MaxNodes {
		return fmt.Errorf("%d nodes: want 1 to %d", o.Nodes, MaxNodes)
	}
	if o.Churn == 0 {
		o.Churn = defaultChurn
	}
	if o.Latency < 0 || o.NodeChurn < 0 {
		return errors.New("negative latency or node churn")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	sum := 0.0
	for _, t := range slices.Sorted(maps.Keys(o.Shares)) {
		if !slices.Contains(Traits(), t) || t == Upstream {
			return fmt.Errorf("share of %q: unknown trait, or one without a share (for upstream set UpstreamShare)", t)
		}
		if s := o.Shares[t]; !(s >= 0 && s <= 1) {
			return fmt.Errorf("share of %s: %v is not between 0 and 1", t, s)
		}
		sum += o.Shares[t]
	}
	if sum > 1+1e-9 || !(o.UpstreamShare >= 0 && o.UpstreamShare <= 1) {
		return errors.New("shares must be between 0 and 1, and those of the traits at most 1 in total")
	}
	names := map[string]bool{}
	for i := range o.Nodes {
		names[NodeName(i)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(o.Named)) {
		if !names[name] {
			return fmt.Errorf("traits of node %q: not one of the %d nodes (the first is %s)", name, o.Nodes, NodeName(0))
		}
		for _, t := range o.Named[name] {
			if !slices.Contains(Traits(), t) {
				return fmt.Errorf("trait %q of node %s: unknown trait", t, name)
			}
		}
	}
	return nil
}

// traits returns every node's traits. Each share is rounded to a number of nodes, and to at
// least one if it is not zero.
func (o *Options) traits() [][]Trait {
	out := make([][]Trait, o.Nodes)
	at := 0
	order := rand.New(rand.NewPCG(o.Seed, 0x7261697473)).Perm(o.Nodes)
	for _, t := range Traits() {
		for range part(o.Shares[t], o.Nodes) {
			if at < o.Nodes {
				out[order[at]] = append(out[order[at]], t)
				at++
			}
		}
	}
	upstream := part(o.UpstreamShare, o.Nodes)
	refused := func(t Trait) bool { return slices.Contains(refusals, t) }
	for _, i := range rand.New(rand.NewPCG(o.Seed, 0x6f6c64)).Perm(o.Nodes) {
		if upstream > 0 && !slices.ContainsFunc(out[i], refused) && !slices.ContainsFunc(o.Named[NodeName(i)], refused) {
			out[i] = append(out[i], Upstream)
			upstream--
		}
	}
	for i := range out {
		for _, t := range o.Named[NodeName(i)] {
			if !slices.Contains(out[i], t) {
				out[i] = append(out[i], t)
			}
		}
	}
	return out
}

func part(share float64, of int) int {
	if share <= 0 {
		return 0
	}
	return min(of, max(1, int(math.Round(share*float64(of)))))
}
