package causes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/cluster"
	"cnictl/daemon/config"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

var sgpRules = []Rule{
	{Code: "sgp/instance-unsupported", All: instanceUnsupported},
	{Code: "sgp/no-trunk-slot", Node: noTrunkSlot},
	{Code: "sgp/trunk-create-failed", Node: trunkCreateFailed},
	{Code: "sgp/trunk-link-missing", Node: trunkLinkMissing},
	{Code: "sgp/annotation-pending", Node: annotationPending},
	{Code: "sgp/branch-alloc-failed", Node: branchAllocFailed},
	{Code: "sgp/annotation-denied", Node: annotationDenied},
	{Code: "sgp/annotation-malformed", Node: annotationMalformed},
	{Code: "sgp/branch-conflict", Node: branchConflict},
	{Code: "sgp/branch-capacity", All: branchCapacity},
	{Code: "sgp/feature-off", All: featureOff},
	{Code: "sgp/limit-not-first", Node: limitNotFirst},
	{Code: "sgp/pod-lookup-failed", Node: podLookupFailed},
	{Code: "sgp/sg-rules", Node: groupRules},
	{Code: "sgp/ipvs", Node: shown("pods with security groups reach no Service", "obs/kube-proxy-ipvs")},
}

// PodENI states that branch ENIs are enabled.
func (c *Case) PodENI() Fact {
	return c.Setting("ENABLE_POD_ENI", "as the pods ask for it", func(s config.Config) bool { return s.PodENI })
}

// asksFirst reports whether a pod's first container, the only one that the plugin looks at, asks
// for a branch ENI.
func asksFirst(p *evidence.KubePod) bool {
	return len(p.Containers) > 0 && has(p.Containers[0].Limits, limitPodENI)
}

// asks reports whether any container asks for one, which is what the scheduler counts.
func asks(p *evidence.KubePod) bool {
	return slices.ContainsFunc(p.Containers, func(k evidence.Container) bool { return has(k.Limits, limitPodENI) })
}

func ended(p *evidence.KubePod) bool { return p.Phase == "Succeeded" || p.Phase == "Failed" }

// whole is what all readings combined say about the cluster.
type whole struct {
	*Case // one of the nodes, for what is the same on all
	nodes []evidence.KubeNode
	pods  []*evidence.KubePod
}

func together(cs []*Case) whole {
	w := whole{Case: cs[0]}
	type place struct {
		pod  evidence.Pod
		node string // alike nodes of a file have pods of the same names
	}
	nodes, pods := map[string]bool{}, map[place]bool{}
	for _, c := range cs {
		for _, n := range slices.Concat([]evidence.KubeNode{c.R.Node.Content}, c.R.Nodes.Content) {
			if n.Name != "" && !nodes[n.Name] {
				nodes[n.Name] = true
				w.nodes = append(w.nodes, n)
			}
		}
		for p := range c.pods() {
			if at := (place{p.Pod, p.On()}); !pods[at] {
				pods[at] = true
				w.pods = append(w.pods, p)
			}
		}
	}
	return w
}

// mayRun reports whether the scheduler may put a pod on a node, apart from resources.
func mayRun(p *evidence.KubePod, n evidence.KubeNode) bool {
	for key, value := range p.NodeSelector {
		if n.Labels[key] != value {
			return false
		}
	}
	return !slices.ContainsFunc(n.Taints, func(t evidence.Taint) bool {
		return t.Effect != "PreferNoSchedule" && !slices.ContainsFunc(p.Tolerations, func(l evidence.Toleration) bool {
			return (l.Key == "" || l.Key == t.Key) && (l.Effect == "" || l.Effect == t.Effect)
		})
	})
}

// trunkless reports whether an instance type is known to have no trunk.
func trunkless(instanceType string) bool {
	t, known := limits.Lookup(instanceType)
	return known && t.TrunkingCompatible == limits.No
}

func names(pods []*evidence.KubePod) string {
	return Some(each(pods, podName))
}

func instanceUnsupported(cs []*Case) []Result {
	if len(cs) == 0 {
		return nil
	}
	w := together(cs)
	var pods []*evidence.KubePod
	types := map[string]bool{}
	unknown := "" // why nodes are unknown
	for _, c := range cs {
		unknown = or(unknown, c.R.Node.Missing)
	}
	open := false // a pod may run on an unknown node
	for _, p := range w.pods {
		if p.Phase != "Pending" || !asksFirst(p) {
			continue
		}
		without := map[string]bool{}
		possible := false
		for _, n := range w.nodes {
			if p.Node != nil && *p.Node != n.Name || p.Node == nil && !mayRun(p, n) {
				continue
			}
			if trunkless(n.InstanceType) {
				without[n.InstanceType] = true
			} else {
				possible = true
			}
		}
		open = open || len(without) == 0 && !possible && unknown != ""
		if len(without) > 0 && !possible {
			pods = append(pods, p)
			maps.Copy(types, without)
		}
	}
	none := On(w.Case, w.R.Pods, "k8s.pod", "nodes for pods that ask for "+limitPodENI, "one of a type with a trunk",
		func([]evidence.KubePod) (any, State) {
			if open && len(pods) == 0 {
				return nil, Unread
			}
			return fmt.Sprintf("%s may run on %s only", names(pods), strings.Join(slices.Sorted(maps.Keys(types)), ", ")), stateOf(len(pods) > 0)
		})
	shown := w.active(pattern{sources: []string{"k8s.evt"}, texts: signatures("sgp/instance-unsupported"), any: true})
	return []Result{{
		Scope:    document.FindingScope{Cluster: true},
		Summary:  "no node can give pods a branch ENI: " + none.Value,
		Decisive: []Fact{none}, required: []Fact{w.PodENI()}, Supporting: []Fact{shown},
	}}
}

