package sim

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"cnictl/capacity/whatif"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/budget"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// upstream is a node with the daemon of amazon-vpc-cni-k8s v1.23.1, for comparison. What its
// pool wants next is decided by the model of capacity/whatif, the same that users ask. What
// that takes is here: its calls in their order, its back-offs, the SDK's retries, and a process
// that exits when its start fails. It covers what happens while nodes only grow.
type upstream struct {
	n       *node
	client  *client
	pool    whatif.Pool
	starts  int
	serving bool

	// What the calls of the current operation gave.
	made   *eni
	cidrs  []netip.Prefix
	failed cause.Code
}

const (
	// upstreamStart is the duration of a start with EC2's latency 0, as measured
	// (docs/performance.md): informer polls, iptables, IMDS.
	upstreamStart      = 300 * time.Millisecond
	upstreamMost       = time.Minute // between two attempts
	upstreamTries      = 12
	upstreamTagTries   = 5
	upstreamSetUpTries = 6
)

func newUpstream(n *node) *upstream {
	n.upstream = true
	return &upstream{n: n}
}

// begin is a new process, which knows nothing of the last one.
func (u *upstream) begin() {
	p := u.n.spec.Policy
	p.MaxPods = u.n.spec.MaxPods
	u.client = u.n.w.newClient(ClientSpec{Attempts: sdkAttempts}, u.n.jitter)
	u.pool = whatif.Pool{
		Book: ipam.New(ipam.Options{Cooldown: p.Cooldown}), Policy: p, Limits: u.n.spec.Limits, EC2: u, Now: u.n.w.now(),
		ENIBackoff: map[ipam.ENIID]time.Time{},
		// The model plans at the start of a pass, which here is when the last one is over.
		Plan: func(s warmpool.Snapshot, p warmpool.Policy, now time.Time) []warmpool.Action {
			return whatif.PlanUpstream(s, p, now.Truncate(whatif.UpstreamPass))
		},
	}
	u.starts++
	u.n.w.stats.Starts++
}

// life is one process: the start, then the endless loop, whose first half manages the pool.
func (u *upstream) life() {
	u.begin()
	if u.start() != nil {
		u.n.w.stats.Crashes++
		u.n.w.after(crashPause(u.starts), func() { u.n.w.begin(u.life) })
		return
	}
	u.serving = true
	u.n.serves()
	for {
		u.n.w.sleep(whatif.UpstreamPass / 2)
		_ = u.pass() // a failure is only logged
		u.n.w.sleep(whatif.UpstreamPass / 2)
	}
}

// crashPause is kubelet's CrashLoopBackOff after the given number of starts.
func crashPause(starts int) time.Duration {
	if starts < 2 {
		return 0
	}
	return min(10*time.Second<<(starts-2), 5*time.Minute)
}

// start returns the errors that end the daemon.
func (u *upstream) start() error {
	w := u.n.w
	w.sleep(upstreamStart)
	attached, err := u.describeAll()
	if err != nil {
		return err
	}
	for _, e := range attached {
		if err := u.tagENI(e); err != nil {
			return err
		}
		_ = u.retry(upstreamSetUpTries, constant(10*time.Second), u.describeSubnets)
		u.made, u.cidrs = w.ec2.enis[e.ID], e.CIDRs()
		u.pool.Now = w.now()
		u.pool.Attach(warmpool.AttachENI{Device: e.Device})
	}
	for range attached { // security groups; a failure is only a warning
		_ = u.change(modifyAction, func() error { return nil })
	}
	if err := u.pass(); u.failed != cause.SubnetExhausted {
		return err // of the first growth
	}
	return nil
}

// pass is one run of the planner, and what it wants.
func (u *upstream) pass() (err error) {
	u.pool.Now = u.n.w.now()
	for range len(u.pool.Start()) {
		u.made, u.cidrs, u.failed = nil, nil, ""
		if err = u.carryOut(u.pool.Ops[0].Action); err != nil {
			u.failed = cause.EC2Error
			if keeper.IsSubnetExhausted(err) || keeper.IsFragmented(err) {
				u.failed = cause.SubnetExhausted
			}
		}
		u.pool.Now = u.n.w.now()
		u.pool.Finish(0)
	}
	if u.pool.Err != nil {
		u.n.w.violate("book", "%s: %v", u.n.name, u.pool.Err)
	}
	return err
}

