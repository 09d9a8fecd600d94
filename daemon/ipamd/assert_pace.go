package ipamd

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/internal/hostnet"
)

const (
	// assertSettled is how long an ADD is left to finish before its pod is checked, and
	// assertLearn is how long the first of many ADDs waits for the check that covers them all.
	assertSettled = time.Second
	assertLearn   = 5 * time.Second
	// assertSpacing is the minimum time between two checks that run programs, and between two
	// checks after lost notifications. assertBurst checks may follow at once: repairs cause
	// notifications, too, and must not delay the repair of the next loss.
	assertSpacing = 500 * time.Millisecond
	assertBurst   = 3
)

// noticed is what to check.
type noticed struct {
	links bool
	gone  map[netip.Addr]bool
	soon  time.Time // when links and gone are due; zero if nothing is
	// Costlier checks have their own time, so that they do not delay the others.
	node, lost bool
	later      time.Time
	// Arrival of the first and the last ADD answered since the last check.
	first, last time.Time
}

// due returns when the next part is due.
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

// learn returns when the pods of ADDs are checked: one check covers many.
func (t *noticed) learn() time.Time {
	at, most := t.last.Add(assertSettled), t.first.Add(assertLearn)
	if most.Before(at) {
		return most
	}
	return at
}

// pace limits costly checks.
type pace struct{ until time.Time }

// next returns when the next check may begin.
func (p pace) next() time.Time { return p.until.Add(-(assertBurst - 1) * assertSpacing) }

// took records a check.
func (p *pace) took(now time.Time) { p.until = latest(p.until, now).Add(assertSpacing) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// chore is what a pass must check.
type chore struct {
	links, node, full bool
	gone              map[netip.Addr]bool
}

func (c chore) any() bool { return c.links || c.node || c.full || len(c.gone) > 0 }

// notice takes notifications. The monitor's goroutines call it.
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

// added records an ADD before its plugin gets the answer, so that what the plugin sets up
// next is checked.
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

// take removes the notifications that are due, and returns when the rest are.
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
