package causes

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/resync"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

var ipRules = []Rule{
	{Code: "ip/subnet-exhausted", Node: subnetExhausted},
	{Code: "ip/prefix-fragmented", Node: prefixFragmented},
	{Code: "ip/alloc-backoff", Node: allocBackoff},
	{Code: "ip/warm-pool-lag", Node: warmPoolLag},
	{Code: "ip/cooldown-saturated", Node: cooldownSaturated},
	{Code: "ip/leaked-allocations", Node: leakedAllocations},
	{Code: "ip/live-allocation-dropped", Node: liveAllocationDropped},
	{Code: "ip/mode-mixed", Node: modeMixed},
	{Code: "ip/pd-unsupported-type", Node: pdUnsupportedType},
	{Code: "ip/subnet-excluded", Node: subnetExcluded},
	{Code: "ip/discovery-unused", Node: discoveryUnused},
	{Code: "ip/v6-prefix-missing", Node: v6PrefixMissing},
}

// grown are the log lines of a pool that grew.
var grown = []string{"Allocated … private IP", "Successfully created and attached a new ENI", "pool action done…assign",
	"pool action done…attach"}

// Texts about a subnet that has too little left. textNeither appears for a lack of addresses or
// of blocks.
const (
	textNoAddresses = "InsufficientFreeAddressesInSubnet"
	textNoBlocks    = "InsufficientCidrBlocks"
	textNeither     = "sufficient free Ipv4 addresses or prefixes"
	textPause       = "Recently we had InsufficientCidr"
)

func subnetExhausted(c *Case) []Result {
	p := c.pool()
	subnets, _ := c.candidates()
	counted := c.onSubnets("enough for one request", func(subnets []evidence.Subnet) State {
		most, known := fullest(subnets)
		switch {
		case len(subnets) == 0 || most >= c.request(p):
			return No
		case !known || p == nil && c.answeredNone().State != Yes:
			return Unread
		}
		return Yes
	})
	codes := []string{textNoAddresses, textNeither}
	var pausing Fact
	if blocks := p != nil && p.pd || p == nil && c.prefixes(); !blocks {
		codes = append(codes, textNoBlocks) // it does not ask for blocks
		pausing = c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{textPause}, cured: grown})
	}
	refused := orElse(Either(c.ec2Fails(codes...), c.failures(grown, cause.SubnetExhausted),
		c.active(pattern{sources: []string{"k8s.evt"}, texts: codes})), pausing)
	decisive := counted
	if counted.State == Unread {
		decisive = refused // EC2's refusal decides if its counts are unknown
		if refused.State == No && (p == nil || c.ec2Fails(textNoBlocks).State == Yes) {
			decisive = counted
		}
	}
	name, _ := c.eniConfigName()
	return []Result{{
		fixes: c.supplyFixes(p, subnets), names: map[string]string{"NAME": name},
		Scope:    document.FindingScope{Subnet: subnetIDs(subnets)},
		Summary:  fmt.Sprintf("no address can be assigned: %s; %s", poolText(p), freeAddresses(subnets)),
		Decisive: []Fact{decisive},
		required: []Fact{c.starvedBy(refused, codes)}, unless: []Fact{Not(c.short()), Not(c.growable())},
		Context: []Fact{c.failing(), refused},
	}}
}

// starvedBy is starved where nothing but the daemon's log was read: a refusal that repeats until now shows that it
// wants addresses and gets none.
func (c *Case) starvedBy(refused Fact, texts []string) Fact {
	f := c.starved()
	if f.State == Unread && c.unseen() && refused.State == Yes && c.goesOn(refused.At) &&
		c.within(pattern{sources: daemonSays, texts: texts}) >= moment {
		return c.Known(refused.Source, refused.Path, refused.Expected, refused.Value, true)
	}
	return f
}

// answeredNone states that the plugin was given no address: the daemon serves, and has none.
func (c *Case) answeredNone() Fact {
	return c.active(pattern{sources: []string{"k8s.evt", "log.plugin", "log.kubelet"}, texts: textsAssignFailed, since: c.lastStart()})
}

