package causes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

var eniRules = []Rule{
	{Code: "eni/leaked", All: leaked},
	{Code: "eni/foreign-slots", Node: foreignSlots},
	{Code: "eni/region-quota", Node: regionQuota},
	{Code: "eni/ec2-rejected", Node: ec2Rejected},
	{Code: "eni/setup-failed", Node: joinFailed},
	{Code: "eni/detached-out-of-band", Node: detachedOutOfBand},
	{Code: "eni/imds-stale", Node: imdsStale},
	{Code: "eni/node-unschedulable", Node: nodeUnschedulable},
	{Code: "eni/provisioning-off", Node: provisioningOff},
}

// sweepDue is how long after its instance ended an interface may still be waiting for the hourly
// sweep.
const sweepDue = 90 * time.Minute

// leaked examines what EC2 shows of the account, which is the same on all nodes.
func leaked(cs []*Case) []Result {
	const path, expected = "interfaces of ended instances", "none"
	found, seen, due := map[string]evidence.Interface{}, map[string]bool{}, true
	var by *Case
	twice, read := false, map[*evidence.Interface]bool{}
	for _, c := range cs {
		if !c.R.Interfaces.OK() || len(c.R.Interfaces.Content) > 0 && read[&c.R.Interfaces.Content[0]] {
			continue
		}
		by = c
		if len(c.R.Interfaces.Content) > 0 {
			read[&c.R.Interfaces.Content[0]] = true // nodes share what EC2 returned about the account
		}
		for _, e := range c.orphans() {
			found[e.ID] = e
			due = due && c.sweepDue(e)
		}
		if c.Earlier != nil && c.Earlier.R.Interfaces.OK() && c.Now.Sub(c.Earlier.Now) >= time.Minute {
			twice = true
			for _, e := range c.Earlier.orphans() {
				seen[e.ID] = true
			}
		}
	}
	if by == nil {
		return append(staying(cs), Result{Decisive: []Fact{cs[0].Unread("ec2.eni", path, expected, cs[0].R.Interfaces.Missing)}})
	}
	subnets, number, holds := map[string]int{}, 0, 0
	again := by.Unread("ec2.eni", path+", a minute before", expected, "one reading only")
	lasting := 0
	for _, e := range found {
		if twice && !seen[e.ID] {
			continue
		}
		n := max(1, e.Count)
		number, holds, lasting = number+n, holds+n*e.Holds(), lasting+1
		subnets[e.Subnet] += n * e.Holds()
	}
	if twice {
		again = by.Known("ec2.eni", again.Path, expected, fmt.Sprintf("%d of %d", lasting, len(found)), lasting > 0)
	}
	most, nearlyEmpty := "", false
	for id, n := range subnets {
		if most == "" || n > subnets[most] || n == subnets[most] && id < most {
			most = id
		}
		for _, c := range cs {
			if s, ok := c.subnet(id); ok && s.Available != nil && 20**s.Available < usableSize(s.CIDR) {
				nearlyEmpty = true
			}
		}
	}
	sweep := "the hourly sweep is on"
	if by.Settings.LeakSweepOff {
		sweep = "the hourly sweep is off (DISABLE_LEAKED_ENI_CLEANUP)"
	}
	cd := Result{
		Scope: document.FindingScope{Cluster: true, Subnet: most},
		Summary: fmt.Sprintf("interfaces that belong to no instance: %d, which hold %d addresses, most of them of %s; %s", number, holds,
			or(most, "no subnet"), sweep),
		Decisive: []Fact{by.Known("ec2.eni", path, expected, len(found), len(found) > 0)},
		unless:   []Fact{Not(again)},
	}
	if ids := slices.Sorted(maps.Keys(found)); len(ids) > 0 && ids[0] != "" {
		cd.names = map[string]string{"ENI": ids[0]}
		cd.Summary += "; " + Some(ids)
	}
	switch {
	case due:
		cd = cd.As(catalogue.Info)
	case nearlyEmpty:
		cd = cd.As(catalogue.Error)
	}
	return append(staying(cs), cd)
}

