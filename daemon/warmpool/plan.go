package warmpool

import "time"

// Plan returns what to do now: at most one action per ENI, growth before releases, and at most
// one Wait, last. The same arguments always give the same plan, and carrying plans out leads
// to an empty plan (or a Wait) in a few rounds.
//
// No action touches an address that is assigned, in cooldown or held, or exceeds a limit of
// the instance, MAX_ENI or max-pods.
func Plan(s Snapshot, p Policy, now time.Time) []Action {
	if s.Terminating {
		return nil
	}
	pl := newPlanner(&s, &p, now)
	for card := range cards(&s, &p) {
		if at(s.Unmanaged, card) {
			continue
		}
		po := newPool(&s, &p, now, card)
		pl.clean(po)
		if g := pl.grow(po); !g.wanted {
			pl.shrink(po)
		}
	}
	return pl.plan()
}

// planner collects the actions of one plan.
type planner struct {
	s   *Snapshot
	p   *Policy
	now time.Time

	perENI  int  // secondary IPs or /28s that an ENI can hold; one /80
	frozen  bool // serve arriving pods, nothing else
	subnets subnets

	cleanGate, shrinkGate gate

	growth   []Action
	releases []Action
	wait     Wait
}

func newPlanner(s *Snapshot, p *Policy, now time.Time) *planner {
	pl := &planner{
		s: s, p: p, now: now,
		perENI:  s.Limits.Slots(),
		frozen:  frozen(s, p),
		subnets: newSubnets(s, p, now),
	}
	if p.IPv6 {
		pl.perENI = 1
	}
	pl.cleanGate, pl.shrinkGate = gates(s, p)
	return pl
}

// frozen reports whether the targets are ignored, because the node is cordoned or EC2
// throttles.
func frozen(s *Snapshot, p *Policy) bool { return cordoned(s, p) || s.Throttled }

func cordoned(s *Snapshot, p *Policy) bool { return s.Unschedulable && !p.ManageUnschedulable }

// waitFor asks for another plan at a time that a reason gives; the earliest one wins.
func (pl *planner) waitFor(until time.Time, why Reason) {
	if !until.After(pl.now) {
		return
	}
	if pl.wait.Until.IsZero() || until.Before(pl.wait.Until) {
		pl.wait = Wait{Until: until, Reason: why}
	}
}

func (pl *planner) plan() []Action {
	actions := append(pl.growth, pl.releases...)
	if !pl.wait.Until.IsZero() {
		actions = append(actions, pl.wait)
	}
	return actions
}
