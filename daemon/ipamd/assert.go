package ipamd

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/notice"
	"cnictl/daemon/resync"
)

const (
	// assertPeriod is how often the host is looked at though nothing was told: legacy
	// iptables tells nothing.
	assertPeriod = 30 * time.Second
	// assertSettled is how long an ADD is left to finish before its pod is looked at, and
	// assertLearn how long the first of many ADDs waits for the look that is about all.
	assertSettled = time.Second
	assertLearn   = 5 * time.Second
	// assertSpacing is the least time between two looks that cost a run of programs, and
	// between two after lost notices; but assertBurst follow at once: what was brought
	// back is told, too, and must not hold up what somebody takes next.
	assertSpacing = 500 * time.Millisecond
	assertBurst   = 3
	// assertFilters is how often packet filters are looked at though nothing was told
	// where the kernel tells of them: each look runs programs.
	assertFilters = 5 * time.Minute
	// assertRounds bounds the looks of a pass: what a repair makes can be needed by
	// another one.
	assertRounds = 4
	// assertENI bounds the repair of an ENI, whose link is there.
	assertENI = 5 * time.Second
)

// asserter brings back what other programs take from the host's network: of living pods,
// of ENIs and of the node. Its goroutine reads the kernel first and asks the owner then,
// so that a DEL, which frees the address before it touches the kernel, is never worked
// against; nor is an ADD, because only what was whole once is brought back.
type asserter struct {
	log     *slog.Logger
	host    *hostnet.Host
	owner   *owner
	metrics *metrics.Metrics
	feed    *introspectserver.Feed
	api     *kubernetes // nil: there is no API server
	rules   *nodeRules
	monitor *hostnet.Monitor
	egress  *egressKeeper
	ipv6    bool
	mtu     int
	// branchPods: pods have branch ENIs, which the API server knows.
	branchPods bool

	mu        sync.Mutex // guards what follows up to wake
	told      noticed
	node      pace // of looks at the node
	sandboxes map[podName]branchSandbox
	wake      chan struct{}

	// Of the pass's goroutine.
	restored  map[netip.Addr]string // owners, as of the start
	atStart   map[string]bool       // hashes of the pods' links at the start; nil before the first look
	whole     rules.Whole
	contests  rules.Contests
	unneeded  map[int]time.Time // VLAN devices of no pod, since when
	filters   time.Time         // last look at packet filters
	failure   string            // the last one that was logged
	contested map[string]bool   // objects of which it was said that somebody works against us
}

// noticed is what is worth a look.
type noticed struct {
	links bool
	gone  map[netip.Addr]bool
	soon  time.Time // when links and gone are due; zero: nothing
	// Those that cost more have a time of their own, so that they hold up nothing.
	node, lost bool
	later      time.Time
	// ADDs that were answered since the last look: the first and the last one.
	first, last time.Time
}