// carryOut makes the calls of an action.
func (u *upstream) carryOut(a warmpool.Action) error {
	switch a := a.(type) {
	case warmpool.AssignAddresses:
		return u.fill(a.ENI, func(n int) (int, int) { return n, 0 }, a.Count)
	case warmpool.AssignPrefixes:
		return u.fill(a.ENI, func(n int) (int, int) { return 0, n }, a.Count)
	case warmpool.AttachENI:
		return u.newENI(a)
	case warmpool.DetachENI:
		found, err := u.describe(func(e *resync.ENI) bool { return e.ID == a.ENI })
		if err == nil && len(found) > 0 {
			_ = u.detachAndDelete(u.n.w.ec2.enis[a.ENI], found[0].AttachmentID)
		}
	}
	return nil
}

// fill assigns addresses or prefixes to an ENI; if that fails, one. An ENI that has more than
// its daemon knows is read again.
func (u *upstream) fill(id ipam.ENIID, of func(int) (ips, prefixes int), count int) (err error) {
	for _, n := range []int{count, 1} {
		u.cidrs, err = upstreamAsk(u, assignAction, true, func() ([]netip.Prefix, error) {
			ips, prefixes := of(n)
			return u.n.w.ec2.assignFor(u.n, id, ips, prefixes)
		})
		if err == nil || errors.Is(err, errAddressMax) {
			break
		}
	}
	if errors.Is(err, errAddressMax) {
		found, err := u.describe(func(e *resync.ENI) bool { return e.ID == id })
		if err != nil || len(found) == 0 {
			return errAddressMax
		}
		u.cidrs = found[0].CIDRs()
		return nil
	}
	return err
}

// newENI creates, attaches and sets up an ENI.
func (u *upstream) newENI(a warmpool.AttachENI) error {
	x, err := u.createSomewhere(a)
	if err != nil {
		return err
	}
	device, err := u.freeDevice()
	if err != nil {
		_ = u.remove(x)
		return err
	}
	attachment, err := upstreamAsk(u, attachAction, true, func() (string, error) { return u.n.w.ec2.attachFor(u.n, x.ID, device) })
	if err != nil {
		_ = u.remove(x)
		return err
	}
	err = u.change(modifyAction, func() error { x.DeleteOnTermination = true; return nil })
	if err != nil {
		if u.detachAndDelete(x, attachment) == nil {
			_ = u.waitShown(nil) // upstream drops the error and waits for an ENI without an id
		}
		return err
	}
	if err := u.waitShown(x); err != nil {
		return err
	}
	u.made, u.cidrs = x, x.CIDRs()
	if u.describeSubnets() != nil {
		u.cidrs = nil // it is in the pool, empty, until it is to be filled
	}
	return nil
}

// createSomewhere creates an ENI in the first candidate subnet where that succeeds.
func (u *upstream) createSomewhere(a warmpool.AttachENI) (x *eni, err error) {
	where := []resync.Subnet{{ID: u.n.primary.SubnetID}}
	if u.describeSubnets() == nil {
		where = u.n.settings().Subnets.Candidates(u.n.w.ec2.describeSubnets(u.n))
	} else if err := u.describeSubnets(); err != nil { // is the node's own excluded?
		return nil, err
	}
	for _, s := range where {
		spec := keeper.CreateENI{SubnetID: s.ID, IPs: a.IPs, Prefixes: a.Prefixes, CreatedAt: u.n.w.now()}
		var made resync.ENI
		if made, err = upstreamAsk(u, createAction, true, func() (resync.ENI, error) { return u.n.w.ec2.createFor(u.n, spec) }); err == nil {
			return u.n.w.ec2.enis[made.ID], nil
		}
	}
	return nil, err
}

// waitShown waits until the metadata service shows an ENI; if x is nil, it never does.
func (u *upstream) waitShown(x *eni) error {
	return u.retry(upstreamTries, u.doubling(100*time.Millisecond, 0.15), func() error {
		if x != nil {
			if _, shown := u.n.metadata.shown[x.ID]; shown {
				return nil
			}
		}
		return errMetadata
	})
}

func (u *upstream) detachAndDelete(x *eni, attachment string) error {
	err := u.retry(upstreamTries, u.doubling(200*time.Millisecond, 0.15), func() error {
		return u.change(detachAction, func() error { return u.n.w.ec2.detachFor(u.n, attachment) })
	})
	if err != nil {
		return err
	}
	u.n.w.sleep(2 * time.Second)
	return u.remove(x)
}

