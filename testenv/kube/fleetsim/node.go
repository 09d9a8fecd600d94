package fleetsim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/testenv/aws/ec2model"
)

// The network layout: a node has a block of blockSize addresses, a /16 subnet has the blocks
// of nodesPerSubnet nodes, and subnets alternate between the zones.
const (
	nodeBits       = 23
	blockSize      = 1 << (32 - nodeBits)
	nodesPerSubnet = 65536 / blockSize
	region         = "eu-west-1"
)

var zones = []string{region + "a", region + "b", region + "c"}

// releases are the upstream releases in a fleet, which nodes take in turn.
var releases = []string{
	"v1.23.0", "v1.19.6", "v1.22.3", "v1.18.6", "v1.21.1", "v1.15.5", "v1.20.5", "v1.12.6", "v1.11.5", "v1.10.4", "v1.9.3", "v1.7.10",
}

// minor returns 23 for "v1.23.0", and 0 for a node with our daemon.
func minor(release string) int {
	var n int
	_, _ = fmt.Sscanf(release, "v1.%d.", &n)
	return n
}

// node is one node of the fleet: its constant part, its Kubernetes objects and, after the
// first request, its pool.
type node struct {
	sim     *Sim
	index   int
	name    string
	podName string
	traits  []Trait
	release string // of upstream; "" for our daemon
	profile *profile

	zone, subnet string
	prefix       netip.Prefix // the subnet's
	block        netip.Prefix // the node's addresses
	ip           netip.Addr   // of the primary network interface
	instanceID   string
	created      time.Time // of the Node object
	started      time.Time // of the daemon, without restarts
	cordoned     bool

	roster // guarded by Sim.mu

	mu    sync.Mutex // guards world
	world *world     // nil until requested
}

// roster is the changing part of a node's Kubernetes objects.
type roster struct {
	gone       bool   // it has left the cluster
	generation int    // how often it has returned
	version    uint64 // of the Node object
	podVersion uint64 // of the aws-node pod
	down       bool   // flapping: not ready now
	restarts   int    // of the aws-node container
	since      time.Time
}

// NodeName is the name of a fleet's i-th node.
func NodeName(i int) string {
	a := primary(i).As4()
	return fmt.Sprintf("ip-%d-%d-%d-%d.%s.compute.internal", a[0], a[1], a[2], a[3], region)
}

func blockOf(i int) (netip.Prefix, int) {
	subnet := i/len(zones)/nodesPerSubnet*len(zones) + i%len(zones)
	at := i / len(zones) % nodesPerSubnet * blockSize
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(subnet), byte(at >> 8), byte(at)}), nodeBits), subnet
}

// primary is the first address of a block that EC2 does not reserve.
func primary(i int) netip.Addr {
	block, _ := blockOf(i)
	a := block.Addr().As4()
	a[3] += ec2model.Reserved - 1
	return netip.AddrFrom4(a)
}

// hash is a number derived from the seed, a node and a word.
func (s *Sim) hash(index int, word string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %s", s.opts.Seed, index, word) // a hash never fails
	return rand.New(rand.NewPCG(h.Sum64(), 1)).Uint64()         // FNV of similar inputs is similar
}

const podLetters = "bcdfghjklmnpqrstvwxz2456789" // Kubernetes uses no vowels, to avoid words

// suffix returns n letters, as a ReplicaSet or DaemonSet appends them.
func suffix(x uint64, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = podLetters[x%uint64(len(podLetters))]
		x /= uint64(len(podLetters))
	}
	return string(b)
}

func uid(x, y uint64) string {
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", uint32(x), uint16(x>>32), uint16(x>>48)&0xfff, uint16(y)&0xfff, y>>16&0xffffffffffff)
}

func newNode(s *Sim, i int, traits []Trait) *node {
	block, subnet := blockOf(i)
	n := &node{
		sim: s, index: i, name: NodeName(i), traits: traits, block: block, ip: primary(i),
		zone: zones[i%len(zones)], subnet: fmt.Sprintf("subnet-0%016x", 0xa11ce000+subnet),
		instanceID: fmt.Sprintf("i-0%016x", s.hash(i, "instance")),
	}
	n.prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(subnet), 0, 0}), 16)
	age := time.Hour + time.Duration(s.hash(i, "age")%uint64(20*24*time.Hour))
	n.created = s.epoch.Add(-age).Truncate(time.Second)
	n.started = n.created.Add(40 * time.Second)
	n.version, n.podVersion, n.since = s.hub.current(), s.hub.current(), n.started
	n.cordoned = s.hash(i, "cordoned")%60 == 0 && !n.refusedByEC2()
	n.podName = "aws-node-" + suffix(s.hash(i, "pod"), 5)
	for clash := uint64(0); s.byPod[n.podName] != nil; clash++ {
		n.podName = "aws-node-" + suffix(s.hash(i, "pod")+clash, 5)
	}
	n.profile = pick(s.kinds.profiles, int(s.hash(i, "profile")%100))
	if n.has(Upstream) {
		known := releases
		if s.opts.IPv6 {
			known = releases[:10] // v1.10 introduced it
		}
		n.release = known[s.hash(i, "release")%uint64(len(known))]
		// No node has a setting that its release lacks.
		if p := n.profile.policy; (minor(n.release) < 10 && (p.PrefixDelegation || p.IPv6 || p.CustomNetworking)) || (minor(n.release) < 20 && p.MultiNIC) {
			n.profile = s.kinds.profiles[0]
		}
	}
	return n
}

func (n *node) has(t Trait) bool { return slices.Contains(n.traits, t) }

func (n *node) refusedByEC2() bool { return slices.ContainsFunc(refusals, n.has) }

// hasPod reports whether the node has an aws-node pod.
func (n *node) hasPod() bool { return !n.has(NoDaemon) && !n.has(Fargate) && !n.has(Windows) }

// image returns the image of the running daemon.
func (n *node) image() string {
	release := n.release
	if release == "" {
		release = daemonVersion
	}
	return "602401143452.dkr.ecr." + region + ".amazonaws.com/amazon-k8s-cni:" + release
}

// daemonVersion is the version that our nodes report.
const daemonVersion = "v1.0.0-fleetsim"

// awkward is text that must not reach a terminal unescaped.
const awkward = "\x1b[31mred\x1b[0m\a\u202egnp.exe\u2066\x00\x9b2J\u200b"

// garble returns a string as the node reports it: hostile nodes put awkward text into it.
func (n *node) garble(text string) string {
	if !n.has(Hostile) {
		return text
	}
	at := strings.IndexAny(text, "-/ ")
	if at < 0 {
		at = len(text)
	}
	return text[:at] + awkward + text[at:]
}

// A flapping node is away for flapDown in every flapPeriod.
const (
	flapPeriod = time.Minute
	flapDown   = 20 * time.Second
)

// flap returns how many periods of a flapping node are over, and whether it is away now.
func (n *node) flap(now time.Time) (turns int, away bool) {
	if !n.has(Flapping) {
		return 0, false
	}
	since := now.Sub(n.sim.epoch) + time.Duration(n.sim.hash(n.index, "flap")%uint64(flapPeriod))
	return int(since / flapPeriod), since%flapPeriod > flapPeriod-flapDown
}
