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
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// viewObservers compare the views of the same facts: datastore, checkpoint, EC2, metadata, kernel,
// Kubernetes. Each pair has a kind for what only the one has and for what only the other has.
var viewObservers = []observer{
	{kind: "obs/eni-not-in-datastore", find: eniNotInDatastore},
	{kind: "obs/eni-not-in-ec2", find: eniNotInEC2},
	{kind: "obs/eni-not-in-metadata", find: eniNotInMetadata},
	{kind: "obs/eni-only-in-metadata", find: eniOnlyInMetadata},
	{kind: "obs/eni-place", find: eniPlace},
	{kind: "obs/eni-no-link", find: eniNoLink},
	{kind: "obs/eni-link-down", find: eniLinkDown},
	{kind: "obs/eni-address-differs", find: eniAddressDiffers},
	{kind: "obs/address-not-in-ec2", find: addressNotInEC2},
	{kind: "obs/address-not-in-datastore", find: addressNotInDatastore},
	{kind: "obs/address-not-in-metadata", find: addressNotInMetadata},
	{kind: "obs/address-only-in-metadata", find: addressOnlyInMetadata},
	{kind: "obs/allocation-not-in-checkpoint", find: allocationNotInCheckpoint},
	{kind: "obs/allocation-only-in-checkpoint", find: allocationOnlyInCheckpoint},
	{kind: "obs/pod-no-allocation", find: podNoAllocation},
	{kind: "obs/pod-not-in-checkpoint", find: podNotInCheckpoint},
	{kind: "obs/pod-address-differs", find: podAddressDiffers},
	{kind: "obs/pod-address-of-node", find: podAddressOfNode},
	{kind: "obs/pod-address-shared", find: podAddressShared},
	{kind: "obs/pod-address-on-no-eni", find: podAddressOnNoENI},
	{kind: "obs/allocation-no-pod", find: allocationNoPod},
	{kind: "obs/pod-no-veth", find: podNoVeth},
	{kind: "obs/pod-veth-down", find: podVethDown},
	{kind: "obs/veth-no-pod", find: vethNoPod},
	{kind: "obs/pod-no-rule", find: podNoRule},
	{kind: "obs/pod-no-route", find: podNoRoute},
	{kind: "obs/rule-wrong", find: ruleWrong},
	{kind: "obs/main-rule", find: mainRuleGone},
	{kind: "obs/route-no-pod", find: routeNoPod},
	{kind: "obs/pod-gateway-mac", find: podGatewayMAC},
	{kind: "obs/eni-no-route", find: eniNoRoute},
	{kind: "obs/eni-route-wrong", find: eniRouteWrong},
	{kind: "obs/node-no-default-route", find: nodeNoDefaultRoute},
	{kind: "obs/node-second-default-route", find: nodeSecondDefaultRoute},
	{kind: "obs/branch-no-pod", find: branchNoPod},
	{kind: "obs/pod-branch-gone", find: podBranchGone},
	{kind: "obs/pod-no-vlan", find: podNoVLAN},
	{kind: "obs/pod-no-policy", find: podNoPolicy},
	{kind: "obs/policy-no-pod", find: policyNoPod},
	{kind: "obs/node-instance", find: nodeInstance},
	{kind: "obs/node-instance-type", find: nodeInstanceType},
	{kind: "obs/daemon-not-on-node", find: daemonNotOnNode},
	{kind: "obs/plugin-other-release", find: pluginOtherRelease},
	{kind: "obs/max-pods-differs", find: maxPodsDiffers},
}

// moment is how long one view may lag behind another in normal operation.
const moment = 2 * time.Minute

// old reports whether something has been so for longer than views lag. Unknown times count.
func (c *Case) old(t time.Time) bool { return t.IsZero() || c.Now.Sub(t) > moment }

// onENI returns the running pods of the pool whose addresses are on an interface, as the datastore
// has it.
func (c *Case) onENI(id string) (pods []string) {
	for _, e := range c.R.ENIs.Content {
		if e.ID != id {
			continue
		}
		for a := range e.Records() {
			if a.Pod != nil && *a.Pod != "" && c.runs(*a.Pod) {
				pods = append(pods, string(*a.Pod))
			}
		}
	}
	return pods
}

// metadata returns the interfaces of the metadata service, nil if it does not answer.
func (c *Case) metadata() []evidence.IMDSInterface {
	if c.R.IMDS.OK() && c.R.IMDS.Content.Token == "ok" {
		return c.R.IMDS.Content.ENIs
	}
	return nil
}

// described returns the instance's interfaces as EC2 shows them, and whether they are known.
func (c *Case) described() ([]evidence.Interface, bool) {
	return c.attached(), c.R.Interfaces.OK() && c.instance() != "" && len(c.attached()) > 0
}

func (c *Case) managed(id string) (evidence.ENI, bool) {
	at := slices.IndexFunc(c.R.ENIs.Content, func(e evidence.ENI) bool { return e.ID == id })
	if at < 0 {
		return evidence.ENI{}, false
	}
	return c.R.ENIs.Content[at], true
}

func (c *Case) inMetadata(id string) (evidence.IMDSInterface, bool) {
	all := c.metadata()
	at := slices.IndexFunc(all, func(e evidence.IMDSInterface) bool { return e.ID == id })
	if at < 0 {
		return evidence.IMDSInterface{}, false
	}
	return all[at], true
}

func (c *Case) inEC2(id string) (evidence.Interface, bool) {
	all := c.attached()
	at := slices.IndexFunc(all, func(e evidence.Interface) bool { return e.ID == id })
	if at < 0 {
		return evidence.Interface{}, false
	}
	return all[at], true
}

