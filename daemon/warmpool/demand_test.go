package warmpool

import (
	"fmt"
	"testing"
	"time"
)

// expects sets the number of pods bound to the node, per card.
func expects(n ...int) func(*Snapshot) { return func(s *Snapshot) { s.Expected = n } }

// came sets when all pods of a scene came.
func came(ago time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		for i := range s.Book.ENIs {
			for j := range s.Book.ENIs[i].CIDRs {
				for k := range s.Book.ENIs[i].CIDRs[j].Records {
					s.Book.ENIs[i].CIDRs[j].Records[k].AssignedAt = epoch.Add(-ago)
				}
			}
		}
	}
}

func TestPlan_ExpectedPods(t *testing.T) {
	t.Parallel()
	waits := func(n int) func(*Snapshot) { return func(s *Snapshot) { s.Waiting[0] = n } }
	cordoned := func(s *Snapshot) { s.Unschedulable = true }
	runPlans(t, []planRow{
		{"addresses for them and the target", scene{"primary:af", m5large, expects(4)}, ip(2, 0), 0, `
			assign 5 secondary IPs to eni-0: expected-pods`},
		{"those that are free already count", scene{"primary:affff", m5large, expects(2)}, ip(2, 0), 0, ""},
		{"the target alone is short", scene{"primary:afff", m5large, expects(2)}, ip(2, 0), 0, `
			assign 1 secondary IP to eni-0: warm-ip-target`},
		{"whole ENIs side by side", scene{"primary:aaaaaaaaa", m5large, expects(9)}, e(1), 0, `
			attach an ENI at card 0 device 1 with 9 secondary IPs: expected-pods
			attach an ENI at card 0 device 2 with 9 secondary IPs: expected-pods`},
		{"prefixes in one call", scene{"primary:A", m5large, expects(100)}, prefix(1, 0, 0, 0), 0, `
			assign 7 prefixes to eni-0: expected-pods`},
		{"on top of those that wait", scene{"primary:aa", m5large, both(waits(2), expects(3))}, ip(1, 0), 0, `
			assign 6 secondary IPs to eni-0: waiting-pods`},
		{"not beyond max-pods", scene{"primary:aaf", m5large, expects(50)}, ip(0, 2).with(pods(5)), 0, `
			assign 2 secondary IPs to eni-0: expected-pods`},
		{"nor beyond all bounds", scene{"primary:a", Limits{4, []int{2}}, expects(1 << 60)}, e(1), 0, `
			assign 2 secondary IPs to eni-0: expected-pods
			attach an ENI at card 0 device 1 with 3 secondary IPs: expected-pods`},
		{"a negative count is ignored", scene{"primary:af", m5large, expects(-7)}, ip(1, 0), 0, ""},
		{"of each card", scene{"primary:a eni@1:a", Limits{10, []int{2, 2}}, expects(0, 3)}, ip(1, 0).with(multiNIC), 0, `
			assign 1 secondary IP to eni-0: warm-ip-target
			assign 4 secondary IPs to eni-1: expected-pods`},
		{"nothing that they will need goes", scene{"primary:afffff", m5large, expects(3)}, ip(1, 0), 0, `
			unassign 10.0.0.5 from eni-0: surplus-ips`},
		{"no ENI either", scene{"primary:afffffff eni:fffffffff", m5large, expects(8)}, ip(1, 0), 0, `
			unassign 10.1.0.8 10.1.0.7 10.1.0.6 10.1.0.5 10.1.0.4 10.1.0.3 10.1.0.2 from eni-1: surplus-ips`},
		{"cordoned: for them too, no more", scene{"primary:af", m5large, both(cordoned, expects(3))}, ip(5, 9), 0, `
			assign 2 secondary IPs to eni-0: expected-pods`},
		{"cordoned: nothing goes", scene{"primary:affff", m5large, both(cordoned, expects(1))}, ip(1, 0), 0, ""},
	})
}