// due is when the next part is.
func (t *noticed) due(node pace) (due time.Time) {
	earliest := func(at time.Time) {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	if !t.soon.IsZero() {
		earliest(t.soon)
	}
	if !t.later.IsZero() {
		earliest(latest(t.later, node.next()))
	}
	if !t.first.IsZero() {
		earliest(t.learn())
	}
	return due
}

// learn is when the pods of ADDs are looked at: one look for many.
func (t *noticed) learn() time.Time {
	at, most := t.last.Add(assertSettled), t.first.Add(assertLearn)
	if most.Before(at) {
		return most
	}
	return at
}

// pace is that of looks that cost much.
type pace struct{ until time.Time }

// next is when the next look may begin.
func (p pace) next() time.Time { return p.until.Add(-(assertBurst - 1) * assertSpacing) }

// took notes a look.
func (p *pace) took(now time.Time) { p.until = latest(p.until, now).Add(assertSpacing) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// chore is what a pass is about.
type chore struct {
	links, node, full bool
	gone              map[netip.Addr]bool
}

func (c chore) any() bool { return c.links || c.node || c.full || len(c.gone) > 0 }

// newAsserter remembers whose pods lived before this process began.
func (d *daemon) newAsserter() *asserter {
	a := &asserter{
		log: d.log, host: d.host, owner: d.owner, metrics: d.metrics, feed: d.recorder.feed, api: d.api, rules: d.rules,
		monitor: hostnet.NewMonitor(d.node.identity.PrimaryMAC), ipv6: d.node.config.IPv6, mtu: d.node.config.ENIMTU,
		branchPods: d.node.config.PodENI && d.api != nil,
		sandboxes:  map[podName]branchSandbox{}, wake: make(chan struct{}, 1), restored: map[netip.Addr]string{}, unneeded: map[int]time.Time{}, contested: map[string]bool{},
	}
	for _, p := range d.owner.keeper.Assignments() { // the owner does not run yet
		a.restored[p.Address] = ownerOf(p.Sandbox)
	}
	a.egress = newEgressKeeper(a)
	return a
}

// watch follows what the kernel tells. Without it the periodic looks remain.
func (a *asserter) watch(ctx context.Context) {
	for {
		err := a.monitor.Run(ctx, a.tell)
		if ctx.Err() != nil {
			return
		}
		a.log.Warn("changes of the host's network are not told, it is looked at every 30 s", slog.Any(logline.KeyError, err))
		if !pause(ctx, assertPeriod) {
			return
		}
		a.tell(hostnet.Notice{Kind: hostnet.LostChanges})
	}
}

// tell takes notices. It is called from the monitor's goroutines.
func (a *asserter) tell(list ...hostnet.Notice) {
	a.egress.tell(list)
	a.mu.Lock()
	defer a.mu.Unlock()
	t, now := &a.told, time.Now()
	for _, n := range list {
		due := &t.soon
		switch n.Kind {
		case hostnet.ChangedPod:
			if t.gone == nil {
				t.gone = map[netip.Addr]bool{}
			}
			t.gone[n.Pod] = true
		case hostnet.ChangedLinks:
			t.links = true
		case hostnet.ChangedEgress:
			continue
		case hostnet.ChangedNode:
			t.node, due = true, &t.later
		default:
			t.lost, due = true, &t.later
		}
		if due.IsZero() {
			*due = now
			signal(a.wake)
		}
	}
}

// added takes note of an ADD before its plugin has the answer: what it makes then is to
// be seen.
func (a *asserter) added(req *cniwire.AddRequest, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noteSandbox(podName{req.PodNamespace, req.PodName}, branchSandbox{container: req.ContainerID, at: now})
	a.told.last = now
	if a.told.first.IsZero() {
		a.told.first = now
		signal(a.wake)
	}
}

// take takes what is due of what was told, and returns when the rest is.
func (a *asserter) take(now time.Time) (l chore, due time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := &a.told
	if !t.soon.IsZero() && !now.Before(t.soon) {
		l.links, l.gone = t.links, t.gone
		t.links, t.gone, t.soon = false, nil, time.Time{}
	}
	if !t.later.IsZero() && !now.Before(latest(t.later, a.node.next())) {
		l.node, l.full = t.node || t.lost, t.lost
		t.node, t.lost, t.later = false, false, time.Time{}
	}
	if !t.first.IsZero() && !now.Before(t.learn()) {
		l.links = true
		t.first, t.last = time.Time{}, time.Time{}
	}
	return l, t.due(a.node)
}

// run looks at the host until ctx ends.
func (a *asserter) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	full := time.Now() // the first one at once: somebody may have been at work before the start
	var again time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		case <-timer.C:
		}
		now := time.Now()
		l, due := a.take(now)
		if !now.Before(full) {
			full = now.Add(assertPeriod - assertPeriod/10 + chance(assertPeriod/5))
			l.full = true
		}
		if !again.IsZero() && !now.Before(again) {
			l.full, l.node = true, true
		}
		if l.any() {
			again = time.Time{}
			if wait := a.pass(ctx, l); wait > 0 {
				again = time.Now().Add(wait)
			}
		}
		next := full
		for _, at := range []time.Time{due, again} {
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		timer.Reset(max(time.Until(next), time.Millisecond))
	}
}

// pass looks once. wait is how long until something is to be brought back that was left
// alone for now; 0: nothing was.
func (a *asserter) pass(ctx context.Context, l chore) (wait time.Duration) {
	if !l.full && !l.links && !l.node && !a.concerned(l.gone) {
		return 0
	}
	p := &repairs{asserter: a, now: time.Now()}
	if err := p.look(ctx, l.node || l.full && a.filtersDue(p.now)); err != nil && ctx.Err() == nil {
		a.fail(err)
	}
	p.report()
	a.log.Debug("host network state looked at", slog.Int(logline.KeyCount, len(p.done)), slog.Duration(logline.KeyDuration, time.Since(p.now)))
	return p.wait
}

