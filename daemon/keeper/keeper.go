package keeper

import (
	"net/netip"
	"time"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// Message reports something that happened outside. The set is closed.
type Message interface {
	handle(k *Keeper, now time.Time)
}

// Outside carries out what the Keeper decides. Its methods do not block, and report back
// only through messages that are handled later.
type Outside interface {
	// Begin starts a task, which calls [Run].
	Begin(Task)
	// Write starts writing an image; only one write is in progress at a time.
	Write(Image)
	// Record passes an event to the logs, metrics, the journal and Kubernetes.
	Record(at time.Time, e Event)
}

// Settings come from the node's configuration.
type Settings struct {
	Policy            warmpool.Policy
	Provisioning      bool   // EC2 may be asked to make changes
	SweepLeaks        bool   // delete leaked ENIs, those of the VPC's CNI daemons that are not attached
	CheckpointPath    string // for error texts
	VethPrefix        string
	ExternalSNAT      bool
	ExcludeSNATCIDRs  []netip.Prefix
	NetworkPolicyMode string
	InstanceID        string
	PrimaryENI        ipam.ENIID
	ClusterName       string
	ManageUntagged    bool
	MultiNIC          bool // pods may have an interface per network card
	IPv6              bool // pods get IPv6 addresses only, from /80s
	// Trunk: pods may have branch ENIs (ENABLE_POD_ENI), and the instance type supports
	// trunks or is unknown.
	Trunk   bool
	Subnets resync.SubnetPolicy
	// NodeWait is how long after the start the pool grows only for waiting pods, until
	// NodeRead reports whether the node is cordoned; 0 if no NodeRead will come.
	NodeWait time.Duration
	// TokenPrefix starts the client tokens of this run of the daemon. No two runs on a node
	// share one.
	TokenPrefix string
}

// Options make a Keeper. All are required.
type Options struct {
	Settings       Settings
	Limits         warmpool.Limits
	VPCCIDRs       []netip.Prefix
	SecurityGroups []string         // of new ENIs
	ConnTrack      resync.ConnTrack // of new ENIs
	Outside        Outside
	Jitter         Jitter
	Now            time.Time // the start
}

// Keeper owns the state of one node.
type Keeper struct {
	out      Outside
	jitter   Jitter
	settings Settings
	policy   warmpool.Policy
	limits   warmpool.Limits // of the instance type; see lowered
	stated   warmpool.StatedLimits
	vpcCIDRs []netip.Prefix
	groups   []string
	tracking resync.ConnTrack

	book    *ipam.Book
	ledger  ledger
	started time.Time

	gen     uint64 // counts changes of the ledger
	durable uint64 // the newest change known to be on disk
	// encoded is the newest image, per card. The writer reads it while writing is set. It is
	// reused: a new one per ADD would make garbage collection the daemon's main work.
	encoded map[int][]byte
	writing bool      // the checkpoint writer has an image
	wrote   time.Time // when it got that image
	// commitAfter delays further writes briefly after one failed.
	commitAfter    time.Time
	commitPause    time.Duration
	commitFailedAt time.Time
	commitProblem  string // as last recorded; "" if the last write worked
	unanswered     []answer
	unsettled      map[netip.Addr]bool         // addresses whose DEL is not answered yet
	leaving        map[ipam.Sandbox]netip.Addr // the same addresses by sandbox

	waiting     []*Add // ADDs that found the pool empty, oldest first
	awaitDrop   []*Del // DELs of sandboxes whose rules are being removed
	missed      map[podName]missedPod
	ops         map[OpID]*Operation
	lastOp      OpID
	backoff     backoffs
	subnets     subnetCache
	attachments map[ipam.ENIID]string // attachment ids, where known
	detached    map[int]time.Time     // the last detach, per card
	wakeAt      time.Time             // from the last plan's Wait
	planned     string                // digest of the last plan: a change is recorded
	growth      growthError

	lastScaleDown  time.Time
	throttledUntil time.Time // until then nothing is done ahead of demand
	terminating    bool
	unschedulable  bool
	nodeKnown      bool // the Node object has been read
	maxPodsSource  string

	recon      reconciler
	custom     customNetworking
	sg         securityGroups
	unending   unending
	bound      map[podName]boundPod
	boundKnown bool // bound is what the API server shows now
	trunk      trunkWait
	flows      flows
}

// New makes a Keeper with an empty book; Restore fills it.
func New(o Options) *Keeper {
	return &Keeper{
		out: o.Outside, jitter: o.Jitter, settings: o.Settings, policy: o.Settings.Policy, limits: o.Limits,
		vpcCIDRs: o.VPCCIDRs, groups: o.SecurityGroups, tracking: o.ConnTrack, started: o.Now,
		book: ipam.New(ipam.Options{Cooldown: o.Settings.Policy.Cooldown, Passes: flowPasses}), ledger: newLedger(), subnets: subnetCache{few: fewAddresses(o.Settings.IPv6)},
		ops: make(map[OpID]*Operation), encoded: make(map[int][]byte), backoff: newBackoffs(), attachments: make(map[ipam.ENIID]string), detached: make(map[int]time.Time), missed: make(map[podName]missedPod), unsettled: make(map[netip.Addr]bool), leaving: make(map[ipam.Sandbox]netip.Addr),
		recon: newReconciler(o.Now, o.Jitter, o.Settings.SweepLeaks),
	}
}

// idleWake bounds the time between two steps when nothing happens: the pool's fallback tick,
// as often as upstream looks at its pool.
const idleWake = 5 * time.Second

// Handle takes one message. Several may be handled before a Step, so that parallel requests
// share one checkpoint write and one plan.
func (k *Keeper) Handle(now time.Time, m Message) { m.handle(k, now) }

// Step acts on the handled messages: it answers the requests that it can, writes the
// checkpoint and instructs the pool.
func (k *Keeper) Step(now time.Time) {
	k.serveWaiting(now)
	k.failStuck(now)
	k.flush(now)
	k.plan(now)
	k.awaitTrunk(now)
	k.alignGroups(now)
	k.endWithInstance(now)
	k.startReads(now)
	k.deleteFlows(now)
}

// NextWake returns when Step is due even if nothing happens. It may be in the past.
func (k *Keeper) NextWake(now time.Time) time.Time {
	wake := now.Add(idleWake)
	earlier := func(t time.Time) {
		if !t.IsZero() && t.Before(wake) {
			wake = t
		}
	}
	earlier(k.wakeAt)
	if k.throttledUntil.After(now) {
		earlier(k.throttledUntil)
	}
	if k.nodeAwaited(now) {
		earlier(k.started.Add(k.settings.NodeWait))
	}
	switch {
	case k.gen != k.durable && !k.writing:
		earlier(k.commitAfter)
	case k.writing && !k.stuck(now):
		earlier(k.wrote.Add(commitLimit))
	}
	for _, w := range k.waiting {
		earlier(w.Deadline)
	}
	if len(k.waiting) > 0 {
		earlier(k.nextCooled(now))
		if k.subnets.low.Running(now) {
			earlier(k.subnets.low.Until) // then a full subnet is read again
		}
	}
	if !k.terminating {
		earlier(k.recon.due())
		earlier(k.flows.due())
	}
	return wake
}

// begin starts a task, unless the daemon ends: nothing would wait for its result. What it would
// have done, the next start finds.
func (k *Keeper) begin(t Task) {
	if !k.terminating {
		k.out.Begin(t)
	}
}

// apply puts an event into the book. The book refuses only events that contradict it, which
// is a bug: the refusal is recorded and the state stays as it was.
func (k *Keeper) apply(now time.Time, ev ipam.Event) ipam.Change {
	ch, _ := k.try(now, ev)
	return ch
}

// try is apply for callers that continue only if the book accepts the event.
func (k *Keeper) try(now time.Time, ev ipam.Event) (ipam.Change, error) {
	ch, err := k.book.Apply(now, ev)
	if err != nil {
		k.record(now, BookRefused{Event: ev, Err: err})
	}
	return ch, err
}

func (k *Keeper) eni(id ipam.ENIID) (ipam.ENIState, bool) {
	for _, e := range k.book.Snapshot().ENIs {
		if e.ID == id {
			return e, true
		}
	}
	return ipam.ENIState{}, false
}

func (k *Keeper) kind() ipam.Kind {
	if k.policy.PrefixDelegation {
		return ipam.Prefixes
	}
	return ipam.SecondaryIPs
}

func (k *Keeper) otherKind() ipam.Kind {
	if k.policy.PrefixDelegation {
		return ipam.SecondaryIPs
	}
	return ipam.Prefixes
}

// NodeRead is what the Kubernetes API reports about the node.
type NodeRead struct {
	MaxPods       int // 0 if not reported
	BranchENIs    int // number that the resource controller advertises; 0 if none
	Source        string
	Unschedulable bool
	Targets       *Targets // as labels of the Node have them; nil: as they were
}

func (m NodeRead) handle(k *Keeper, now time.Time) {
	if !k.nodeKnown || k.unschedulable != m.Unschedulable {
		k.record(now, SchedulingChanged{Cordoned: m.Unschedulable})
	}
	k.nodeKnown, k.unschedulable = true, m.Unschedulable
	if was := TargetsOf(k.policy); m.Targets != nil && *m.Targets != was {
		m.Targets.Set(&k.policy)
		k.record(now, TargetsChanged{Was: was, Is: *m.Targets})
	}
	if m.BranchENIs > 0 {
		TrunkHinted{Attached: true}.handle(k, now)
	}
	if m.MaxPods > 0 {
		k.SetMaxPods(now, m.MaxPods, m.Source)
	}
}

// Targets are the settings of the pool that labels of the Node override.
type Targets struct{ WarmENI, WarmIP, MinIP, WarmPrefix, MaxENI int }

// TargetsOf returns the targets of a policy.
func TargetsOf(p warmpool.Policy) Targets {
	return Targets{p.WarmENI, p.WarmIP, p.MinIP, p.WarmPrefix, p.MaxENI}
}

// Set gives a policy these targets.
func (t Targets) Set(p *warmpool.Policy) {
	p.WarmENI, p.WarmIP, p.MinIP, p.WarmPrefix, p.MaxENI = t.WarmENI, t.WarmIP, t.MinIP, t.WarmPrefix, t.MaxENI
}

// nodeAwaited reports whether it is unknown whether the node is cordoned, but will be known
// soon.
func (k *Keeper) nodeAwaited(now time.Time) bool {
	return !k.nodeKnown && now.Before(k.started.Add(k.settings.NodeWait))
}

// SetMaxPods sets kubelet's pod limit.
func (k *Keeper) SetMaxPods(now time.Time, n int, source string) {
	if k.policy.MaxPods != n {
		k.record(now, MaxPodsChanged{MaxPods: n, Source: source})
	}
	k.policy.MaxPods, k.maxPodsSource = n, source
}

// VPCCIDRsRead reports a change of the VPC's CIDRs. The host's rules already follow it.
type VPCCIDRsRead struct{ CIDRs []netip.Prefix }

func (m VPCCIDRsRead) handle(k *Keeper, now time.Time) {
	k.vpcCIDRs = m.CIDRs
	k.record(now, VPCCIDRsChanged{CIDRs: m.CIDRs})
}

// Terminate begins no more tasks and answers the waiting ADDs.
type Terminate struct{}

func (m Terminate) handle(k *Keeper, now time.Time) {
	k.terminating = true
	k.record(now, Terminating{})
}