// Without the API server the planner predicts from what it sees.
func TestPlan_Ramp(t *testing.T) {
	t.Parallel()
	waits := func(n int) func(*Snapshot) { return func(s *Snapshot) { s.Waiting[0] = n } }
	full := "primary:aaaaaaaaa"
	one := `
			attach an ENI at card 0 device 1 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 2 with 9 secondary IPs: waiting-pods`
	large := Limits{10, []int{8}}
	runPlans(t, []planRow{
		{"a queue", scene{full, large, both(waits(4), came(time.Second))}, e(1), 0, one},
		{"just so long", scene{"primary:aaaaaaaaa eni:a", large, both(waits(5), came(time.Second))}, e(1), 0, `
			assign 8 secondary IPs to eni-1: waiting-pods
			attach an ENI at card 0 device 2 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 3 with 9 secondary IPs: waiting-pods`},
		{"a crowd that came at once", scene{full, large, both(waits(5), came(time.Second))}, e(1), 0, one},
		{"a longer queue", scene{"primary:aaaaaaaaa eni:aaaaaaaaa", large, both(waits(9), came(9*time.Second))}, e(1), 0, `
			attach an ENI at card 0 device 2 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 3 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 4 with 9 secondary IPs: waiting-pods`},
		{"pods of long ago are no queue", scene{"primary:aaaaaaaaa eni:aaaaaaaaa", large, both(waits(9), came(11*time.Second))}, e(1), 0, `
			attach an ENI at card 0 device 2 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 3 with 9 secondary IPs: waiting-pods`},
		{"the API server knows better", scene{"primary:aaaaaaaaa eni:aaaaaaaaa", large, both(both(waits(9), came(time.Second)), expects(0))}, e(1), 0, `
			attach an ENI at card 0 device 2 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 3 with 9 secondary IPs: waiting-pods`},
		{"who wants no spare ENI gets none", scene{"primary:aaaaaaaaa eni:aaaaaaaaa", large, both(waits(9), came(time.Second))}, e(0), 0, `
			attach an ENI at card 0 device 2 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 3 with 9 secondary IPs: waiting-pods`},
		{"addresses are cheap to ask for later", scene{"primary:aaaaaaaaa eni:aaaaaaaaa", large, both(waits(4), came(time.Second))}, ip(1, 0), 0, `
			attach an ENI at card 0 device 2 with 5 secondary IPs: waiting-pods`},
		{"not beyond max-pods", scene{"primary:aaaaaaaaa eni:aaaaaaaaa", large, both(waits(9), came(time.Second))}, e(1).with(pods(27)), 0, `
			attach an ENI at card 0 device 2 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 3 with 2 secondary IPs: waiting-pods`},
		{"cordoned: who waits, no more", scene{"primary:aaaaaaaaa eni:aaaaaaaaa", large, both(both(waits(9), came(time.Second)), func(s *Snapshot) { s.Unschedulable = true })}, e(1), 0, `
			attach an ENI at card 0 device 2 with 9 secondary IPs: waiting-pods`},
	})
}

// EC2's durations, as in fakeaws.RealisticLatency: Create 300 ms, Attach 1 s and Modify 150
// ms make an ENI; Assign takes 400 ms.
const (
	ec2Attach = 1450 * time.Millisecond
	ec2Assign = 400 * time.Millisecond
)

// The scale-up of docs/performance.md: a fresh m5.4xlarge, 150 pods, 20 sandboxes at a time.
// An ENI takes three calls, any other action one.
func TestPlan_ScaleUp(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		policy Policy
		bound  bool // the API server reports how many pods come
		took   time.Duration
		calls  int
		after  int // calls that release the surplus
		shape  string
	}{
		{"WARM_ENI_TARGET=1", e(1), false, 3400 * time.Millisecond, 19, 0, "29 29 29 29 29 29 29"},
		{"WARM_ENI_TARGET=1, pods known", e(1), true, 2 * time.Second, 19, 0, "29 29 29 29 29 29 29"},
		{"WARM_PREFIX_TARGET=1", prefix(1, 0, 0, 0), false, 2050 * time.Millisecond, 7, 1, "11"},
		{"WARM_PREFIX_TARGET=1, pods known", prefix(1, 0, 0, 0), true, time.Second, 2, 0, "11"},
		{"WARM_IP_TARGET=1", ip(1, 0), false, 10500 * time.Millisecond, 33, 0, "29 29 29 29 29 6"},
		{"WARM_IP_TARGET=1, pods known", ip(1, 0), true, 2 * time.Second, 17, 0, "29 29 29 29 29 6"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := newClocked(t, m5x4large, row.policy.with(pods(234)))
			c.assignTakes, c.attachTakes = ec2Assign, ec2Attach
			c.wake()
			c.pass(time.Minute)
			if row.bound {
				c.s.Expected = []int{150}
				c.wake()
			}
			took, calls := c.scaleUp(150), c.assigns+3*c.attaches
			if took > row.took || calls != row.calls {
				t.Errorf("%s and %d calls, want %s and %d", took, calls, row.took, row.calls)
			}
			c.pass(time.Minute)
			c.wake()
			c.pass(time.Minute)
			if got := c.assigns + 3*c.attaches - calls; got != row.after || c.shape() != row.shape {
				t.Errorf("%d more calls, and in the end %q, want %d and %q", got, c.shape(), row.after, row.shape)
			}
			c.rest()
		})
	}
}