// supplyFixes orders the fixes of a subnet without free addresses.
func (c *Case) supplyFixes(p *pool, subnets []evidence.Subnet) (order []int) {
	const addSubnet, fewerWarm, deleteLeaked, useCustom, otherENIConfig, moveAway = 1, 2, 3, 4, 5, 6
	if slices.ContainsFunc(c.orphans(), func(e evidence.Interface) bool {
		return slices.ContainsFunc(subnets, func(s evidence.Subnet) bool { return s.ID == e.Subnet })
	}) {
		order = append(order, deleteLeaked)
	}
	switch {
	case c.Settings.CustomNetworking:
		return append(order, otherENIConfig, fewerWarm)
	case p != nil && p.sized && !p.roomForENI:
		return append(order, moveAway, fewerWarm)
	case c.older(evidence.Version{1, 18}) || c.Knows("ENABLE_SUBNET_DISCOVERY") && !c.Settings.SubnetDiscovery:
		return append(order, fewerWarm, useCustom)
	}
	return append(order, addSubnet, fewerWarm, useCustom)
}

func prefixFragmented(c *Case) []Result {
	p := c.pool()
	subnets, _ := c.candidates()
	counted := c.onSubnets("fewer than a prefix needs", func(subnets []evidence.Subnet) State {
		switch most, known := fullest(subnets); {
		case most >= c.request(p):
			return Yes
		case !known:
			return Unread
		}
		return No
	})
	refused := Either(c.ec2Fails(textNoBlocks), c.failures(grown, cause.SubnetFragmented))
	if counted.State == Yes {
		refused = Either(refused, c.ec2Fails(textNeither))
	}
	return []Result{{
		Scope:    document.FindingScope{Subnet: subnetIDs(subnets)},
		Summary:  fmt.Sprintf("EC2 finds no aligned /28: %s; %s", poolText(p), freeAddresses(subnets)),
		Decisive: []Fact{refused},
		required: []Fact{c.prefixMode(), c.starvedBy(refused, []string{textNoBlocks})},
		unless:   []Fact{Not(counted), Both(c.failedOnce(), c.recovered())},
		Supporting: []Fact{On(c, c.R.Reservations, "ec2.resv", "prefix reservations", "one with room",
			func(all []evidence.Reservation) (any, State) {
				return len(all), stateOf(len(all) == 0)
			})},
	}}
}

// prefixMode states that the node hands out addresses of prefixes.
func (c *Case) prefixMode() Fact {
	return c.Setting("ENABLE_PREFIX_DELEGATION", "false", func(config.Config) bool { return c.prefixes() })
}

// pause is how long upstream's daemon requests nothing after a shortage.
const pause = 2 * time.Minute

// shortages are the errors that start a pause.
var shortages = pattern{sources: daemonSays, texts: []string{textNoAddresses, textNoBlocks}, cured: grown}

// failedOnce states that EC2 refused once, and not again after the pause.
func (c *Case) failedOnce() Fact {
	f := c.active(shortages)
	if apart := c.within(shortages); f.State == Yes {
		f.State, f.Value = stateOf(apart < pause/2), fmt.Sprintf("%s between the first and the last", apart)
	}
	return f
}

// recovered states that a subnet certainly has what the daemon asks for: enough free addresses
// or, for a block, either fewer addresses in use than blocks, so that one is untouched, or a
// reservation.
func (c *Case) recovered() Fact {
	return c.onSubnets("too few", func(subnets []evidence.Subnet) State {
		p := c.pool()
		most, known := fullest(subnets)
		switch {
		case p == nil || !known:
			return Unread
		case most < c.request(p) || !p.pd:
			return stateOf(most >= c.request(p))
		}
		return stateOf(slices.ContainsFunc(subnets, func(s evidence.Subnet) bool {
			used, blocks := usableSize(s.CIDR)-*s.Available, usableSize(s.CIDR)/16-1
			return used < blocks || slices.ContainsFunc(c.R.Reservations.Content, func(r evidence.Reservation) bool {
				return r.Subnet == s.ID && r.Type == "prefix" && r.CIDR.Overlaps(s.CIDR)
			})
		}))
	})
}