// trunkCapable states that the node's type has a trunk.
func (c *Case) trunkCapable() Fact {
	return On(c, c.R.InstanceType, "ec2.type", "trunk", "true", func(t evidence.InstanceType) (any, State) {
		if t.Trunk == nil {
			return nil, Unread
		}
		return t.InstanceType, stateOf(*t.Trunk)
	})
}

// untrunked states that no trunk is attached.
func (c *Case) untrunked() Fact {
	return c.onPool("trunk", "attached", func(*pool) (any, State) {
		return or(c.trunk(), "none"), stateOf(c.trunk() == "")
	})
}

// trunk returns the node's trunk, empty if none is known.
func (c *Case) trunk() string {
	if e, there := find(c.R.ENIs.Content, func(e evidence.ENI) bool { return e.Trunk }); there {
		return e.ID
	}
	e, _ := find(c.attached(), func(e evidence.Interface) bool { return e.Type == "trunk" })
	return e.ID
}

// slotless states that other interfaces take all slots.
func (c *Case) slotless() Fact {
	return c.onPool("interface slots", "one for the trunk", func(p *pool) (any, State) {
		if !p.sized {
			return nil, Unread
		}
		return fmt.Sprintf("%d of %d taken, %d of them by others", p.enis+p.unmanaged, p.maxENI, p.unmanaged),
			stateOf(p.enis >= p.maxENI-p.unmanaged)
	})
}

// feature states that the node's CNINode asks for branch ENIs.
func (c *Case) feature() Fact {
	return On(c, c.R.CNINode, "k8s.cninode", "features", cluster.FeatureSecurityGroupsForPods, func(n *evidence.CNINode) (any, State) {
		there := n != nil && slices.ContainsFunc(n.Features,
			func(f evidence.Feature) bool { return f.Name == cluster.FeatureSecurityGroupsForPods })
		return map[bool]string{true: "there", false: "missing"}[there], stateOf(there)
	})
}

func noTrunkSlot(c *Case) []Result {
	logged := c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{logline.TextNoTrunkSlot}})
	full := c.slotless()
	if full.State == No && c.R.IMDS.Content.Token != "ok" && !c.R.Interfaces.OK() { // interfaces of others cannot be seen
		full = logged
	}
	return []Result{{
		Summary:    "no interface slot is left for the trunk: " + full.Value,
		Decisive:   []Fact{full, c.PodENI()},
		required:   []Fact{c.trunkCapable(), c.untrunked()},
		Supporting: []Fact{Either(logged, c.failures(nil, cause.TrunkMissing), Not(c.feature()))},
	}}
}

func trunkCreateFailed(c *Case) []Result {
	event := c.active(pattern{
		sources: []string{"k8s.evt"}, texts: []string{"TrunkENICreationFailed", "NodeTrunkFailedInit"},
		cured: []string{"NodeTrunkInitiated"}, since: c.Now.Add(-time.Hour), any: true,
	})
	missed := orElse(c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{"No trunk ENI found, cannot add a pod ENI"}}),
		c.failures(nil, cause.TrunkMissing))
	decisive := event
	// in that mode no trunk is ever seen
	seen := c.Setting("ENABLE_IMDS_ONLY_MODE", "false", func(s config.Config) bool { return !s.IMDSOnly })
	if left := Both(missed, c.trunkCapable(), Not(c.slotless()), seen); event.State != Yes && left.State == Yes {
		decisive = left // nothing else explains it
	}
	offers := c.lasting(func(c *Case) Fact {
		return On(c, c.R.Node, "k8s.node", "capacity "+limitPodENI, "more than 0", func(n evidence.KubeNode) (any, State) {
			if n.Capacity.PodENI == nil {
				return "none", Yes
			}
			return *n.Capacity.PodENI, stateOf(*n.Capacity.PodENI == 0)
		})
	})
	return []Result{{
		fixes:    map[bool][]int{true: {2}, false: {1, 2}}[strings.Contains(decisive.Value, textNoAddresses)],
		Summary:  "the resource controller has not attached a trunk: " + decisive.Value,
		Decisive: []Fact{decisive}, required: []Fact{offers}, unless: []Fact{Not(c.feature())},
	}}
}

