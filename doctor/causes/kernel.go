package causes

import (
	"fmt"
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
}

// wired returns the addresses of the pool and of branch ENIs. Of the sandboxes of a pod only the
// last has a network.
func (c *Case) wired() (out []wired) {
	type sandbox struct {
		pod  evidence.Pod
		card int
	}
	last := map[sandbox]time.Time{}
	for _, e := range c.R.ENIs.Content {
		for a := range e.Records() {
			if a.Pod != nil && a.AssignedAt.After(last[sandbox{*a.Pod, e.Card}]) {
				last[sandbox{*a.Pod, e.Card}] = a.AssignedAt
			}
		}
	}
	for _, e := range c.R.ENIs.Content {
		table := netnames.RouteTable(e.Card, e.Device)
		if e.RouteTable != nil {
			table = *e.RouteTable
		}
		for a := range e.Records() {
			if a.Pod != nil && c.runs(*a.Pod) && !a.AssignedAt.Before(last[sandbox{*a.Pod, e.Card}]) {
				out = append(out, wired{*a.Pod, a.Address, table, hostrules.PodRules(a.Address, table), netnames.MainTable})
			}
		}
	}
	for _, p := range c.here() {
		b, err := cluster.ParseBranch(p.Annotations[limitPodENI], c.Settings.IPv6)
		table, ok := netnames.BranchTable(b.VLAN)
		if p.Phase != "Running" || !c.branchPod(p) || err != nil || !ok {
			continue
		}
		w := wired{p.Pod, b.Address, table, hostrules.PodRules(b.Address, table), netnames.MainTable}
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
	return slices.ContainsFunc(c.here(), func(p *evidence.KubePod) bool { return p.Pod == pod && p.Phase == "Running" && !p.HostNetwork })
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

// unwired lists the rules and routes that running pods lack.
func (c *Case) unwired() (lacks []string) {
	current := c.PolicyRules()
	for _, w := range c.wired() {
		for _, change := range hostrules.DiffPodRules(current, w.address, w.rules) {
			if r := change.Rule; change.Do == netstate.AddRule && !perRange(current, r) {
				lacks = append(lacks, fmt.Sprintf("%s: rule %q", w.pod, r))
			}
		}
		to := netip.PrefixFrom(w.address, w.address.BitLen()).String()
		if c.R.Routes.OK() && !slices.ContainsFunc(c.R.Routes.Content, func(r evidence.Route) bool {
			return r.Table == w.route && (r.To == to || r.To == w.address.String())
		}) {
			lacks = append(lacks, fmt.Sprintf("%s: route to %s", w.pod, w.address))
		}
	}
	return lacks
}

// wrongRules lists rules that lead an address elsewhere than to its interface's table, or that
// belong to a pod that is gone.
func (c *Case) wrongRules() (wrong []string) {
	current := c.PolicyRules()
	note := func(why string, r netstate.Rule) {
		wrong = append(wrong, fmt.Sprintf("%s: rule %q", why, r))
	}
	held, vlans := map[netip.Addr]bool{}, map[string]bool{}
	for _, w := range c.wired() {
		held[w.address] = true
		for _, change := range hostrules.DiffPodRules(current, w.address, w.rules) {
			// A rule into its table is one of the rules per range of the VPC.
			if r := change.Rule; change.Do == netstate.DelRule && r.Table != w.table {
				note(string(w.pod), r)
			}
		}
	}
	for _, p := range c.here() { // whatever the settings are
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
				note("no pod", r)
			}
		case r.Priority == netnames.RuleBranch && r.InLink != "" && c.R.Pods.OK() && !vlans[r.InLink]:
			if _, device := netnames.VLANOfDevice(r.InLink); device || strings.HasPrefix(r.InLink, netnames.BranchVethPrefix) {
				note("no pod", r)
			}
		}
	}
	return wrong
}

// linkOfTable returns the link of a table's default route, empty if unknown.
func (c *Case) linkOfTable(table int) string {
	for _, r := range c.R.Routes.Content {
		if r.Table == table && r.To == "default" && r.Dev != "" {
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
