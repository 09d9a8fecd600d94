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

// securityGroups keeps the ENIs' security groups those of the primary ENI, as upstream
// does (spec/ipamd.md §4.9); but an ENI is only written to if EC2 shows others on it, and
// a write that failed is retried.
//
// The primary ENI itself is never written to: its groups belong to the operator, and
// the metadata that show them may be older than what EC2 shows.
type securityGroups struct {
	shown   map[ipam.ENIID][]string // as EC2 last described them
	written map[ipam.ENIID]written
	writing bool
	failed  Clock
}

// written is what an ENI was given last. A description that was begun before that, or a
// moment after it, may be older.
type written struct {
	groups []string
	at     time.Time
}

// groupsRest is how long EC2 may go on to show the groups that an ENI had.
const groupsRest = time.Minute

// GroupsRead are the primary ENI's security groups as metadata shows them.
type GroupsRead struct{ Groups []string }

func (m GroupsRead) handle(k *Keeper, now time.Time) {
	if len(m.Groups) == 0 || sameGroups(k.groups, m.Groups) {
		return
	}
	k.groups = m.Groups
	k.sg.failed = Clock{}
	k.record(now, GroupsChanged{Groups: len(m.Groups)})
}

// see keeps what EC2 shows, in an answer that was asked for at begun.
func (s *securityGroups) see(all []resync.ENI, begun time.Time) {
	s.shown = make(map[ipam.ENIID][]string, len(all))
	for _, e := range all {
		s.shown[e.ID] = e.SecurityGroups
		if w, ours := s.written[e.ID]; ours && begun.Sub(w.at) < groupsRest {
			s.shown[e.ID] = w.groups
		}
	}
	maps.DeleteFunc(s.written, func(_ ipam.ENIID, w written) bool { return begun.Sub(w.at) >= groupsRest })
}

// alignGroups writes the groups of ENIs that have others than the primary ENI.
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
		k.out.Begin(GroupsTask{differ, k.groups})
	}
}

// GroupsTask replaces the security groups of ENIs.
type GroupsTask struct {
	ENIs   []ipam.ENIID
	Groups []string
}

func (t GroupsTask) carry(ctx context.Context, c Calls) {
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
			break // so would be the rest
		}
	}
	c.Post(done)
}

// GroupsDone reports the ENIs whose security groups were replaced.
type GroupsDone struct {
	ENIs   []ipam.ENIID
	Gone   []ipam.ENIID // EC2 does not know them any more
	Groups []string
	Failed ipam.ENIID // the first of those that were not
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
	s.failed.Fail(now, now, CauseOf(m.Err), ThrottleFirst, groupsMost, k.jitter)
	k.record(now, GroupsFailed{ENI: m.Failed, Err: m.Err})
}

// groupsMost bounds the pause after groups that could not be written: a missing
// permission is not tried forever in short steps.
const groupsMost = 10 * time.Minute

// sameGroups compares sets.
func sameGroups(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(g string) bool { return !slices.Contains(b, g) })
}