// settling reports whether EC2 shows an interface as new or about to change.
func (c *Case) settling(id string) bool {
	e, ok := c.inEC2(id)
	return ok && (!c.old(e.CreatedAt) && !e.CreatedAt.IsZero() || e.Status == "attaching" || e.Status == "detaching")
}

func eniNotInDatastore(c *Case) (out []observation) {
	if !c.R.ENIs.OK() {
		return nil
	}
	for _, card := range c.cards() {
		for _, o := range c.foreign(card) {
			if c.settling(o.id) {
				continue
			}
			severity := catalogue.Info                                                        // interfaces of others are normal
			if e, _ := c.inEC2(o.id); o.made && (c.Earlier != nil || !e.CreatedAt.IsZero()) { // not just on its way
				severity = catalogue.Warning
			}
			source := "imds"
			if _, known := c.described(); known {
				source = "ec2.eni"
			}
			out = append(out, observation{
				subject: o.id, is: "attached, " + o.kind, should: "in the datastore", severity: severity, source: source,
				names: map[string]string{"ENI": o.id},
			})
		}
	}
	return out
}

// cards returns the network cards that any view knows.
func (c *Case) cards() []int {
	cards := []int{0}
	for _, e := range c.R.ENIs.Content {
		cards = append(cards, e.Card)
	}
	for _, e := range c.attached() {
		cards = append(cards, e.Card)
	}
	for _, e := range c.metadata() {
		cards = append(cards, e.Card)
	}
	slices.Sort(cards)
	return slices.Compact(cards)
}

func eniNotInEC2(c *Case) (out []observation) {
	if _, known := c.described(); !known {
		return nil
	}
	for _, e := range c.R.ENIs.Content {
		if _, there := c.inEC2(e.ID); !there {
			pods := c.onENI(e.ID)
			out = append(out, observation{
				subject: e.ID, is: "in the datastore, not attached in EC2", should: "attached", pods: pods,
				severity: bySeverity(pods, catalogue.Warning), source: "ec2.eni", names: map[string]string{"ENI": e.ID},
			})
		}
	}
	return out
}

func eniNotInMetadata(c *Case) (out []observation) {
	if len(c.metadata()) == 0 {
		return nil
	}
	report := func(id, is, source string) {
		if _, there := c.inMetadata(id); !there && !c.settling(id) && !slices.ContainsFunc(out, func(o observation) bool { return o.subject == id }) {
			pods := c.onENI(id)
			out = append(out, observation{subject: id, is: is, should: "listed by the metadata service", pods: pods,
				severity: catalogue.Warning, source: source, names: map[string]string{"ENI": id}})
		}
	}
	for _, e := range c.attached() {
		if !strings.HasPrefix(e.Type, "efa-only") { // it has no address
			report(e.ID, "attached in EC2, not listed by the metadata service", "imds")
		}
	}
	for _, e := range c.R.ENIs.Content {
		report(e.ID, "in the datastore, not listed by the metadata service", "imds")
	}
	return out
}

func eniOnlyInMetadata(c *Case) (out []observation) {
	if _, known := c.described(); !known {
		return nil
	}
	for _, e := range c.metadata() {
		if _, there := c.inEC2(e.ID); !there {
			out = append(out, observation{subject: e.ID, is: "listed by the metadata service, not attached in EC2", should: "attached",
				severity: catalogue.Warning, pods: c.onENI(e.ID), names: map[string]string{"ENI": e.ID}})
		}
	}
	return out
}

func eniPlace(c *Case) (out []observation) {
	for _, e := range c.R.ENIs.Content {
		report := func(view, source string, card, device int) {
			if e.Card == card && e.Device == device {
				return
			}
			pods := c.onENI(e.ID)
			out = append(out, observation{
				subject: e.ID, is: fmt.Sprintf("card %d, device %d in the datastore; card %d, device %d in %s", e.Card, e.Device, card, device, view),
				should: "the same", pods: pods, severity: catalogue.Warning, source: source, names: map[string]string{"ENI": e.ID},
			})
		}
		if d, there := c.inEC2(e.ID); there && d.Device != nil {
			report("EC2", "ec2.eni", d.Card, *d.Device)
		} else if m, there := c.inMetadata(e.ID); there {
			report("the metadata service", "imds", m.Card, m.Device)
		}
	}
	return out
}

// macOf returns the MAC address of an interface, empty if unknown.
func (c *Case) macOf(id string) string {
	m, _ := c.inMetadata(id)
	return m.MAC
}

// linkOf returns the host's link of an interface.
func (c *Case) linkOf(id string) (evidence.Link, bool) {
	if id == "" {
		return evidence.Link{}, false
	}
	mac := c.macOf(id)
	at := slices.IndexFunc(c.R.Links.Content, func(l evidence.Link) bool {
		return l.ENI == id || mac != "" && l.Kind != "veth" && l.Kind != "vlan" && strings.EqualFold(l.MAC, mac)
	})
	if at < 0 {
		return evidence.Link{}, false
	}
	return c.R.Links.Content[at], true
}

// linksKnown reports whether links were read together with what says whose they are.
func (c *Case) linksKnown() bool {
	return c.R.Links.OK() && (len(c.metadata()) > 0 || slices.ContainsFunc(c.R.Links.Content, func(l evidence.Link) bool { return l.ENI != "" }))
}