// filtersDue reports whether packet filters are looked at though nothing was told.
func (a *asserter) filtersDue(now time.Time) bool {
	return a.host.Backend() != string(rules.NFTables) || !a.monitor.TellsFilters() || now.Sub(a.filters) >= assertFilters
}

// concerned reports whether notices about single addresses are about pods that live, and
// not the doings of a DEL.
func (a *asserter) concerned(gone map[netip.Addr]bool) bool {
	yes, ok := ask(a.owner, func(k *keeper.Keeper, _ time.Time) bool {
		for addr := range gone {
			if k.Holds(addr) {
				return true
			}
		}
		return false
	})
	return ok && (yes || a.branchPods)
}

// fail logs what is not logged yet.
func (a *asserter) fail(err error) {
	if text := err.Error(); a.failure != text {
		a.failure = text
		a.log.Warn("host network state not brought back, will be tried again", slog.Any(logline.KeyError, err))
	}
}

// repairs is one pass.
type repairs struct {
	*asserter
	now   time.Time
	wait  time.Duration
	done  []hostnet.Loss
	seen  map[string]bool // things that were brought back
	again map[string]bool // objects that somebody takes away again and again
}

// look compares everything once, and more often while there is something to bring back.
func (p *repairs) look(ctx context.Context, node bool) error {
	for round := 0; ; round++ {
		p.monitor.Looking()
		view, err := p.host.View(ctx, p.ipv6)
		if err != nil {
			return err
		}
		p.monitor.Know(view)
		s, ok := p.state(view)
		if !ok {
			return nil // the end
		}
		if round == 0 {
			if err := p.dropDevices(ctx, view, s); err != nil {
				p.fail(err)
			}
			p.enis(ctx, view, s.enis)
			p.nodeState(ctx, view, node)
		}
		again, err := p.pods(ctx, view, s.pods)
		if err != nil {
			p.fail(err)
		}
		if !again || round+1 == assertRounds {
			return nil
		}
	}
}

// living is what there should be things of, as of after a view.
type living struct {
	pods  []rules.LivingPod
	enis  []ipam.ENIState
	vlans map[int]bool // of branch pods; nil: not known
}

func (p *repairs) state(view *hostnet.View) (living, bool) {
	type answer struct {
		all  []ipam.Assignment
		enis []ipam.ENIState
	}
	got, ok := ask(p.owner, func(k *keeper.Keeper, _ time.Time) answer { return answer{k.Assignments(), k.ENIs()} })
	if !ok {
		return living{}, false
	}
	out := living{pods: make([]rules.LivingPod, 0, len(got.all)), enis: got.enis}
	nth := interfaceNumbers(got.all)
	for i := range got.all {
		if pod, ok := p.podOf(&got.all[i], nth); ok {
			out.pods = append(out.pods, pod)
		}
	}
	if p.atStart == nil {
		p.atStart = view.PodHashes()
	}
	p.addBranches(view, &out)
	return out, true
}

// ownerOf tells one owner of an address from the next.
func ownerOf(s ipam.Sandbox) string { return s.Network + "/" + s.ContainerID + "/" + s.IfName }

// interfaceNumbers are the positions of the interfaces of pods that have several, by which
// their links are named.
func interfaceNumbers(all []ipam.Assignment) map[ipam.Sandbox]int {
	cards := map[string][]int{}
	for _, a := range all {
		if a.Pod.Interfaces > 1 {
			cards[ownerOf(a.Sandbox)] = append(cards[ownerOf(a.Sandbox)], a.Sandbox.Interface)
		}
	}
	out := map[ipam.Sandbox]int{}
	for _, a := range all {
		if list := cards[ownerOf(a.Sandbox)]; len(list) > 0 {
			slices.Sort(list)
			out[a.Sandbox] = slices.Index(list, a.Sandbox.Interface)
		}
	}
	return out
}