// pausing states that upstream's daemon logs that it pauses.
func (c *Case) pausing() Fact {
	f := c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{textPause}, cured: grown})
	if last, _, _ := c.lastMessage(shortages); f.State == Yes && (c.Now.Sub(f.At) > pause || last.text != "" && c.Now.Sub(last.at) > pause) {
		f.State = No
	}
	return f
}

// held states that our daemon pauses for want of addresses or blocks.
func (c *Case) held() Fact {
	f := On(c, c.R.Summary, "intro.summary", "backoffs", "none", func(s introspect.Summary) (any, State) {
		for _, b := range s.Backoffs {
			if (b.Cause == string(cause.SubnetExhausted) || b.Cause == string(cause.SubnetFragmented)) && b.Until.After(c.Now) {
				return fmt.Sprintf("%s %s until %s", b.Scope, b.ID, b.Until.Format(time.TimeOnly)), Yes
			}
		}
		return "none", No
	})
	if c.R.Summary.Missing == evidence.MissingAbsent {
		f.State, f.Value = No, "none: the daemon is upstream's"
	}
	return f
}

func allocBackoff(c *Case) []Result {
	subnets, _ := c.candidates()
	pausing, held := c.pausing(), c.held()
	if c.Earlier != nil { // and the pool has not grown since: see short
		pausing, held = Either(pausing, c.Earlier.pausing()), Either(held, c.Earlier.held())
	}
	once := c.failedOnce()
	if held.State == Yes || c.Ours {
		once = held // our daemon logs its pauses
	}
	cd := Result{
		Scope:    document.FindingScope{Subnet: subnetIDs(subnets)},
		Summary:  fmt.Sprintf("the daemon still pauses although the shortage is over: %s; %s", freeAddresses(subnets), poolText(c.pool())),
		Decisive: []Fact{Either(pausing, held), c.recovered()},
		required: []Fact{once, c.short()},
	}
	if c.dry().State == No { // the pause keeps no pod waiting
		cd = cd.As(catalogue.Info)
	}
	return []Result{cd}
}

func warmPoolLag(c *Case) []Result {
	failed, dry := c.failing(), c.Unread("intro.enis", "assignable addresses, before", "at least 1", "one reading only")
	grew := c.active(pattern{sources: []string{"log.ipamd"}, texts: grown})
	if c.Earlier != nil {
		failed, dry = Either(failed, c.Earlier.failing(), c.Earlier.stuck(sandboxTime)), c.Earlier.dry()
		grew = Either(grew, c.onPool("addresses", "as before", func(p *pool) (any, State) {
			before := c.Earlier.pool()
			if before == nil {
				return nil, Unread
			}
			return fmt.Sprintf("%d, then %d", before.total, p.total), stateOf(p.total > before.total)
		}))
	}
	if c.Mode == evidence.ModeBundle && dry.State != Yes { // the order of the lines replaces a second reading
		dry = c.active(pattern{sources: []string{"log.ipamd"}, texts: textsDry})
		if dry.State == Yes && grew.State == Yes && grew.At.Before(dry.At) {
			dry.State = No
		}
		failed = Either(failed, dry) // the daemon logs it for each request
	}
	return []Result{{
		Summary:  fmt.Sprintf("pods arrived faster than addresses, which are available now: %s", poolText(c.pool())),
		Decisive: []Fact{dry, grew, failed},
		required: []Fact{Not(c.dry())}, unless: []Fact{c.stuck(attachTime)},
		Supporting: []Fact{c.Setting("WARM_IP_TARGET", "more than a burst needs", func(s config.Config) bool {
			return s.WarmIP > 0 && s.WarmIP <= 2 || s.WarmIP == 0 && s.WarmENI == 0
		})},
	}}
}

