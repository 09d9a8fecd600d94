package whatif

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// Model is a daemon: its planner, and what it does with an ADD that finds no address.
type Model struct {
	Name string
	Plan Planner
	// Patience is how long such an ADD waits for an address before it fails.
	Patience time.Duration
}

// kubeletRetry is when kubelet repeats a failed ADD: after 10 to 15 s.
const kubeletRetry = 10 * time.Second

// The models: our daemon with the default CNI_ADD_WAIT (docs/configuration.md), and upstream's,
// whose name in documents is older than the word.
var (
	Ours     = Model{Name: "ours", Plan: warmpool.Plan, Patience: 10 * time.Second}
	Upstream = Model{Name: "original", Plan: PlanUpstream}
)

// failures is the number of ADDs of a pod that fail while it waits for an address.
func (m Model) failures(waits time.Duration) int {
	if waits < m.Patience {
		return 0
	}
	return 1 + int((waits-m.Patience)/(m.Patience+kubeletRetry))
}

// network is the subnet of all nodes, and the requests to EC2.
type network struct {
	bounded bool
	free    int
	calls   Calls
}

// Calls counts requests to EC2 by purpose.
type Calls struct {
	NewENIs  int // interfaces created and attached
	Assigns  int // assignments of addresses or prefixes
	Releases int // of addresses or prefixes
	Detaches int // interfaces detached and deleted
	Refused  int // of all these, because the subnet had too few addresses
}

// Requests is the number of EC2 requests: a new interface takes four (create, attach, modify,
// describe), a detached one three (describe, detach, delete).
func (c Calls) Requests() int { return 4*c.NewENIs + c.Assigns + c.Releases + 3*c.Detaches }

// plus adds d, multiplied by times.
func (c Calls) plus(d Calls, times int) Calls {
	return Calls{c.NewENIs + times*d.NewENIs, c.Assigns + times*d.Assigns, c.Releases + times*d.Releases, c.Detaches + times*d.Detaches, c.Refused + times*d.Refused}
}

func (c *Calls) count(op Operation, code cause.Code) {
	switch op.Pending.Kind {
	case warmpool.PendingAttach:
		c.NewENIs++
	case warmpool.PendingAssign:
		c.Assigns++
	case warmpool.PendingRelease:
		c.Releases++
	case warmpool.PendingDetach:
		c.Detaches++
	}
	if code != "" {
		c.Refused++
	}
}

// node is a node of a run.
type node struct {
	Pool
	room     int // pods that kubelet accepts
	rnd      *Random
	made     int // pods so far
	enis     int // attached
	assigned int
	pods     []pod
	fewest   int // minimum number of pods during the run
	calls    int // requests to EC2 during the run
	churn    churn
	supply   *supply
}

// churn records how many pods a node has while they come and go.
type churn struct {
	since time.Time // the last time that a pod came or went; zero if none has
	sum   float64   // pods × seconds until then
}

// pod is a pod that has an address or waits for one.
type pod struct {
	number int
	waits  bool
	since  time.Time // its ADD
}

func (p pod) sandbox() ipam.Sandbox {
	return ipam.Sandbox{Network: "aws-cni", ContainerID: strconv.Itoa(p.number), IfName: "eth0"}
}

// newNode returns a node whose pool has settled without pods.
func newNode(s Settings, m Model, net *network, now time.Time, seed uint64) *node {
	p := s.Policy()
	n := &node{
		Pool: Pool{
			Book: ipam.New(ipam.Options{Cooldown: p.Cooldown}), Plan: m.Plan, Policy: p, Now: now, ENIBackoff: map[ipam.ENIID]time.Time{},
			Limits: s.limits(), Others: s.others(),
		},
		room: s.Room(), rnd: Stream(seed, 1),
	}
	n.supply = &supply{network: net, trunk: s.Trunk, excluded: s.PrimaryExcluded, pool: &n.Pool}
	n.EC2 = n.supply
	n.Attach(warmpool.AttachENI{})
	n.enis = 1
	if s.Trunk {
		n.enis = 2
		n.Attach(warmpool.AttachENI{Device: s.Instance.MaxENIs - 1}) // the controller takes the highest index
	}
	n.settle()
	return n
}

// alike is everything that a node's pool depends on before the load begins.
type alike struct {
	policy                         warmpool.Policy
	enis, ipv4, others, room, pods int
	trunk, excluded                bool
}

func (n Node) alike() alike {
	s := n.Settings
	most := s.limits()
	return alike{s.Policy(), most.ENIsByCard[0], most.IPv4PerENI, s.others(), s.Room(), n.Pods, s.Trunk, s.PrimaryExcluded}
}

// copied returns a copy of a node that has settled and that no pod has left yet.
func (n *node) copied(seed uint64) *node {
	out, supply := *n, *n.supply
	out.rnd, out.pods, out.ENIBackoff, out.supply = Stream(seed, 1), slices.Clone(n.pods), map[ipam.ENIID]time.Time{}, &supply
	out.Book, out.EC2, supply.pool = ipam.New(ipam.Options{Cooldown: n.Book.Cooldown()}), &supply, &out.Pool
	for _, e := range n.Book.Snapshot().ENIs {
		cidrs := make([]netip.Prefix, len(e.CIDRs))
		for i := range e.CIDRs {
			cidrs[i] = e.CIDRs[i].Prefix
		}
		out.Apply(ipam.AttachENI{ENI: e.ENI, CIDRs: cidrs})
	}
	for a := range n.Book.Assignments() {
		out.Apply(ipam.Restore{Sandbox: a.Sandbox, Pod: a.Pod, Address: a.Address, AssignedAt: a.AssignedAt})
	}
	return &out
}

