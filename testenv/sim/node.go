package sim

import (
	"fmt"
	"net/netip"
	"time"

	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// node is one instance: the part that outlives its processes.
type node struct {
	w        *World
	name     string
	instance string
	spec     NodeSpec
	primary  *eni
	attached map[ipam.ENIID]*eni // including those being attached or detached

	metadata *metadata
	kernel   kernel
	disk     disk

	upstream bool     // runs the model of upstream instead of our daemon
	process  *process // nil if none runs
	last     *process // the latest one, dead or alive
	starts   int
	cordoned bool

	surprise time.Duration // the last change that the daemon cannot know about
	crashed  time.Duration // when a daemon last died
	calls    rate
	refused  int // calls for more than EC2 takes
	tooLarge int // of these, attachments of ENIs with too many addresses

	pods    []*pod
	lastPod int
	lastBox int
	rested  map[netip.Addr]release // when pods' addresses became free
	stuck   time.Duration          // when EC2 last had no address for the node, while the world settles
	cooling time.Duration          // since when an ADD has waited for an address in cooldown; 0 if none does
	held    map[netip.Addr]*sandbox

	standing map[int]*pod // pods of a kubelet, which stay
	onServe  func()       // called each time a daemon begins to serve; may be nil
}

// release is the end of an allocation, and the process that answered the DEL.
type release struct {
	at     time.Duration
	by     *process
	passes int // over connection tracking since then
}

func newNode(w *World, i int, spec NodeSpec) *node {
	n := &node{
		w: w, name: fmt.Sprintf("node%d", i), instance: fmt.Sprintf("i-%017x", i+1), spec: spec,
		kernel: newKernel(w), rested: map[netip.Addr]release{}, held: map[netip.Addr]*sandbox{}, attached: map[ipam.ENIID]*eni{},
		standing: map[int]*pod{}, surprise: -time.Hour,
	}
	n.metadata = &metadata{w: w, node: n, shown: map[ipam.ENIID]resync.Interface{}}
	x, err := w.ec2.create(w.ec2.subnets[spec.Subnet], 0, 0, "", map[string]string{})
	if err != nil {
		panic("sim: no room for the primary ENI of " + n.name)
	}
	x.node, x.Status, x.AttachmentStatus = n, statusInUse, resync.AttachmentAttached
	x.AttachmentID, x.InstanceID, x.DeleteOnTermination = w.ec2.id("eni-attach"), n.instance, true
	n.primary, n.attached[x.ID] = x, x
	n.kernel.plug(x)
	n.metadata.show(x)
	w.ec2.changed(x)
	if w.ec2.views != nil {
		w.ec2.views[x.ID] = x.description()
	}
	return n
}

// settings returns the settings of the node's daemon.
func (n *node) settings() keeper.Settings {
	return keeper.Settings{
		Policy: n.spec.Policy, Provisioning: true, SweepLeaks: true, CheckpointPath: "ipam.json", VethPrefix: vethPrefix,
		InstanceID: n.instance, PrimaryENI: n.primary.ID, ClusterName: clusterName, ManageUntagged: n.spec.ManageUntagged,
		Subnets:     resync.SubnetPolicy{NodeSubnet: n.primary.SubnetID, ClusterName: clusterName, Discovery: true},
		TokenPrefix: fmt.Sprintf("%s-%d", n.instance, n.starts),
	}
}

// takes is what EC2 takes of the node.
func (n *node) takes() warmpool.Limits {
	if n.spec.Takes.IPv4PerENI > 0 {
		return n.spec.Takes
	}
	return n.spec.Limits
}

// serves notifies waiters that a daemon serves.
func (n *node) serves() {
	if n.onServe != nil {
		n.onServe()
	}
}

// surprised records a change that the daemon cannot know of yet.
func (n *node) surprised() { n.surprise = n.w.clock }

// surpriseRest is how long after a surprise a daemon may still act on the old state: it reads
// once a minute, confirms with a second read, and the metadata lags.
const surpriseRest = 5 * time.Minute

func (n *node) mayBeSurprised() bool { return n.w.clock-n.surprise < surpriseRest }

// blindRest is how long after a crash a daemon may not know what its predecessor did: the
// list that it reads at its start lags, and it does not read it again for a second.
const blindRest = 30 * time.Second

func (n *node) mayBeBlind() bool { return n.starts > 1 && n.w.clock-n.crashed < blindRest }

// tagsRest is how long a changed tag may go unnoticed: only EC2 shows tags, and without
// another reason a daemon reads them twice an hour.
const tagsRest = 36 * time.Minute

func (n *node) tagsMayBeOld() bool { return n.w.clock-n.surprise < tagsRest }

// book returns the ENIs that the node's daemon knows.
func (n *node) book() []ipam.ENIState {
	if n.process == nil || n.process.keeper == nil {
		return nil
	}
	return n.process.keeper.State(n.w.now()).Book.ENIs
}

// jitter draws a jitter for the node's daemon.
func (n *node) jitter(d time.Duration) time.Duration {
	return time.Duration(n.w.dice.keepers.Below(int(d)))
}

// Actions that are counted or checked individually.
const (
	tagAction    = "CreateTags"
	createAction = "CreateNetworkInterface"
	attachAction = "AttachNetworkInterface"
	assignAction = "AssignPrivateIpAddresses"
	modifyAction = "ModifyNetworkInterfaceAttribute"
	detachAction = "DetachNetworkInterface"
	deleteAction = "DeleteNetworkInterface"

	describeENIs      = "DescribeNetworkInterfaces"
	describeSubnets   = "DescribeSubnets"
	describeInstances = "DescribeInstances"
)

// rate counts calls, to limit them.
type rate struct {
	mutating, describing int
	changes              int // mutating calls that succeeded
}

func (r *rate) count(action string, mutating bool, err error) {
	switch {
	case !mutating:
		r.describing++
	case err == nil && action != tagAction: // each start writes tags again
		r.changes++
		fallthrough
	default:
		r.mutating++
	}
}

// loseFile removes or truncates the checkpoint. Pods that the kernel does not show yet are
// lost with it.
func (n *node) loseFile() {
	if d := n.w.dice.faults; d.chance(0.5) {
		n.disk.file = n.disk.file[:d.Below(len(n.disk.file))]
	} else {
		n.disk = disk{}
	}
	for _, s := range n.living() {
		s.lost = !s.linked
	}
}
