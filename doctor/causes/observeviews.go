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
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/netstate"
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
	{kind: "obs/eni-link-address", find: eniLinkAddress},
	{kind: "obs/host-has-pod-address", find: hostHasPodAddress},
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
	{kind: "obs/pod-of-other-cni", find: podOfOtherCNI},
	{kind: "obs/allocation-no-pod", find: allocationNoPod},
	{kind: "obs/pod-no-veth", find: podNoVeth},
	{kind: "obs/pod-veth-down", find: podVethDown},
	{kind: "obs/veth-no-pod", find: vethNoPod},
	{kind: "obs/pod-no-rule", find: podNoRule},
	{kind: "obs/pod-no-route", find: podNoRoute},
	{kind: "obs/rule-wrong", find: ruleWrong},
	{kind: "obs/rule-ahead", find: ruleAhead},
	{kind: "obs/main-rule", find: mainRuleGone},
	{kind: "obs/route-overlaps", find: routeOverlaps},
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
	{kind: "obs/plugin-other-release", find: pluginOtherRelease},
	{kind: "obs/setting-not-in-effect", find: settingsNotInEffect},
	{kind: "obs/max-pods-differs", find: maxPodsDiffers},
	{kind: "obs/counters", find: countersDrift},
	{kind: "obs/eniconfig-differs", find: eniConfigDiffers},
}

// moment is how long one view may lag behind another in normal operation.
const moment = 2 * time.Minute

// old reports whether something has been so for longer than views lag. Unknown times count.
func (c *Case) old(t time.Time) bool { return t.IsZero() || c.Now.Sub(t) > moment }

// onENI returns the running pods of the pool whose addresses are on an interface, as the datastore
// has it.
func (c *Case) onENI(id string) (pods []string) {
	for _, e := range c.enis() {
		if e.ID == id {
			pods = append(pods, c.running(slices.Collect(e.Records()))...)
		}
	}
	return pods
}

// running returns the running pods that addresses are assigned to.
func (c *Case) running(addresses []evidence.Address) (pods []string) {
	for _, a := range addresses {
		if a.Pod != nil && *a.Pod != "" && c.runs(*a.Pod) {
			pods = append(pods, string(*a.Pod))
		}
	}
	return pods
}

// onTrunk returns the running pods with branch ENIs.
func (c *Case) onTrunk() []string { return each(c.runningBranchPods(), podName) }

func (c *Case) runningBranchPods() []*evidence.KubePod {
	return where(c.Here(), func(p *evidence.KubePod) bool { return c.branchPod(p) && p.Phase == "Running" })
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
	return find(c.R.ENIs.Content, func(e evidence.ENI) bool { return e.ID == id })
}

func (c *Case) inMetadata(id string) (evidence.IMDSInterface, bool) {
	return find(c.metadata(), func(e evidence.IMDSInterface) bool { return e.ID == id })
}

func (c *Case) inEC2(id string) (evidence.Interface, bool) {
	return find(c.attached(), func(e evidence.Interface) bool { return e.ID == id })
}

// settling reports whether EC2 shows an interface as new or about to change.
func (c *Case) settling(id string) bool {
	e, ok := c.inEC2(id)
	return ok && (!c.old(e.CreatedAt) || e.Status == "attaching" || e.Status == "detaching")
}

// ofENI observes something of an interface, with the pods on it.
func (c *Case) ofENI(id, is, should string, severity catalogue.Severity) observation {
	return observation{subject: id, is: is, should: should, severity: severity, pods: c.onENI(id), names: map[string]string{"ENI": id}}
}

// ofPod observes something that hits a pod.
func ofPod(pod evidence.Pod, is, should string, severity catalogue.Severity) observation {
	name := string(pod)
	return observation{subject: name, is: is, should: should, severity: severity, pods: []string{name}, names: podNames(name)}
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
				if severity = catalogue.Warning; card == 0 { // pods may wait for the addresses that it has
					severity = c.ifStarving(severity)
				}
			}
			source := "imds"
			if _, known := c.described(); known {
				source = "ec2.eni"
			}
			is := "attached, " + o.kind
			if e, _ := c.inEC2(o.id); e.Requester != "" {
				is += ", requested by " + e.Requester
			}
			out = append(out, observation{
				subject: o.id, is: is, should: "in the datastore", severity: severity, source: source,
				names: map[string]string{"ENI": o.id},
			})
		}
	}
	return out
}

// cards returns the network cards that any view knows.
func (c *Case) cards() []int {
	cards := slices.Concat([]int{0}, each(c.R.ENIs.Content, func(e evidence.ENI) int { return e.Card }),
		each(c.attached(), func(e evidence.Interface) int { return e.Card }),
		each(c.metadata(), func(e evidence.IMDSInterface) int { return e.Card }))
	slices.Sort(cards)
	return slices.Compact(cards)
}

func eniNotInEC2(c *Case) (out []observation) {
	if _, known := c.described(); !known {
		return nil
	}
	for _, e := range c.R.ENIs.Content {
		if _, there := c.inEC2(e.ID); !there {
			o := observation{subject: e.ID, is: "in the datastore, not attached in EC2", should: "attached", pods: c.onENI(e.ID),
				source: "ec2.eni", fixes: []int{1, 2}}
			if e.Trunk { // the resource controller attaches one when a node joins
				o.is, o.pods, o.fixes = "the trunk, "+o.is, c.onTrunk(), []int{3}
			}
			o.severity, o.names = bySeverity(o.pods, catalogue.Warning), podNames(o.pods...)
			o.names["ENI"] = e.ID
			out = append(out, o)
		}
	}
	return out
}

func eniNotInMetadata(c *Case) (out []observation) {
	if len(c.metadata()) == 0 {
		return nil
	}
	report := func(id, is string) {
		if _, there := c.inMetadata(id); !there && !c.settling(id) &&
			!slices.ContainsFunc(out, func(o observation) bool { return o.subject == id }) {
			out = append(out, c.ofENI(id, is, "listed by the metadata service", catalogue.Warning))
		}
	}
	for _, e := range c.attached() {
		if !strings.HasPrefix(e.Type, "efa-only") { // it has no address
			report(e.ID, "attached in EC2, not listed by the metadata service")
		}
	}
	for _, e := range c.R.ENIs.Content {
		report(e.ID, "in the datastore, not listed by the metadata service")
	}
	return out
}