func cooldownSaturated(c *Case) []Result {
	cooling := c.onPool("cooling addresses", "fewer than the free ones",
		func(p *pool) (any, State) { return p.cooling, stateOf(p.cooling > 0) })
	most := c.onPool("addresses against the type's limit", "below it", func(p *pool) (any, State) {
		over, known := c.overcommit()
		return fmt.Sprintf("%d of %d", p.total, p.capacity),
			stateOf(known && over <= 0 && p.maxENI == p.limitENI && p.unmanaged == 0 && !p.canGrow())
	})
	return []Result{c.unlessIdle(Result{
		Summary:  fmt.Sprintf("every free address is cooling down for %s: %s", c.cooldown(), poolText(c.pool())),
		Decisive: []Fact{cooling},
		required: []Fact{c.dry(), Either(Not(c.short()), most, c.failures(grown, cause.AddressesCooling))},
	})}
}

func leakedAllocations(c *Case) []Result {
	dead := c.dead()
	pods := each(dead, func(a evidence.Address) string { return fmt.Sprintf("%s (%s)", a.Address, *a.Pod) })
	found := On(c, c.R.ENIs, "intro.enis", "addresses assigned to pods that are gone", "none", func([]evidence.ENI) (any, State) {
		if !c.R.Pods.OK() && !c.R.Links.OK() {
			return nil, Unread
		}
		return Some(pods), stateOf(len(dead) > 0)
	})
	read := func(id, missing string) Fact {
		if missing != "" {
			return c.Unread(id, "what is left of these pods", "something", missing)
		}
		return c.Known(id, "what is left of these pods", "something", "nothing", true)
	}
	return []Result{{
		Summary:    fmt.Sprintf("no address is free, and some are held for pods that no longer exist: %s", Some(pods)),
		Decisive:   []Fact{found},
		required:   []Fact{c.dry()},
		Supporting: []Fact{read("k8s.pod", c.R.Pods.Missing), read("kern.link", c.R.Links.Missing)},
	}}
}

// dead returns the addresses that have been assigned for a while to pods that, as far as was
// read, exist neither in Kubernetes nor in the kernel.
func (c *Case) dead() (out []evidence.Address) {
	for a := range c.records() {
		if a.Pod == nil || *a.Pod == "" || c.Now.Sub(a.AssignedAt) < 5*time.Minute { // old releases do not name pods
			continue
		}
		if on, there := c.podNode[*a.Pod]; !(there && (on == "" || on == c.own)) && !c.HasVeth(*a.Pod) {
			out = append(out, a)
		}
	}
	return out
}

// HasVeth reports whether the kernel has the host end of a pod's veth pair.
func (c *Case) HasVeth(pod evidence.Pod) bool {
	name := veth(c.Settings.VethPrefix, pod)
	return slices.ContainsFunc(c.R.Links.Content, func(l evidence.Link) bool { return l.Pod == pod || l.Name == name })
}

// lost is a running pod whose address the daemon has assigned to no pod.
type lost struct {
	name    string // of the pod; "a pod" if unknown
	address netip.Addr
	wired   bool // the kernel has its link
}

// inUse returns the addresses that are assigned, or were until recently.
func (c *Case) inUse() map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	for a := range c.records() {
		if a.Pod != nil || !c.old(a.UnassignedAt) {
			out[a.Address] = true
		}
	}
	return out
}

// lost finds such pods. If pods were not listed, the daemon's log names their addresses. Pods and
// records are not read at the same moment, so pods that came or went just now do not count.
func (c *Case) lost() (out []lost) {
	assigned := c.inUse()
	if c.R.Pods.OK() {
		for _, p := range c.addressed() {
			if !assigned[p.IPs[0]] && !p.StartedAt.IsZero() && c.old(p.StartedAt) {
				out = append(out, lost{string(p.Pod), p.IPs[0], c.HasVeth(p.Pod)})
			}
		}
		return out
	}
	for _, l := range c.logSource("log.ipamd").lines {
		_, rest, ok := strings.Cut(l.text, "uses unknown IP Address ")
		text, _, _ := strings.Cut(rest, " ")
		address, err := introspect.ParseAddr(strings.TrimRight(text, ",.;:"))
		if !ok || err != nil || assigned[address] || slices.ContainsFunc(out, func(l lost) bool { return l.address == address }) {
			continue
		}
		wired := slices.ContainsFunc(c.R.Rules.Content, func(r evidence.Rule) bool { return r.To.IsSingleIP() && r.To.Addr() == address })
		out = append(out, lost{"a pod", address, wired})
	}
	return out
}

