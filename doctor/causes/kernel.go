package causes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/cluster"
	hostrules "cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
	"cnictl/doctor/evidence"
)

// wired is an address of a running pod of the node, and the kernel state that belongs to it.
type wired struct {
	pod     evidence.Pod
	address netip.Addr
	table   int // of its interface
	rules   []netstate.Rule
	route   int // the table with the route to the pod
	branch  bool
}

// wired returns the addresses of the pool and of branch ENIs. Of the sandboxes of a pod only the
// last has a network.
func (c *Case) wired() (out []wired) {
	type sandbox struct {
		pod  evidence.Pod
		card int
	}
	last := map[sandbox]time.Time{}
	for _, e := range c.enis() {
		for a := range e.Records() {
			if a.Pod != nil && a.AssignedAt.After(last[sandbox{*a.Pod, e.Card}]) {
				last[sandbox{*a.Pod, e.Card}] = a.AssignedAt
			}
		}
	}
	for _, e := range c.enis() {
		table := tableOf(e)
		for a := range e.Records() {
			if a.Pod != nil && c.runs(*a.Pod) && !a.AssignedAt.Before(last[sandbox{*a.Pod, e.Card}]) {
				out = append(out, wired{*a.Pod, a.Address, table, hostrules.PodRules(a.Address, table), netnames.MainTable, false})
			}
		}
	}
	for _, p := range c.Here() {
		b, err := cluster.ParseBranch(p.Annotations[limitPodENI], c.Settings.IPv6)
		table, ok := netnames.BranchTable(b.VLAN)
		if p.Phase != "Running" || !c.branchPod(p) || err != nil || !ok {
			continue
		}
		w := wired{p.Pod, b.Address, table, hostrules.PodRules(b.Address, table), netnames.MainTable, true}
		if c.strictBranches() {
			w.route, w.rules = table, nil
			for _, link := range []string{netnames.VLANDevice(b.VLAN), veth(netnames.BranchVethPrefix, p.Pod)} {
				w.rules = append(w.rules, netstate.Rule{Priority: netnames.RuleBranch, InLink: link, Table: table, IPv6: c.Settings.IPv6})
			}
		}
		out = append(out, w)
	}
	return out
}

// enis returns the interfaces of the datastore. If the daemon does not answer, they are those of the
// metadata service or EC2 that have addresses which the checkpoint assigns.
func (c *Case) enis() []evidence.ENI {
	if c.R.ENIs.OK() || !c.checkpointed() || c.derived != nil {
		return append(c.R.ENIs.Content, c.derived...)
	}
	c.derived = []evidence.ENI{}
	add := func(e evidence.ENI, ips []netip.Addr, prefixes []netip.Prefix) {
		e.Primary = e.Card == 0 && e.Device == 0
		for _, a := range c.R.Checkpoint.Content.Allocations {
			if a.Pod != "" && onInterface(a.Address, ips, prefixes) {
				e.IPs = append(e.IPs, evidence.Address{Address: a.Address, Pod: new(a.Pod), AssignedAt: a.At})
			}
		}
		if len(e.IPs) > 0 {
			c.derived = append(c.derived, e)
		}
	}
	for _, m := range c.metadata() {
		add(evidence.ENI{ID: m.ID, Card: m.Card, Device: m.Device, Subnet: m.Subnet}, m.IPs, m.Prefixes)
	}
	if len(c.metadata()) == 0 {
		for _, d := range c.attached() {
			if d.Device != nil {
				add(evidence.ENI{ID: d.ID, Card: d.Card, Device: *d.Device, Subnet: d.Subnet}, d.IPs, d.Prefixes)
			}
		}
	}
	lone := map[int]*evidence.ENI{} // of unknown interfaces: the table is that of the address's rule
	for _, a := range c.R.Checkpoint.Content.Allocations {
		if a.Pod == "" || slices.ContainsFunc(c.derived, func(e evidence.ENI) bool {
			return slices.ContainsFunc(e.IPs, func(has evidence.Address) bool { return has.Address == a.Address })
		}) {
			continue
		}
		table := netnames.MainTable
		for _, r := range c.PolicyRules() {
			if r.Priority == netnames.RuleFromPod && r.From == netstate.Only(a.Address) {
				table = r.Table
			}
		}
		if lone[table] == nil {
			lone[table] = &evidence.ENI{RouteTable: &table}
		}
		lone[table].IPs = append(lone[table].IPs, evidence.Address{Address: a.Address, Pod: new(a.Pod), AssignedAt: a.At})
	}
	for _, table := range slices.Sorted(maps.Keys(lone)) {
		c.derived = append(c.derived, *lone[table])
	}
	return c.derived
}