func eniOnlyInMetadata(c *Case) (out []observation) {
	if _, known := c.described(); !known {
		return nil
	}
	for _, e := range c.metadata() {
		if _, there := c.inEC2(e.ID); !there {
			out = append(out, c.ofENI(e.ID, "listed by the metadata service, not attached in EC2", "attached", catalogue.Warning))
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
			is := fmt.Sprintf("card %d, device %d in the datastore; card %d, device %d in %s", e.Card, e.Device, card, device, view)
			o := c.ofENI(e.ID, is, "the same", catalogue.Warning)
			o.source = source
			out = append(out, o)
		}
		d, there := c.inEC2(e.ID)
		if there && e.EFA && !strings.HasPrefix(d.Type, "efa") { // old releases do not say which interfaces are EFA
			out = append(out, observation{subject: e.ID, is: "an EFA interface in the datastore; of type " + d.Type + " in EC2", should: "the same",
				severity: catalogue.Info, source: "ec2.eni", names: map[string]string{"ENI": e.ID}})
		}
		if there && d.Device != nil {
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
	return find(c.R.Links.Content, func(l evidence.Link) bool {
		return l.ENI == id || mac != "" && l.Kind != "veth" && l.Kind != "vlan" && strings.EqualFold(l.MAC, mac)
	})
}

// linkNamed returns the host's link of a name.
func (c *Case) linkNamed(name string) (evidence.Link, bool) {
	return find(c.R.Links.Content, func(l evidence.Link) bool { return l.Name == name })
}

// linksKnown reports whether links were read together with what says whose they are.
func (c *Case) linksKnown() bool {
	return c.R.Links.OK() && (len(c.metadata()) > 0 ||
		slices.ContainsFunc(c.R.Links.Content, func(l evidence.Link) bool { return l.ENI != "" }))
}

func eniNoLink(c *Case) (out []observation) {
	if !c.linksKnown() {
		return nil
	}
	for _, e := range c.enis() {
		if _, there := c.linkOf(e.ID); !there && e.ID != "" && !c.settling(e.ID) && !e.Trunk {
			o := c.ofENI(e.ID, "no link has its MAC address "+c.macOf(e.ID), "a link", catalogue.Warning)
			o.severity = bySeverity(o.pods, o.severity)
			out = append(out, o)
		}
	}
	return out
}

func eniLinkDown(c *Case) (out []observation) {
	for _, e := range c.enis() {
		l, there := c.linkOf(e.ID)
		if !there || l.Up == nil || *l.Up {
			continue
		}
		pods, otherwise := c.onENI(e.ID), catalogue.Warning
		if e.Primary {
			otherwise = catalogue.Critical
		}
		if e.Trunk {
			pods = append(pods, c.onTrunk()...)
		}
		out = append(out, observation{subject: l.Name, is: "the link of " + e.ID + " is down", should: "up", pods: pods,
			severity: bySeverity(pods, otherwise), names: map[string]string{"ENI": e.ID, "LINK": l.Name}})
	}
	return out
}

// linkAddressesKnown reports whether the addresses of links were read: every node has one of its own.
func (c *Case) linkAddressesKnown() bool {
	return slices.ContainsFunc(c.R.Links.Content, func(l evidence.Link) bool { return len(l.Addresses) > 0 })
}

// eniLinkAddress looks for the primary address of each interface on its link.
func eniLinkAddress(c *Case) (out []observation) {
	if !c.linkAddressesKnown() {
		return nil
	}
	for _, e := range c.enis() {
		l, there := c.linkOf(e.ID)
		primary := c.primaryAddress(e.ID)
		if !there || !primary.Is4() || e.Trunk || c.Settings.IPv6 && !e.Primary || c.settling(e.ID) {
			continue
		}
		if !slices.ContainsFunc(l.Addresses, func(p netip.Prefix) bool { return p.Addr() == primary }) {
			severity, fixes := catalogue.Warning, []int{1, 2}
			if e.Primary { // DHCP gives it, which aws-node does not touch
				severity, fixes = catalogue.Critical, []int{2}
			}
			out = append(out, observation{subject: l.Name, is: fmt.Sprintf("it lacks %s, the address of %s", primary, e.ID), should: "its address",
				severity: severity, fixes: fixes, names: map[string]string{"ENI": e.ID, "LINK": l.Name}})
		}
	}
	return out
}

// primaryAddress returns the primary address of an interface, the zero value if it is unknown.
func (c *Case) primaryAddress(id string) netip.Addr {
	if m, there := c.inMetadata(id); there && len(m.IPs) > 0 { // which the daemon goes by
		return m.IPs[0]
	}
	e, _ := c.inEC2(id)
	return e.Primary
}

// hostHasPodAddress looks for addresses of pods, or for pods, on links of the host: it takes what is sent
// to the pod. Programs that configure all addresses of an interface cause it.
func hostHasPodAddress(c *Case) (out []observation) {
	owner := map[netip.Addr]string{} // of addresses for pods
	for _, e := range c.enis() {
		for _, a := range e.IPs {
			owner[a.Address] = ""
		}
		for a := range e.Records() {
			if a.Pod != nil {
				owner[a.Address] = string(*a.Pod)
			}
		}
	}
	for _, p := range c.Pooled() {
		for _, a := range p.IPs {
			owner[a] = string(p.Pod)
		}
	}
	for _, l := range c.R.Links.Content {
		for _, a := range l.Addresses {
			pod, ofPods := owner[a.Addr()]
			if !ofPods || a.Addr() == c.primaryAddress(l.ENI) {
				continue
			}
			o := observation{subject: l.Name, is: fmt.Sprintf("it has %s, an address for pods", a.Addr()), should: "no address of a pod",
				severity: catalogue.Warning, names: map[string]string{"LINK": l.Name, "ADDRESS": a.String()}}
			if pod != "" {
				o.is, o.severity, o.pods = fmt.Sprintf("it has %s, the address of %s", a.Addr(), pod), catalogue.Critical, []string{pod}
			}
			o.subject += " " + a.Addr().String()
			out = append(out, o)
		}
	}
	return out
}

func eniAddressDiffers(c *Case) (out []observation) {
	for _, m := range c.metadata() {
		e, there := c.inEC2(m.ID)
		if there && e.Primary.IsValid() && len(m.IPs) > 0 && e.Primary.Is4() && m.IPs[0] != e.Primary {
			out = append(out, observation{subject: m.ID,
				is:     fmt.Sprintf("its primary address is %s in EC2, %s in the metadata service", e.Primary, m.IPs[0]),
				should: "the same", severity: catalogue.Warning, names: map[string]string{"ENI": m.ID}})
		}
	}
	return out
}

// cidrsOf returns what an interface holds for pods, as one-address prefixes and prefixes.
func cidrsOf(ips []netip.Addr, prefixes []netip.Prefix) map[netip.Prefix]bool {
	out := map[netip.Prefix]bool{}
	for _, a := range ips {
		out[netstate.Only(a)] = true
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
	for _, a := range e.IPs {
		if a.Pod != nil || c.old(a.UnassignedAt) {
			out[netstate.Only(a.Address)] = c.running([]evidence.Address{a})
		}
	}
	for _, p := range e.Prefixes {
		out[p.CIDR] = c.running(p.IPs)
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
func differing[V any](has map[netip.Prefix]V, lacks map[netip.Prefix]bool) []netip.Prefix {
	out := where(slices.Collect(maps.Keys(has)), func(p netip.Prefix) bool { return !lacks[p] })
	slices.SortFunc(out, netip.Prefix.Compare)
	return out
}

func addressNotInEC2(c *Case) (out []observation) {
	for _, e := range c.R.ENIs.Content {
		d, there := c.inEC2(e.ID)
		if !there || e.Excluded || e.Trunk {
			continue
		}
		records := c.recorded(e)
		for _, p := range differing(records, cidrsOf(d.IPs, d.Prefixes)) {
			pods := records[p]
			out = append(out, observation{subject: cidrText(p), is: "in the datastore, not on " + e.ID + " in EC2", should: "assigned in EC2",
				pods: pods, severity: bySeverity(pods, catalogue.Warning), source: "ec2.eni",
				names: map[string]string{"ENI": e.ID, "ADDRESS": cidrText(p)}})
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
			has[netstate.Only(a.Address)] = true
		}
		for _, p := range e.Prefixes {
			has[p.CIDR] = true
		}
		for _, p := range differing(cidrsOf(d.IPs, d.Prefixes), has) {
			out = append(out, observation{subject: cidrText(p), is: "on " + e.ID + " in EC2, not in the datastore", should: "in the datastore",
				severity: catalogue.Info, source: "ec2.eni", names: map[string]string{"ENI": e.ID, "ADDRESS": cidrText(p)}})
		}
	}
	return out
}

// againstMetadata compares the metadata service with EC2, or with the datastore if EC2 was not read, and observes what
// only the one has or, listed, only the metadata service.
func (c *Case) againstMetadata(listed bool, is, should string) (out []observation) {
	for _, m := range c.metadata() {
		if len(m.IPs) == 0 || c.settling(m.ID) {
			continue
		}
		other := map[netip.Prefix]bool{}
		if d, there := c.inEC2(m.ID); there {
			other = cidrsOf(d.IPs, d.Prefixes)
		} else if e, there := c.managed(m.ID); there && !e.Excluded && !e.Trunk && !c.R.Interfaces.OK() {
			for p := range c.recorded(e) {
				other[p] = true
			}
		} else {
			continue
		}
		has, lacks := other, cidrsOf(m.IPs[1:], m.Prefixes)
		if listed {
			has, lacks = lacks, has
		}
		for _, p := range differing(has, lacks) {
			if !p.Addr().Is6() || !p.IsSingleIP() {
				out = append(out, observation{subject: cidrText(p), is: fmt.Sprintf(is, m.ID), should: should, severity: catalogue.Info,
					names: map[string]string{"ENI": m.ID}})
			}
		}
	}
	return out
}

func addressNotInMetadata(c *Case) []observation {
	return c.againstMetadata(false, "on %s, not listed by the metadata service", "listed")
}

func addressOnlyInMetadata(c *Case) []observation {
	return c.againstMetadata(true, "listed by the metadata service on %s, nowhere else", "on the interface")
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

// Saved returns the addresses in the checkpoint.
func (c *Case) Saved() map[netip.Addr]bool {
	saved := map[netip.Addr]bool{}
	for _, a := range c.R.Checkpoint.Content.Allocations {
		saved[a.Address] = true
	}
	return saved
}

func allocationNotInCheckpoint(c *Case) (out []observation) {
	if !c.checkpointed() || !c.R.ENIs.OK() {
		return nil
	}
	saved := c.Saved()
	for _, a := range c.assignments() {
		if !saved[a.Address] && c.old(a.AssignedAt) && c.runs(*a.Pod) {
			o := ofPod(*a.Pod, a.Address.String()+" is assigned, and not in the checkpoint",
				"in the checkpoint: a restart of the daemon loses it", catalogue.Warning)
			o.since = a.AssignedAt
			out = append(out, o)
		}
	}
	return out
}

func allocationOnlyInCheckpoint(c *Case) (out []observation) {
	if !c.checkpointed() || !c.R.ENIs.OK() {
		return nil
	}
	assigned := c.inUse()
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
		out = append(out, ofPod(evidence.Pod(l.name), l.address.String()+" is assigned to no pod", "assigned to it", catalogue.Error))
	}
	return out
}

// podNames are the names of pods for commands: those of the first one's namespace.
func podNames(pods ...string) map[string]string {
	var in string
	var names []string
	for _, pod := range pods {
		namespace, name, _ := strings.Cut(pod, "/")
		if in = or(in, namespace); in == namespace && name != "" {
			names = append(names, name)
		}
	}
	return map[string]string{"NAMESPACE": in, "POD": strings.Join(names, separator)}
}

func podNotInCheckpoint(c *Case) (out []observation) {
	if !c.checkpointed() || c.R.ENIs.OK() || !c.R.Pods.OK() {
		return nil // the datastore says more
	}
	saved := c.Saved()
	for _, p := range c.addressed() {
		if !saved[p.IPs[0]] && !p.StartedAt.IsZero() && c.old(p.StartedAt) {
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
		out = append(out, ofPod(p.Pod, fmt.Sprintf("%s in Kubernetes, %s in the datastore", p.IPs[0], own[0]), "the same", catalogue.Critical))
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
	report := func(pod evidence.Pod, a netip.Addr, source string) {
		if id, taken := nodes[a]; taken && !slices.ContainsFunc(out, func(o observation) bool { return o.subject == string(pod) }) {
			o := ofPod(pod, fmt.Sprintf("%s is the primary address of %s, an interface of the node", a, id),
				"an address that the node does not use", catalogue.Critical)
			o.source = source
			out = append(out, o)
		}
	}
	for _, p := range c.Here() {
		for _, a := range p.IPs {
			if !p.HostNetwork && p.Phase == "Running" {
				report(p.Pod, a, "k8s.pod")
			}
		}
	}
	for _, a := range c.assignments() {
		report(*a.Pod, a.Address, "intro.enis")
	}
	return out
}

func podAddressShared(c *Case) (out []observation) {
	for _, s := range duplicates([]*Case{c}) {
		out = append(out, observation{is: s.text, should: "each address has one pod", severity: catalogue.Critical,
			names: podNames(string(s.wrong)), fixes: s.fixes})
	}
	return out
}

// justReleased reports whether the daemon released an address of the pod moments ago: the pod has
// ended, and the list of pods is older.
func (c *Case) justReleased(pod evidence.Pod) bool {
	p, there := find(c.Here(), func(p *evidence.KubePod) bool { return p.Pod == pod })
	for a := range c.records() {
		if there && !c.old(a.UnassignedAt) && slices.Contains(p.IPs, a.Address) {
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
		name, _, _ := strings.Cut(text, " ")
		if pod := evidence.Pod(name); slices.Contains(settled, pod) && !c.justReleased(pod) {
			out = append(out, ofPod(pod, "its address is on no interface of the instance: "+text, "on an attached interface", catalogue.Critical))
		}
	}
	return out
}

// ofOtherCNI reports whether another CNI gave a pod its address: the VPC has no such range, and the daemon no record of
// it.
func (c *Case) ofOtherCNI(p *evidence.KubePod) bool {
	ranges := c.R.IMDS.Content.VPCCIDRs
	if len(ranges) == 0 || len(p.IPs) == 0 || !p.IPs[0].Is4() || p.HostNetwork || p.Annotations[limitPodENI] != "" ||
		slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(p.IPs[0]) }) ||
		slices.ContainsFunc(c.R.Subnets.Content, func(s evidence.Subnet) bool { return s.CIDR.Contains(p.IPs[0]) }) {
		return false
	}
	for a := range c.records() {
		if a.Address == p.IPs[0] || a.Pod != nil && *a.Pod == p.Pod {
			return false
		}
	}
	return true
}

func podOfOtherCNI(c *Case) (out []observation) {
	for _, p := range c.Here() {
		if p.Phase == "Running" && c.old(p.StartedAt) && c.ofOtherCNI(p) {
			out = append(out, ofPod(p.Pod, p.IPs[0].String()+" is not of the VPC: another CNI made its network", "an address of the VPC",
				catalogue.Error))
		}
	}
	return out
}

func allocationNoPod(c *Case) (out []observation) {
	if !c.R.Pods.OK() && !c.R.Links.OK() {
		return nil
	}
	dead := c.dead()
	severity := catalogue.Info
	if len(dead) >= manyLeaked && c.R.Pods.OK() && c.R.Links.OK() { // something goes on leaking: it will run out
		severity = catalogue.Warning
	}
	for _, a := range dead {
		out = append(out, observation{subject: a.Address.String(), is: "assigned to " + string(*a.Pod) + ", which is not on the node",
			should: "free", severity: severity, since: a.AssignedAt})
	}
	return out
}

// manyLeaked is how many addresses of pods that are gone are no accident any more.
const manyLeaked = 5

// settled returns the running pods with an address of the pool that started a while ago. Of pods
// that were not listed, those with an assignment.
func (c *Case) settled() (pods []evidence.Pod) {
	if !c.R.Pods.OK() {
		return nil
	}
	return each(where(c.Pooled(), func(p *evidence.KubePod) bool {
		return p.Phase == "Running" && len(p.IPs) > 0 && c.old(p.StartedAt) && p.Count <= 1
	}), func(p *evidence.KubePod) evidence.Pod { return p.Pod })
}

// vethOf returns the host's link of a pod, of the pool or of a branch ENI.
func (c *Case) vethOf(pod evidence.Pod) (evidence.Link, bool) {
	names := []string{veth(c.Settings.VethPrefix, pod), veth(netnames.BranchVethPrefix, pod)}
	return find(c.R.Links.Content, func(l evidence.Link) bool { return l.Pod == pod || slices.Contains(names, l.Name) })
}

// branch is a running pod with a branch ENI.
type branch struct {
	cluster.Branch
	pod evidence.Pod
}

// branches returns the running pods with branch ENIs that started a while ago.
func (c *Case) branches() (out []branch) {
	for _, p := range c.Here() {
		b, err := cluster.ParseBranch(p.Annotations[limitPodENI], c.Settings.IPv6)
		if err == nil && p.Phase == "Running" && c.branchPod(p) && c.old(p.StartedAt) {
			out = append(out, branch{b, p.Pod})
		}
	}
	return out
}

// cutOffPod is an observation about a pod that reaches nothing because of a link.
func cutOffPod(pod evidence.Pod, is, should, link string) observation {
	o := ofPod(pod, is, should, catalogue.Critical)
	o.names["VETH"], o.names["LINK"] = link, link
	return o
}

func podNoVeth(c *Case) (out []observation) {
	if !c.R.Links.OK() {
		return nil
	}
	note := func(pod evidence.Pod, prefix string) {
		if _, there := c.vethOf(pod); !there {
			name := veth(prefix, pod)
			out = append(out, cutOffPod(pod, "it runs, and the node has no link "+name, "a veth pair", name))
		}
	}
	for _, pod := range c.settled() {
		note(pod, c.Settings.VethPrefix)
	}
	for _, b := range c.branches() {
		note(b.pod, netnames.BranchVethPrefix)
	}
	return out
}

func podVethDown(c *Case) (out []observation) {
	pods := c.settled()
	for _, b := range c.branches() {
		pods = append(pods, b.pod)
		name := netnames.VLANDevice(b.VLAN)
		if l, _ := c.linkNamed(name); l.Up != nil && !*l.Up {
			out = append(out, cutOffPod(b.pod, "its link "+name+" is down", "up", name))
		}
	}
	for _, pod := range pods {
		if l, there := c.vethOf(pod); there && l.Up != nil && !*l.Up {
			out = append(out, cutOffPod(pod, "its link "+or(l.Name, "on the node")+" is down", "up", l.Name))
		}
	}
	return out
}

func vethNoPod(c *Case) (out []observation) {
	if !c.R.Links.OK() || !c.R.Pods.OK() {
		return nil
	}
	owned := map[string]bool{}
	for _, p := range c.Here() {
		owned[veth(c.Settings.VethPrefix, p.Pod)], owned[veth(netnames.BranchVethPrefix, p.Pod)] = true, true
		if b, err := cluster.ParseBranch(p.Annotations[limitPodENI], c.Settings.IPv6); err == nil {
			owned[netnames.VLANDevice(b.VLAN)] = true
		}
	}
	for _, l := range c.R.Links.Content {
		_, branch := netnames.VLANOfDevice(l.Name)
		if !branch && (l.Kind != "veth" || !strings.HasPrefix(l.Name, c.Settings.VethPrefix)) || l.Pod != "" || owned[l.Name] {
			continue
		}
		out = append(out, observation{subject: l.Name, is: "no pod of the node has this link", should: "removed with its pod",
			severity: catalogue.Info, names: map[string]string{"LINK": l.Name, "VETH": l.Name}})
	}
	return out
}

// lackingBy returns what running pods lack: rules, or routes to them.
func (c *Case) lackingBy(rules bool) (out []observation) {
	return each(where(c.lacking(), func(l lack) bool { return l.rule == rules }),
		func(l lack) observation { return ofPod(l.pod, "it lacks the "+l.what, "there", catalogue.Critical) })
}

func podNoRule(c *Case) []observation { return c.lackingBy(true) }

func podNoRoute(c *Case) []observation { return c.lackingBy(false) }

func ruleWrong(c *Case) (out []observation) {
	if !c.enisKnown() {
		return nil
	}
	for _, w := range c.wrongRules() {
		rule, names := fmt.Sprintf("rule %q", w.rule), ruleNames(w.rule)
		o := observation{subject: rule, is: "it is of no pod", should: "removed with its pod", severity: catalogue.Warning, names: names}
		if pod := string(w.pod); pod != "" {
			o = observation{subject: pod, is: rule + " leads its address elsewhere", should: "rules to its interface's table",
				severity: catalogue.Error, pods: []string{pod}, names: names, fixes: []int{fixWrongRule, fixUpgradeCNI}}
			if w.wanted != nil {
				o.is += fmt.Sprintf("; it stands in the place of %q", *w.wanted)
				o.severity, o.names["OWN_TABLE"], o.fixes = catalogue.Critical, strconv.Itoa(w.wanted.Table), []int{fixOwnTable, fixUpgradeCNI}
			}
		}
		out = append(out, o)
	}
	return out
}

// Fixes of net/stale-rules, from 1.
const (
	fixWrongRule = iota + 1
	fixUpgradeCNI
	fixOwnTable
)

// ruleAhead looks for rules of other programs that capture the traffic of pods before the CNI's do.
func ruleAhead(c *Case) (out []observation) {
	if !c.R.Routes.OK() {
		return nil
	}
	for _, r := range c.PolicyRules() {
		own := r.Priority == netnames.RuleToPod || r.Priority == netnames.RuleFromPod || r.Priority == netnames.RuleFromENI ||
			r.Priority == netnames.RuleBranch
		if r.Table == netnames.MainTable || r.Table == netnames.LocalTable || r.Mask != 0 || r.InLink == "lo" ||
			own && (r.From.IsSingleIP() || r.To.IsSingleIP() || r.InLink != "") {
			continue
		}
		var pods []string
		by := ""
		for _, w := range c.wired() {
			if link := c.captures(r, w); link != "" {
				pods, by = union(pods, []string{string(w.pod)}), link
			}
		}
		if len(pods) == 0 {
			continue
		}
		names := ruleNames(r)
		names["LINK"] = by
		out = append(out, observation{subject: fmt.Sprintf("rule %q", r),
			is:     fmt.Sprintf("it comes before the rules of pods, and table %d leads to %s", r.Table, by),
			should: "after them, or for other addresses", severity: catalogue.Critical, pods: pods, names: names})
	}
	return out
}

// captures returns the link to which a rule leads what a pod sends or is sent, empty if it does not
// come first, or leads where the traffic goes anyway.
func (c *Case) captures(r netstate.Rule, w wired) string {
	from, to := netnames.RuleFromPod, netnames.RuleToPod
	switch {
	case w.branch && c.strictBranches():
		from, to = netnames.RuleBranch, netnames.RuleBranch
	case w.table == netnames.MainTable:
		from = netnames.RuleKernelMain
	}
	all := func(p netip.Prefix) bool { return !p.IsValid() || p.Contains(w.address) }
	sends := r.Priority < from && all(r.From) && (!r.To.IsValid() || c.overVPC(r.To))
	gets := r.Priority < to && !r.From.IsValid() && all(r.To)
	own := c.linkOfTable(w.table)
	for _, route := range c.R.Routes.Content {
		p, _ := netip.ParsePrefix(route.To)
		if route.Table != r.Table || route.Pod == w.pod || route.Dev == "" || (route.Family == 6) != w.address.Is6() {
			continue
		}
		if sends && route.Dev != own && (isDefault(route) || c.overVPC(p)) || gets && (isDefault(route) || p.Contains(w.address)) {
			return route.Dev
		}
	}
	return ""
}

// overVPC reports whether a range has addresses of the VPC, as far as that is known.
func (c *Case) overVPC(p netip.Prefix) bool {
	if !p.IsValid() {
		return false
	}
	return slices.ContainsFunc(c.R.IMDS.Content.VPCCIDRs, p.Overlaps) ||
		slices.ContainsFunc(c.R.Subnets.Content, func(s evidence.Subnet) bool { return s.CIDR.IsValid() && p.Overlaps(s.CIDR) }) ||
		slices.ContainsFunc(c.wired(), func(w wired) bool { return p.Contains(w.address) })
}

// routeOverlaps looks for routes of the main table that lead addresses of the VPC to a link of
// another program, such as a bridge of Docker or a VPN.
func routeOverlaps(c *Case) (out []observation) {
	pods := each(where(c.wired(), func(w wired) bool { return w.table == netnames.MainTable }), func(w wired) string { return string(w.pod) })
	for _, r := range c.R.Routes.Content {
		p, err := netip.ParsePrefix(r.To)
		if r.Table != netnames.MainTable || err != nil || p.Bits() == 0 || p.IsSingleIP() || r.Pod != "" || r.Dev == "" || c.ofCNI(r.Dev) ||
			!c.overVPC(p) {
			continue
		}
		out = append(out, observation{subject: "route to " + r.To,
			is:     "the main table leads it to " + r.Dev + ", and it has addresses of the VPC",
			should: "a range that the VPC does not use", pods: pods, severity: bySeverity(pods, catalogue.Error),
			names: map[string]string{"CIDR": r.To, "LINK": r.Dev}})
	}
	return out
}

// ofCNI reports whether a link is one of an interface, of a pod or of a branch ENI.
func (c *Case) ofCNI(link string) bool {
	if _, vlan := netnames.VLANOfDevice(link); vlan || link == c.primaryLink() || strings.HasPrefix(link, c.Settings.VethPrefix) ||
		strings.HasPrefix(link, netnames.BranchVethPrefix) {
		return true
	}
	l, there := c.linkNamed(link)
	if !there {
		return !c.linksKnown()
	}
	return l.ENI != "" || l.Pod != "" || l.Kind == "device" // such as an interface that was just attached
}

// mainRuleGone looks for the kernel's own rules, in the family of the pods.
func mainRuleGone(c *Case) (out []observation) {
	family := where(c.PolicyRules(), func(r netstate.Rule) bool { return r.IPv6 == c.Settings.IPv6 })
	if len(family) == 0 {
		return nil
	}
	local := netnames.RuleLocal
	if c.strictBranches() {
		local = netnames.RuleLocalStrict
	}
	for _, want := range []netstate.Rule{{Priority: local, Table: netnames.LocalTable},
		{Priority: netnames.RuleKernelMain, Table: netnames.MainTable}} {
		want.IPv6 = c.Settings.IPv6
		if slices.ContainsFunc(family, func(r netstate.Rule) bool {
			return r.Table == want.Table && !r.From.IsValid() && !r.To.IsValid() && r.Mask == 0 && r.InLink == ""
		}) {
			continue
		}
		name := tableName(want.Table)
		out = append(out, observation{subject: fmt.Sprintf("rule %d", want.Priority), is: "no rule leads to the " + name + " table",
			should: "from all lookup " + name, severity: catalogue.Critical, pods: c.served(), names: ruleNames(want)})
	}
	return out
}

// tableName is the name of one of the kernel's own tables.
func tableName(table int) string {
	if table == netnames.LocalTable {
		return "local"
	}
	return "main"
}

func routeNoPod(c *Case) (out []observation) {
	if !c.R.Routes.OK() || !c.R.Pods.OK() || !c.R.ENIs.OK() {
		return nil
	}
	used := map[string]bool{}
	for _, p := range c.Here() {
		for _, a := range p.IPs {
			used[a.String()] = true
		}
	}
	for a := range c.inUse() {
		used[a.String()] = true
	}
	for _, r := range c.R.Routes.Content {
		to, _, _ := strings.Cut(r.To, "/")
		if r.Table == netnames.MainTable && !r.Via.IsValid() && r.Dev != "" && strings.HasPrefix(r.Dev, c.Settings.VethPrefix) && !used[to] &&
			r.Pod == "" {
			out = append(out, observation{subject: r.To, is: "a route to " + r.Dev + ", and no pod has the address", should: "removed with its pod",
				severity: catalogue.Info, names: map[string]string{"ADDRESS": to, "LINK": r.Dev}})
		}
	}
	return out
}

func podGatewayMAC(c *Case) (out []observation) {
	settled := c.settled()
	for _, a := range c.assignments() {
		own := func(n evidence.Neighbour) bool { return n.Pod == *a.Pod }
		if l, there := c.vethOf(*a.Pod); there && slices.Contains(settled, *a.Pod) && len(c.R.Neighbours.Content) > 0 &&
			!slices.ContainsFunc(c.R.Neighbours.Content, own) {
			out = append(out, cutOffPod(*a.Pod, "it has no entry of its gateway",
				"a permanent one: nothing answers for the gateway's address", l.Name))
		}
	}
	for _, n := range c.R.Neighbours.Content {
		l, there := c.vethOf(n.Pod)
		gateway := n.Address == netnames.GatewayIPv4(0) || n.Address == netnames.GatewayIPv6(0)
		if !there || l.MAC == "" || !gateway {
			continue
		}
		if strings.EqualFold(n.MAC, l.MAC) {
			if n.State != "" && n.State != "permanent" && n.State != "noarp" {
				// Nothing answers for the gateway's address, so the kernel cannot renew the entry.
				o := cutOffPod(n.Pod, fmt.Sprintf("the entry of its gateway %s is %s", n.Address, n.State),
					"permanent: nothing answers when it expires", l.Name)
				if n.State != "failed" && n.State != "incomplete" {
					o.severity = catalogue.Warning
				}
				out = append(out, o)
			}
			continue
		}
		o := cutOffPod(n.Pod, fmt.Sprintf("its gateway %s has %s, the link on the node %s", n.Address, or(n.MAC, "no MAC address"), l.MAC),
			"the same MAC address",
			or(l.Name, veth(c.Settings.VethPrefix, n.Pod)))
		o.names["ADDRESS"] = n.MAC
		out = append(out, o)
	}
	return out
}

// serving reports whether an interface has a routing table for pods of its own.
func (c *Case) serving(e evidence.ENI) bool {
	return !e.Primary && !e.Trunk && !e.Excluded && tableOf(e) != netnames.MainTable && !c.settling(e.ID) && len(e.IPs)+len(e.Prefixes) > 0
}

func eniNoRoute(c *Case) (out []observation) {
	if !c.R.Routes.OK() || c.Settings.IPv6 {
		return nil
	}
	for _, e := range c.enis() {
		if c.serving(e) && c.linkOfTable(tableOf(e)) == "" {
			is := "it has no default route, so nothing leaves by " + or(e.ID, "its interface")
			out = append(out, c.ofTable(e, is, "a default route by its link"))
		}
	}
	return out
}

// ofTable observes something of an interface's routing table, with the pods on the interface.
func (c *Case) ofTable(e evidence.ENI, is, should string) observation {
	o := c.ofENI(e.ID, is, should, catalogue.Error)
	o.severity = bySeverity(o.pods, o.severity)
	o.names["TABLE"] = strconv.Itoa(tableOf(e))
	o.subject = "table " + o.names["TABLE"]
	return o
}

func eniRouteWrong(c *Case) (out []observation) {
	for _, e := range c.enis() {
		is, should := c.defaultWrong(e, tableOf(e))
		if is == "" || !c.serving(e) {
			continue
		}
		o := c.ofTable(e, is, should)
		if l, there := c.linkOf(e.ID); there {
			o.names["LINK"] = l.Name
		}
		out = append(out, o)
	}
	return out
}

// defaultWrong says how the default route of an interface's table leads elsewhere than by its link to
// the router of its subnet, which has the subnet's second address; empty if it does not.
func (c *Case) defaultWrong(e evidence.ENI, table int) (is, should string) {
	l, _ := c.linkOf(e.ID)
	router := c.router(e.Subnet)
	for _, r := range c.R.Routes.Content {
		switch {
		case r.Table != table || !isDefault(r) || r.Family == 6:
		case c.linksKnown() && l.Name != "" && r.Dev != "" && r.Dev != l.Name:
			is, should = fmt.Sprintf("its default route leaves by %s, %s is %s", r.Dev, e.ID, l.Name), "by the interface's link"
		case router.IsValid() && r.Via.IsValid() && r.Via != router:
			is, should = fmt.Sprintf("its default route goes by %s, the router of %s is %s", r.Via, e.Subnet, router), "by the router of the subnet"
		default:
			return "", "" // this one works
		}
	}
	return is, should
}

// router returns the address of a subnet's router, zero if unknown.
func (c *Case) router(subnet string) netip.Addr {
	for _, s := range c.R.Subnets.Content {
		if s.ID == subnet && subnet != "" && s.CIDR.IsValid() && s.CIDR.Addr().Is4() {
			return s.CIDR.Masked().Addr().Next()
		}
	}
	return netip.Addr{}
}

// nodeNoDefaultRoute looks for the default route of the node, in the family of the pods too.
func nodeNoDefaultRoute(c *Case) (out []observation) {
	if !c.R.Routes.OK() || len(c.R.Routes.Content) == 0 {
		return nil
	}
	id, _ := c.primary()
	link := ""
	if l, there := c.linkOf(id); there && (c.macOf(id) != "" || l.ENI == id) {
		link = l.Name
	}
	note := func(is string, renew int) {
		out = append(out, observation{subject: "table main", is: is, should: "one by the primary interface", severity: catalogue.Critical,
			names: map[string]string{"PRIMARY": c.primaryLink()}, fixes: []int{renew, fixReplaceNode}})
	}
	found := map[bool][]string{} // links, by whether it is IPv6
	for _, r := range c.R.Routes.Content {
		if r.Table == netnames.MainTable && isDefault(r) {
			six := r.Family == 6 || r.Via.Is6() || r.To == "::/0"
			found[six] = append(found[six], r.Dev)
		}
	}
	switch four := found[false]; {
	case len(four) == 0 && !(c.Settings.IPv6 && len(found[true]) > 0):
		note("it has no default route", fixRenew)
	case link != "" && len(four) > 0 && !slices.Contains(four, link) && !slices.Contains(four, ""):
		note(fmt.Sprintf("its default route leaves by %s, the primary interface is %s", four[0], link), fixRenew)
	default:
		if is, _ := c.defaultWrong(evidence.ENI{ID: id, Subnet: c.subnetOfNode()}, netnames.MainTable); is != "" && len(four) == 1 {
			note(is, fixRenew)
		}
	}
	if c.Settings.IPv6 && len(found[true]) == 0 {
		note("it has no default route for IPv6", fixReconfigure)
		for _, o := range sysctlWrong(c) {
			if strings.HasSuffix(o.subject, ".accept_ra") {
				last := &out[len(out)-1]
				last.is += fmt.Sprintf("; %s is %s: the kernel takes none from the router while it forwards", o.subject, o.is)
				last.fixes = append([]int{fixAcceptRA}, last.fixes...)
			}
		}
	}
	return out
}

// The fixes of obs/node-no-default-route, from 1.
const (
	fixRenew = iota + 1
	fixReconfigure
	fixReplaceNode
	fixAcceptRA
)

func nodeSecondDefaultRoute(c *Case) (out []observation) {
	id, _ := c.primary()
	own, there := c.linkOf(id)
	for _, r := range c.R.Routes.Content {
		// Which of an instance's links is the primary one says the metadata service.
		if r.Table != netnames.MainTable || !isDefault(r) || !there || c.macOf(id) == "" && own.ENI != id || own.Name == "" ||
			r.Dev == own.Name || r.Dev == "" ||
			c.unmanagedLink(r.Dev) {
			continue
		}
		out = append(out, observation{subject: r.Dev,
			is:     "the main table has a default route by it as well: a program of the host has configured the interface",
			should: "only by " + own.Name, severity: catalogue.Warning, names: map[string]string{"LINK": r.Dev}})
	}
	return out
}

// unmanagedLink reports whether a link belongs to an interface that the CNI leaves alone.
func (c *Case) unmanagedLink(name string) bool {
	return c.R.ENIs.OK() && slices.ContainsFunc(c.metadata(), func(m evidence.IMDSInterface) bool {
		_, managed := c.managed(m.ID)
		l, there := c.linkOf(m.ID)
		return there && l.Name == name && !managed
	})
}

// branches returns the branch ENIs that pods of the node name, with the pods.
func (c *Case) podBranches() map[string]string {
	out := map[string]string{}
	for p := range c.pods() {
		for _, id := range cluster.BranchENIs(p.Annotations[limitPodENI]) {
			out[id] = string(p.Pod)
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
		out = append(out, observation{subject: subject,
			is:     fmt.Sprintf("a branch of %s that no pod names, made %s ago", trunk, age(c.Now.Sub(e.CreatedAt))),
			should: "deleted a minute after its pod", severity: catalogue.Warning, since: e.CreatedAt, source: "ec2.eni",
			names: map[string]string{"ENI": e.ID}})
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
	return human.Plural(int(d.Minutes()), "minute", "minutes")
}

func podBranchGone(c *Case) (out []observation) {
	shown := map[string]bool{}
	for i := range c.R.Interfaces.Content {
		shown[c.R.Interfaces.Content[i].ID] = true
	}
	if !shown[c.trunk()] {
		return nil // the list is not that of the node's VPC
	}
	for _, p := range c.Here() {
		ids := cluster.BranchENIs(p.Annotations[limitPodENI])
		if len(ids) > 0 && p.Phase == "Running" && c.old(p.StartedAt) && !shown[ids[0]] {
			out = append(out, ofPod(p.Pod, "its branch ENI "+ids[0]+" does not exist", "there", catalogue.Critical))
		}
	}
	return out
}

func podNoVLAN(c *Case) (out []observation) {
	if !c.R.Links.OK() {
		return nil
	}
	for _, b := range c.branches() {
		name := netnames.VLANDevice(b.VLAN)
		l, there := c.linkNamed(name)
		if !there {
			out = append(out, cutOffPod(b.pod, "the node has no link "+name, "a VLAN device of its trunk", name))
		} else if l.VLAN != nil && *l.VLAN != b.VLAN {
			out = append(out, cutOffPod(b.pod, fmt.Sprintf("its link %s has the tag %d", name, *l.VLAN),
				fmt.Sprintf("the tag %d of its branch ENI", b.VLAN), name))
		} else if trunk, known := c.linkOf(c.trunk()); known && l.Parent != "" && l.Parent != trunk.Name {
			out = append(out, cutOffPod(b.pod, "its link "+name+" is on "+l.Parent, "on "+trunk.Name+", the link of the trunk", name))
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
	for _, p := range c.Here() {
		if p.Phase == "Running" && !p.HostNetwork && !selected[p.Pod] {
			out = append(out, ofPod(p.Pod, "no PolicyEndpoint selects it, and the mode is strict: its traffic is dropped", "selected",
				catalogue.Error))
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
			out = append(out, observation{subject: e.Name, is: "it selects " + string(pod) + ", which was not listed", should: "pods that exist",
				severity: catalogue.Info})
		}
	}
	return out
}

func nodeInstance(c *Case) (out []observation) {
	kube, imds := c.R.Node.Content.Instance, c.R.IMDS.Content.Instance
	if kube != "" && imds != "" && kube != imds {
		out = append(out, observation{subject: c.Name, is: fmt.Sprintf("%s in Kubernetes, %s in the metadata service", kube, imds),
			should: "the same instance", severity: catalogue.Error, source: "imds", fixes: []int{1}})
	}
	for _, i := range c.R.Instances.Content {
		if i.ID != or(imds, kube) || i.ID == "" || i.State == "" || i.State == "running" || i.State == "pending" {
			continue
		}
		o := observation{subject: i.ID, is: "EC2 shows it as " + i.State, should: "running", severity: catalogue.Error, since: i.StateAt,
			source: "ec2.inst", names: map[string]string{"INSTANCE": i.ID}, fixes: []int{3}}
		if i.State == "shutting-down" || i.State == "terminated" {
			o.fixes = []int{2}
			if !i.StateAt.IsZero() && c.Now.Sub(i.StateAt) < schedulingTime { // every scale-in does so; the Node goes within minutes
				o.severity = catalogue.Info
			}
		}
		out = append(out, o)
	}
	return out
}

func nodeInstanceType(c *Case) []observation {
	kube, own, view := c.R.Node.Content.InstanceType, c.R.IMDS.Content.InstanceType, "the metadata service"
	if i, there := c.ownInstance(); there && own == "" {
		own, view = i.InstanceType, "EC2"
	}
	if kube == "" || own == "" || kube == own {
		return nil
	}
	return []observation{{subject: c.Name, is: fmt.Sprintf("%s in Kubernetes, %s in %s", kube, own, view), should: "the same type",
		severity: catalogue.Warning, names: map[string]string{"TYPE": own}}}
}

func pluginOtherRelease(c *Case) (out []observation) {
	for _, b := range c.R.CNI.Content.Bin {
		if b.OfImage != nil && !*b.OfImage && (b.Name == "aws-cni" || b.Name == "egress-cni") {
			is := "the installed file is not that of the daemon's image"
			if !b.ModifiedAt.IsZero() {
				is += "; it was written on " + b.ModifiedAt.UTC().Format(time.DateTime)
			}
			out = append(out, observation{subject: b.Name, is: is, should: "of the same release", severity: catalogue.Warning})
			continue
		}
		if b.Name != "aws-cni" || b.Version == nil || c.releaseAt == "host.cni" || c.Ours || c.begun().State == Yes ||
			c.releaseAt == "k8s.ds" && c.rollsOut() { // the node's pod may be of the release before
			continue
		}
		if v, known := evidence.ParseVersion(*b.Version); known && c.Release != (evidence.Version{}) && v != c.Release {
			out = append(out, observation{subject: b.Name, is: fmt.Sprintf("the installed one is %s, the daemon %s", v, c.Release),
				should: "of the same release: the daemon refuses others", severity: catalogue.Warning})
		}
	}
	return out
}

// rollsOut reports whether some pods of aws-node are not yet of the DaemonSet's release.
func (c *Case) rollsOut() bool {
	ds := c.R.DaemonSet.Content
	return ds != nil && ds.Pods.Desired != nil && ds.Pods.Updated != nil && *ds.Pods.Updated < *ds.Pods.Desired
}

// maxPodsDiffers looks for what kubelet was given after it started.
func maxPodsDiffers(c *Case) (out []observation) {
	if runs, installed := c.R.Node.Content.KubeletVersion, c.R.Kubelet.Content.Version; runs != "" && installed != "" && runs != installed {
		out = append(out, observation{subject: c.Name + " kubelet", is: fmt.Sprintf("%s runs, %s is installed", runs, installed),
			should: "the same", severity: catalogue.Info})
	}
	node := c.R.Node.Content.Capacity.Pods
	if node == nil {
		return out
	}
	note := func(of string, n *int) {
		if n != nil && *n != *node {
			out = append(out, observation{subject: c.Name, is: fmt.Sprintf("max-pods is %d %s, %d in the Node", *n, of, *node), should: "the same",
				severity: catalogue.Info})
		}
	}
	note("in kubelet's configuration", c.R.Kubelet.Content.MaxPods)
	note("for the scheduler", c.R.Node.Content.Allocatable.Pods)
	if m := c.R.Summary.Content.MaxPods; m != nil && m.Source == "node" {
		note("for the daemon", m.Value)
	}
	return out
}

// countersDrift compares the counters by which a daemon sizes its pool with the addresses that it has.
func countersDrift(c *Case) (out []observation) {
	if !c.R.ENIs.OK() || c.Settings.IPv6 {
		return nil
	}
	for _, p := range c.Pools {
		k, there := c.R.Counters.Content[strconv.Itoa(p.card)]
		assigned := 0
		for _, e := range c.R.ENIs.Content {
			for a := range e.Records() {
				if e.Card == p.card && a.Pod != nil {
					assigned++
				}
			}
		}
		if !there || k.TotalIPs == p.sum && k.AssignedIPs == assigned {
			continue
		}
		o := observation{subject: fmt.Sprintf("card %d", p.card),
			is: fmt.Sprintf("it counts %d addresses, %d of them assigned; it has %d, %d of them assigned", k.TotalIPs, k.AssignedIPs, p.sum,
				assigned),
			should: "the same", severity: catalogue.Info}
		if p.card == 0 && k.TotalIPs-k.AssignedIPs > p.sum-assigned { // it believes that it has free addresses, and adds none
			o.severity = c.ifStarving(o.severity)
		}
		out = append(out, o)
	}
	return out
}

// eniConfigDiffers compares the ENIConfig of the Node's label or annotation with what the daemon uses, and the
// resource controller for branch ENIs.
func eniConfigDiffers(c *Case) (out []observation) {
	if !c.R.Node.OK() || !c.Knows("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG") || !c.Settings.CustomNetworking {
		return nil
	}
	want, known := c.eniConfigName()
	note := func(who, has, what, source string, severity catalogue.Severity) {
		if known && has != "" && has != want {
			out = append(out, observation{subject: who, is: fmt.Sprintf("%s; the Node names %s", has, want),
				should: "the same: " + what + " come into its subnet", severity: severity,
				source: source, names: podNames(string(c.daemonPod().Pod))})
		}
	}
	if name := c.R.ENIConfig.Content; name != nil {
		note("the daemon", *name, "new interfaces", "intro.eniconfig", catalogue.Info) // it soon sees the Node's change
	}
	if n := c.R.CNINode.Content; n != nil {
		for _, f := range n.Features {
			if f.Name == cluster.FeatureCustomNetworking {
				note("the CNINode", f.Value, "branch ENIs", "k8s.cninode", catalogue.Warning) // written when it starts
			}
		}
	}
	return out
}
