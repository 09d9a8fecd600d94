package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// smaller is an m5.large of which EC2 takes less than the daemon's table says: 3 ENIs with 10
// addresses.
func smaller(t *testing.T, enis, addresses int) limits.Instance {
	t.Helper()
	i, ok := limits.Lookup("m5.large")
	if !ok {
		t.Fatal("no m5.large in the table")
	}
	i.MaxENIs, i.IPv4PerENI, i.Cards = enis, addresses, []limits.Card{{Index: 0, MaxENIs: enis}}
	return i
}

// refusals counts the calls of an action that EC2 refused with a code.
func (l *lab) refusals(code string) (n int) {
	for _, c := range l.world.Calls() {
		if c.Code == code {
			n++
		}
	}
	return n
}

func (l *lab) card(n *node.Node) introspect.CardSummary {
	l.t.Helper()
	return l.summary(n).Cards[0]
}

func (l *lab) summary(n *node.Node) (s introspect.Summary) {
	l.t.Helper()
	l.get(n, introspect.PathSummary, &s)
	if len(s.Cards) == 0 {
		l.t.Fatalf("no card in %+v", s)
	}
	return s
}

// limitRow is a row of TestStatedLimits.
type limitRow struct {
	enis, addresses int // that EC2 takes
	env             map[string]string
	limit           func(introspect.CardSummary) *introspect.StatedLimit
	most, ofType    int
	held            int // secondary IPs of all ENIs in the end
	after           int // the same once EC2 takes what the table says, and after a restart
	reason          string
	code            string
	refusals        int // the most calls that EC2 may refuse
}

// TestStatedLimits: EC2 takes fewer ENIs, or addresses per ENI, than the daemon's table says. The
// node settles at what EC2 takes, shows it, does not ask again, and asks for more after a restart.
func TestStatedLimits(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, map[string]limitRow{
		"ENIs": {
			enis: 2, addresses: 10, env: map[string]string{"WARM_ENI_TARGET": "3"}, most: 2, ofType: 3, held: 18, after: 27, reason: "eni-limit-stated",
			limit: func(c introspect.CardSummary) *introspect.StatedLimit { return c.StatedENILimit }, code: "AttachmentLimitExceeded", refusals: 1,
		},
		"addresses": {
			enis: 3, addresses: 6, env: map[string]string{"WARM_IP_TARGET": "20"}, most: 5, ofType: 9, held: 15, after: 20, reason: "address-limit-stated",
			limit: func(c introspect.CardSummary) *introspect.StatedLimit { return c.StatedSlots }, code: "PrivateIpAddressLimitExceeded",
			refusals: 20, // of three ENIs, each of which may be asked for 8, 7 and 6 before a refusal of another is known
		},
	}, func(t *testing.T, row limitRow) {
		l := newLab(t, fakeaws.Options{Types: []limits.Instance{smaller(t, row.enis, row.addresses)}})
		n := l.boot("m5.large", row.env)
		held := func() (all int) {
			for _, e := range l.world.ENIsOf(n.InstanceID) {
				all += len(e.SecondaryIPs)
			}
			return all
		}
		testenv.Eventually(l.t, "the pool at EC2's limit", func() bool {
			s := l.summary(n)
			got := row.limit(s.Cards[0])
			return held() == row.held && got != nil && got.Limit == row.most && got.OfType == row.ofType && len(s.Operations) == 0
		})
		s := l.summary(n)
		c := s.Cards[0]
		if *c.ENILimit != row.enis || *c.SlotsPerENI != row.addresses-1 || len(s.Backoffs) > 0 {
			t.Errorf("limits %d, %d; back-offs %+v", *c.ENILimit, *c.SlotsPerENI, s.Backoffs)
		}
		if *c.AddressLimit != row.held || *s.MaxPods.IPCapacity != row.held+2 {
			t.Errorf("address limit %d, capacity %d, want %d addresses", *c.AddressLimit, *s.MaxPods.IPCapacity, row.held)
		}
		if wait := row.limit(c).RetryAt.Sub(*row.limit(c).Since); wait < time.Hour {
			t.Errorf("one more is tried after %v", wait)
		}
		var plan introspect.NodePlan
		l.get(n, introspect.PathPlan, &plan)
		if i := slices.IndexFunc(plan.Actions, func(a introspect.PlannedAction) bool { return a.Reason == row.reason }); i < 0 || len(plan.Actions) != 1 {
			t.Errorf("the plan is %+v, want only a wait for %s", plan.Actions, row.reason)
		}
		var events introspect.NodeEvents
		l.get(n, introspect.PathEvents, &events)
		if !slices.ContainsFunc(events.Items, func(e introspect.Event) bool {
			return e.Kind == introspect.EventLimitStated && strings.Contains(e.Message, "the instance type takes")
		}) {
			t.Error("no event tells of the limit")
		}
		if got := l.refusals(row.code); got < 1 || got > row.refusals {
			t.Errorf("EC2 refused %d calls with %s, want at most %d", got, row.code, row.refusals)
		}
		before := l.calls()
		if row.code == "AttachmentLimitExceeded" {
			l.mustAdd(n, "p", row.held, 4)
			_, failed := add(n, "more", 1, 1)
			l.explained(failed, cause.ENIAttachLimit)
			if len(failed) != 1 {
				t.Error("a pod got an address beyond the limit")
			}
		}
		if now := l.calls(); now.growth() != before.growth() {
			t.Errorf("EC2 was asked for more: %v, before %v", now.by, before.by)
		}
		if left := l.unattached(); len(left) > 0 {
			t.Errorf("ENIs without an owner: %v", left)
		}

		l.world.SetLimits(smaller(t, 3, 10))
		l.kill(n, syscall.SIGTERM)
		l.start(n, row.env)
		testenv.Eventually(l.t, "the pool at its target", func() bool {
			c := l.card(n)
			return held() >= row.after && c.StatedENILimit == nil && c.StatedSlots == nil && *c.ENILimit == 3 && *c.SlotsPerENI == 9
		})
	})
}

// TestConfig_V6EgressWithoutAddress: a node whose primary ENI has no IPv6 address says so where
// people look.
func TestConfig_V6EgressWithoutAddress(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", map[string]string{"ENABLE_V6_EGRESS": "true"})
	if s := l.summary(n); s.ConfigProblems == nil || *s.ConfigProblems != 1 {
		t.Errorf("problems of settings: %v, want 1", s.ConfigProblems)
	}
	const want = "give the subnet an IPv6 CIDR block"
	var config introspect.NodeConfig
	l.get(n, introspect.PathConfig, &config)
	if !slices.ContainsFunc(config.Items, func(r introspect.ConfigRow) bool {
		return r.Name == "ENABLE_V6_EGRESS" && strings.Contains(r.Problem, want)
	}) {
		t.Error("/v1/config does not say what to do")
	}
	var events introspect.NodeEvents
	l.get(n, introspect.PathEvents, &events)
	if !slices.ContainsFunc(events.Items, func(e introspect.Event) bool {
		return e.Kind == introspect.EventSettingProblem && e.Reason == "ENABLE_V6_EGRESS" && strings.Contains(e.Message, want)
	}) {
		t.Errorf("no event tells of it: %+v", events.Items)
	}
}
