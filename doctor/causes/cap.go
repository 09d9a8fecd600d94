package causes

import (
	"fmt"
	"strings"

	"cnictl/capacity/limits"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
)

var capRules = []Rule{
	{Code: "cap/max-pods", Node: maxPodsTooHigh},
	{Code: "cap/growth-stopped", Node: growthStopped},
	{Code: "cap/eni-limit", Node: eniLimit},
	{Code: "cap/max-pods-low", Node: maxPodsTooLow},
}

// maxPodsAbove states that max-pods exceeds what the node can address by more than least. It also
// returns the excess.
func (c *Case) maxPodsAbove(least int, over func() (int, bool)) (Fact, int) {
	most, source := c.maxPods()
	n, known := over()
	const path, expected = "max-pods against what the node can address", "no more"
	if !known || n <= limits.HostPods && c.pool() == nil && least == 0 { // interfaces of others may take its slots
		return c.Unread(or(source, "k8s.node"), path, expected,
			or(c.R.InstanceType.Missing, c.R.ENIs.Missing, "max-pods or the type's limits are unknown")), 0
	}
	return c.Known(source, path, expected, fmt.Sprintf("%d, %d above", most, n), n > least), n
}

// MaxPodsAbove states that max-pods exceeds what the node can ever address, and returns by how much and why: by more
// than the two pods of the host that the common formula adds.
func (c *Case) MaxPodsAbove() (above Fact, n int, why string) {
	above, n = c.maxPodsAbove(limits.HostPods, c.misfit)
	return above, n, c.whyFewer()
}

func maxPodsTooHigh(c *Case) []Result {
	if c.Settings.IPv6 { // one prefix exceeds what any node's pods need
		return nil
	}
	most, _ := c.maxPods()
	now, n := c.maxPodsAbove(0, c.overcommit)
	by, lasting, why := c.MaxPodsAbove()
	scope := document.FindingScope{Node: c.Name}
	waits := each(c.waiting(), podName)
	var order []int
	if p := c.pool(); p != nil && p.sized && c.Settings.MaxENI > 0 && c.Settings.MaxENI < p.limitENI {
		order = []int{4, 1, 2, 3}
	}
	return []Result{{
		fixes: order,
		Scope: scope,
		Summary: fmt.Sprintf("max-pods is %d, %d more than the node can ever address, and none is free: %s (%s)", most, n, poolText(c.pool()),
			why),
		Decisive: []Fact{now, c.starved()},
		unless:   []Fact{c.growable()}, names: podNames(waits...),
	}, Result{
		fixes:    order,
		Scope:    scope,
		Summary:  fmt.Sprintf("max-pods is %d, %d more than the node can ever address (%s)", most, lasting, why),
		Decisive: []Fact{by}, names: podNames(waits...),
	}.As(catalogue.Warning)}
}

// maxPodsTooLow reports that pods wait for max-pods on a node that could address more.
func maxPodsTooLow(c *Case) []Result {
	waits := c.observesThose(func(o observation) bool { return o.severity > catalogue.Info }, "obs/max-pods-low")
	n, _ := c.misfit()
	most, _ := c.maxPods()
	pods := c.hit("obs/max-pods-low")
	return []Result{{
		Scope:    document.FindingScope{Node: c.Name},
		pods:     pods,
		Summary:  fmt.Sprintf("max-pods is %d, and the node could address %d pods; %s", most, most-n, podsText(pods)),
		Decisive: []Fact{waits},
		names:    map[string]string{"TYPE": c.R.InstanceType.Content.InstanceType, "MAX_PODS": fmt.Sprint(most - n)},
	}}
}

// whyFewer returns the reasons why a node has fewer addresses than its type could have.
func (c *Case) whyFewer() string {
	var out []string
	add := func(applies bool, why string) {
		if applies {
			out = append(out, why)
		}
	}
	p := c.pool()
	add(c.Settings.CustomNetworking, "custom networking leaves the primary interface unused")
	add(c.Settings.PodENI, "a trunk takes one interface")
	add(c.Settings.MaxENI > 0, fmt.Sprintf("MAX_ENI is %d", c.Settings.MaxENI))
	add(c.Settings.PrefixDelegation && c.noPrefixes(), "the type has no prefix delegation")
	add(!c.Settings.PrefixDelegation && c.Knows("ENABLE_PREFIX_DELEGATION"), "prefix delegation is off")
	if p != nil && p.unmanaged > 0 {
		add(true, fmt.Sprintf("%d of its interfaces are unmanaged", p.unmanaged))
	}
	return or(strings.Join(out, ", "), "max-pods is set by hand")
}

func growthStopped(c *Case) []Result {
	idle := c.onPool("addresses that cool or are held for pods that are gone", "none", func(p *pool) (any, State) {
		dead := 0
		if c.R.Pods.OK() || c.R.Links.OK() {
			dead = len(c.dead())
		} else if p.cooling == 0 {
			return nil, Unread
		}
		return fmt.Sprintf("%d, %d", p.cooling, dead), stateOf(p.cooling+dead > 0)
	})
	most, _ := c.maxPods()
	return []Result{{
		Summary: fmt.Sprintf("the pool has reached max-pods (%d) and grows no more, but part of it cannot be used: %s", most,
			poolText(c.pool())),
		Decisive: []Fact{c.growthStopped(), idle},
		required: []Fact{c.dry()}, unless: []Fact{Not(c.growable())},
	}}
}

func eniLimit(c *Case) []Result {
	capped := c.onPool("MAX_ENI against the type's limit", "not below it", func(p *pool) (any, State) {
		if !p.sized || !c.Knows("MAX_ENI") {
			return nil, Unread
		}
		most := p.limitENI
		if c.Settings.MaxENI > 0 {
			most = min(most, c.Settings.MaxENI)
		}
		return fmt.Sprintf("%d of %d", most, p.limitENI), stateOf(most < p.limitENI)
	})
	fits := c.onPool("max-pods", "more than the node can address", func(*pool) (any, State) {
		over, known := c.overcommit()
		if !known {
			return nil, Unread
		}
		return fmt.Sprintf("%d above", over), stateOf(over <= 0)
	})
	return []Result{c.unlessIdle(Result{
		Summary:  fmt.Sprintf("MAX_ENI is %d, the type allows more, and no address is free: %s", c.Settings.MaxENI, poolText(c.pool())),
		Decisive: []Fact{capped},
		required: []Fact{c.dry(), Not(c.growable()), fits},
	})}
}
