package sim

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/keeper"
	"cnictl/daemon/warmpool"
)

// quiet returns a world with one node where nothing happens.
func quiet(t *testing.T, subnets ...string) *World {
	t.Helper()
	s := Scenario{LowestFirst: true, Crowd: 1, Nodes: []NodeSpec{{
		Limits: warmpool.Limits{IPv4PerENI: 6, ENIsByCard: []int{3}}, MetadataLag: 2 * time.Second,
	}}}
	for _, cidr := range subnets {
		s.Subnets = append(s.Subnets, SubnetSpec{CIDR: netip.MustParsePrefix(cidr)})
	}
	w := newWorld(s, nil)
	t.Cleanup(func() {
		if w.fail != nil {
			t.Error(w.fail)
		}
		w.close()
	})
	return w
}

func (w *World) make(t *testing.T, token string, ips, prefixes int) *eni {
	t.Helper()
	d, err := w.ec2.createFor(w.nodes[0], keeper.CreateENI{SubnetID: w.ec2.subnets[0].id, IPs: ips, Prefixes: prefixes, Token: token, CreatedAt: w.now()})
	if err != nil {
		t.Fatal(err)
	}
	return w.ec2.enis[d.ID]
}

func TestEC2_ClientTokens(t *testing.T) {
	t.Parallel()
	w := quiet(t, "10.0.0.0/26")
	free := w.ec2.subnets[0].Free()
	x := w.make(t, "a", 3, 0)
	if again := w.make(t, "a", 3, 0); again != x || w.ec2.subnets[0].Free() != free-4 {
		t.Errorf("the same token made %s beside %s, %d free", again.ID, x.ID, w.ec2.subnets[0].Free())
	}
	if y := w.make(t, "b", 0, 1); y == x || len(y.Prefixes) != 1 {
		t.Errorf("another token made %+v", y.ENI)
	}
	if _, err := w.ec2.createFor(w.nodes[0], keeper.CreateENI{SubnetID: w.ec2.subnets[0].id, Prefixes: 2, Token: "c"}); !keeper.IsFragmented(err) {
		t.Errorf("two /28s of a subnet with one: %v", err)
	}
	if _, err := w.ec2.createFor(w.nodes[0], keeper.CreateENI{SubnetID: w.ec2.subnets[0].id, IPs: 60, Token: "d"}); !keeper.IsSubnetExhausted(err) {
		t.Errorf("60 addresses of a /26: %v", err)
	}
}

// TestAnswerOf: the effect and the answer of each fault.
func TestAnswerOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		fault      Fault
		done       int
		unanswered bool
		throttled  bool
		works      bool
	}{
		{"", 1, false, false, true},
		{FaultThrottled, 0, false, true, false},
		{FaultRefused, 0, false, false, false},
		{FaultBroken, 0, true, false, false},
		{FaultErrorAfterEffect, 1, true, false, false},
		{FaultLost, 1, true, false, false},
		{FaultDropped, 0, true, false, false},
		{FaultRepeated, 2, false, false, true},
		{FaultMasked, 1, false, true, false},
	} {
		w := quiet(t, "10.0.0.0/26")
		done := 0
		got, err := answerOf(w, w.nodes[0], "An", true, fate{fault: row.fault}, func() (int, error) {
			done++
			return 7, nil
		})
		if done != row.done || (err == nil) != row.works || keeper.IsUnanswered(err) != row.unanswered || keeper.IsThrottled(err) != row.throttled {
			t.Errorf("%q: done %d times, %v", row.fault, done, err)
		}
		if row.works != (got == 7) {
			t.Errorf("%q: answered %d", row.fault, got)
		}
	}
	w := quiet(t, "10.0.0.0/26")
	if got, err := answerOf(w, w.nodes[0], "An", false, fate{}, func() (int, error) { return 7, errNoENI }); got != 0 || !errors.Is(err, errNoENI) {
		t.Errorf("a refusal answers %d, %v", got, err)
	}
}
