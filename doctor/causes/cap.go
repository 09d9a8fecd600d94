package causes

import (
	"fmt"
	"strings"

	"cnictl/capacity/limits"
	"cnictl/daemon/config"
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
	order := c.maxPodsFixes(len(waits) > 0)
	names := podNames(waits...)
	names["TYPE"], names["MAX_PODS"] = c.R.InstanceType.Content.InstanceType, fmt.Sprint(max(0, most-max(n, lasting)))
	return []Result{{
		fixes: order,
		Scope: scope,
		Summary: fmt.Sprintf("max-pods is %d, %d more than the node can ever address, and none is free: %s (%s)", most, n, poolText(c.pool()),
			why),
		Decisive: []Fact{now, c.starved()},
		unless:   []Fact{c.growable()}, names: names,
	}, Result{
		fixes:    order,
		Scope:    scope,
		Summary:  fmt.Sprintf("max-pods is %d, %d more than the node can ever address (%s)", most, lasting, why),
		Decisive: []Fact{by}, names: names,
	}.As(catalogue.Warning)}
}

// maxPodsFixes orders the fixes of max-pods that is too high: what serves the nodes in use, what serves new ones, and
// then what disrupts.
func (c *Case) maxPodsFixes(waits bool) (order []int) {
	const lower, replace, moveAway, usePrefixes, raiseMaxENI, reserveENI = 1, 2, 3, 4, 5, 6
	before, _ := c.misfit()
	if other := c.with(func(s *config.Config) { s.MaxENI = 0 }); c.Knows("MAX_ENI") && c.Settings.MaxENI > 0 && other.maxPodsFits() {
		if after, _ := other.misfit(); after < before {
			order = append(order, raiseMaxENI)
		}
	}
	order = append(order, lower)
	if c.Knows("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG") && c.Settings.CustomNetworking {
		order = append(order, reserveENI)
	}
	if waits {
		order = append(order, moveAway)
	}
	if c.Knows("ENABLE_PREFIX_DELEGATION") && !c.Settings.PrefixDelegation && !c.noPrefixes() {
		counted := c.Knows("MAX_ENI", "ENABLE_POD_ENI")
		if !counted || c.with(func(s *config.Config) { s.PrefixDelegation = true }).maxPodsFits() {
			order = append(order, usePrefixes)
		}
	}
	return append(order, replace)
}

// with returns the node as it would be with other settings, as far as its capacity goes.
func (c *Case) with(change func(*config.Config)) *Case {
	other := *c
	change(&other.Settings)
	other.Pools = other.pools()
	return &other
}

// maxPodsFits reports whether max-pods is no more than the addresses of a node with these settings and the two pods of
// the host that the common formula adds.
func (c *Case) maxPodsFits() bool {
	n, known := c.misfit()
	return known && n+c.hostPods() <= max(limits.HostPods, c.hostPods())
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