// staying returns notes about primary interfaces that will be left behind.
func staying(cs []*Case) (notes []Result) {
	for _, c := range cs {
		if kept := c.keepsPrimary(); kept.State == Yes {
			note := Result{Summary: "the primary interface and its addresses are left behind when the instance is terminated: " + kept.Value,
				Decisive: []Fact{kept}, Nodes: []string{c.Name}}
			notes = append(notes, note.As(catalogue.Info))
		}
	}
	return notes
}

// keepsPrimary states that EC2 will not delete the primary interface with the instance.
func (c *Case) keepsPrimary() Fact {
	const path, expected = "deleteOnTermination of the primary interface", "true"
	if e, there := find(c.attached(), evidence.Interface.IsPrimary); there {
		return c.Known("ec2.eni", path, expected, fmt.Sprintf("%t for %s", e.DeleteOnTermination, e.ID), !e.DeleteOnTermination)
	}
	return c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{"Primary ENI will not get deleted when node terminates"},
		any: true})
}

// orphans returns the unattached interfaces that our daemon, upstream's, or the VPC resource
// controller made.
func (c *Case) orphans() (out []evidence.Interface) {
	for _, e := range c.R.Interfaces.Content {
		described := resync.ENI{ID: ipam.ENIID(e.ID), Status: e.Status, InstanceID: e.Instance, Description: e.Description, Tags: e.Tags}
		verdict := resync.Leaked([]resync.ENI{described}, resync.LeakInput{Now: c.Now, ClusterName: c.Settings.ClusterName})[0]
		controllers := e.Status == resync.StatusAvailable && (e.Description == "aws-k8s-trunk-eni" || e.Description == "aws-k8s-branch-eni") &&
			e.Tags["eks:eni:owner"] == "eks-vpc-resource-controller" && !e.CreatedAt.IsZero() && c.Now.Sub(e.CreatedAt) > time.Hour
		left := e.Status == resync.StatusAvailable && c.primaryLeftBehind(e) && c.Now.Sub(e.CreatedAt) > resync.LeakMinAge
		if verdict.Action == resync.LeakDelete || controllers || left {
			out = append(out, e)
		}
	}
	return out
}

// primaryLeftBehind reports whether an interface is the primary one of an instance and outlives
// it. A daemon tags such an interface but did not make it.
func (c *Case) primaryLeftBehind(e evidence.Interface) bool {
	return !e.DeleteOnTermination && e.Tags[resync.TagInstanceID] != "" && !strings.HasPrefix(e.Description, resync.DescriptionPrefix) &&
		e.Tags[resync.TagNoManage] != "true" && (c.Settings.ClusterName == "" || e.Tags[resync.TagClusterName] == c.Settings.ClusterName)
}

// sweepDue reports whether the next sweep will delete the interface.
func (c *Case) sweepDue(e evidence.Interface) bool {
	if c.Settings.LeakSweepOff || c.R.IAM.Content.Actions["ec2:DeleteNetworkInterface"] == "denied" {
		return false
	}
	return slices.ContainsFunc(c.R.Instances.Content, func(i evidence.Instance) bool {
		return i.ID == e.Tags[resync.TagInstanceID] && i.State == "terminated" && !i.StateAt.IsZero() && c.Now.Sub(i.StateAt) < sweepDue
	})
}

