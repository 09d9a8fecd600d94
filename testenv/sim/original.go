package sim

import (
	"net/netip"
	"time"

	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// original is the daemon of amazon-vpc-cni-k8s v1.23.1 as spec/ipamd.md describes its
// loop (§1.3, §4, §5.1): the same waits, retries and calls in the same order, against the
// same EC2. It is a model to compare with, and nothing that ships. IPv4, one network card,
// WARM_ENI_TARGET or WARM_PREFIX_TARGET, subnet discovery on, no CLUSTER_NAME, a role that
// may do all.
//
// What is left out cannot happen while nodes only grow: DEL, cooldown, shrinking by IP
// targets. IMDS answers at once, as it does beside EC2's latencies.
type original struct {
	n      *node
	client *client

	enis    []*held // its datastore, primary first
	total   int     // addresses in it
	used    int
	serving bool

	shortAt  time.Duration // of the last "subnet out of addresses"; < 0: never
	pooledAt time.Duration // of the last pool action, which puts off the reconcile
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

// Times of upstream, with their place in spec/ipamd.md.
const (
	originalPause     = 2500 * time.Millisecond // §4.1, twice a loop
	originalShort     = 2 * time.Minute         // §4.4 step 2: how long nothing is tried after it
	originalReconcile = time.Minute             // §5.1
	originalENIAge    = time.Minute             // §2.4: before an ENI may be freed
	originalSetUp     = 10 * time.Second        // §1.3 step 16, between 6 attempts
	// originalStart is what a start takes with EC2's latency 0, as measured
	// (spec/performance.md §2): informer polls, iptables, IMDS.
	originalStart = 300 * time.Millisecond
	// originalWake is how late a sleeping goroutine wakes. A loop is never shorter than its
	// sleeps, so a clock of 120 s has run out in the 24th loop of 5 s.
	originalWake = time.Millisecond
)

// Tries of upstream (§4.5 step 7, §4.8, §5.2).
const (
	originalTries    = 12
	originalTagTries = 5
)

func newOriginal(n *node) *original {
	n.original = true
	return &original{n: n, client: n.w.newClient(ClientSpec{Attempts: sdkAttempts}, n.chance), shortAt: -1}
}

// pause sleeps.
func (o *original) pause(d time.Duration) error {
	o.n.w.sleep(d)
	return nil
}

// backoff is its SimpleBackoff: ×2 up to a most, each step up to jitter longer.
type simpleBackoff struct {
	next, most time.Duration
	jitter     float64
}

func (b *simpleBackoff) step(chance func(time.Duration) time.Duration) time.Duration {
	d := b.next
	b.next = min(2*b.next, b.most)
	return d + chance(time.Duration(float64(d)*b.jitter)+1)
}

// retry repeats with a back-off; the last error counts.
func (o *original) retry(tries int, b simpleBackoff, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if err == nil || n == tries {
			return err
		}
		o.n.w.sleep(b.step(o.n.chance))
	}
}

// life is one process: the start, then the loop forever.
func (o *original) life() {
	if o.start() != nil {
		o.restart()
		return
	}
	o.serving = true
	o.n.serves()
	for {
		o.n.w.sleep(originalPause + originalWake)
		o.poolStep()
		o.n.w.sleep(originalPause + originalWake)
		o.reconcile()
	}
}

// restart is what kubelet does with a container that ended: at once, then after 10 s, and
// twice as long each time, up to 5 minutes.
func (o *original) restart() {
	n, starts := o.n, o.starts
	n.w.stats.Crashes++
	*o = *newOriginal(n)
	o.starts = starts
	n.w.after(crashPause(starts), func() { n.w.begin(o.life) })
}

// crashPause is kubelet's CrashLoopBackOff after that many starts.
func crashPause(starts int) time.Duration {
	if starts < 2 {
		return 0
	}
	return min(10*time.Second<<(starts-2), 5*time.Minute)
}

// prefixes reports prefix delegation.
func (o *original) prefixes() bool { return o.n.spec.Policy.PrefixDelegation }

// slots is how many CIDRs an ENI can hold; per is how many addresses one is.
func (o *original) slots() int { return o.n.spec.Limits.IPv4PerENI - 1 }

func (o *original) per() int {
	if o.prefixes() {
		return blockSize
	}
	return 1
}

func (o *original) available() int { return o.total - o.used }

// low is §4.3 without IP targets.
func (o *original) low() bool {
	p := o.n.spec.Policy
	if o.total >= o.n.spec.MaxPods {
		return false
	}
	target := p.WarmENI * o.slots()
	if o.prefixes() {
		target = p.WarmPrefix * blockSize
	}
	return o.available() < target || target == 0 && o.available() == 0
}

// assign gives an address to a pod, if there is one.
func (o *original) assign(pod int) bool {
	if !o.serving {
		return false
	}
	for _, h := range o.enis {
		if len(h.free) == 0 {
			continue
		}
		a := h.free[0]
		h.free = h.free[1:]
		h.used++
		o.used++
		o.n.w.stats.Answered++
		o.n.w.holder(a, o.n.name+"/"+podName(pod))
		return true
	}
	return false
}

// addPod is one ADD: it fails at once when the pool is dry.
func (o *original) addPod(pod int, done func(ok bool)) {
	o.n.w.stats.ADDs++
	done(o.assign(pod))
}

// take puts CIDRs into the datastore; those that it has are no error.
func (o *original) take(h *held, cidrs []netip.Prefix) {
	for _, p := range cidrs {
		if h.cidrs[p] {
			continue
		}
		h.cidrs[p] = true
		for a := p.Addr(); p.Contains(a); a = a.Next() {
			h.free = append(h.free, a)
			o.total++
		}
	}
	o.pooledAt = o.n.w.clock
}

// hold adds an ENI to the datastore.
func (o *original) hold(x *eni) *held {
	if h := o.find(x.ID); h != nil {
		return h
	}
	h := &held{x: x, cidrs: map[netip.Prefix]bool{}, since: o.n.w.clock}
	o.enis = append(o.enis, h)
	return h
}

func (o *original) find(id ipam.ENIID) *held {
	for _, h := range o.enis {
		if h.x.ID == id {
			return h
		}
	}
	return nil
}

// insufficient are the codes that start the clock of 120 s (§4.4).
func insufficient(err error) bool {
	return keeper.IsSubnetExhausted(err) || keeper.IsFragmented(err)
}