func trunkLinkMissing(c *Case) []Result {
	logged := orElse(c.active(pattern{sources: []string{"log.ipamd"}, texts: signatures("sgp/trunk-link-missing")}),
		c.failures(nil, cause.TrunkLinkMissing))
	trunk := c.trunk()
	attached := On(c, c.R.ENIs, "intro.enis", "trunk", "none, or with a link",
		func([]evidence.ENI) (any, State) { return or(trunk, "none"), stateOf(trunk != "") })
	const path = "the trunk's MAC address"
	seen := c.lasting(func(c *Case) Fact {
		link := On(c, c.R.Links, "kern.link", path, "on a link", func(all []evidence.Link) (any, State) {
			there := slices.ContainsFunc(all, func(l evidence.Link) bool { return l.ENI == trunk && trunk != "" })
			return map[bool]string{true: "there", false: "on no link"}[there], stateOf(!there)
		})
		imds := On(c, c.R.IMDS, "imds", path, "listed", func(m evidence.IMDS) (any, State) {
			if m.Token != "ok" {
				return nil, Unread
			}
			there := slices.ContainsFunc(m.ENIs, func(e evidence.IMDSInterface) bool { return e.ID == trunk })
			return map[bool]string{true: "listed", false: "not listed"}[there], stateOf(!there)
		})
		return Either(link, imds)
	})
	return []Result{{
		Scope:    document.FindingScope{ENI: trunk},
		Summary:  fmt.Sprintf("trunk %s is attached, but not visible on the node: its MAC address is %s", trunk, or(seen.Value, "unknown")),
		Decisive: []Fact{logged}, required: []Fact{attached}, unless: []Fact{Not(seen)},
	}}
}

// unannotated returns the pods of the node that wait for their branch ENI annotation.
func (c *Case) unannotated() []*evidence.KubePod {
	return where(c.branchWaiting(), func(p *evidence.KubePod) bool { return p.Annotations[limitPodENI] == "" })
}

// branchWaiting returns the pods of the node that wait for a branch ENI.
func (c *Case) branchWaiting() []*evidence.KubePod {
	return where(c.Here(), func(p *evidence.KubePod) bool { return asksFirst(p) && p.Phase == "Pending" })
}

// textNoBranch is what the daemon logs when a pod has no branch ENI annotation yet.
const textNoBranch = "failed to get Branch ENI resource"

func annotationPending(c *Case) []Result {
	logged := orElse(c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{textNoBranch}}), c.failures(nil, cause.BranchPending))
	logged = orElse(logged, c.active(pattern{sources: []string{"k8s.evt"}, texts: textsAssignFailed}))
	young := c.onPods("pods that wait for their branch ENI for less than a minute",
		where(c.unannotated(), func(p *evidence.KubePod) bool { return c.Now.Sub(p.CreatedAt) <= branchTime }))
	soon := Result{
		Summary:  "kubelet is faster than the resource controller, which has not annotated the pod yet: " + young.Value,
		Decisive: []Fact{orElse(logged, onlyIfTrue(c.waitsFor("pods that wait for their branch ENI", sandboxTime)))}, required: []Fact{young},
	}
	late := orElse(c.waitsFor("pods that wait for their branch ENI for more than a minute", branchTime), c.countedWaiting())
	said := c.active(pattern{sources: []string{"k8s.evt"},
		texts: []string{"BranchAllocationFailed", "BranchENIAnnotationFailed", "SecurityGroupRequested"}, any: true})
	if said.State == Yes || c.PodENI().State == No || c.R.CNINode.OK() && c.untrunked().State == Yes || c.feature().State == No ||
		c.trunkCapable().State == No || c.Settings.IMDSOnly ||
		trunkless(c.R.Node.Content.InstanceType) { // another cause says more
		return []Result{soon.WithFixes(1)}
	}
	away := Result{
		title: "the resource controller does not give the pod a branch ENI", Summary: "no annotation, and no event says why: " + late.Value,
		Decisive: []Fact{late},
	}
	if lacks := c.controllerLacks(); lacks != "" {
		away.Summary += "; the controller lacks " + lacks
	}
	return []Result{soon.WithFixes(1), away.As(catalogue.Error).WithFixes(2, 3)}
}

// countedWaiting states that by the daemon's count pods have been waiting for their branch ENI for longer than most.
func (c *Case) countedWaiting() Fact {
	const path, expected = "pods that wait for a branch ENI", "none for more than a minute"
	return On(c, c.R.Summary, "intro.summary", path, expected, func(s introspect.Summary) (any, State) {
		t := s.Trunk
		if t == nil || t.BranchWaiting == nil {
			return nil, Unread
		}
		long := t.WaitingSince != nil && c.Now.Sub(*t.WaitingSince) > branchTime
		return human.Plural(*t.BranchWaiting, "pod", "pods"), stateOf(*t.BranchWaiting > 0 && long)
	})
}

// waitsFor states that pods have been waiting for their branch ENI for longer than most.
func (c *Case) waitsFor(path string, most time.Duration) Fact {
	return c.onPods(path, where(c.unannotated(), func(p *evidence.KubePod) bool { return c.Now.Sub(p.CreatedAt) > most }))
}