func foreignSlots(c *Case) []Result {
	taken := func(c *Case) Fact {
		return c.onInterfaces("interfaces that the daemon does not manage", "none", func() (any, State) {
			others := c.unknownENIs(0)
			return Some(kinds(others)), stateOf(len(others) > 0)
		})
	}
	found := c.lasting(taken)
	stated := On(c, c.R.Summary, "intro.summary", "interfaces that EC2 attaches", "as many as the type takes",
		func(introspect.Summary) (any, State) {
			if s := c.stated(0).StatedENILimit; s != nil {
				return fmt.Sprintf("%d of %d", s.Limit, s.OfType), Yes
			}
			return "no limit below the type's", No
		})
	if c.R.Summary.Missing == evidence.MissingAbsent {
		stated.State, stated.Value = No, "not known: the daemon is upstream's"
	}
	refused := Either(c.ec2Fails("AttachmentLimitExceeded"), c.failures(grown, cause.ENIAttachLimit), onlyIfTrue(stated))
	full := Either(c.onPool("slots for interfaces", "at least 1 free", func(p *pool) (any, State) {
		if !p.sized {
			return nil, Unread
		}
		return fmt.Sprintf("%d and %d unmanaged, of %d", p.enis, p.unmanaged, p.maxENI), stateOf(!p.roomForENI)
	}), refused)
	decisive, who := found, Some(kinds(c.unknownENIs(0)))
	if p := c.pool(); found.State == Unread && refused.State == Yes && p != nil && p.sized && p.enis < p.limitENI {
		decisive, who = refused, "EC2 refuses to attach more than "+fmt.Sprint(p.enis)+" for the daemon"
	}
	switch s := c.stated(0).StatedENILimit; {
	case found.State == Yes:
	case s != nil:
		decisive, who = stated, fmt.Sprintf("EC2 attaches no more than %d, the type takes %d, and none of others was seen", s.Limit, s.OfType)
	case found.State == No && stated.State == Unread:
		decisive = stated // EC2 may count interfaces that cannot be seen
	}
	cd := Result{
		Summary:  fmt.Sprintf("interfaces that the daemon does not manage take its slots: %s; %s", who, poolText(c.pool())),
		Decisive: []Fact{decisive},
		required: []Fact{c.dry(), full}, unless: []Fact{Not(c.short())},
	}
	if found.State != Yes || c.dry().State != No {
		return []Result{cd}
	}
	note := Result{Summary: "the instance has interfaces that the daemon does not manage: " + Some(kinds(c.unknownENIs(0))),
		Decisive: []Fact{found}}
	return []Result{cd, note.As(catalogue.Info)}
}

// onInterfaces states something about the instance's interfaces compared with those of the
// datastore.
func (c *Case) onInterfaces(path, expected string, judge func() (any, State)) Fact {
	switch {
	case !c.R.ENIs.OK():
		return c.Unread("intro.enis", path, expected, c.R.ENIs.Missing)
	case c.R.Interfaces.OK() && c.instance() != "":
		return On(c, c.R.Interfaces, "ec2.eni", path, expected, func([]evidence.Interface) (any, State) { return judge() })
	}
	return On(c, c.R.IMDS, "imds", path, expected, func(i evidence.IMDS) (any, State) {
		if i.Token != "ok" && len(i.ENIs) == 0 {
			return nil, Unread
		}
		return judge()
	})
}

// unknownENIs returns the attached interfaces that the daemon does not manage and does not want
// to. An unmarked one may be the daemon's own if the daemon logs that it could not set one up.
func (c *Case) unknownENIs(card int) []other {
	failed, _, _ := c.lastMessage(setupErrors)
	return slices.DeleteFunc(c.foreign(card), func(o other) bool { return o.made || o.kind == kindUnknown && failed.text != "" })
}

func kinds(others []other) []string {
	return each(others, func(o other) string { return fmt.Sprintf("%s (%s)", o.id, o.kind) })
}

func regionQuota(c *Case) []Result {
	used := On(c, c.R.Quota, "ec2.quota", "interfaces of the region", "fewer than the quota", func(q evidence.Quota) (any, State) {
		if q.Limit == nil || q.Used == nil {
			return nil, Unread
		}
		return fmt.Sprintf("%d of %d", *q.Used, *q.Limit), stateOf(*q.Used >= *q.Limit)
	})
	summary, names := "EC2 creates no more interfaces: the account's quota for the region is used up", map[string]string{}
	if limit := c.R.Quota.Content.Limit; limit != nil {
		names["NUMBER"] = strconv.Itoa(2 * *limit)
	}
	if used.State == Yes {
		summary += fmt.Sprintf(" (%s)", used.Value)
	}
	return []Result{{Summary: summary, names: names,
		Decisive: []Fact{Either(c.ec2Fails("NetworkInterfaceLimitExceeded"), Both(used, c.dry(), c.short()))}}}
}