func liveAllocationDropped(c *Case) []Result {
	missing := func(c *Case) Fact {
		const path, expected = "running pods that have no record", "none"
		if c.R.ENIs.OK() && !c.R.Pods.OK() && len(c.lost()) == 0 {
			return c.Unread("k8s.pod", path, expected, c.R.Pods.Missing)
		}
		return On(c, c.R.ENIs, "intro.enis", path, expected, func([]evidence.ENI) (any, State) {
			pods := c.lost()
			return Some(lostNames(pods)), stateOf(len(pods) > 0)
		})
	}
	pods := c.lost()
	named := where(each(pods, func(p lost) string { return p.name }), func(name string) bool { return strings.Contains(name, "/") })
	wiring, id := c.R.Links.Missing, "kern.link"
	if !c.R.Pods.OK() {
		wiring, id = c.R.Rules.Missing, "kern.rule"
	}
	wired := c.Unread(id, "what these pods have in the kernel", "nothing", wiring)
	if wiring == "" && len(pods) > 0 {
		n := len(where(pods, func(p lost) bool { return p.wired }))
		wired = c.Known(id, wired.Path, wired.Expected, fmt.Sprintf("links or rules of %d", n), n > 0)
	}
	return []Result{{
		Summary:  fmt.Sprintf("running pods are missing from the daemon's records: %s", Some(lostNames(pods))),
		Decisive: []Fact{c.lasting(missing)}, names: podNames(named...),
		required: []Fact{c.upstream()}, unless: []Fact{Not(wired)},
		Supporting: []Fact{c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{"presuming stale/dead"}, any: true})},
	}}
}

func lostNames(pods []lost) []string {
	return each(pods, func(p lost) string { return fmt.Sprintf("%s (%s)", p.name, p.address) })
}

func modeMixed(c *Case) []Result {
	other := c.onPool("addresses of the other mode", "0", func(p *pool) (any, State) {
		if p.either {
			return nil, Unread
		}
		return p.otherMode, stateOf(p.otherMode > 0)
	})
	blocked := c.onPool("free slots", "at least 1", func(p *pool) (any, State) {
		return map[bool]string{true: "some", false: "none"}[p.roomOnENI], stateOf(p.sized && !p.roomOnENI && p.total < p.capacity)
	})
	p, what := c.pool(), "single addresses, which a node with prefix delegation does not assign to pods"
	if p != nil && !p.pd {
		what = "addresses of prefixes, which a node without prefix delegation does not assign to pods"
	}
	summary := poolText(p)
	if p != nil {
		summary = fmt.Sprintf("the interfaces hold %d %s: %s", p.otherMode, what, summary)
	}
	return []Result{{Summary: summary, Decisive: []Fact{other}, required: []Fact{Either(c.dry(), blocked)}}}
}

func pdUnsupportedType(c *Case) []Result {
	t := c.R.InstanceType.Content
	cd := Result{
		Summary: fmt.Sprintf("ENABLE_PREFIX_DELEGATION is true, but %s is neither Nitro nor bare metal: single addresses are used",
			t.InstanceType),
		Decisive: []Fact{
			c.Setting("ENABLE_PREFIX_DELEGATION", "false", func(s config.Config) bool { return s.PrefixDelegation }),
			On(c, c.R.InstanceType, "ec2.type", "hypervisor", "nitro", func(t evidence.InstanceType) (any, State) {
				if !t.Known {
					return nil, Unread
				}
				return or(t.Hypervisor, "unknown"), stateOf(c.noPrefixes())
			}),
		},
	}
	if c.Settings.IPv6 {
		cd.Summary = fmt.Sprintf("IPv6 needs prefix delegation, which %s does not have: the daemon does not start", t.InstanceType)
		return []Result{cd.As(catalogue.Critical)}
	}
	return []Result{cd}
}