func (n *node) settle() { n.Settle(func(op Operation) { n.ended(op, "") }) }

// ended counts a finished operation.
func (n *node) ended(op Operation, code cause.Code) {
	n.supply.network.calls.count(op, code)
	switch {
	case code != "":
	case op.Pending.Kind == warmpool.PendingAttach:
		n.enis++
	case op.Pending.Kind == warmpool.PendingDetach:
		n.enis--
	}
}

// wasted is the number of addresses for pods that no pod uses.
func (n *node) wasted() int { return n.supply.held - n.enis - n.assigned }

// add adds a pod; it waits if no address is free.
func (n *node) add() {
	n.made++
	p := pod{number: n.made, since: n.Now}
	p.waits = !n.assign(p)
	n.pods = append(n.pods, p)
}

func (n *node) assign(p pod) bool {
	_, ok := n.Assign(p.sandbox(), ipam.Pod{Name: strconv.Itoa(p.number), Interfaces: 1})
	if ok {
		n.assigned++
	} else if !p.waits {
		n.Waiting++
	}
	return ok
}

// drop removes a random pod and returns it.
func (n *node) drop() pod {
	i := n.rnd.Below(len(n.pods))
	p := n.pods[i]
	n.pods = slices.Delete(n.pods, i, i+1)
	if p.waits {
		n.Waiting--
	} else {
		n.Apply(ipam.Unassign{Sandbox: p.sandbox()})
		n.assigned--
	}
	return p
}

// serve assigns free addresses to waiting pods, the oldest first, and returns those pods.
func (n *node) serve() (served []pod) {
	for i := range n.pods {
		p := &n.pods[i]
		if n.Waiting == 0 || p.waits && !n.assign(*p) {
			return served
		}
		if p.waits {
			served = append(served, *p)
			p.waits = false
			n.Waiting--
		}
	}
	return served
}

// wakes returns the node's next event: the end of an operation (op is its index), or the
// next run of the planner (-1). at is zero if there is none.
func (n *node) wakes() (at time.Time, op int) {
	at, op = n.Replan, -1
	for i := range n.Ops {
		if end := n.Ops[i].End; at.IsZero() || !end.After(at) {
			at, op = end, i
		}
	}
	return at, op
}

// supply is EC2 for one node: it takes its usual time, and refuses what the subnet lacks.
type supply struct {
	network  *network
	pool     *Pool
	trunk    bool
	excluded bool   // the primary is excluded from pods
	made     int    // interfaces so far
	next     uint32 // next address
	nextPD   uint32 // next prefix
	held     int    // addresses of the subnet
}

func (x *supply) Subnet(time.Time) (id string, free int) {
	if !x.network.bounded {
		return "", -1
	}
	return "", x.network.free
}

// Takes is the mean of the least time and twice that, the limit of the jitter.
func (x *supply) Takes(op Operation) time.Duration { return Takes(op.Pending.Kind) * 3 / 2 }

func (x *supply) Refuses(op Operation) cause.Code {
	need := 0
	if k := op.Pending.Kind; k == warmpool.PendingAttach || k == warmpool.PendingAssign {
		need = op.Pending.IPs + limits.PrefixSize*op.Pending.Prefixes
	}
	if op.Pending.Kind == warmpool.PendingAttach {
		need++
	}
	if x.network.bounded && need > x.network.free {
		return cause.SubnetExhausted
	}
	return ""
}

// Attach creates an interface: the first is the primary one, the second the trunk if there
// is one.
func (x *supply) Attach(a warmpool.AttachENI) (ipam.ENI, []netip.Prefix) {
	x.made++
	return ipam.ENI{
		ID: ipam.ENIID(fmt.Sprintf("eni-%d", x.made)), Card: a.Card, Device: a.Device, Primary: x.made == 1, Trunk: x.trunk && x.made == 2,
		Excluded:  x.excluded && x.made == 1,
		PrimaryIP: x.Take(1, 0)[0].Addr(), AttachedAt: x.pool.Now,
	}, x.Take(a.IPs, a.Prefixes)
}

func (x *supply) Take(ips, prefixes int) []netip.Prefix {
	out := make([]netip.Prefix, 0, ips+prefixes)
	for range ips { // 10.0.0.0/9
		out = append(out, netip.PrefixFrom(address(10<<24+x.next%(1<<23)), 32))
		x.next++
	}
	for range prefixes { // 10.128.0.0/9
		out = append(out, netip.PrefixFrom(address(10<<24+1<<23+x.nextPD%(1<<19)*limits.PrefixSize), 28))
		x.nextPD++
	}
	x.account(ips + limits.PrefixSize*prefixes)
	return out
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

func (x *supply) Give(cidrs []netip.Prefix) {
	for _, c := range cidrs {
		x.account(-(1 << (32 - c.Bits())))
	}
}

func (x *supply) account(addresses int) {
	x.held += addresses
	x.network.free -= addresses
}