// podOf is what an allocation should have; false for those whose table or link is not
// known.
func (p *repairs) podOf(a *ipam.Assignment, nth map[ipam.Sandbox]int) (out rules.LivingPod, ok bool) {
	if a.ENI == "" {
		return out, false
	}
	out = rules.LivingPod{Address: a.Address, Owner: ownerOf(a.Sandbox), Table: a.RouteTable}
	out.Restored = p.restored[a.Address] == out.Owner
	switch link := a.Sandbox.ContainerID; {
	case a.Sandbox == resync.Recovered(link):
		digits := len(netnames.Hash("", "", 0))
		if len(link) < digits {
			return out, false
		}
		out.Hash = link[len(link)-digits:]
	case a.Pod.Name == "":
		return out, false
	default:
		out.Hash = netnames.Hash(a.Pod.Namespace, a.Pod.Name, nth[a.Sandbox])
	}
	return out, true
}

// pods brings back what pods lost; again: look once more.
func (p *repairs) pods(ctx context.Context, view *hostnet.View, pods []rules.LivingPod) (again bool, _ error) {
	var due []rules.Repair
	for _, r := range p.whole.Look(view.Pods(), pods, p.monitor.MadeWith) {
		if !p.later(r.Object + " " + r.Pod.String()) {
			due = append(due, r)
		}
	}
	if len(due) == 0 {
		return false, nil
	}
	done, err := p.host.Repair(ctx, due)
	ended := p.ended(done)
	if len(ended) > 0 {
		if back := p.host.TakeBack(ctx, ended); back != nil {
			p.fail(back)
		}
		done = slices.DeleteFunc(done, func(r rules.Repair) bool { return slices.Contains(ended, r) })
	}
	for _, r := range done {
		p.noted(r.Object+" "+r.Pod.String(), hostnet.Loss{Object: r.Object, Text: r.String()})
	}
	return len(done) > 0, err
}

// ended are those of repairs whose pod has ended while they were made.
func (p *repairs) ended(done []rules.Repair) []rules.Repair {
	gone, ok := ask(p.owner, func(k *keeper.Keeper, _ time.Time) (gone []rules.Repair) {
		for _, r := range done {
			a, held := k.AtAddress(r.Pod)
			if !isBranchOwner(r.Owner) && (!held || ownerOf(a.Sandbox) != r.Owner) {
				gone = append(gone, r)
			}
		}
		return gone
	})
	if !ok {
		return nil
	}
	return append(gone, p.endedBranches(done)...)
}

// later reports that a thing is left alone for now, because somebody takes it away again
// and again.
func (p *repairs) later(thing string) bool {
	wait := p.contests.Wait(p.now, thing)
	if wait > 0 && (p.wait == 0 || wait < p.wait) {
		p.wait = wait
	}
	return wait > 0
}

// anyDue reports whether one of the losses of a thing is not to be left alone for now.
func (p *repairs) anyDue(lost []hostnet.Loss, of string) bool {
	due := false
	for _, l := range lost {
		due = !p.later(l.Object+" "+of) || due
	}
	return due
}

// noted remembers what was brought back. Several losses of one kind and thing in a pass
// are one.
func (p *repairs) noted(thing string, l hostnet.Loss) {
	p.done = append(p.done, l)
	if p.seen[thing] {
		return
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[thing] = true
	if rules.Contested(p.contests.Done(p.now, thing)) {
		if p.again == nil {
			p.again = map[string]bool{}
		}
		p.again[l.Object] = true
	}
}

// enis brings back what ENIs lost.
func (p *repairs) enis(ctx context.Context, view *hostnet.View, enis []ipam.ENIState) {
	for _, e := range enis {
		if e.Primary || e.Held {
			continue
		}
		in := eniInput(e.ENI, p.ipv6, p.mtu)
		lost := view.LostOfENI(in)
		if !p.anyDue(lost, e.MAC) {
			continue
		}
		limit, cancel := context.WithTimeout(ctx, assertENI)
		err := p.host.SetupENI(limit, in)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				p.fail(err)
			}
			continue
		}
		if p.givenBack(e.ID) {
			if err := p.host.TeardownENI(ctx, e.PrimaryIP); err != nil {
				p.fail(err)
			}
			continue
		}
		for _, l := range lost {
			p.noted(l.Object+" "+e.MAC, l)
		}
	}
}