// onPods states that there are pods of some kind.
func (c *Case) onPods(path string, pods []*evidence.KubePod) Fact {
	return On(c, c.R.Pods, "k8s.pod", path, "none", func([]evidence.KubePod) (any, State) { return names(pods), stateOf(len(pods) > 0) })
}

// refusals returns the last matching event of each pod that has been allocated nothing since.
func (c *Case) refusals(match func(e evidence.KubeEvent) bool) map[evidence.Pod]evidence.KubeEvent {
	out := map[evidence.Pod]evidence.KubeEvent{}
	for _, e := range slices.SortedStableFunc(slices.Values(c.R.Events.Content),
		func(a, b evidence.KubeEvent) int { return a.At.Compare(b.At) }) {
		switch pod := evidence.Pod(e.Name); {
		case e.Kind != "Pod" || !c.concerns(e) || c.Now.Sub(e.At) > time.Hour:
		case match(e):
			out[pod] = e
		case e.Reason == "ResourceAllocated":
			delete(out, pod)
		}
	}
	return out
}

// refusedBranch returns a finding about pods that wait because of an event of the resource
// controller.
func (c *Case) refusedBranch(path, summary string, match func(e evidence.KubeEvent) bool) Result {
	events := c.refusals(match)
	shown := On(c, c.R.Events, "k8s.evt", path, "none", func([]evidence.KubeEvent) (any, State) {
		for _, pod := range slices.Sorted(maps.Keys(events)) {
			return fmt.Sprintf("%s: %s", pod, clip(events[pod].Message)), Yes
		}
		return "none", No
	})
	waits := c.onPods("pods without the annotation "+limitPodENI,
		slices.DeleteFunc(c.unannotated(), func(p *evidence.KubePod) bool { return len(events) > 0 && !has(events, p.Pod) }))
	cd := Result{Summary: summary + shown.Value, Decisive: []Fact{shown}, unless: []Fact{Not(waits)}}
	if pods := slices.Sorted(maps.Keys(events)); len(pods) > 0 {
		cd.names = podNames(string(pods[0]))
		cd.names["CLUSTER_ROLE"] = catalogue.NamesIn(events[pods[0]].Message)["ROLE"]
		for _, s := range c.R.GroupPolicies.Content {
			if slices.ContainsFunc(c.Here(), func(p *evidence.KubePod) bool { return p.Pod == pods[0] && selects(s, p) == Yes }) {
				_, cd.names["NAME"], _ = strings.Cut(s.Name, "/")
			}
		}
	}
	return cd
}

// textEntryExists is the controller's error for an interface that it made earlier and could not
// announce.
const textEntryExists = "cannot create new eni entry already exist"

func branchAllocFailed(c *Case) []Result {
	cd := c.refusedBranch("BranchAllocationFailed", "EC2 refuses a branch ENI: ", func(e evidence.KubeEvent) bool {
		return e.Reason == "BranchAllocationFailed" && !strings.Contains(e.Message, textEntryExists)
	})
	return []Result{cd.WithFixes(fitting(cd.Summary, []wayOut{
		{[]string{textNoAddresses, textNoBlocks}, []int{3, 2}}, {[]string{textDenied}, []int{4, 2}}, {nil, []int{1, 2}},
	})...)}
}

func annotationDenied(c *Case) []Result {
	return []Result{c.refusedBranch("BranchENIAnnotationFailed", "the resource controller cannot annotate the pod: ",
		func(e evidence.KubeEvent) bool {
			return e.Reason == "BranchENIAnnotationFailed" || e.Reason == "BranchAllocationFailed" && strings.Contains(e.Message, textEntryExists)
		})}
}

func annotationMalformed(c *Case) []Result {
	found := On(c, c.R.Pods, "k8s.pod", "annotation "+limitPodENI, "an interface with address, MAC address and VLAN id",
		func([]evidence.KubePod) (any, State) {
			for _, p := range c.Here() {
				annotation := p.Annotations[limitPodENI]
				if !asksFirst(p) || p.Phase != "Pending" || annotation == "" {
					continue
				}
				_, err := cluster.ParseBranch(annotation, c.Settings.IPv6)
				_, other := cluster.ParseBranch(annotation, !c.Settings.IPv6)
				switch known := c.Knows("ENABLE_IPv6"); {
				case err != nil && (known || other != nil):
					return fmt.Sprintf("%s: %v", p.Pod, err), Yes
				case !known && (err != nil || other != nil):
					return nil, Unread // depends on the cluster's IP family
				}
			}
			return "none is unusable", No
		})
	shown := orElse(found, orElse(
		c.active(pattern{sources: []string{"log.ipamd"}, texts: signatures("sgp/annotation-malformed")}),
		c.failures(nil, cause.BranchInvalid)))
	return []Result{{Summary: "the branch ENI annotation of a pod cannot be used: " + shown.Value, Decisive: []Fact{shown},
		unless: []Fact{Not(c.branchWaits())}}}
}