func subnetExcluded(c *Case) []Result {
	decisive := c.onSubnets("at least one", func(subnets []evidence.Subnet) State { return stateOf(len(subnets) == 0) })
	decisive.Path = "subnets that may be used"
	if decisive.State == Unread {
		decisive = Either(
			c.active(pattern{sources: daemonSays, texts: []string{"no valid subnets available for ENI creation",
				"primary subnet is tagged with kubernetes.io/role/cni=0"}, cured: grown}),
			c.failures(grown, cause.NoUsableSubnet),
		)
	}
	node := c.subnetOfNode()
	return []Result{{
		Scope: document.FindingScope{Subnet: node},
		Summary: fmt.Sprintf("no subnet of the zone may be used for pods: %s is excluded by its tags, and no other is tagged %s",
			or(node, "the node's"), resync.TagSubnetRole),
		Decisive: []Fact{decisive},
		required: []Fact{c.Setting("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true", func(s config.Config) bool { return !s.CustomNetworking })},
	}}
}

func discoveryUnused(c *Case) []Result {
	node := c.subnetOfNode()
	own, known := c.subnet(node)
	policy := resync.SubnetPolicy{NodeSubnet: node, ClusterName: c.Settings.ClusterName, Discovery: true}
	var tagged evidence.Subnet
	for _, s := range c.R.Subnets.Content {
		if s.ID != node && s.Zone == own.Zone && s.VPC == own.VPC && s.Available != nil && *s.Available >= 16 && c.usable(policy, s) {
			tagged = s
		}
	}
	on := func(id string) bool {
		return slices.ContainsFunc(c.R.ENIs.Content, func(e evidence.ENI) bool { return e.Subnet == id })
	}
	why := c.whyUnused(node)
	return []Result{{
		Scope:   document.FindingScope{Subnet: tagged.ID},
		Summary: fmt.Sprintf("%s, tagged for pods, is never used, while %s: %s", tagged.ID, freeAddresses([]evidence.Subnet{own}), why.Value),
		Decisive: []Fact{
			On(c, c.R.Subnets, "ec2.subnet", "tagged subnets of the zone with free addresses", "in use", func([]evidence.Subnet) (any, State) {
				return or(tagged.ID, "none"), stateOf(tagged.ID != "")
			}),
			On(c, c.R.Subnets, "ec2.subnet", "free addresses of "+or(node, "the node's subnet"), "10 % or more",
				func([]evidence.Subnet) (any, State) {
					if !known || own.Available == nil {
						return nil, Unread
					}
					return *own.Available, stateOf(10**own.Available < usableSize(own.CIDR))
				}),
			On(c, c.R.ENIs, "intro.enis", "interfaces in "+or(tagged.ID, "a tagged subnet"), "at least one", func([]evidence.ENI) (any, State) {
				return map[bool]string{true: "some", false: "none"}[on(tagged.ID)], stateOf(!on(tagged.ID))
			}), why,
		},
	}}
}

