package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// planned lists the EC2 calls that a plan announces, sorted.
func planned(actions []introspect.PlannedAction) []string {
	var out []string
	for _, a := range actions {
		what := strconv.Itoa(a.Count) + " addresses"
		if a.Prefixes {
			what = strconv.Itoa(a.Count) + " prefixes"
		}
		switch a.Kind {
		case introspect.ActionAttachENI:
			out = append(out, fmt.Sprintf("create in %s with %s", a.SubnetID, what), fmt.Sprintf("attach at card %d device %d", *a.Card, *a.Device))
		case introspect.ActionAssignAddresses, introspect.ActionAssignPrefixes:
			out = append(out, fmt.Sprintf("assign %s to %s", what, a.ENIID))
		case introspect.ActionUnassignAddresses, introspect.ActionUnassignPrefixes:
			out = append(out, fmt.Sprintf("unassign %s of %s", cidrList(a.CIDRs), a.ENIID))
		case introspect.ActionDetachENI:
			out = append(out, "detach "+a.ENIID, "delete "+a.ENIID)
		}
	}
	slices.Sort(out)
	return out
}

func cidrList(all []netip.Prefix) string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// carriedOut lists the calls that changed the pool, from the given call on, sorted. enis
// maps attachments to ENIs.
func (l *lab) carriedOut(from int, enis []fakeaws.ENI) []string {
	var out []string
	for _, c := range l.world.Calls()[from:] {
		p := c.Params
		count := func(word string) string {
			if n := p["Ipv4PrefixCount"]; n != "" {
				return n + " prefixes"
			}
			return p["SecondaryPrivateIpAddressCount"] + " " + word
		}
		switch c.Action {
		case "CreateNetworkInterface":
			out = append(out, fmt.Sprintf("create in %s with %s", p["SubnetId"], count("addresses")))
		case "AttachNetworkInterface":
			card := p["NetworkCardIndex"]
			if card == "" {
				card = "0"
			}
			out = append(out, fmt.Sprintf("attach at card %s device %s", card, p["DeviceIndex"]))
		case "AssignPrivateIpAddresses":
			out = append(out, fmt.Sprintf("assign %s to %s", count("addresses"), p["NetworkInterfaceId"]))
		case "UnassignPrivateIpAddresses":
			var cidrs []netip.Prefix
			for key, value := range p {
				if strings.HasPrefix(key, "PrivateIpAddress.") {
					value += "/32"
				} else if !strings.HasPrefix(key, "Ipv4Prefix.") {
					continue
				}
				cidrs = append(cidrs, netip.MustParsePrefix(value))
			}
			out = append(out, fmt.Sprintf("unassign %s of %s", cidrList(cidrs), p["NetworkInterfaceId"]))
		case "DetachNetworkInterface":
			of := p["AttachmentId"]
			for _, e := range enis {
				if e.Attachment.ID == of {
					of = e.ID
				}
			}
			out = append(out, "detach "+of)
		case "DeleteNetworkInterface":
			out = append(out, "delete "+p["NetworkInterfaceId"])
		}
	}
	slices.Sort(out)
	return out
}