// branchWaits states that a pod waits for a branch ENI, without which a failure is over.
func (c *Case) branchWaits() Fact {
	return c.onPods("pods that wait for a branch ENI", c.branchWaiting())
}

func branchConflict(c *Case) []Result {
	found := On(c, c.R.Pods, "k8s.pod", "annotation "+limitPodENI, "each pod's own branch ENI", func([]evidence.KubePod) (any, State) {
		var pods []cluster.Pod
		for _, p := range c.Here() {
			namespace, name, _ := strings.Cut(string(p.Pod), "/")
			pods = append(pods, cluster.Pod{
				Namespace: namespace, Name: name, UID: string(p.Pod), HostNetwork: p.HostNetwork, BranchENI: asksFirst(p),
				PodENI: p.Annotations[limitPodENI],
			})
		}
		claims := cluster.ClaimsOf(pods, cluster.Claims{})
		for _, p := range pods {
			for _, ipv6 := range []bool{false, true} {
				branch, err := cluster.ParseBranch(p.PodENI, ipv6)
				if err != nil {
					continue
				}
				if rival, shared, found := claims.Rival(p, branch); found {
					return fmt.Sprintf("%s and %s: %s", p.UID, rival.UID, shared), Yes
				}
			}
		}
		return "no two pods name the same", No
	})
	if found.State == Yes { // two pods may also both run, on upstream's daemon
		return []Result{{Summary: "two pods name the same branch ENI: " + found.Value, Decisive: []Fact{found}}}
	}
	shown := orElse(found, orElse(
		c.active(pattern{sources: []string{"log.ipamd"}, texts: signatures("sgp/branch-conflict")}),
		c.failures(nil, cause.BranchConflict)))
	return []Result{{Summary: "two pods name the same branch ENI: " + shown.Value, Decisive: []Fact{shown},
		unless: []Fact{Not(c.branchWaits())}}}
}

// textInsufficient is what the scheduler reports when no node has a branch ENI left.
const textInsufficient = "Insufficient " + limitPodENI

func branchCapacity(cs []*Case) []Result {
	if len(cs) == 0 {
		return nil
	}
	w := together(cs)
	out := []Result{w.branchesScheduled(cs)}
	for _, c := range cs {
		if cd, ok := c.branchesCooling(w); ok {
			out = append(out, cd)
		}
	}
	return out
}

// branchesScheduled returns a finding about pods for which the scheduler finds no node with a
// branch ENI left.
func (w whole) branchesScheduled(cs []*Case) Result {
	pending := slices.DeleteFunc(slices.Clone(w.pods),
		func(p *evidence.KubePod) bool { return p.Phase != "Pending" || p.Node != nil || !asks(p) })
	used := map[string]int{}
	for _, p := range w.pods {
		if p.Node != nil && !ended(p) && asks(p) {
			used[*p.Node] += max(1, p.Count)
		}
	}
	listed := map[string]bool{} // nodes whose pods were listed
	for _, c := range cs {
		listed[c.Name] = c.R.Pods.OK()
	}
	full := On(w.Case, w.R.Pods, "k8s.pod", "branch ENIs in use", "fewer than the nodes have", func([]evidence.KubePod) (any, State) {
		var texts []string
		state := Yes
		for _, n := range w.nodes {
			most := n.Allocatable.PodENI
			if most == nil || *most == 0 || !slices.ContainsFunc(pending, func(p *evidence.KubePod) bool { return mayRun(p, n) }) {
				continue
			}
			if !listed[n.Name] && used[n.Name] == 0 { // the scheduler knows its pods
				texts = append(texts, fmt.Sprintf("all %d on %s", *most, n.Name))
				continue
			}
			texts = append(texts, fmt.Sprintf("%d of %d on %s", used[n.Name], *most, n.Name))
			if used[n.Name] < *most {
				state = No
			}
		}
		if len(texts) == 0 {
			unknown := len(pending) > 0 && slices.ContainsFunc(cs, func(c *Case) bool { return !c.R.Node.OK() })
			return "no node that such pods may run on has any", map[bool]State{true: Unread, false: No}[unknown]
		}
		return Some(texts), state
	})
	refused := slices.DeleteFunc(slices.Clone(pending), func(p *evidence.KubePod) bool {
		return !strings.Contains(p.Message, textInsufficient) && !slices.ContainsFunc(cs, func(c *Case) bool {
			return slices.ContainsFunc(c.R.Events.Content, func(e evidence.KubeEvent) bool {
				return e.Name == string(p.Pod) && strings.Contains(e.Message, textInsufficient)
			})
		})
	})
	logged := w.Known("k8s.evt", `"`+textInsufficient+`"`, "not logged", names(refused), len(refused) > 0)
	if len(refused) == 0 && !w.R.Events.OK() {
		logged = w.Unread("k8s.evt", logged.Path, logged.Expected, w.R.Events.Missing)
	}
	return Result{
		Scope:    document.FindingScope{Cluster: true},
		Summary:  fmt.Sprintf("all branch ENIs are in use (%s); waiting: %s", full.Value, logged.Value),
		Decisive: []Fact{full}, required: []Fact{logged},
		fixes: []int{fixAddNodes, fixCooldown},
	}
}