// rejections are EC2's error codes for bad interface parameters. The general ones count only when
// an interface is being made.
var (
	rejections = []string{"InvalidSubnetID.NotFound", "InvalidSubnet.Range", "InvalidGroup.NotFound", "InvalidSecurityGroupID.NotFound",
		"SecurityGroupsPerInterfaceLimitExceeded"}
	generalRejections = []string{"CreateNetworkInterface…InvalidParameterCombination", "CreateNetworkInterface…InvalidParameterValue",
		"create network interface…InvalidParameter"}
)

func ec2Rejected(c *Case) []Result {
	refused := c.counted(c.active(pattern{sources: daemonSays, texts: slices.Concat(rejections, generalRejections),
		except: []string{textNeither}, cured: grown}), rejections)
	cd := Result{Summary: "EC2 refuses to create an interface: " + quoted(refused), Decisive: []Fact{refused}}
	name, _ := c.eniConfigName()
	primary, _ := c.primary()
	cd.names = map[string]string{"NAME": name, "ENI": primary}
	if c.Knows("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG") && !c.Settings.CustomNetworking {
		return []Result{cd.WithFixes(2, 3)}
	}
	return []Result{cd}
}

// setupErrors are what the daemon logs about an attached interface that it could not use.
var setupErrors = pattern{sources: daemonSays, cured: grown, except: []string{"primary ENI"}, texts: []string{
	"Unable to discover attached IPs for ENI from metadata service", "giving up trying to retrieve ENIs from metadata service",
	"failed to find the link which uses MAC address", "no interface found which uses mac address",
}}

func joinFailed(c *Case) []Result {
	absent := c.lasting(func(c *Case) Fact {
		return c.onInterfaces("attached interfaces that the pool lacks", "none", func() (any, State) {
			ids := c.unjoined()
			if len(ids) == 0 && c.logSource("log.ipamd").missing != "" &&
				slices.ContainsFunc(c.foreign(0), func(o other) bool { return o.kind == kindUnknown }) {
				return nil, Unread // only the log shows whose they are
			}
			return Some(ids), stateOf(len(ids) > 0)
		})
	})
	lines := setupErrors
	lines.any = absent.State == Yes
	logged := Either(c.active(lines), c.failures(grown, cause.ENILinkMissing))
	decisive, required := absent, logged
	if absent.State == Unread {
		decisive, required = logged, absent
		if last, _, _ := c.lastMessage(setupErrors); logged.State == No && last.text != "" {
			decisive = absent // old messages decide nothing
		}
	}
	ids := c.unjoined()
	return []Result{{
		Summary:  "an attached interface never joined the pool: " + or(strings.Join(ids, ", "), logged.Value),
		Decisive: []Fact{decisive},
		unless:   []Fact{Not(required)},
		Supporting: []Fact{On(c, c.R.Links, "kern.link", "links of these interfaces", "one each", func(links []evidence.Link) (any, State) {
			has := slices.ContainsFunc(links, func(l evidence.Link) bool { return slices.Contains(ids, l.ENI) })
			return map[bool]string{true: "there", false: "missing"}[has], stateOf(!has)
		})},
	}}
}

// unjoined returns attached interfaces that the daemon made and that are missing or empty in the
// datastore, except those made moments ago.
func (c *Case) unjoined() (ids []string) {
	failed, _, _ := c.lastMessage(setupErrors)
	for _, o := range c.foreign(0) {
		if o.made || o.kind == kindUnknown && failed.text != "" {
			ids = append(ids, o.id)
		}
	}
	for _, e := range c.R.ENIs.Content {
		described, _ := c.inEC2(e.ID)
		if !e.Excluded && !e.Trunk && len(e.IPs)+len(e.Prefixes) == 0 && len(described.IPs)+len(described.Prefixes) > 0 {
			ids = append(ids, e.ID)
		}
	}
	return slices.DeleteFunc(ids, func(id string) bool {
		return slices.ContainsFunc(c.attached(), func(e evidence.Interface) bool { return e.ID == id && !c.old(e.CreatedAt) })
	})
}