func (u *upstream) remove(x *eni) error {
	return u.retry(upstreamTries, u.doubling(500*time.Millisecond, 0.15), func() error {
		err := u.change(deleteAction, func() error { return u.n.w.ec2.deleteFor(u.n, x.ID) })
		if keeper.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// tagENI writes missing tags.
func (u *upstream) tagENI(e resync.ENI) error {
	if e.Tags[resync.TagInstanceID] == u.n.instance {
		return nil
	}
	tags := map[string]string{resync.TagInstanceID: u.n.instance, resync.TagClusterName: clusterName}
	return u.retry(upstreamTagTries, u.doubling(500*time.Millisecond, 0.3), func() error {
		return u.change(tagAction, func() error {
			u.n.w.ec2.tag(u.n.w.ec2.enis[e.ID], tags)
			return nil
		})
	})
}

// retry repeats an attempt after pauses, and returns the last error.
func (u *upstream) retry(tries int, pause func() time.Duration, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if err == nil || n == tries {
			return err
		}
		u.n.w.sleep(pause())
	}
}

// doubling is upstream's simpleBackoff: it doubles, with a jitter in proportion.
func (u *upstream) doubling(next time.Duration, jitter float64) func() time.Duration {
	return func() time.Duration {
		d := next
		next = min(2*next, upstreamMost)
		return d + u.n.jitter(time.Duration(float64(d)*jitter)+1)
	}
}

func constant(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// upstreamAsk makes one call, with the SDK's retries.
func upstreamAsk[T any](u *upstream, action string, mutating bool, effect func() (T, error)) (out T, err error) {
	w := u.n.w
	sleep := func(d time.Duration) error { w.sleep(d); return nil }
	err = u.client.do(w, action, budget.Urgent, sleep, func() (err error) {
		w.await(func(done func()) {
			out, err = answerOf(w, u.n, action, mutating, w.fateOf(), effect)
			w.after(w.answerAfter(action, fate{}, err), done)
		})
		return err
	})
	return out, err
}

// change makes a call that returns only success or an error.
func (u *upstream) change(action string, effect func() error) error {
	_, err := upstreamAsk(u, action, true, func() (none, error) { return none{}, effect() })
	return err
}

func (u *upstream) describe(match func(*resync.ENI) bool) ([]resync.ENI, error) {
	return upstreamAsk(u, describeENIs, false, func() ([]resync.ENI, error) { return u.n.w.ec2.list(match), nil })
}

// describeAll describes the instance's ENIs.
func (u *upstream) describeAll() (out []resync.ENI, err error) {
	err = u.retry(upstreamTries, constant(60*time.Millisecond), func() (err error) {
		out, err = u.describe(func(e *resync.ENI) bool { return e.InstanceID == u.n.instance })
		return err
	})
	slices.SortFunc(out, func(a, b resync.ENI) int { return a.Device - b.Device })
	return out, err
}

func (u *upstream) describeSubnets() error {
	_, err := upstreamAsk(u, describeSubnets, false, func() (none, error) { return none{}, nil })
	return err
}

// freeDevice uses DescribeInstances to find the lowest unused device index.
func (u *upstream) freeDevice() (int, error) {
	return upstreamAsk(u, describeInstances, false, func() (int, error) {
		for device := 0; ; device++ {
			used := false
			for _, x := range u.n.attached {
				used = used || x.Device == device
			}
			if !used {
				return device, nil
			}
		}
	})
}

// addPod runs one ADD: it fails immediately if the pool is empty.
func (u *upstream) addPod(pod int, done func(ok bool)) {
	w := u.n.w
	w.stats.ADDs++
	u.pool.Now = w.now()
	ok := false
	if u.serving {
		_, ok = u.pool.Assign(ipam.Sandbox{Network: "aws-cni", ContainerID: strconv.Itoa(pod), IfName: "eth0"}, ipam.Pod{Name: podName(pod), Interfaces: 1})
	}
	if ok {
		w.stats.Answered++
	}
	done(ok)
}

// The rest is whatif.EC2: what the calls gave.

func (u *upstream) Subnet(time.Time) (string, int)       { return u.n.primary.SubnetID, -1 }
func (u *upstream) Takes(whatif.Operation) time.Duration { return 0 }
func (u *upstream) Refuses(whatif.Operation) cause.Code  { return u.failed }
func (u *upstream) Take(int, int) []netip.Prefix         { return u.cidrs }
func (u *upstream) Give([]netip.Prefix)                  {}
func (u *upstream) Attach(warmpool.AttachENI) (ipam.ENI, []netip.Prefix) {
	x := u.made
	return ipam.ENI{
		ID: x.ID, MAC: x.MAC, Device: x.Device, Primary: x == u.n.primary, SubnetID: x.SubnetID, PrimaryIP: x.PrimaryIP, AttachedAt: u.n.w.now(),
	}, u.cidrs
}
