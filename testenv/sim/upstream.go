package sim

import (
	"net/netip"
	"time"

	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// upstream models the daemon of amazon-vpc-cni-k8s v1.23.1: the same waits, retries and calls
// in the same order, against the same EC2. It serves only for comparison. It covers IPv4, one
// network card, WARM_ENI_TARGET or WARM_PREFIX_TARGET, subnet discovery on, no CLUSTER_NAME
// and a role with every permission.
//
// It omits what cannot happen while nodes only grow: DEL, cooldown, shrinking by IP targets.
// IMDS answers immediately: its latency is negligible compared with EC2's.
type upstream struct {
	n      *node
	client *client

	enis    []*held // its datastore, primary first
	total   int     // addresses in it
	used    int
	serving bool

	shortAt  time.Duration // when the subnet last ran out of addresses; < 0 if never
	pooledAt time.Duration // when the last pool action ran, which delays the reconcile
	starts   int
}

// held is an ENI of the datastore.
type held struct {
	x     *eni
	cidrs map[netip.Prefix]bool
	free  []netip.Addr
	used  int
	since time.Duration
}

// Intervals of upstream.
const (
	upstreamPause     = 2500 * time.Millisecond // twice a loop
	upstreamShort     = 2 * time.Minute         // pause after the subnet ran out of addresses
	upstreamReconcile = time.Minute
	upstreamENIAge    = time.Minute      // before an ENI may be freed
	upstreamSetUp     = 10 * time.Second // between 6 attempts
	// upstreamStart is the duration of a start with EC2's latency 0, as measured
	// (docs/performance.md): informer polls, iptables, IMDS.
	upstreamStart = 300 * time.Millisecond
	// upstreamWake is how late a sleeping goroutine wakes. A loop never takes less than its
	// sleeps, so a timer of 120 s has expired in the 24th loop of 5 s.
	upstreamWake = time.Millisecond
)

// Numbers of upstream's attempts: at an attach and a removal, and at tags.
const (
	upstreamTries    = 12
	upstreamTagTries = 5
)

func newUpstream(n *node) *upstream {
	n.upstream = true
	return &upstream{n: n, client: n.w.newClient(ClientSpec{Attempts: sdkAttempts}, n.jitter), shortAt: -1}
}

// pause sleeps and never fails.
func (u *upstream) pause(d time.Duration) error {
	u.n.w.sleep(d)
	return nil
}

// simpleBackoff is upstream's SimpleBackoff: each step doubles up to a maximum, plus jitter.
type simpleBackoff struct {
	next, most time.Duration
	jitter     float64
}

func (b *simpleBackoff) step(jitter func(time.Duration) time.Duration) time.Duration {
	d := b.next
	b.next = min(2*b.next, b.most)
	return d + jitter(time.Duration(float64(d)*b.jitter)+1)
}

// retry repeats an attempt with a back-off, and returns the last error.
func (u *upstream) retry(tries int, b simpleBackoff, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if err == nil || n == tries {
			return err
		}
		u.n.w.sleep(b.step(u.n.jitter))
	}
}

// life is one process: the start, then the endless loop.
func (u *upstream) life() {
	if u.start() != nil {
		u.restart()
		return
	}
	u.serving = true
	u.n.serves()
	for {
		u.n.w.sleep(upstreamPause + upstreamWake)
		u.poolStep()
		u.n.w.sleep(upstreamPause + upstreamWake)
		u.reconcile()
	}
}

// restart does what kubelet does with a container that exited: it restarts it immediately,
// next time after 10 s, doubling up to 5 minutes.
func (u *upstream) restart() {
	n, starts := u.n, u.starts
	n.w.stats.Crashes++
	*u = *newUpstream(n)
	u.starts = starts
	n.w.after(crashPause(starts), func() { n.w.begin(u.life) })
}

// crashPause is kubelet's CrashLoopBackOff after the given number of starts.
func crashPause(starts int) time.Duration {
	if starts < 2 {
		return 0
	}
	return min(10*time.Second<<(starts-2), 5*time.Minute)
}

// prefixes reports whether prefix delegation is on.
func (u *upstream) prefixes() bool { return u.n.spec.Policy.PrefixDelegation }

// slots is how many CIDRs an ENI can hold; per is how many addresses a CIDR has.
func (u *upstream) slots() int { return u.n.spec.Limits.IPv4PerENI - 1 }

func (u *upstream) per() int {
	if u.prefixes() {
		return blockSize
	}
	return 1
}

func (u *upstream) available() int { return u.total - u.used }

// low reports whether the pool is too low, without IP targets.
func (u *upstream) low() bool {
	p := u.n.spec.Policy
	if u.total >= u.n.spec.MaxPods {
		return false
	}
	target := p.WarmENI * u.slots()
	if u.prefixes() {
		target = p.WarmPrefix * blockSize
	}
	return u.available() < target || target == 0 && u.available() == 0
}

// assign assigns an address to a pod if one is free.
func (u *upstream) assign(pod int) bool {
	if !u.serving {
		return false
	}
	for _, h := range u.enis {
		if len(h.free) == 0 {
			continue
		}
		a := h.free[0]
		h.free = h.free[1:]
		h.used++
		u.used++
		u.n.w.stats.Answered++
		u.n.w.holder(a, u.n.name+"/"+podName(pod))
		return true
	}
	return false
}

// addPod runs one ADD: it fails immediately if the pool is empty.
func (u *upstream) addPod(pod int, done func(ok bool)) {
	u.n.w.stats.ADDs++
	done(u.assign(pod))
}

// take adds CIDRs to the datastore, except those it already has.
func (u *upstream) take(h *held, cidrs []netip.Prefix) {
	for _, p := range cidrs {
		if h.cidrs[p] {
			continue
		}
		h.cidrs[p] = true
		for a := p.Addr(); p.Contains(a); a = a.Next() {
			h.free = append(h.free, a)
			u.total++
		}
	}
	u.pooledAt = u.n.w.clock
}

// hold adds an ENI to the datastore.
func (u *upstream) hold(x *eni) *held {
	if h := u.find(x.ID); h != nil {
		return h
	}
	h := &held{x: x, cidrs: map[netip.Prefix]bool{}, since: u.n.w.clock}
	u.enis = append(u.enis, h)
	return h
}

func (u *upstream) find(id ipam.ENIID) *held {
	for _, h := range u.enis {
		if h.x.ID == id {
			return h
		}
	}
	return nil
}

// insufficient reports whether an error's code starts the timer of 120 s.
func insufficient(err error) bool {
	return keeper.IsSubnetExhausted(err) || keeper.IsFragmented(err)
}