func detachedOutOfBand(c *Case) []Result {
	cut := c.onInterfaces("running pods whose address is on no attached interface", "none", func() (any, State) {
		if !c.R.Pods.OK() {
			return nil, Unread
		}
		pods := c.cutOff()
		return Some(pods), stateOf(len(pods) > 0)
	})
	journal := c.Unread("intro.events", "items[].kind", "none", c.R.Journal.Missing)
	if c.R.Journal.OK() {
		journal = On(c, c.R.Journal, "intro.events", "items[].kind", "no eni-vanished, no quarantined",
			func(doc introspect.NodeEvents) (any, State) {
				e, there := find(doc.Items, func(e introspect.Event) bool {
					return e.Kind == introspect.EventENIVanished || e.Kind == introspect.EventQuarantined
				})
				return or(strings.TrimSpace(string(e.Kind)+" "+e.ENIID), "none"), stateOf(there && (cut.State == Yes || e.At.After(c.recent())))
			})
	}
	removed := c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{"Force removing eni…assigned pods", "Force removing eni"},
		any: cut.State == Yes})
	for _, counter := range []string{"awscni_force_removed_enis", "awscni_force_removed_ips"} {
		if f := c.series(counter); f.State == Yes && removed.State != Yes {
			removed = f
		}
	}
	if journal.State == Yes || c.Ours {
		removed = journal
	}
	if cut.State == No && !c.R.Interfaces.OK() { // the metadata service lags
		cut = c.Unread("ec2.eni", cut.Path, cut.Expected, c.R.Interfaces.Missing)
	}
	whom := removed.Value
	pods := c.hit("obs/eni-not-in-ec2")
	gone := c.observesThose(func(o observation) bool { return len(o.pods) > 0 }, "obs/eni-not-in-ec2")
	if gone.State == Yes {
		whom = fmt.Sprintf("%s; %s", gone.Value, podsText(pods))
	} else if cut := c.cutOff(); len(cut) > 0 {
		whom = Some(cut)
		for _, text := range cut {
			pod, _, _ := strings.Cut(text, " ")
			pods = append(pods, pod)
		}
	}
	fixes := []int{1, 2}
	if lost := c.seen("obs/eni-not-in-ec2"); len(lost) == 1 && len(c.cutOff()) == 0 {
		fixes = lost[0].fixes // of the trunk others
	}
	return []Result{{
		Summary:  "an interface in use was detached from the instance, and its pods are cut off: " + whom,
		Decisive: []Fact{orElse(removed, onlyIfTrue(gone))},
		unless:   []Fact{Not(orElse(cut, onlyIfTrue(gone)))},
		pods:     pods, fixes: fixes, names: podNames(pods...),
	}}
}

// cutOff returns the running pods whose addresses are on no attached interface.
func (c *Case) cutOff() (out []string) {
	on := func(a netip.Addr) bool {
		return slices.ContainsFunc(c.attached(), func(e evidence.Interface) bool { return onInterface(a, e.IPs, e.Prefixes) }) ||
			(!c.R.Interfaces.OK() || len(c.attached()) == 0) && slices.ContainsFunc(c.R.IMDS.Content.ENIs,
				func(e evidence.IMDSInterface) bool { return onInterface(a, e.IPs, e.Prefixes) })
	}
	return each(where(c.addressed(), func(p *evidence.KubePod) bool { return !on(p.IPs[0]) }),
		func(p *evidence.KubePod) string { return fmt.Sprintf("%s (%s)", p.Pod, p.IPs[0]) })
}