// tagTrunk is the resource controller's tag of a branch ENI: the trunk's id.
const tagTrunk = "vpcresources.k8s.aws/trunk-eni-id"

// branchesCooling returns a finding about pods of a node that wait while branch ENIs of
// ended pods cool down. The controller keeps asking for groups and reports nothing else.
func (c *Case) branchesCooling(w whole) (Result, bool) {
	asked := c.refusals(func(e evidence.KubeEvent) bool { return e.Reason == "SecurityGroupRequested" && e.Count > 1 })
	failed := c.refusals(func(e evidence.KubeEvent) bool {
		return e.Reason == "BranchAllocationFailed" || e.Reason == "BranchENIAnnotationFailed"
	})
	waiting := slices.DeleteFunc(c.unannotated(), func(p *evidence.KubePod) bool { return !has(asked, p.Pod) || has(failed, p.Pod) })
	limit := c.R.Node.Content.Allocatable.PodENI
	if limit == nil {
		limit = c.R.InstanceType.Content.BranchENIs
	}
	if !c.R.Events.OK() && len(c.unannotated()) > 0 {
		return Result{Decisive: []Fact{c.Unread("k8s.evt", "SecurityGroupRequested", "once, then ResourceAllocated", c.R.Events.Missing)}},
			true
	}
	if len(waiting) == 0 || limit == nil {
		return Result{}, false
	}
	held := 0
	for _, p := range w.pods {
		if p.Node != nil && *p.Node == c.own && asksFirst(p) && (p.Annotations[limitPodENI] != "" || p.Phase != "Pending") {
			held += max(1, p.Count)
		}
	}
	there := 0 // including those of deleted pods
	for _, e := range c.R.Interfaces.Content {
		if e.Type == "branch" && e.Tags[tagTrunk] == c.trunk() {
			there += max(1, e.Count)
		}
	}
	held = max(held, there)
	const path, expected = "branch ENIs in use or cooling", "fewer than the limit"
	taken := c.Known("k8s.pod", path, expected, fmt.Sprintf("%d of %d", held, *limit), held >= *limit)
	if held < *limit && !c.R.Interfaces.OK() {
		taken = c.Unread("ec2.eni", path, expected, "those of deleted pods cannot be seen")
	}
	repeats := c.Known("k8s.evt", "SecurityGroupRequested", "once, then ResourceAllocated",
		fmt.Sprintf("%d times for %s, and nothing after it", asked[waiting[0].Pod].Count, waiting[0].Pod), true)
	cd := Result{
		Scope: document.FindingScope{Node: c.Name},
		Nodes: []string{c.Name},
		Summary: fmt.Sprintf("pods wait while branch ENIs of ended pods cool down: %s; %s", names(waiting),
			or(taken.Value, "all may be in use")),
		Decisive: []Fact{repeats}, unless: []Fact{Not(taken)},
	}
	leaks := c.seen("obs/branch-no-pod")
	if len(leaks) == 0 {
		return cd.WithFixes(fixAddNodes, fixCooldown), true
	}
	lost := each(leaks, observation.about)
	left := c.observes("obs/branch-no-pod")
	cd.title = "branch ENIs of pods that are gone were never deleted"
	cd.Summary = fmt.Sprintf("pods wait (%s) while branch ENIs that belong to no pod take the node's limit (%s): leaked, not cooling: %s; %s",
		names(waiting), or(taken.Value, "unknown"), Some(lost), leaks[0].is)
	cd.Supporting, cd.names = []Fact{left}, leaks[0].names
	return cd.WithFixes(fixDeleteBranch, fixDissociate, fixAddNodes), true
}

// The fixes of sgp/branch-capacity, from 1.
const (
	fixAddNodes = iota + 1
	fixCooldown
	fixDeleteBranch
	fixDissociate
)

// selects reports whether a policy selects a pod.
func selects(policy evidence.SecurityGroupPolicy, p *evidence.KubePod) State {
	within := func(selector, labels map[string]string) State {
		for key, value := range selector {
			if labels[key] != value {
				return No
			}
		}
		return Yes
	}
	namespace, _, _ := strings.Cut(policy.Name, "/")
	of, _, _ := strings.Cut(string(p.Pod), "/")
	if namespace != of || policy.PodSelector == nil && policy.ServiceAccountSelector == nil {
		return No
	}
	if policy.PodSelector != nil && within(*policy.PodSelector, p.Labels) == No {
		return No
	}
	if policy.ServiceAccountSelector != nil && len(*policy.ServiceAccountSelector) > 0 {
		return Unread // labels of service accounts are not read
	}
	return Yes
}

