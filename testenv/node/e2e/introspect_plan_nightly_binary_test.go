//go:build nightly

package e2e_test

import (
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

func init() {
	// An ENI is not released in its first minute: the plan says when it will be.
	heldBack["a detach, by the age of the ENI"] = func(t *testing.T) {
		l := newLab(t, fakeaws.Options{})
		n := l.boot("m5.large", map[string]string{"WARM_ENI_TARGET": "2"})
		testenv.Eventually(l.t, "two ENIs", func() bool { return len(l.world.ENIsOf(n.InstanceID)) == 2 })
		l.settled(n)
		l.kill(n, 9)
		l.start(n, map[string]string{"WARM_ENI_TARGET": "1"})
		c, _ := l.introspection(n)
		enis, before := l.world.ENIs(), len(l.world.Calls())
		plan, _, err := c.Plan(t.Context(), introspect.PlanQuery{})
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Actions) != 1 || plan.Actions[0].Kind != introspect.ActionWait || plan.Actions[0].Until == nil || plan.Actions[0].Reason != "eni-too-young" {
			t.Fatalf("plan %+v", plan)
		}
		until := *plan.Actions[0].Until
		testenv.Within(t, time.Until(until)+30*time.Second, "the detach that the plan named", func() { //realtime: the moment that the plan named
			testenv.Eventually(l.t, "a detach", func() bool { return len(l.carriedOut(before, enis)) >= 2 })
		})
		for _, call := range l.world.Calls()[before:] {
			if early := until.Sub(call.Start); call.Action == "DetachNetworkInterface" && early > 0 {
				t.Errorf("the detach came %v before the time that the plan named", early)
			}
		}
		second := ""
		for _, e := range enis {
			if !e.Primary() {
				second = e.ID
			}
		}
		if got := l.carriedOut(before, enis); !slices.Equal(got, []string{"delete " + second, "detach " + second}) {
			t.Errorf("EC2 saw %q", got)
		}
	}
}