func imdsStale(c *Case) []Result {
	const path, expected = "addresses that only the pool or only EC2 has", "none"
	warned := pattern{sources: []string{"log.ipamd"},
		texts: []string{"Instance metadata does not match data store!", "logOutOfSyncState:", "Missing IP addresses from IMDS",
			"PrivateIpAddressLimitExceeded"}}
	logged := c.active(warned)
	if logged.State == Yes && c.within(warned) < 90*time.Second {
		logged.State = No // normal after any change
	}
	decisive, summary := Either(logged, c.Unread("ec2.eni", path, expected,
		or(c.R.Interfaces.Missing, c.R.ENIs.Missing))), "the daemon reports that instance metadata and its pool disagree"
	if c.bothShown() {
		decisive = c.observes("obs/address-not-in-ec2", "obs/address-not-in-datastore")
		if b := c.Earlier; decisive.State == Yes && (b == nil || !b.bothShown() || c.Now.Sub(b.Now) < 90*time.Second) {
			decisive = c.Unread("ec2.eni", path, expected, "one reading only")
		}
		summary = "for longer than a minute and a half " + strings.Join(slices.DeleteFunc([]string{
			c.listed("the pool has addresses or prefixes that EC2 does not show", "obs/address-not-in-ec2"),
			c.listed("the pool lacks addresses or prefixes that EC2 shows", "obs/address-not-in-datastore"),
		}, func(s string) bool { return s == "" }), ", and ")
	}
	cd := Result{Summary: summary, Decisive: []Fact{decisive}}
	pods := c.hit("obs/address-not-in-ec2")
	if len(pods) == 0 { // nothing but the records is wrong
		return []Result{cd.WithFixes(2, 3)}
	}
	cd.Summary += "; " + podsText(pods)
	cd.pods, cd.names = pods, podNames(pods...)
	return []Result{cd.WithFixes(1, 2, 3)}
}

// bothShown reports whether the interfaces are known as the datastore has them and as EC2 does.
func (c *Case) bothShown() bool {
	_, known := c.described()
	return known && c.R.ENIs.OK()
}

// listed names the subjects of a kind's observations, empty if there are none.
func (c *Case) listed(what, code string) string {
	if found := c.seen(code); len(found) > 0 {
		return what + ": " + Some(each(found, observation.about))
	}
	return ""
}

func nodeUnschedulable(c *Case) []Result {
	return []Result{c.unlessIdle(Result{
		Summary: fmt.Sprintf("the node is cordoned, so its pool does not grow: %s", poolText(c.pool())),
		Decisive: []Fact{
			On(c, c.R.Node, "k8s.node", "taints", "not cordoned", func(n evidence.KubeNode) (any, State) {
				const cordon = "node.kubernetes.io/unschedulable"
				_, there := find(n.Taints, func(t evidence.Taint) bool { return t.Key == cordon && t.Effect == "NoSchedule" })
				return map[bool]string{true: cordon + ":NoSchedule", false: "not cordoned"}[there], stateOf(there)
			}),
			c.starved(),
		},
		required: []Fact{c.Setting("AWS_MANAGE_ENIS_NON_SCHEDULABLE", "true", func(s config.Config) bool { return !s.ManageUnschedulable }),
			c.upstream()}, unless: []Fact{Not(c.short()), Not(c.growable())},
		Supporting: []Fact{c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{"AWS CNI is on a non schedulable node"}})},
	})}
}

func provisioningOff(c *Case) []Result {
	set := c.Setting("DISABLE_NETWORK_RESOURCE_PROVISIONING", "false",
		func(s config.Config) bool { return s.ProvisioningOff && !c.older(evidence.Version{1, 9, 1}) })
	metadata := c.Setting("ENABLE_IMDS_ONLY_MODE", "false",
		func(s config.Config) bool { return s.IMDSOnly && !c.older(evidence.Version{1, 19, 6}) })
	branch := On(c, c.R.Pods, "k8s.pod", "pods that wait for a branch ENI", "none", func([]evidence.KubePod) (any, State) {
		p, there := find(c.Here(), func(p *evidence.KubePod) bool { return p.Phase == "Pending" && c.branchPod(p) })
		if !there {
			return "none", No
		}
		return p.Pod, Yes
	})
	return []Result{{
		Summary:  "the daemon is configured not to call EC2, and pods lack what it would request: " + poolText(c.pool()),
		Decisive: []Fact{Either(set, metadata), Either(c.starved(), Both(metadata, branch))},
	}}
}
