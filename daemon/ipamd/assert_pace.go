package ipamd

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/internal/hostnet"
)

const (
	// assertSettled is how long an ADD is left to finish before its pod is checked, and
	// assertLearn how long the first of many ADDs waits for the check that covers them all.
	assertSettled = time.Second
	assertLearn   = 5 * time.Second
	// assertSpacing is the minimum time between two checks that run programs, and between
	// two after lost notices; but assertBurst follow at once: repairs cause notices, too,
	// and must not delay the repair of the next loss.
	assertSpacing = 500 * time.Millisecond
	assertBurst   = 3
)

// noticed is what to check.
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

// learn is when the pods of ADDs are checked: one check for many.
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

// notice takes notices. It is called from the monitor's goroutines.
func (a *asserter) notice(list ...hostnet.Notice) {
	a.egress.notice(list)
	a.mu.Lock()
	defer a.mu.Unlock()
	t, now := &a.noticed, time.Now()
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
	a.noteSandbox(podName{req.PodNamespace, req.PodName}, branchSandbox{container: req.ContainerID, since: now})
	a.noticed.last = now
	if a.noticed.first.IsZero() {
		a.noticed.first = now
		signal(a.wake)
	}
}

// take takes the notices that are due, and returns when the rest is.
func (a *asserter) take(now time.Time) (l chore, due time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := &a.noticed
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