func featureOff(cs []*Case) []Result {
	if len(cs) == 0 {
		return nil
	}
	w := together(cs)
	on := map[string]State{} // by node; under "", of any node, for unbound pods
	for _, c := range cs {
		state := c.PodENI().State
		on[c.Name], on[""] = state, max(on[""], state)
	}
	var off, older []*evidence.KubePod
	unknown := false
	for _, p := range w.pods {
		if ended(p) || p.HostNetwork {
			continue
		}
		wanted := slices.ContainsFunc(w.R.GroupPolicies.Content, func(s evidence.SecurityGroupPolicy) bool { return selects(s, p) == Yes })
		switch state := on[p.On()]; {
		case !wanted && !(asks(p) && p.Node == nil && p.Phase == "Pending"):
		case state == No:
			off = append(off, p)
		case wanted && !asks(p):
			older = append(older, p)
		case state == Unread:
			unknown = true
		}
	}
	left := On(w.Case, w.R.Pods, "k8s.pod", "pods with a security group policy and without a branch ENI", "none",
		func([]evidence.KubePod) (any, State) {
			if len(off)+len(older) == 0 && (unknown || !w.R.GroupPolicies.OK()) {
				return nil, Unread
			}
			return names(slices.Concat(off, older)), stateOf(len(off)+len(older) > 0)
		})
	text := "pods that a security group policy selects have no branch ENI, because they were created before it or its webhook did not answer: "
	if len(off) > 0 {
		text = "security groups for pods are off (ENABLE_POD_ENI), but pods should have them: "
	}
	return []Result{{Scope: document.FindingScope{Cluster: true}, Summary: text + left.Value, Decisive: []Fact{left}}}
}

func limitNotFirst(c *Case) []Result {
	later := On(c, c.R.Pods, "k8s.pod", "containers[].limits", limitPodENI+" on the first container", func([]evidence.KubePod) (any, State) {
		pods := slices.DeleteFunc(c.Here(), func(p *evidence.KubePod) bool {
			return len(p.Containers) == 0 || asksFirst(p) || !asks(p) && p.Annotations[limitPodENI] == ""
		})
		var out []string
		for _, p := range pods {
			by := ""
			if at := slices.IndexFunc(p.Containers, func(k evidence.Container) bool { return has(k.Limits, limitPodENI) }); at >= 0 {
				by = fmt.Sprintf(" (on %s, the first is %s)", p.Containers[at].Name, p.Containers[0].Name)
			}
			out = append(out, string(p.Pod)+by)
		}
		return Some(out), stateOf(len(pods) > 0)
	})
	return []Result{{Summary: "pods have the node's security groups, because the limit is not on their first container: " + later.Value,
		Decisive: []Fact{later}}}
}

func podLookupFailed(c *Case) []Result {
	m := pattern{sources: []string{"log.ipamd", "intro.failures"},
		texts: []string{"Send AddNetworkReply: Failed to get pod", string(cause.PodUnknown)}, except: []string{"not found"}, cured: textsAssigned}
	logged := c.active(m)
	out := []Result{{Summary: "the daemon cannot read the pod of an ADD: " + logged.Value, Decisive: []Fact{logged}}}
	m.texts, m.except = []string{m.texts[0] + "…not found", m.texts[1] + "…not found"}, nil
	if gone := c.active(m); gone.State == Yes && logged.State != Yes {
		out = append(out, Result{Summary: "ADDs came for pods that are gone: " + gone.Value, Decisive: []Fact{gone}}.As(catalogue.Info))
	}
	return out
}

func groupRules(c *Case) []Result {
	pods := c.runningBranchPods()
	if len(pods) == 0 {
		return nil
	}
	strict := c.Setting("POD_SECURITY_GROUP_ENFORCING_MODE", "standard", func(config.Config) bool { return c.strictBranches() })
	closed, asked := c.dnsClosed(pods), c.dnsFails(pods)
	demux := c.earlyDemux()
	unhealthy := On(c, c.R.Events, "k8s.evt", "probes of branch pods", "none fails", func(all []evidence.KubeEvent) (any, State) {
		for _, e := range all {
			if e.Reason == "Unhealthy" && e.At.After(c.recent()) &&
				slices.ContainsFunc(pods, func(p *evidence.KubePod) bool { return string(p.Pod) == e.Name }) {
				return e.Name + ": " + clip(e.Message), Yes
			}
		}
		return "none fails", No
	})
	return []Result{
		{Summary: "security groups block DNS of pods: " + closed.Value, Decisive: []Fact{closed}, unless: []Fact{Not(asked)}, fixes: []int{1}},
		{Summary: "kubelet's probes of branch pods are lost because TCP early demux is on: " + unhealthy.Value,
			Decisive: []Fact{demux, unhealthy}, required: []Fact{strict}, fixes: []int{2, 3}},
	}
}

// dnsFails states that a branch pod cannot resolve names.
func (c *Case) dnsFails(pods []*evidence.KubePod) Fact {
	return On(c, c.R.Probes, "probe", "DNS from a branch pod", "ok", func(all []evidence.Probe) (any, State) {
		text, state := "not tried", Unread
		for _, p := range all {
			_, port, _ := strings.Cut(p.Target, ":")
			if (p.Kind == "dns" || port == "53") && slices.ContainsFunc(pods, func(k *evidence.KubePod) bool { return string(k.Pod) == p.From }) {
				if p.Result != "ok" {
					return fmt.Sprintf("%s from %s", p.Result, p.From), Yes
				}
				text, state = "ok", No
			}
		}
		return text, state
	})
}