// TestPlan_IsWhatEC2SeesNext asks an idle node what it would do with other targets, sets these
// targets, and expects the same EC2 calls: the action, the ENI, the count, the addresses, the
// device, the subnet.
func TestPlan_IsWhatEC2SeesNext(t *testing.T) {
	t.Parallel()
	type env = map[string]string
	prefixes := env{"ENABLE_PREFIX_DELEGATION": "true"}
	with := func(base env, name string, value int) env {
		out := maps.Clone(base)
		if out == nil {
			out = env{}
		}
		out[name] = strconv.Itoa(value)
		return out
	}
	number := func(n int) *int { return &n }
	type row struct {
		env      env
		setting  string
		from, to int
		query    introspect.PlanQuery
		pods     int
		kinds    []string
	}
	rowsAtOnce(t, map[string]row{
		"addresses grow": {nil, "WARM_IP_TARGET", 2, 8, introspect.PlanQuery{WarmIP: number(8)}, 1, []string{introspect.ActionAssignAddresses}},
		"addresses grow beyond an ENI": {nil, "WARM_IP_TARGET", 2, 40, introspect.PlanQuery{WarmIP: number(40)}, 1,
			[]string{introspect.ActionAssignAddresses, introspect.ActionAttachENI}},
		"a minimum grows":  {env{"WARM_IP_TARGET": "1"}, "MINIMUM_IP_TARGET", 2, 7, introspect.PlanQuery{MinimumIP: number(7)}, 1, []string{introspect.ActionAssignAddresses}},
		"ENIs grow":        {nil, "WARM_ENI_TARGET", 1, 2, introspect.PlanQuery{WarmENI: number(2)}, 1, []string{introspect.ActionAttachENI}},
		"addresses shrink": {nil, "WARM_IP_TARGET", 7, 2, introspect.PlanQuery{WarmIP: number(2)}, 1, []string{introspect.ActionUnassignAddresses}},
		"prefixes grow":    {prefixes, "WARM_PREFIX_TARGET", 1, 4, introspect.PlanQuery{WarmPrefix: number(4)}, 1, []string{introspect.ActionAssignPrefixes}},
		"prefixes shrink":  {prefixes, "WARM_PREFIX_TARGET", 4, 2, introspect.PlanQuery{WarmPrefix: number(2)}, 1, []string{introspect.ActionUnassignPrefixes}},
	}, func(t *testing.T, row row) {
		l := newLab(t, fakeaws.Options{})
		// By the max-pods table this type can hold many prefixes.
		n := l.boot("m5.4xlarge", with(row.env, row.setting, row.from))
		pods := l.mustAdd(n, "p", row.pods, 1)
		l.settled(n)
		c, d := l.introspection(n)
		before := len(l.world.Calls())
		now, _, err := c.Plan(t.Context(), introspect.PlanQuery{})
		if err != nil {
			t.Fatal(err)
		}
		if now.WhatIf || len(planned(now.Actions)) > 0 {
			t.Errorf("a node at rest plans %+v", now)
		}
		plan, _, err := c.Plan(t.Context(), row.query)
		if err != nil {
			t.Fatal(err)
		}
		l.schemas(d).check(t, l.ask(d, introspect.PathPlan+"?warmIp=30", nil).body)
		if changed := l.carriedOut(before, nil); len(changed) > 0 {
			t.Errorf("a question changed the pool: %q", changed)
		}
		want := planned(plan.Actions)
		t.Logf("planned: %q", want)
		for _, kind := range row.kinds {
			at := slices.IndexFunc(plan.Actions, func(a introspect.PlannedAction) bool { return a.Kind == kind })
			if at < 0 || !plan.WhatIf {
				t.Fatalf("no %s in %+v", kind, plan)
			}
			if a := plan.Actions[at]; a.Reason == "" || a.Title == "" || a.Text == "" {
				t.Errorf("an action without a why: %+v", a)
			}
		}
		enis := l.world.ENIs()
		l.kill(n, 9)
		before = len(l.world.Calls())
		l.start(n, with(row.env, row.setting, row.to))
		testenv.Eventually(l.t, "the calls that were planned", func() bool { return len(l.carriedOut(before, enis)) >= len(want) })
		l.settled(n)
		if got := l.carriedOut(before, enis); !slices.Equal(got, want) {
			t.Errorf("planned\n%s\nEC2 saw\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
		l.del(n, pods, 1)
	})
}

// heldBack are the rows of TestPlan_WhileHeldBack. The nightly run has more.
var heldBack = map[string]func(t *testing.T){
	// The attach waits for the list of subnets, which takes long and fails at first.
	"an attach, by a slow list of subnets": func(t *testing.T) {
		l := newLab(t, fakeaws.Options{})
		l.world.SetLatency("DescribeSubnets", 5*time.Second)
		n := l.bootFaulty("m5.large", map[string]string{"WARM_ENI_TARGET": "2"}, fakeaws.Rule{Action: "DescribeSubnets", Last: 3, Fault: fakeaws.Internal})
		c, _ := l.introspection(n)
		var want []string
		testenv.Eventually(l.t, "an attach in the plan", func() bool {
			plan, _, err := c.Plan(t.Context(), introspect.PlanQuery{})
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(plan.Actions, func(a introspect.PlannedAction) bool { return a.Kind == introspect.ActionAttachENI }) {
				want = planned(plan.Actions)
			}
			return want != nil
		})
		l.world.SetLatency("DescribeSubnets", 0)
		testenv.Eventually(l.t, "calls", func() bool { return len(l.carriedOut(0, nil)) >= len(want) })
		l.settled(n)
		got := l.carriedOut(0, nil)
		for i, line := range want {
			// If the plan names no subnet, the node's own is used.
			want[i] = strings.Replace(line, "create in  with", "create in "+l.subnet.ID+" with", 1)
		}
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("planned %q, EC2 saw %q", want, got)
			}
		}
	},
	// A failed attach backs off: the plan says why and until when, and then the attach follows.
	"an attach, by a back-off": func(t *testing.T) {
		l := newLab(t, fakeaws.Options{})
		n := l.bootFaulty("m5.large", map[string]string{"WARM_ENI_TARGET": "2"}, fakeaws.Rule{Action: "CreateNetworkInterface", Fault: fakeaws.Internal})
		c, _ := l.introspection(n)
		var wait introspect.PlannedAction
		testenv.Eventually(l.t, "a wait in the plan", func() bool {
			plan, _, err := c.Plan(t.Context(), introspect.PlanQuery{})
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(plan.Actions, func(a introspect.PlannedAction) bool {
				return a.Kind == introspect.ActionWait && a.Reason == "attach-backed-off"
			})
			if at >= 0 {
				wait = plan.Actions[at]
			}
			return at >= 0 && len(planned(plan.Actions)) == 0
		})
		l.world.RemoveFaults()
		before := len(l.world.Calls())
		testenv.Within(t, time.Until(*wait.Until)+30*time.Second, "the attach that the plan named", func() { //realtime: the moment that the plan named
			testenv.Eventually(l.t, "an attach", func() bool { return slices.Contains(l.carriedOut(before, nil), "attach at card 0 device 1") })
		})
		calls := l.world.Calls()[before:]
		first := calls[slices.IndexFunc(calls, func(c fakeaws.Call) bool { // others are not held back
			return c.Action == "CreateNetworkInterface" || c.Action == "DescribeSubnets"
		})]
		if early := wait.Until.Sub(first.Start); early > 0 {
			t.Errorf("the call came %v before the time that the plan named", early)
		}
	},
}