// scaleUp adds pods to an idle node, 20 sandboxes at a time, and returns the time until all
// had an address.
func (c *clocked) scaleUp(pods int) time.Duration {
	c.t.Helper()
	from := c.now
	for range pods {
		c.serve(19)
		c.arrive(1)
	}
	c.serve(0)
	return c.now.Sub(from)
}

// A prediction wastes at most one ENI, or one call, however many pods come, and is right far
// more often.
func TestPlan_RampOvershoot(t *testing.T) {
	t.Parallel()
	for _, p := range []Policy{e(1), prefix(1, 0, 0, 0)} {
		var took, calls, over [2]int // without and with prediction
		for n := 10; n <= 200; n += 10 {
			var ends [2]int
			for guess := range 2 {
				c := newClocked(t, m5x4large, p.with(pods(234)))
				c.assignTakes, c.attachTakes = ec2Assign, ec2Attach
				if guess == 0 {
					c.s.Expected = []int{0}
				}
				c.wake()
				c.pass(time.Minute)
				took[guess] += int(c.scaleUp(n).Milliseconds())
				c.pass(2 * time.Minute)
				c.wake() // releases what it can
				c.pass(2 * time.Minute)
				c.rest()
				ends[guess] = c.assigns + c.attaches
				calls[guess] += ends[guess]
			}
			more := ends[1] - ends[0]
			if more > 2 { // an ENI that comes and goes, or some prefixes
				t.Errorf("%d pods: %d operations more", n, more)
			}
			if more > 0 {
				over[1]++
			}
		}
		if took[1] >= took[0] || over[1] > 7 {
			t.Errorf("%+v: %d ms and %d operations become %d ms and %d; the guess is wrong %d times of 20",
				p, took[0], calls[0], took[1], calls[1], over[1])
		}
	}
}

// An idle card keeps its one prefix: upstream attaches and releases a second one every 30 s
// (docs/compatibility.md, 13.2-21).
func TestPlan_CardsDoNotCycle(t *testing.T) {
	t.Parallel()
	for _, p := range []Policy{prefix(1, 0, 0, 110), prefix(0, 2, 4, 110), e(1), ip(3, 0)} {
		n := newNode(t, Limits{IPv4PerENI: 10, ENIsByCard: []int{3, 2, 2}}, p.with(multiNIC).with(maxENI(2)))
		n.settle()
		for card := range 3 {
			for range 3 {
				if !n.add(card) {
					t.Fatalf("no address on card %d", card)
				}
			}
			n.settle()
		}
		for len(n.pods) > 0 {
			n.stop(n.pods[0])
		}
		n.settle()
		n.rest()
		perCard := map[int]int{}
		for _, e := range n.enis {
			perCard[e.Card]++
		}
		if got := fmt.Sprint(perCard); got != "map[0:1 1:1 2:1]" {
			t.Errorf("%+v: ENIs per card %s", p, got)
		}
	}
}

// When an expected pod finally sends its ADD, the pool does not change: the pod was counted.
func TestPlan_ExpectedPodsArrive(t *testing.T) {
	t.Parallel()
	n := newNode(t, m5large, ip(2, 0))
	n.settle()
	snapshot := func(expected int) Snapshot {
		s := n.snapshot()
		s.Expected = []int{expected}
		return s
	}
	for _, a := range Plan(snapshot(6), n.policy, n.now) {
		n.do(a)
	}
	for left := 6; left > 0; left-- {
		if plan := Plan(snapshot(left), n.policy, n.now); len(plan) > 0 {
			t.Fatalf("%d pods expected: %s", left, text(plan))
		}
		if _, ok := n.place(0); !ok {
			t.Fatalf("no address for the last %d", left)
		}
	}
	if plan := Plan(snapshot(0), n.policy, n.now); len(plan) > 0 || len(n.pods) != 6 || n.total() != 8 {
		t.Errorf("%d pods, %d addresses, %s", len(n.pods), n.total(), text(plan))
	}
}