// dnsClosed states that security groups keep a branch pod from asking CoreDNS: the pod's groups
// do not let the queries out, or those of CoreDNS do not let them in.
func (c *Case) dnsClosed(pods []*evidence.KubePod) Fact {
	return On(c, c.R.Groups, "ec2.sg", "port 53 from branch pods to CoreDNS", "open, TCP and UDP",
		func(all []evidence.SecurityGroup) (any, State) {
			servers, serverGroups := c.coreDNS()
			state := Unread
			for _, p := range pods {
				groups := c.groupsOf(p)
				if known(all, groups) == 0 {
					continue
				}
				state = No
				for _, protocol := range []string{"udp", "tcp"} {
					if !opens(all, groups, false, protocol, serverGroups, servers) {
						return fmt.Sprintf("%s of %s do not allow %s out to port 53", strings.Join(groups, ", "), p.Pod, protocol), Yes
					}
					if known(all, serverGroups) > 0 && !opens(all, serverGroups, true, protocol, groups, p.IPs) {
						return fmt.Sprintf("%s of CoreDNS do not allow %s in to port 53 from %s", strings.Join(serverGroups, ", "), protocol,
							strings.Join(groups, ", ")), Yes
					}
				}
			}
			return "open", state
		})
}

// groupsOf returns the security groups of a branch pod: those of its interface, or else of the
// policies that select it.
func (c *Case) groupsOf(p *evidence.KubePod) (groups []string) {
	for _, e := range c.R.Interfaces.Content {
		if e.ID != "" && len(e.Groups) > 0 && strings.Contains(p.Annotations[limitPodENI], `"`+e.ID+`"`) {
			return e.Groups
		}
	}
	for _, s := range c.R.GroupPolicies.Content {
		if selects(s, p) == Yes {
			groups = append(groups, s.GroupIDs...)
		}
	}
	return groups
}

// coreDNS returns the addresses of CoreDNS and the groups of the interfaces that hold them, as
// far as known. If no CoreDNS pods were read, it returns the node's groups.
func (c *Case) coreDNS() (addresses []netip.Addr, groups []string) {
	for p := range c.pods() {
		if isDNS(p) {
			addresses = append(addresses, p.IPs...)
		}
	}
	id, _ := c.primary()
	for _, e := range c.R.Interfaces.Content {
		holds := slices.ContainsFunc(e.IPs, func(a netip.Addr) bool { return slices.Contains(addresses, a) }) ||
			slices.ContainsFunc(e.Prefixes, func(r netip.Prefix) bool { return slices.ContainsFunc(addresses, r.Contains) })
		if holds || len(addresses) == 0 && e.ID == id {
			groups = append(groups, e.Groups...)
		}
	}
	slices.Sort(groups)
	return addresses, slices.Compact(groups)
}

// known counts the groups whose rules were read.
func known(all []evidence.SecurityGroup, ids []string) (n int) {
	for _, g := range all {
		if slices.Contains(ids, g.ID) {
			n++
		}
	}
	return n
}

// opens reports whether one of the groups ids allows port 53 in or out for a peer in peerGroups
// or with one of the addresses peers. Unknown peers count as allowed.
func opens(all []evidence.SecurityGroup, ids []string, in bool, protocol string, peerGroups []string, peers []netip.Addr) bool {
	for _, g := range all {
		rules := g.Egress
		if in {
			rules = g.Ingress
		}
		if slices.Contains(ids, g.ID) && slices.ContainsFunc(rules, func(r evidence.GroupRule) bool {
			if r.Protocol != "-1" && (r.Protocol != protocol || r.From != nil && *r.From > 53 || r.To != nil && *r.To >= 0 && *r.To < 53) {
				return false
			}
			cidr, err := netip.ParsePrefix(r.Peer)
			if err != nil {
				return len(peerGroups) == 0 || slices.Contains(peerGroups, r.Peer)
			}
			return len(peers) == 0 || slices.ContainsFunc(peers, cidr.Contains)
		}) {
			return true
		}
	}
	return false
}

// earlyDemux states that TCP early demux is on, which breaks kubelet's probes of branch pods in
// strict mode.
func (c *Case) earlyDemux() Fact {
	const path = "net.ipv4.tcp_early_demux"
	f := On(c, c.R.Sysctls, "kern.sysctl", path, "0", func(all map[string]string) (any, State) {
		if value, ok := all[path]; ok {
			return value, stateOf(value == "1")
		}
		return nil, Unread
	})
	return orElse(f, On(c, c.R.DaemonSet, "k8s.ds", "env.DISABLE_TCP_EARLY_DEMUX of "+containerInit, "true",
		func(ds *evidence.DaemonSet) (any, State) {
			if ds == nil || f.State != Unread {
				return nil, Unread
			}
			value := ds.Env[containerInit]["DISABLE_TCP_EARLY_DEMUX"]
			return or(value, "not set"), stateOf(value != "true")
		}))
}
