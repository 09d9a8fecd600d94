package keeper

import (
	"context"
	"maps"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// securityGroups keeps the ENIs' security groups equal to those of the primary ENI, as
// upstream does; but it writes an ENI only if EC2 shows different groups on it, and retries a
// failed write.
//
// It never writes the primary ENI: its groups belong to the operator, and the metadata that
// shows them may be older than what EC2 shows.
type securityGroups struct {
	shown   map[ipam.ENIID][]string // as EC2 last described them
	written map[ipam.ENIID]written
	writing bool
	failed  BackoffTimer
}

// written is what was last written to an ENI. A description requested before that, or shortly
// after it, may be outdated.
type written struct {
	groups []string
	at     time.Time
}

// writeSettle is how long EC2 may still show what an ENI was before a change.
const writeSettle = time.Minute

// GroupsRead are the primary ENI's security groups as metadata shows them.
type GroupsRead struct{ Groups []string }

func (m GroupsRead) handle(k *Keeper, now time.Time) {
	if len(m.Groups) == 0 || sameGroups(k.groups, m.Groups) {
		return
	}
	k.groups = m.Groups
	k.sg.failed = BackoffTimer{}
	k.record(now, GroupsChanged{Groups: len(m.Groups)})
}

// record records what EC2 shows, in an answer that was requested at begun.
func (s *securityGroups) record(all []resync.ENI, begun time.Time) {
	s.shown = make(map[ipam.ENIID][]string, len(all))
	for _, e := range all {
		s.shown[e.ID] = e.SecurityGroups
		if w, ours := s.written[e.ID]; ours && begun.Sub(w.at) < writeSettle {
			s.shown[e.ID] = w.groups
		}
	}
	maps.DeleteFunc(s.written, func(_ ipam.ENIID, w written) bool { return begun.Sub(w.at) >= writeSettle })
}

// alignGroups rewrites the groups of ENIs that differ from those of the primary ENI.
func (k *Keeper) alignGroups(now time.Time) {
	s := &k.sg
	if len(s.shown) == 0 || !k.settings.Provisioning || k.settings.Subnets.Custom || k.terminating || s.writing || s.failed.Running(now) || len(k.groups) == 0 {
		return
	}
	var differ []ipam.ENIID
	for _, e := range k.book.Snapshot().ENIs {
		if shown, known := s.shown[e.ID]; known && !e.Primary && !e.Held && !e.Quarantined() && !sameGroups(shown, k.groups) {
			differ = append(differ, e.ID)
		}
	}
	if len(differ) > 0 {
		s.writing = true
		k.begin(GroupsTask{differ, k.groups})
	}
}

// GroupsTask replaces the security groups of ENIs.
type GroupsTask struct {
	ENIs   []ipam.ENIID
	Groups []string
}

func (t GroupsTask) run(ctx context.Context, c Calls) {
	done := GroupsDone{Groups: t.Groups}
	for _, id := range t.ENIs {
		switch err := c.SetSecurityGroups(ctx, id, t.Groups); {
		case err == nil:
			done.ENIs = append(done.ENIs, id)
		case IsNotFound(err):
			done.Gone = append(done.Gone, id)
		case done.Err == nil:
			done.Failed, done.Err = id, err
		}
		if IsThrottled(done.Err) || CauseOf(done.Err) == cause.EC2Unauthorized {
			break // the rest would fail, too
		}
	}
	c.Post(done)
}

// GroupsDone reports the ENIs whose security groups were replaced.
type GroupsDone struct {
	ENIs   []ipam.ENIID
	Gone   []ipam.ENIID // EC2 no longer knows them
	Groups []string
	Failed ipam.ENIID // the first one that failed
	Err    error
}

func (m GroupsDone) handle(k *Keeper, now time.Time) {
	s := &k.sg
	s.writing = false
	if s.written == nil {
		s.written = make(map[ipam.ENIID]written, len(m.ENIs))
	}
	for _, id := range m.ENIs {
		s.shown[id], s.written[id] = m.Groups, written{m.Groups, now}
	}
	for _, id := range m.Gone {
		delete(s.shown, id)
	}
	if len(m.ENIs) > 0 {
		k.record(now, GroupsWritten{ENIs: len(m.ENIs)})
	}
	if m.Err == nil {
		s.failed.Succeed(now)
		return
	}
	s.failed.Fail(now, now, CauseOf(m.Err), ThrottleFirst, refusedMost, k.jitter)
	k.record(now, GroupsFailed{ENI: m.Failed, Err: m.Err})
}

// refusedMost bounds the pause after a change that nothing waits for failed: a missing permission
// is not retried forever in short steps.
const refusedMost = 10 * time.Minute

// sameGroups compares groups as sets.
func sameGroups(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(g string) bool { return !slices.Contains(b, g) })
}