// TestPlan_WhileHeldBack: while the daemon is held back, its plan says what it will do as soon as
// it may.
func TestPlan_WhileHeldBack(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, heldBack, func(t *testing.T, run func(*testing.T)) { run(t) })
}

// TestPlan_Parameters: each target can be set, a target equal to the node's own is not a what-if,
// and unknown ones are refused.
func TestPlan_Parameters(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", map[string]string{"WARM_IP_TARGET": "3", "MINIMUM_IP_TARGET": "4", "MAX_ENI": "2"})
	l.settled(n)
	c, d := l.introspection(n)
	own, _, err := c.Plan(t.Context(), introspect.PlanQuery{})
	if err != nil {
		t.Fatal(err)
	}
	seven := 7
	for i, p := range new(introspect.PlanQuery).Parameters() {
		var q introspect.PlanQuery
		*q.Parameters()[i].Value = &seven
		plan, _, err := c.Plan(t.Context(), q)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		got := []int{*plan.Targets.WarmENI, *plan.Targets.WarmIP, *plan.Targets.MinimumIP, *plan.Targets.WarmPrefix, *plan.Targets.MaxENI, plan.MaxPods}
		want := []int{*own.Targets.WarmENI, *own.Targets.WarmIP, *own.Targets.MinimumIP, *own.Targets.WarmPrefix, *own.Targets.MaxENI, own.MaxPods}
		want[i] = seven
		if !slices.Equal(got, want) || !plan.WhatIf {
			t.Errorf("%s=7: planned with %v, want %v; what-if: %v", p.Name, got, want, plan.WhatIf)
		}
	}
	if got := fmt.Sprint(*own.Targets.WarmIP, *own.Targets.MinimumIP, *own.Targets.MaxENI, own.MaxPods, own.WhatIf); got != "3 4 2 29 false" {
		t.Errorf("own targets: %s", got)
	}
	all := l.schemas(d)
	for path, want := range map[string]int{
		"?warmIp=3": http.StatusOK, "?warmIp=-1": http.StatusBadRequest, "?warmIp=x": http.StatusBadRequest, "?warmIp=99999999999": http.StatusBadRequest,
		"?warm=1": http.StatusBadRequest, "?warmIp=1&warmIp=2": http.StatusBadRequest,
	} {
		a := l.ask(d, introspect.PathPlan+path, nil)
		if a.status != want {
			t.Errorf("%s: status %d, want %d: %s", path, a.status, want, a.body)
		}
		all.check(t, a.body)
	}
}