func eniNoLink(c *Case) (out []observation) {
	if !c.linksKnown() {
		return nil
	}
	for _, e := range c.R.ENIs.Content {
		if _, there := c.linkOf(e.ID); !there && !c.settling(e.ID) && !e.Trunk {
			pods := c.onENI(e.ID)
			out = append(out, observation{subject: e.ID, is: "no link has its MAC address " + c.macOf(e.ID), should: "a link", pods: pods,
				severity: bySeverity(pods, catalogue.Warning), names: map[string]string{"ENI": e.ID}})
		}
	}
	return out
}

func eniLinkDown(c *Case) (out []observation) {
	note := func(id string, primary bool, pods []string) {
		l, there := c.linkOf(id)
		if !there || l.Up == nil || *l.Up {
			return
		}
		otherwise := catalogue.Warning
		if primary {
			otherwise = catalogue.Critical
		}
		out = append(out, observation{subject: l.Name, is: "the link of " + id + " is down", should: "up", pods: pods,
			severity: bySeverity(pods, otherwise), names: map[string]string{"ENI": id, "LINK": l.Name}})
	}
	for _, e := range c.R.ENIs.Content {
		pods := c.onENI(e.ID)
		if e.Trunk {
			for _, p := range c.here() {
				if c.branchPod(p) && p.Phase == "Running" {
					pods = append(pods, string(p.Pod))
				}
			}
		}
		note(e.ID, e.Primary, pods)
	}
	if c.R.ENIs.OK() {
		return out
	}
	for _, m := range c.metadata() { // the daemon does not answer: its checkpoint has the pods
		var pods []string
		for _, a := range c.R.Checkpoint.Content.Allocations {
			if a.Pod != "" && slices.Contains(m.IPs, a.Address) {
				pods = append(pods, string(a.Pod))
			}
		}
		note(m.ID, m.Card == 0 && m.Device == 0, pods)
	}
	return out
}

func eniAddressDiffers(c *Case) (out []observation) {
	for _, m := range c.metadata() {
		e, there := c.inEC2(m.ID)
		if there && e.Primary.IsValid() && len(m.IPs) > 0 && e.Primary.Is4() && m.IPs[0] != e.Primary {
			out = append(out, observation{subject: m.ID, is: fmt.Sprintf("its primary address is %s in EC2, %s in the metadata service", e.Primary, m.IPs[0]),
				should: "the same", severity: catalogue.Warning, names: map[string]string{"ENI": m.ID}})
		}
	}
	return out
}

// cidrsOf returns what an interface holds for pods, as one-address prefixes and prefixes.
func cidrsOf(ips []netip.Addr, prefixes []netip.Prefix) map[netip.Prefix]bool {
	out := map[netip.Prefix]bool{}
	for _, a := range ips {
		out[netip.PrefixFrom(a, a.BitLen())] = true
	}
	for _, p := range prefixes {
		out[p] = true
	}
	return out
}

// recorded returns what the datastore has of an interface, without what was released or added
// moments ago, with the running pods that use it.
func (c *Case) recorded(e evidence.ENI) map[netip.Prefix][]string {
	out := map[netip.Prefix][]string{}
	pods := func(addresses []evidence.Address) (pods []string) {
		for _, a := range addresses {
			if a.Pod != nil && *a.Pod != "" && c.runs(*a.Pod) {
				pods = append(pods, string(*a.Pod))
			}
		}
		return pods
	}
	for _, a := range e.IPs {
		if a.Pod != nil || c.old(a.UnassignedAt) {
			out[netip.PrefixFrom(a.Address, a.Address.BitLen())] = pods([]evidence.Address{a})
		}
	}
	for _, p := range e.Prefixes {
		out[p.CIDR] = pods(p.IPs)
	}
	return out
}

