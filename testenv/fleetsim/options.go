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

// MaxNodes bounds a fleet: the addresses of the simulated network are laid out for it.
const MaxNodes = 5000

// defaultChurn is the mean time between two changes of one node's pods.
const defaultChurn = 30 * time.Second

// Options describe a fleet. The zero value is ten healthy nodes of ours.
type Options struct {
	Nodes    int     // default 10
	Seed     uint64  // two fleets of one seed are alike at every moment after their start
	Original float64 // the share of nodes that run upstream, its releases in turn
	IPv6     bool    // an IPv6 cluster

	Churn     time.Duration // mean time between two changes of one node's pods; 0: 30 s; negative: none
	NodeChurn time.Duration // mean time between two nodes that come or go; 0: none do
	Latency   time.Duration // of every stream to a node
	Sound     bool          // EC2 refuses nothing, no subnet runs dry and no node is full, but for traits

	Shares map[Trait]float64  // how many nodes misbehave in each way; a node gets one of these at most
	Named  map[string][]Trait // beside these, by node name ([NodeName])

	// Doctor is what "cnictl local doctor" prints on a node of ours; nil: there is no such
	// program.
	Doctor func(node string) []byte

	Now func() time.Time // default time.Now
	Log *slog.Logger     // default: none
}

// Trait is a way in which a node is not as it should be, or not an ordinary one.
type Trait string

// What goes wrong on the way to a node or in its answers.
const (
	Slow      Trait = "slow"       // every answer takes 1.5 s
	Dead      Trait = "dead"       // takes the connection and never answers
	Refused   Trait = "refused"    // nothing listens on the port
	Half      Trait = "half"       // the connection breaks in the middle of an answer
	Garbage   Trait = "garbage"    // bytes that are not HTTP
	WrongJSON Trait = "wrong-json" // JSON of another kind
	Huge      Trait = "huge"       // an answer of more than 8 MiB
	Endless   Trait = "endless"    // an answer that never ends
	Lying     Trait = "lying"      // counters that its addresses contradict
	Hostile   Trait = "hostile"    // control, escape and bidirectional characters in every string it chooses
	Flapping  Trait = "flapping"   // the daemon and the Ready condition come and go
)

// What kind of node it is.
const (
	NoDaemon   Trait = "no-daemon"   // no aws-node pod
	Fargate    Trait = "fargate"     // of Fargate: no aws-node pod either
	Windows    Trait = "windows"     // of Windows: the same
	NotReady   Trait = "not-ready"   // its aws-node pod is not running
	UnixSocket Trait = "unix-socket" // introspection on a Unix socket: only exec reaches it
	Old        Trait = "original"    // upstream, whatever Original says
)

// What EC2 answers a node whose pool is used up and could grow: its new pods get no address.
// Upstream keeps its log to itself, so nodes with such a share are ours.
const (
	FullSubnet   Trait = "full-subnet"  // its subnet has no free address
	Throttled    Trait = "throttled"    // RequestLimitExceeded
	Unauthorized Trait = "unauthorized" // UnauthorizedOperation
)

// refusals are the traits of nodes that EC2 refuses everything.
var refusals = []Trait{FullSubnet, Throttled, Unauthorized}

// Traits lists every trait.
func Traits() []Trait {
	return []Trait{FullSubnet, Throttled, Unauthorized, Slow, Dead, Refused, Half, Garbage, WrongJSON, Huge, Endless, Lying, Hostile, Flapping, NoDaemon, Fargate, Windows, NotReady, UnixSocket, Old}
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
		return errors.New("a latency or a node churn below zero")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	sum := 0.0
	for _, t := range slices.Sorted(maps.Keys(o.Shares)) {
		if !slices.Contains(Traits(), t) || t == Old {
			return fmt.Errorf("share of %q: there is no such trait to give a share of (Original is for upstream)", t)
		}
		if s := o.Shares[t]; !(s >= 0 && s <= 1) {
			return fmt.Errorf("share of %s: %v is not between 0 and 1", t, s)
		}
		sum += o.Shares[t]
	}
	if sum > 1+1e-9 || !(o.Original >= 0 && o.Original <= 1) {
		return errors.New("shares are between 0 and 1, and those of the traits not more than 1 together")
	}
	names := map[string]bool{}
	for i := range o.Nodes {
		names[NodeName(i)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(o.Named)) {
		if !names[name] {
			return fmt.Errorf("traits of node %q: there is no such node among %d (the first is %s)", name, o.Nodes, NodeName(0))
		}
		for _, t := range o.Named[name] {
			if !slices.Contains(Traits(), t) {
				return fmt.Errorf("trait %q of node %s: there is no such trait", t, name)
			}
		}
	}
	return nil
}

// traits gives every node its traits: of each share as many nodes as it says, rounded,
// at least one where it is not zero.
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
	upstream := part(o.Original, o.Nodes)
	for _, i := range rand.New(rand.NewPCG(o.Seed, 0x6f6c64)).Perm(o.Nodes) {
		if upstream > 0 && !slices.ContainsFunc(out[i], func(t Trait) bool { return slices.Contains(refusals, t) }) {
			out[i] = append(out[i], Old)
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