// givenBack reports that an ENI left the pool meanwhile.
func (p *repairs) givenBack(id ipam.ENIID) bool {
	used, ok := ask(p.owner, func(k *keeper.Keeper, _ time.Time) bool {
		return slices.ContainsFunc(k.ENIs(), func(e ipam.ENIState) bool { return e.ID == id && !e.Held })
	})
	return ok && !used
}

// nodeState brings back what the node lost. filters: packet filters are looked at, too,
// of which what is missing only shows when it is brought back.
func (p *repairs) nodeState(ctx context.Context, view *hostnet.View, filters bool) {
	in := p.rules.input()
	before := p.host.LostOfNode(view, in)
	if !p.anyDue(before, "") && (!filters || p.later(hostnet.ObjectPacketFilter+" ")) {
		return
	}
	if filters {
		p.filters = p.now
	}
	lost, err := p.rules.assert(ctx)
	p.mu.Lock()
	p.node.took(p.now)
	p.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			p.metrics.ConnmarkReconcile(err)
			p.fail(err)
		}
		return
	}
	if len(lost) > 0 {
		p.metrics.ConnmarkReconcile(nil)
	}
	if len(before) > 0 {
		after, err := p.host.View(ctx, p.ipv6)
		if err != nil {
			p.fail(err)
			return
		}
		still := p.host.LostOfNode(after, in)
		lost = append(lost, slices.DeleteFunc(before, func(l hostnet.Loss) bool { return slices.Contains(still, l) })...)
	}
	for _, l := range lost {
		p.noted(l.Object+" ", l)
	}
}

// toldLosses is how many losses of a pass are told one by one.
const toldLosses = 5

// report tells what a pass brought back: one line, one event, whatever it was.
func (p *repairs) report() {
	if len(p.done) == 0 {
		return
	}
	counts := map[string]int{}
	var objects, texts []string
	for _, l := range p.done {
		if counts[l.Object]++; counts[l.Object] == 1 {
			objects = append(objects, l.Object)
		}
		if len(texts) < toldLosses && !slices.Contains(texts, l.Text) {
			texts = append(texts, l.Text)
		}
	}
	for object, n := range counts {
		p.metrics.HostStateRepaired(object, n)
	}
	detail := strings.Join(texts, "; ")
	if more := len(p.done) - len(texts); more > 0 {
		detail += "; and more"
	}
	p.log.Warn("host network state was taken away and is back; which program it was the kernel does not tell",
		slog.Int(logline.KeyCount, len(p.done)), slog.String(logline.KeyReason, strings.Join(objects, ",")), slog.String(logline.KeyDetail, detail),
		slog.Duration(logline.KeyDuration, time.Since(p.now)))
	p.feed.Append(introspect.Event{At: p.now, Kind: introspect.EventHostStateRepaired, Reason: strings.Join(objects, ","), Message: detail})
	for object := range p.again {
		if !p.contested[object] {
			p.contested[object] = true
			p.log.Warn("host network state is taken away again and again, it is brought back ever more slowly",
				slog.String(logline.KeyReason, object), slog.String(logline.KeyDetail, culprits(object)))
		}
	}
	p.emit(objects, detail)
}

// emit sends the event about the Node.
func (a *asserter) emit(objects []string, detail string) {
	if a.api == nil {
		return
	}
	if node := a.api.OwnNode(); node.Name != "" {
		a.api.EmitLater(notice.HostNetworkChanged(node, objects, detail))
	}
}

// culprits says who is known to take such things away.
func culprits(object string) string {
	switch object {
	case hostnet.ObjectPacketFilter:
		return "firewalld, or a script that restores a whole rule set: leave the chains AWS-* and the nft table aws-cni alone"
	case hostnet.ObjectSysctl:
		return "systemd-sysctl, tuned or NetworkManager: leave rp_filter of the primary interface at 2"
	case objectCheckpoint, objectSocket:
		return "a program that cleans /run: leave /run/aws-node alone"
	}
	return "systemd-networkd (set ManageForeignRoutingPolicyRules=no and ManageForeignRoutes=no, and let no .network file match ENIs of pods), nm-cloud-setup (disable it), or NetworkManager (make ENIs unmanaged)"
}