// whyUnused returns why a tagged subnet is not used.
func (c *Case) whyUnused(node string) Fact {
	full := c.onPool("room to grow", "room for an interface", func(p *pool) (any, State) {
		if !p.sized {
			return nil, Unread
		}
		return "no slot is left for an interface", stateOf(!p.roomForENI)
	})
	filled := c.onPool("room on interfaces in "+node, "none", func(p *pool) (any, State) {
		return "before v1.18.3 interfaces of the full subnet are filled first", stateOf(c.older(evidence.Version{1, 18, 3}) && p.roomOnENI)
	})
	denied := orElse(
		c.active(pattern{sources: daemonSays, texts: []string{"Failed to call ec2:DescribeSubnets", "DescribeSubnets…" + textDenied}}),
		On(c, c.R.IAM, "iam.sim", "actions", "allowed", func(sim evidence.IAM) (any, State) {
			return sim.Actions["ec2:DescribeSubnets"], stateOf(sim.Actions["ec2:DescribeSubnets"] == "denied")
		}),
	)
	off := c.Setting("ENABLE_SUBNET_DISCOVERY", "true", func(s config.Config) bool { return !s.SubnetDiscovery })
	custom := c.Setting("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "false", func(s config.Config) bool { return s.CustomNetworking })
	off.Value, custom.Value = "ENABLE_SUBNET_DISCOVERY is false", "custom networking ignores tags"
	denied.Value = "ec2:DescribeSubnets is denied"
	return Either(custom, off, full, filled, denied)
}

func v6PrefixMissing(c *Case) []Result {
	refused := c.active(pattern{sources: daemonSays, texts: []string{"Failed to allocate IPv6 Prefixes", "AssignIpv6Addresses"}, any: true})
	cd := Result{
		Summary: "the primary interface has no IPv6 prefix, so no pod on the node can start",
		Decisive: []Fact{
			c.Setting("ENABLE_IPv6", "false", func(s config.Config) bool { return s.IPv6 }), // an IPv4 node never has one
			On(c, c.R.ENIs, "intro.enis", "prefixes of the primary interface", "at least 1", func(enis []evidence.ENI) (any, State) {
				for _, e := range enis {
					if e.Primary {
						return len(e.Prefixes), stateOf(len(e.Prefixes) == 0 && !e.Excluded)
					}
				}
				return nil, Unread
			}),
		},
		unless:     []Fact{Both(c.begun(), Not(refused))}, // it is about to be assigned
		Supporting: []Fact{refused},
	}
	const permit, range6 = 1, 2
	subnet := c.subnetOfNode()
	cd.Scope, cd.names = document.FindingScope{Subnet: subnet}, map[string]string{"SUBNET": subnet}
	cd.names["ROLE"] = roleName(or(c.R.IAM.Content.Role, c.R.ServiceAccount.Content.Annotations["eks.amazonaws.com/role-arn"]))
	cd = cd.WithFixes(permit, range6)
	if own, ok := c.subnet(subnet); ok && own.IPv6CIDR == nil || matchesAny(refused.Value, []string{textNoIPv6Range}) {
		cd.Summary += "; " + or(subnet, "its subnet") + " has no IPv6 range"
		cd = cd.WithFixes(range6)
	}
	if c.R.IAM.Content.Actions["ec2:AssignIpv6Addresses"] == "denied" || matchesAny(refused.Value, []string{textDenied}) {
		cd.Summary += "; the role may not call ec2:AssignIpv6Addresses"
		cd = cd.WithFixes(permit, range6)
	}
	return []Result{cd}
}

// textNoIPv6Range is EC2's answer for a subnet without an IPv6 range.
const textNoIPv6Range = "does not have an IPv6 CIDR block"

func poolText(p *pool) string {
	if p == nil {
		return "the pool is unknown"
	}
	return p.String()
}

// every lists all names.
func every(names []string) string { return or(strings.Join(names, ", "), "none") }

// Some lists the first few names, and their total number.
func Some(names []string) string {
	const most = 3
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > most:
		return fmt.Sprintf("%s and %d more (%d in all)", strings.Join(names[:most], ", "), n-most, n)
	}
	return strings.Join(names, ", ")
}

func subnetIDs(subnets []evidence.Subnet) string {
	return strings.Join(each(subnets, func(s evidence.Subnet) string { return s.ID }), ", ")
}

// freeAddresses lists the free addresses of subnets.
func freeAddresses(subnets []evidence.Subnet) string {
	var parts []string
	for _, s := range subnets {
		free := "an unknown number"
		if s.Available != nil {
			free = fmt.Sprint(*s.Available)
		}
		parts = append(parts, fmt.Sprintf("%s has %s free", s.ID, free))
	}
	return or(strings.Join(parts, ", "), "no subnet is known")
}

// fullest returns the largest number of free addresses in one of the subnets, and whether all
// numbers are known.
func fullest(subnets []evidence.Subnet) (most int, known bool) {
	known = true
	for _, s := range subnets {
		if s.Available == nil {
			known = false
			continue
		}
		most = max(most, *s.Available)
	}
	return most, known
}

// usableSize returns how many addresses of a subnet can be used: EC2 keeps five.
func usableSize(cidr netip.Prefix) int {
	if !cidr.IsValid() || !cidr.Addr().Is4() {
		return 0
	}
	return max(0, 1<<(32-cidr.Bits())-5)
}