// enisKnown reports whether the interfaces of the daemon, or those with pods, are known.
func (c *Case) enisKnown() bool { return c.R.ENIs.OK() || len(c.enis()) > 0 }

// onInterface reports whether an interface with these addresses and prefixes has an address.
func onInterface(a netip.Addr, ips []netip.Addr, prefixes []netip.Prefix) bool {
	return slices.Contains(ips, a) || slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// tableOf returns the routing table of an interface.
func tableOf(e evidence.ENI) int {
	if e.RouteTable != nil {
		return *e.RouteTable
	}
	return netnames.RouteTable(e.Card, e.Device)
}

// strictBranches reports whether security groups of pods are enforced in strict mode.
func (c *Case) strictBranches() bool {
	return c.Settings.PodENI && c.Settings.PodSecurityMode != "standard"
}

func veth(prefix string, pod evidence.Pod) string {
	namespace, name, _ := strings.Cut(string(pod), "/")
	return netnames.HostVeth(prefix, namespace, name, 0)
}

// runs reports whether a pod runs on the node or, if pods were not listed, whether its link
// exists.
func (c *Case) runs(pod evidence.Pod) bool {
	if !c.R.Pods.OK() {
		return c.HasVeth(pod)
	}
	return slices.ContainsFunc(c.Here(), func(p *evidence.KubePod) bool { return p.Pod == pod && p.Phase == "Running" && !p.HostNetwork })
}

// PolicyRules returns the rules that look up a table, in the daemon's form.
func (c *Case) PolicyRules() (out []netstate.Rule) {
	for _, r := range c.R.Rules.Content {
		table, ok := tableNumber(r.Table)
		if !ok {
			continue
		}
		rule := netstate.Rule{Priority: r.Priority, From: r.From, To: r.To, InLink: r.IIF, Table: table, IPv6: r.Family == 6}
		if mark, mask, found := strings.Cut(r.FWMark, "/"); found {
			m, _ := strconv.ParseUint(mark, 0, 32)
			k, _ := strconv.ParseUint(mask, 0, 32)
			rule.Mark, rule.Mask = uint32(m), uint32(k)
		}
		out = append(out, rule)
	}
	return out
}

func tableNumber(t evidence.Table) (int, bool) {
	switch t {
	case "main":
		return netnames.MainTable, true
	case "local":
		return netnames.LocalTable, true
	}
	n, err := strconv.Atoi(string(t))
	return n, err == nil
}

// perRange reports whether a rule exists as old releases made it: one rule per range of the VPC.
func perRange(current []netstate.Rule, want netstate.Rule) bool {
	return slices.ContainsFunc(current, func(r netstate.Rule) bool {
		return r.Priority == want.Priority && r.From == want.From && r.Table == want.Table && r.From.IsValid() && r.To.IsValid()
	})
}

// lack is a rule or a route that a running pod lacks.
type lack struct {
	pod  evidence.Pod
	rule bool
	what string
}

// lacking lists the rules and routes that running pods lack, as far as they were read.
func (c *Case) lacking() (lacks []lack) {
	current, all := c.PolicyRules(), c.wired()
	holders := map[netip.Addr]int{}
	for _, w := range all {
		holders[w.address]++
	}
	for _, w := range all {
		changes := hostrules.DiffPodRules(current, w.address, w.rules)
		for _, change := range changes {
			if r := change.Rule; c.R.Rules.OK() && change.Do == netstate.AddRule && !perRange(current, r) && instead(changes, change) == nil {
				lacks = append(lacks, lack{w.pod, true, fmt.Sprintf("rule %q", r)})
			}
		}
		to := netip.PrefixFrom(w.address, w.address.BitLen()).String()
		what, there := fmt.Sprintf("route to %s", w.address), false
		for _, r := range c.R.Routes.Content {
			if r.Table != w.route || r.To != to && r.To != w.address.String() {
				continue
			}
			if link := c.leadsElsewhere(r, w.pod); link == "" || holders[w.address] > 1 { // that two have it is another fault
				there = true
			} else {
				what += "; the one there leads to " + link
			}
		}
		if c.R.Routes.OK() && !there {
			lacks = append(lacks, lack{w.pod, false, what})
		}
		if w.branch && c.R.Routes.OK() && c.linkOfTable(w.table) == "" {
			lacks = append(lacks, lack{w.pod, false, fmt.Sprintf("default route of table %d", w.table)})
		}
	}
	return lacks
}

// leadsElsewhere returns the link of a route to a pod's address that is not the pod's own, empty if it is or that
// is unknown.
func (c *Case) leadsElsewhere(r evidence.Route, pod evidence.Pod) string {
	if r.Pod != "" {
		if r.Pod == pod {
			return ""
		}
		return or(r.Dev, "the link of "+string(r.Pod))
	}
	own, known := c.vethOf(pod)
	names := []string{"", own.Name, veth(c.Settings.VethPrefix, pod), veth(netnames.BranchVethPrefix, pod)}
	if !known || own.Name == "" || slices.Contains(names, r.Dev) {
		return ""
	}
	return r.Dev
}

// instead returns the rule that stands in the place of a wanted one, or is wanted in the place of one: it differs in the
// table alone. It returns nil if there is none.
func instead(changes []netstate.Change, of netstate.Change) *netstate.Rule {
	for _, change := range changes {
		r := change.Rule
		if r.Table = of.Rule.Table; change.Do != of.Do && r == of.Rule {
			return &change.Rule
		}
	}
	return nil
}

// wrongRule is a rule that leads an address elsewhere than to its pod.
type wrongRule struct {
	pod    evidence.Pod // empty if no pod has the address
	rule   netstate.Rule
	wanted *netstate.Rule // in its place; nil if the pod has all it needs
}

// wrongRules lists rules that lead an address elsewhere than to its interface's table, or that
// belong to a pod that is gone.
func (c *Case) wrongRules() (wrong []wrongRule) {
	current := c.PolicyRules()
	held, vlans := map[netip.Addr]bool{}, map[string]bool{}
	for _, w := range c.wired() {
		held[w.address] = true
		changes := hostrules.DiffPodRules(current, w.address, w.rules)
		for _, change := range changes {
			// A rule into its table is one of the rules per range of the VPC.
			if r := change.Rule; change.Do == netstate.DelRule && r.Table != w.table {
				wrong = append(wrong, wrongRule{w.pod, r, instead(changes, change)})
			}
		}
	}
	for _, p := range c.Here() { // whatever the settings are
		b, err := cluster.ParseBranch(p.Annotations[limitPodENI], false)
		if err != nil {
			b, err = cluster.ParseBranch(p.Annotations[limitPodENI], true)
		}
		if err == nil {
			vlans[netnames.VLANDevice(b.VLAN)], vlans[veth(netnames.BranchVethPrefix, p.Pod)] = true, true
		}
	}
	count := map[netip.Prefix]int{}
	for _, r := range current {
		switch {
		case r.Priority == netnames.RuleFromPod && r.From.IsSingleIP() && !r.Restricted() && !held[r.From.Addr()]:
			if count[r.From]++; count[r.From] == 2 {
				wrong = append(wrong, wrongRule{rule: r})
			}
		case r.Priority == netnames.RuleBranch && r.InLink != "" && c.R.Pods.OK() && !vlans[r.InLink]:
			if _, device := netnames.VLANOfDevice(r.InLink); device || strings.HasPrefix(r.InLink, netnames.BranchVethPrefix) {
				wrong = append(wrong, wrongRule{rule: r})
			}
		}
	}
	return wrong
}

// ruleNames are the parts of a rule for commands.
func ruleNames(r netstate.Rule) map[string]string {
	names := map[string]string{"PRIORITY": strconv.Itoa(r.Priority), "TABLE": strconv.Itoa(r.Table), "FAMILY": "4", "FROM_OR_TO": "from",
		"ADDRESS": "all"}
	if r.IPv6 {
		names["FAMILY"] = "6"
	}
	switch {
	case r.From.IsValid():
		names["ADDRESS"] = r.From.String()
	case r.To.IsValid():
		names["FROM_OR_TO"], names["ADDRESS"] = "to", r.To.String()
	case r.InLink != "":
		names["FROM_OR_TO"], names["ADDRESS"] = "iif", r.InLink
	}
	return names
}

// isDefault reports whether a route is a default route.
func isDefault(r evidence.Route) bool {
	return r.To == "default" || r.To == "0.0.0.0/0" || r.To == "::/0"
}

// linkOfTable returns the link of a table's default route, empty if unknown.
func (c *Case) linkOfTable(table int) string {
	for _, r := range c.R.Routes.Content {
		if r.Table == table && isDefault(r) && r.Dev != "" {
			return r.Dev
		}
	}
	return ""
}

// IPTablesRules returns the rules of both backends.
func (c *Case) IPTablesRules() []string {
	return slices.Concat(c.R.IPTables.Content.NFT.Rules, c.R.IPTables.Content.Legacy.Rules)
}

// ModuleVLAN is the kernel module for VLAN devices, which branch ENIs need.
const ModuleVLAN = "8021q"