func cidrText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// differing compares what two views say that an interface holds.
func differing(has []netip.Prefix, lacks map[netip.Prefix]bool) (out []netip.Prefix) {
	for _, p := range has {
		if !lacks[p] {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return out
}

func keys[V any](m map[netip.Prefix]V) (out []netip.Prefix) {
	for p := range m {
		out = append(out, p)
	}
	return out
}

func addressNotInEC2(c *Case) (out []observation) {
	for _, e := range c.R.ENIs.Content {
		d, there := c.inEC2(e.ID)
		if !there || e.Excluded || e.Trunk {
			continue
		}
		records := c.recorded(e)
		for _, p := range differing(keys(records), cidrsOf(d.IPs, d.Prefixes)) {
			pods := records[p]
			out = append(out, observation{subject: cidrText(p), is: "in the datastore, not on " + e.ID + " in EC2", should: "assigned in EC2",
				pods: pods, severity: bySeverity(pods, catalogue.Warning), source: "ec2.eni", names: map[string]string{"ENI": e.ID, "ADDRESS": cidrText(p)}})
		}
	}
	return out
}

func addressNotInDatastore(c *Case) (out []observation) {
	for _, e := range c.R.ENIs.Content {
		d, there := c.inEC2(e.ID)
		if !there || e.Excluded || e.Trunk || e.Primary && c.Settings.CustomNetworking || c.settling(e.ID) {
			continue
		}
		has := map[netip.Prefix]bool{}
		for _, a := range e.IPs {
			has[netip.PrefixFrom(a.Address, a.Address.BitLen())] = true
		}
		for _, p := range e.Prefixes {
			has[p.CIDR] = true
		}
		for _, p := range differing(keys(cidrsOf(d.IPs, d.Prefixes)), has) {
			out = append(out, observation{subject: cidrText(p), is: "on " + e.ID + " in EC2, not in the datastore", should: "in the datastore",
				severity: catalogue.Info, source: "ec2.eni", names: map[string]string{"ENI": e.ID, "ADDRESS": cidrText(p)}})
		}
	}
	return out
}

// known in metadata compares the metadata service with EC2, or with the datastore if EC2 was not
// read.
func (c *Case) againstMetadata(report func(id string, other, metadata map[netip.Prefix]bool)) {
	for _, m := range c.metadata() {
		if len(m.IPs) == 0 || c.settling(m.ID) {
			continue
		}
		in := cidrsOf(m.IPs[1:], m.Prefixes)
		if d, there := c.inEC2(m.ID); there {
			report(m.ID, cidrsOf(d.IPs, d.Prefixes), in)
		} else if e, there := c.managed(m.ID); there && !e.Excluded && !e.Trunk && !c.R.Interfaces.OK() {
			other := map[netip.Prefix]bool{}
			for p := range c.recorded(e) {
				other[p] = true
			}
			report(m.ID, other, in)
		}
	}
}

func addressNotInMetadata(c *Case) (out []observation) {
	c.againstMetadata(func(id string, other, metadata map[netip.Prefix]bool) {
		for _, p := range differing(keys(other), metadata) {
			if p.Addr().Is6() && p.IsSingleIP() {
				continue
			}
			out = append(out, observation{subject: cidrText(p), is: "on " + id + ", not listed by the metadata service", should: "listed",
				severity: catalogue.Info, names: map[string]string{"ENI": id}})
		}
	})
	return out
}

func addressOnlyInMetadata(c *Case) (out []observation) {
	c.againstMetadata(func(id string, other, metadata map[netip.Prefix]bool) {
		for _, p := range differing(keys(metadata), other) {
			if p.Addr().Is6() && p.IsSingleIP() {
				continue
			}
			out = append(out, observation{subject: cidrText(p), is: "listed by the metadata service on " + id + ", nowhere else", should: "on the interface",
				severity: catalogue.Info, names: map[string]string{"ENI": id}})
		}
	})
	return out
}

// assignments returns the assigned addresses of the datastore.
func (c *Case) assignments() (out []evidence.Address) {
	for a := range c.records() {
		if a.Pod != nil && *a.Pod != "" {
			out = append(out, a)
		}
	}
	return out
}

// checkpointed reports whether a checkpoint was read that the daemon can use.
func (c *Case) checkpointed() bool {
	return c.R.Checkpoint.OK() && c.R.Checkpoint.Content.Error == nil && c.R.Checkpoint.Content.Path != ""
}

func allocationNotInCheckpoint(c *Case) (out []observation) {
	if !c.checkpointed() || !c.R.ENIs.OK() {
		return nil
	}
	saved := map[netip.Addr]bool{}
	for _, a := range c.R.Checkpoint.Content.Allocations {
		saved[a.Address] = true
	}
	for _, a := range c.assignments() {
		if !saved[a.Address] && c.old(a.AssignedAt) && c.runs(*a.Pod) {
			out = append(out, observation{subject: string(*a.Pod), is: a.Address.String() + " is assigned, and not in the checkpoint",
				should: "in the checkpoint: a restart of the daemon loses it", severity: catalogue.Warning, since: a.AssignedAt, pods: []string{string(*a.Pod)}})
		}
	}
	return out
}

func allocationOnlyInCheckpoint(c *Case) (out []observation) {
	if !c.checkpointed() || !c.R.ENIs.OK() {
		return nil
	}
	assigned := map[netip.Addr]bool{}
	for a := range c.records() {
		if a.Pod != nil || !c.old(a.UnassignedAt) && !a.UnassignedAt.IsZero() {
			assigned[a.Address] = true
		}
	}
	for _, a := range c.R.Checkpoint.Content.Allocations {
		if assigned[a.Address] || !c.old(a.At) {
			continue
		}
		severity := catalogue.Info
		var pods []string
		if c.R.Pods.OK() && c.runs(a.Pod) {
			severity, pods = catalogue.Error, []string{string(a.Pod)} // another pod may get its address
		}
		out = append(out, observation{subject: string(a.Pod), is: a.Address.String() + " is in the checkpoint, and assigned to nobody",
			should: "assigned", severity: severity, since: a.At, pods: pods, source: "ckpt"})
	}
	return out
}

func podNoAllocation(c *Case) (out []observation) {
	if !c.R.ENIs.OK() {
		return nil
	}
	for _, l := range c.lost() {
		out = append(out, observation{subject: l.name, is: l.address.String() + " is assigned to no pod", should: "assigned to it",
			severity: catalogue.Error, pods: []string{l.name}, names: podNames(l.name)})
	}
	return out
}

// podNames are the names of a pod for commands.
func podNames(pod string) map[string]string {
	namespace, name, _ := strings.Cut(pod, "/")
	return map[string]string{"NAMESPACE": namespace, "POD": name}
}

func podNotInCheckpoint(c *Case) (out []observation) {
	if !c.checkpointed() || c.R.ENIs.OK() || !c.R.Pods.OK() {
		return nil // the datastore says more
	}
	saved := map[netip.Addr]bool{}
	for _, a := range c.R.Checkpoint.Content.Allocations {
		saved[a.Address] = true
	}
	for _, p := range c.Pooled() {
		if p.Phase == "Running" && len(p.IPs) > 0 && !saved[p.IPs[0]] && !p.StartedAt.IsZero() && c.old(p.StartedAt) && p.Annotations[limitPodENI] == "" {
			out = append(out, observation{subject: string(p.Pod), is: p.IPs[0].String() + " is not in the checkpoint", should: "in the checkpoint",
				severity: catalogue.Warning, pods: []string{string(p.Pod)}})
		}
	}
	return out
}

func podAddressDiffers(c *Case) (out []observation) {
	if !c.R.Pods.OK() {
		return nil
	}
	held := map[evidence.Pod][]netip.Addr{}
	for _, a := range c.assignments() {
		held[*a.Pod] = append(held[*a.Pod], a.Address)
	}
	for _, p := range c.Pooled() {
		own := held[p.Pod]
		if p.Phase != "Running" || len(p.IPs) == 0 || len(own) == 0 || !c.old(p.StartedAt) || slices.Contains(own, p.IPs[0]) {
			continue
		}
		out = append(out, observation{subject: string(p.Pod), is: fmt.Sprintf("%s in Kubernetes, %s in the datastore", p.IPs[0], own[0]), should: "the same",
			severity: catalogue.Critical, pods: []string{string(p.Pod)}, names: podNames(string(p.Pod))})
	}
	return out
}

// primaries returns the primary addresses of the node's interfaces, by interface.
func (c *Case) primaries() map[netip.Addr]string {
	out := map[netip.Addr]string{}
	for _, e := range c.metadata() {
		if len(e.IPs) > 0 {
			out[e.IPs[0]] = e.ID
		}
	}
	for _, e := range c.attached() {
		if e.Primary.IsValid() {
			out[e.Primary] = e.ID
		}
	}
	return out
}

func podAddressOfNode(c *Case) (out []observation) {
	nodes := c.primaries()
	report := func(pod string, a netip.Addr, source string) {
		if id, taken := nodes[a]; taken && !slices.ContainsFunc(out, func(o observation) bool { return o.subject == pod }) {
			out = append(out, observation{subject: pod, is: fmt.Sprintf("%s is the primary address of %s, an interface of the node", a, id),
				should: "an address that the node does not use", severity: catalogue.Critical, pods: []string{pod}, source: source, names: podNames(pod)})
		}
	}
	for _, p := range c.here() {
		for _, a := range p.IPs {
			if !p.HostNetwork && p.Phase == "Running" {
				report(string(p.Pod), a, "k8s.pod")
			}
		}
	}
	for _, a := range c.assignments() {
		report(string(*a.Pod), a.Address, "intro.enis")
	}
	return out
}

func podAddressShared(c *Case) (out []observation) {
	found, _ := duplicates([]*Case{c})
	for _, text := range found {
		out = append(out, observation{is: text, should: "each address has one pod", severity: catalogue.Critical, subject: ""})
	}
	return out
}

// justReleased reports whether the daemon released an address of the pod moments ago: the pod has
// ended, and the list of pods is older.
func (c *Case) justReleased(pod evidence.Pod) bool {
	at := slices.IndexFunc(c.here(), func(p *evidence.KubePod) bool { return p.Pod == pod })
	if at < 0 {
		return false
	}
	for a := range c.records() {
		if !a.UnassignedAt.IsZero() && !c.old(a.UnassignedAt) && slices.Contains(c.here()[at].IPs, a.Address) {
			return true
		}
	}
	return false
}

func podAddressOnNoENI(c *Case) (out []observation) {
	_, known := c.described()
	if !known && len(c.metadata()) == 0 || !c.R.Pods.OK() {
		return nil
	}
	settled := c.settled()
	for _, text := range c.cutOff() {
		pod, _, _ := strings.Cut(text, " ")
		if !slices.Contains(settled, evidence.Pod(pod)) || c.justReleased(evidence.Pod(pod)) {
			continue
		}
		out = append(out, observation{subject: pod, is: "its address is on no interface of the instance: " + text, should: "on an attached interface",
			severity: catalogue.Critical, pods: []string{pod}, names: podNames(pod)})
	}
	return out
}

func allocationNoPod(c *Case) (out []observation) {
	if !c.R.Pods.OK() && !c.R.Links.OK() {
		return nil
	}
	for _, a := range c.dead() {
		out = append(out, observation{subject: a.Address.String(), is: "assigned to " + string(*a.Pod) + ", which is not on the node", should: "free",
			severity: catalogue.Info, since: a.AssignedAt})
	}
	return out
}

// settled returns the running pods with an address of the pool that started a while ago. Of pods
// that were not listed, those with an assignment.
func (c *Case) settled() (pods []evidence.Pod) {
	if !c.R.Pods.OK() {
		return nil
	}
	for _, p := range c.Pooled() {
		if p.Phase == "Running" && len(p.IPs) > 0 && c.old(p.StartedAt) && p.Count <= 1 {
			pods = append(pods, p.Pod)
		}
	}
	return pods
}

// vethKnown reports whether the links of pods can be told from their names: old releases and other
// prefixes may name them otherwise.
func (c *Case) vethOf(pod evidence.Pod) (evidence.Link, bool) {
	name := veth(c.Settings.VethPrefix, pod)
	at := slices.IndexFunc(c.R.Links.Content, func(l evidence.Link) bool { return l.Pod == pod || l.Name == name })
	if at < 0 {
		return evidence.Link{}, false
	}
	return c.R.Links.Content[at], true
}

func podNoVeth(c *Case) (out []observation) {
	if !c.R.Links.OK() {
		return nil
	}
	for _, pod := range c.settled() {
		if _, there := c.vethOf(pod); !there {
			name := veth(c.Settings.VethPrefix, pod)
			names := podNames(string(pod))
			names["VETH"] = name
			out = append(out, observation{subject: string(pod), is: "it runs, and the node has no link " + name, should: "a veth pair",
				severity: catalogue.Critical, pods: []string{string(pod)}, names: names})
		}
	}
	return out
}

func podVethDown(c *Case) (out []observation) {
	for _, pod := range c.settled() {
		if l, there := c.vethOf(pod); there && l.Up != nil && !*l.Up {
			names := podNames(string(pod))
			names["LINK"] = l.Name
			out = append(out, observation{subject: string(pod), is: "its link " + or(l.Name, "on the node") + " is down", should: "up",
				severity: catalogue.Critical, pods: []string{string(pod)}, names: names})
		}
	}
	return out
}

func vethNoPod(c *Case) (out []observation) {
	if !c.R.Links.OK() || !c.R.Pods.OK() {
		return nil
	}
	owned := map[string]bool{}
	for _, p := range c.here() {
		owned[veth(c.Settings.VethPrefix, p.Pod)], owned[veth(netnames.BranchVethPrefix, p.Pod)] = true, true
	}
	for _, l := range c.R.Links.Content {
		if l.Kind != "veth" || l.Pod != "" || !strings.HasPrefix(l.Name, c.Settings.VethPrefix) || owned[l.Name] {
			continue
		}
		out = append(out, observation{subject: l.Name, is: "no pod of the node has this link", should: "removed with its pod", severity: catalogue.Info,
			names: map[string]string{"LINK": l.Name, "VETH": l.Name}})
	}
	return out
}

// unwiredBy groups what running pods lack: rules, or routes to them.
func (c *Case) unwiredBy(rules bool) (out []observation) {
	if !c.R.ENIs.OK() || rules && !c.R.Rules.OK() || !rules && !c.R.Routes.OK() {
		return nil
	}
	for _, text := range c.unwired() {
		pod, what, _ := strings.Cut(text, ": ")
		if strings.HasPrefix(what, "rule") != rules {
			continue
		}
		out = append(out, observation{subject: pod, is: "it lacks the " + what, should: "there", severity: catalogue.Critical, pods: []string{pod},
			names: podNames(pod)})
	}
	return out
}

func podNoRule(c *Case) []observation { return c.unwiredBy(true) }

func podNoRoute(c *Case) []observation { return c.unwiredBy(false) }

func ruleWrong(c *Case) (out []observation) {
	if !c.R.ENIs.OK() || !c.R.Rules.OK() {
		return nil
	}
	for _, text := range c.wrongRules() {
		pod, rule, _ := strings.Cut(text, ": ")
		o := observation{subject: rule, is: "it is of no pod", should: "removed with its pod", severity: catalogue.Warning}
		if strings.Contains(pod, "/") {
			o = observation{subject: pod, is: rule + " leads its address elsewhere", should: "rules to its interface's table", severity: catalogue.Error,
				pods: []string{pod}, names: podNames(pod)}
		}
		out = append(out, o)
	}
	return out
}

// mainRule is the priority of the kernel's own rule for the main table.
const mainRule = 32766

func mainRuleGone(c *Case) []observation {
	if !c.R.Rules.OK() || len(c.R.Rules.Content) == 0 || slices.ContainsFunc(c.R.Rules.Content, func(r evidence.Rule) bool {
		return r.Priority == mainRule && r.Table == "main"
	}) {
		return nil
	}
	return []observation{{subject: "rule 32766", is: "no rule leads to the main table", should: "from all lookup main", severity: catalogue.Critical, pods: c.served()}}
}

func routeNoPod(c *Case) (out []observation) {
	if !c.R.Routes.OK() || !c.R.Pods.OK() || !c.R.ENIs.OK() {
		return nil
	}
	used := map[string]bool{}
	for _, p := range c.here() {
		for _, a := range p.IPs {
			used[a.String()] = true
		}
	}
	for a := range c.records() {
		if a.Pod != nil || !c.old(a.UnassignedAt) {
			used[a.Address.String()] = true
		}
	}
	for _, r := range c.R.Routes.Content {
		to, _, _ := strings.Cut(r.To, "/")
		if r.Table == netnames.MainTable && !r.Via.IsValid() && r.Dev != "" && strings.HasPrefix(r.Dev, c.Settings.VethPrefix) && !used[to] && r.Pod == "" {
			out = append(out, observation{subject: r.To, is: "a route to " + r.Dev + ", and no pod has the address", should: "removed with its pod",
				severity: catalogue.Info, names: map[string]string{"ADDRESS": to, "LINK": r.Dev}})
		}
	}
	return out
}

func podGatewayMAC(c *Case) (out []observation) {
	for _, n := range c.R.Neighbours.Content {
		l, there := c.vethOf(n.Pod)
		gateway := n.Address == netnames.GatewayIPv4(0) || n.Address == netnames.GatewayIPv6(0)
		if !there || l.MAC == "" || !gateway || strings.EqualFold(n.MAC, l.MAC) {
			continue
		}
		out = append(out, observation{subject: string(n.Pod), is: fmt.Sprintf("its gateway %s has %s, the link on the node %s", n.Address, n.MAC, l.MAC),
			should: "the same MAC address", severity: catalogue.Critical, pods: []string{string(n.Pod)}, names: podNames(string(n.Pod))})
	}
	return out
}

// tableOf returns the routing table of an interface.
func tableOf(e evidence.ENI) int {
	if e.RouteTable != nil {
		return *e.RouteTable
	}
	return netnames.RouteTable(e.Card, e.Device)
}

// serving reports whether an interface has a routing table for pods of its own.
func (c *Case) serving(e evidence.ENI) bool {
	return !e.Primary && !e.Trunk && !e.Excluded && tableOf(e) != netnames.MainTable && !c.settling(e.ID) && len(e.IPs)+len(e.Prefixes) > 0
}

func eniNoRoute(c *Case) (out []observation) {
	if !c.R.Routes.OK() || c.Settings.IPv6 {
		return nil
	}
	for _, e := range c.R.ENIs.Content {
		table := tableOf(e)
		if !c.serving(e) || c.linkOfTable(table) != "" {
			continue
		}
		pods := c.onENI(e.ID)
		out = append(out, observation{subject: fmt.Sprintf("table %d", table), is: "it has no default route, so nothing leaves by " + e.ID, should: "a default route by its link",
			pods: pods, severity: bySeverity(pods, catalogue.Error), names: map[string]string{"ENI": e.ID, "TABLE": strconv.Itoa(table)}})
	}
	return out
}

func eniRouteWrong(c *Case) (out []observation) {
	if !c.R.Routes.OK() || !c.linksKnown() {
		return nil
	}
	for _, e := range c.R.ENIs.Content {
		table := tableOf(e)
		by := c.linkOfTable(table)
		l, there := c.linkOf(e.ID)
		if !c.serving(e) || by == "" || !there || l.Name == "" || by == l.Name {
			continue
		}
		pods := c.onENI(e.ID)
		out = append(out, observation{subject: fmt.Sprintf("table %d", table), is: fmt.Sprintf("its default route leaves by %s, %s is %s", by, e.ID, l.Name),
			should: "by the interface's link", pods: pods, severity: bySeverity(pods, catalogue.Error), names: map[string]string{"ENI": e.ID, "TABLE": strconv.Itoa(table), "LINK": l.Name}})
	}
	return out
}

// defaults returns the links of the main table's default routes.
func (c *Case) defaults() (links []string) {
	for _, r := range c.R.Routes.Content {
		if r.Table == netnames.MainTable && (r.To == "default" || r.To == "0.0.0.0/0" || r.To == "::/0") {
			links = append(links, r.Dev)
		}
	}
	return links
}

func nodeNoDefaultRoute(c *Case) []observation {
	if !c.R.Routes.OK() || len(c.R.Routes.Content) == 0 {
		return nil
	}
	is := "it has no default route"
	if len(c.defaults()) > 0 {
		if !c.Settings.IPv6 || slices.ContainsFunc(c.R.Routes.Content, func(r evidence.Route) bool {
			return r.Table == netnames.MainTable && (r.To == "::/0" || r.To == "default" && (r.Family == 6 || r.Via.Is6()))
		}) {
			return nil
		}
		is = "it has no default route for IPv6"
	}
	return []observation{{subject: "table main", is: is, should: "one by the primary interface", severity: catalogue.Critical}}
}

func nodeSecondDefaultRoute(c *Case) (out []observation) {
	id, _ := c.primary()
	own, there := c.linkOf(id)
	for _, link := range c.defaults() {
		// Which of an instance's links is the primary one says the metadata service.
		if !there || c.macOf(id) == "" && own.ENI != id || own.Name == "" || link == own.Name || link == "" {
			continue
		}
		out = append(out, observation{subject: link, is: "the main table has a default route by it as well: a program of the host has configured the interface",
			should: "only by " + own.Name, severity: catalogue.Warning, names: map[string]string{"LINK": link}})
	}
	return out
}

// branches returns the branch ENIs that pods of the node name, with the pods.
func (c *Case) podBranches() map[string]string {
	out := map[string]string{}
	for i := range c.R.Pods.Content {
		p := &c.R.Pods.Content[i]
		for _, ipv6 := range []bool{false, true} {
			if b, err := cluster.ParseBranch(p.Annotations[limitPodENI], ipv6); err == nil {
				out[b.ENI] = string(p.Pod)
			}
		}
	}
	return out
}

// branchCools is how long the resource controller keeps the branch ENI of a deleted pod, with room
// for the deletion itself.
const branchCools = 10 * time.Minute

func branchNoPod(c *Case) (out []observation) {
	trunk := c.trunk()
	if trunk == "" || !c.R.Pods.OK() {
		return nil
	}
	named := c.podBranches()
	for _, e := range c.R.Interfaces.Content {
		if e.Type != "branch" || e.Tags[tagTrunk] != trunk || named[e.ID] != "" || e.CreatedAt.IsZero() || c.Now.Sub(e.CreatedAt) < branchCools {
			continue
		}
		subject := e.ID
		if e.Count > 1 {
			subject = fmt.Sprintf("%s and %d more", e.ID, e.Count-1)
		}
		out = append(out, observation{subject: subject, is: fmt.Sprintf("a branch of %s that no pod names, made %s ago", trunk, age(c.Now.Sub(e.CreatedAt))),
			should: "deleted a minute after its pod", severity: catalogue.Warning, since: e.CreatedAt, source: "ec2.eni", names: map[string]string{"ENI": e.ID}})
	}
	return out
}

// age rounds a duration for people.
func age(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d minutes", int(d.Minutes()))
}

func podBranchGone(c *Case) (out []observation) {
	shown := map[string]bool{}
	for _, e := range c.R.Interfaces.Content {
		if e.Type == "branch" {
			shown[e.ID] = true
		}
	}
	if len(shown) == 0 {
		return nil // the list has no branch ENIs at all
	}
	for _, p := range c.here() {
		for _, ipv6 := range []bool{false, true} {
			b, err := cluster.ParseBranch(p.Annotations[limitPodENI], ipv6)
			if err == nil && b.ENI != "" && p.Phase == "Running" && c.old(p.StartedAt) && !shown[b.ENI] {
				out = append(out, observation{subject: string(p.Pod), is: "its branch ENI " + b.ENI + " does not exist", should: "there",
					severity: catalogue.Critical, pods: []string{string(p.Pod)}, names: podNames(string(p.Pod))})
				break
			}
		}
	}
	return out
}

func podNoVLAN(c *Case) (out []observation) {
	if !c.R.Links.OK() || !c.R.Pods.OK() {
		return nil
	}
	for _, p := range c.here() {
		b, err := cluster.ParseBranch(p.Annotations[limitPodENI], c.Settings.IPv6)
		if err != nil || p.Phase != "Running" || !c.branchPod(p) || !c.old(p.StartedAt) {
			continue
		}
		name := netnames.VLANDevice(b.VLAN)
		at := slices.IndexFunc(c.R.Links.Content, func(l evidence.Link) bool { return l.Name == name })
		switch {
		case at < 0:
			out = append(out, observation{subject: string(p.Pod), is: "the node has no link " + name, should: "a VLAN device of its trunk",
				severity: catalogue.Critical, pods: []string{string(p.Pod)}, names: podNames(string(p.Pod))})
		case c.R.Links.Content[at].Up != nil && !*c.R.Links.Content[at].Up:
			names := podNames(string(p.Pod))
			names["LINK"] = name
			out = append(out, observation{subject: string(p.Pod), is: "its link " + name + " is down", should: "up",
				severity: catalogue.Critical, pods: []string{string(p.Pod)}, names: names})
		}
	}
	return out
}

func podNoPolicy(c *Case) (out []observation) {
	if c.Settings.NetworkPolicyMode != "strict" || !c.R.Pods.OK() {
		return nil
	}
	selected := map[evidence.Pod]bool{}
	for _, e := range c.R.NetworkPolicies.Content.Endpoints {
		for _, pod := range e.Pods {
			selected[pod] = true
		}
	}
	for _, p := range c.here() {
		if p.Phase == "Running" && !p.HostNetwork && !selected[p.Pod] {
			out = append(out, observation{subject: string(p.Pod), is: "no PolicyEndpoint selects it, and the mode is strict: its traffic is dropped", should: "selected",
				severity: catalogue.Error, pods: []string{string(p.Pod)}})
		}
	}
	return out
}

func policyNoPod(c *Case) (out []observation) {
	if !c.R.Pods.OK() {
		return nil
	}
	for _, e := range c.R.NetworkPolicies.Content.Endpoints {
		for _, pod := range e.Pods {
			if _, there := c.podNode[pod]; there || slices.ContainsFunc(out, func(o observation) bool { return o.subject == e.Name }) {
				continue
			}
			out = append(out, observation{subject: e.Name, is: "it selects " + string(pod) + ", which was not listed", should: "pods that exist", severity: catalogue.Info})
		}
	}
	return out
}

func nodeInstance(c *Case) (out []observation) {
	kube, imds := c.R.Node.Content.Instance, c.R.IMDS.Content.Instance
	if kube != "" && imds != "" && kube != imds {
		out = append(out, observation{subject: c.Name, is: fmt.Sprintf("%s in Kubernetes, %s in the metadata service", kube, imds), should: "the same instance",
			severity: catalogue.Error, source: "imds"})
	}
	for _, i := range c.R.Instances.Content {
		if i.ID == or(imds, kube) && i.ID != "" && i.State != "" && i.State != "running" {
			out = append(out, observation{subject: i.ID, is: "EC2 shows it as " + i.State, should: "running", severity: catalogue.Error, since: i.StateAt, source: "ec2.inst"})
		}
	}
	return out
}

func nodeInstanceType(c *Case) []observation {
	kube, imds := c.R.Node.Content.InstanceType, c.R.IMDS.Content.InstanceType
	if kube == "" || imds == "" || kube == imds {
		return nil
	}
	return []observation{{subject: c.Name, is: fmt.Sprintf("%s in Kubernetes, %s in the metadata service", kube, imds), should: "the same type", severity: catalogue.Warning}}
}

func daemonNotOnNode(c *Case) []observation {
	if !c.R.DaemonSet.OK() || c.R.DaemonSet.Content == nil || !c.R.DaemonPods.OK() || len(c.R.DaemonPods.Content) == 0 && c.R.ENIs.OK() {
		return nil
	}
	for _, p := range c.R.DaemonPods.Content {
		if p.Node == c.own {
			return nil
		}
	}
	return []observation{{subject: c.Name, is: "it has no pod of the DaemonSet aws-node", should: "one", severity: catalogue.Error}}
}

func pluginOtherRelease(c *Case) (out []observation) {
	for _, b := range c.R.CNI.Content.Bin {
		if b.OfImage != nil && !*b.OfImage && (b.Name == "aws-cni" || b.Name == "egress-cni") {
			out = append(out, observation{subject: b.Name, is: "the installed file is not that of the daemon's image", should: "of the same release", severity: catalogue.Warning})
		}
	}
	return out
}

func maxPodsDiffers(c *Case) (out []observation) {
	node := c.R.Node.Content.Capacity.Pods
	if node == nil {
		return nil
	}
	note := func(of string, n *int) {
		if n != nil && *n != *node {
			out = append(out, observation{subject: c.Name, is: fmt.Sprintf("max-pods is %d %s, %d in the Node", *n, of, *node), should: "the same",
				severity: catalogue.Info})
		}
	}
	note("in kubelet's configuration", c.R.Kubelet.Content.MaxPods)
	if m := c.R.Summary.Content.MaxPods; m != nil && m.Source == "node" {
		note("for the daemon", m.Value)
	}
	return out
}
