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
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/config"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

var netRules = []Rule{
	{Code: "net/setup-failed", Node: setupFailed},
	{Code: "net/veth-mac-changed", Node: vethMACChanged},
	{Code: "net/rules-flushed", Node: rulesFlushed},
	{Code: "net/stale-rules", Node: staleRules},
	{Code: "net/duplicate-ip", All: duplicateIP},
	{Code: "net/backend-mismatch", Node: backendMismatch},
	{Code: "net/snat", Node: noSNAT},
	{Code: "net/forward-drop", Node: forwardDrop},
	{Code: "net/rpf-conntrack", Node: replyPath},
	{Code: "net/mtu", Node: mtuMismatch},
	{Code: "net/nic-allowance", Node: allowanceExceeded},
	{Code: "net/conntrack-full", Node: connectionsFull},
	{Code: "net/link-down", Node: shown("pods are cut off", "obs/eni-link-down", "obs/pod-veth-down")},
	{Code: "net/veth-missing", Node: shown("pods are cut off", "obs/pod-no-veth", "obs/pod-no-vlan")},
	{Code: "net/node-address", Node: shown("the address is in use by the node", "obs/pod-address-of-node")},
	{Code: "net/kube-proxy", Node: shown("Services of the node are stale or do not answer",
		"obs/kube-proxy-not-ready", "obs/kube-proxy-rules")},
}

func setupFailed(c *Case) []Result {
	m := pattern{
		sources: pluginSays,
		texts: []string{
			"add command: failed to setup network", "failed to delete old hostVeth", "failed to setup veth", "failed to add static ARP",
			"failed to setup toContainer rule",
			"failed to add vlan link", "failed to generate unique mac", "failed while waiting for v6 addresses to be stable",
			"del cmd: failed to process delete request",
			string(cause.PodNetworkSetup), string(cause.PodNetworkTeardown),
		},
		// The daemon did not answer: the step did not fail.
		except: []string{"network policy", "del cmd…code = DeadlineExceeded", "del cmd…code = Unavailable"},
	}
	logged := c.active(m)
	shown := orElse(logged, onlyIfTrue(c.series("awscni_del_ip_req_count", `reason="SetupNSFailed"`)))
	cd := Result{Summary: "the network of pods cannot be set up: " + shown.Value, Decisive: []Fact{shown}}
	last, _, _ := c.lastMessage(m)
	if last.pod != "" {
		cd.names = podNames(string(last.pod))
		cd.names["VETH"] = veth(c.Settings.VethPrefix, last.pod)
	}
	return []Result{cd.WithFixes(fitting(last.text, []wayOut{
		{[]string{"v6 addresses"}, []int{2}},
		{[]string{"no space left", "too many open files", "cannot allocate memory", "no buffer space", "static ARP"}, []int{3}},
	})...)}
}

func vethMACChanged(c *Case) []Result {
	changed := func(o observation) bool { return o.names["ADDRESS"] != "" }
	macs := c.observesThose(changed, "obs/pod-gateway-mac")
	policy, old := c.LinkPolicy(), c.Before(MACsKept)
	systemd := On(c, c.R.Node, "k8s.node", "osImage", "one whose systemd leaves veths alone", func(n evidence.KubeNode) (any, State) {
		return n.OSImage, stateOf(matchesAny(strings.ToLower(n.OSImage), []string{"ubuntu…22.", "ubuntu…24.", "flatcar"}))
	})
	cd := Result{
		Summary:  "systemd sets the MAC addresses of new veths (MACAddressPolicy=persistent), which this release does not expect",
		Decisive: []Fact{macs}, Supporting: []Fact{Either(macs, policy)}, Context: []Fact{old, systemd},
	}
	if macs.State == Unread {
		cd.Decisive[0] = Both(old, policy)
	}
	cd.fixes = []int{fixMACPolicy}
	if c.older(MACsKept) {
		cd.fixes = []int{fixMACUpgrade, fixMACPolicy}
	}
	var pods []string
	for _, o := range c.seen("obs/pod-gateway-mac") {
		if changed(o) {
			pods, cd.names = union(pods, o.pods), o.names
		}
	}
	if len(pods) > 0 {
		cd.Summary = "pods send to a MAC address that their veth no longer has: " + Some(pods)
		cd.fixes = append([]int{fixMACBack}, cd.fixes...)
	}
	return []Result{cd}
}

// The fixes of net/veth-mac-changed, from 1.
const (
	fixMACUpgrade = iota + 1
	fixMACPolicy
	fixMACBack
)

// MACsKept is the first release of upstream whose veths keep their MAC address.
var MACsKept = evidence.Version{1, 20, 1}

// LinkPolicy states that udev changes the MAC address of new veths.
func (c *Case) LinkPolicy() Fact {
	return On(c, c.R.Packages, "host.pkg", "linkPolicy", "none", func(p evidence.Packages) (any, State) {
		if p.LinkPolicy == "" || p.Systemd != nil && *p.Systemd < 243 {
			return "none", No
		}
		return p.LinkPolicy, stateOf(p.LinkPolicy == "persistent")
	})
}

// NetworkManager states that another network manager handles the interfaces.
func (c *Case) NetworkManager() Fact {
	const path, expected = "network managers", "none but the CNI"
	for _, r := range c.R.Routes.Content {
		if r.Table == 30200 || r.Table == 30400 {
			return c.Known("kern.route", path, expected, fmt.Sprintf("nm-cloud-setup: table %d", r.Table), true)
		}
	}
	return On(c, c.R.Packages, "host.pkg", path, expected, func(p evidence.Packages) (any, State) {
		for _, unit := range slices.Sorted(maps.Keys(p.Units)) {
			if p.Units[unit] == "active" && (strings.HasPrefix(unit, "nm-cloud-setup") || strings.HasPrefix(unit, "policy-routes")) {
				return unit, Yes
			}
		}
		for _, name := range p.Packages {
			if strings.Contains(name, "ec2-net-utils") {
				return name, Yes
			}
		}
		networkd := or(p.Units["systemd-networkd"], p.Units["systemd-networkd.service"])
		foreign := p.ForeignRules != nil && *p.ForeignRules || p.ForeignRoutes != nil && *p.ForeignRoutes
		if foreign && (networkd == "" || networkd == "active") {
			return "systemd-networkd with ManageForeignRoutingPolicyRules", Yes
		}
		return "none", No
	})
}

// RulesLacking states that running pods lack rules or routes.
func (c *Case) RulesLacking() Fact {
	if !c.R.Rules.OK() && c.R.PodViews.OK() {
		return c.lasting(func(c *Case) Fact { return c.differences("is missing") })
	}
	return orElse(c.observes("obs/pod-no-rule"), c.observes("obs/pod-no-route"))
}

// networkLost are the kinds of observations that rules or routes of pods are gone.
var networkLost = []string{"obs/pod-no-rule", "obs/pod-no-route", "obs/eni-no-route", "obs/eni-route-wrong"}

func rulesFlushed(c *Case) []Result {
	lacks := Either(c.RulesLacking(), c.observes(networkLost...))
	manager := c.NetworkManager()
	pods := c.hit(networkLost...)
	text := "running pods have lost their network: " + lacks.Value
	if len(pods) > 0 {
		text += "; " + podsText(pods)
	}
	if links := c.seen("obs/node-second-default-route"); len(links) > 0 {
		text += "; " + links[0].String()
	}
	title := "rules or routes of running pods are gone"
	if manager.State == Yes {
		title = manager.Value + " removes the pods' rules or routes"
	}
	cd := Result{title: title, Summary: text, Decisive: []Fact{lacks}, Supporting: []Fact{manager}, pods: pods}
	cd = cd.WithFixes(c.repairFixes(manager)...)
	for _, kind := range networkLost {
		if found := c.seen(kind); len(found) > 0 && cd.names == nil {
			cd.names = found[0].names
		}
	}
	if worst := c.worst(networkLost...); lacks.Source != "intro.pod" && worst > catalogue.Info {
		cd = cd.As(worst)
	}
	if again := c.repairs(); lacks.State != Yes && again.State == Yes {
		cd = Result{Summary: "another program keeps removing network state of pods, and the daemon restores it: " + again.Value,
			Decisive: []Fact{again}}
		cd = cd.As(catalogue.Warning).WithFixes(c.repairFixes(manager)...)
	}
	out := []Result{cd}
	order := c.repairFixes(manager)
	if (manager.State == Unread || manager.State == Yes && order[0] <= fixNetworkd) && lacks.State != Yes && !c.Ours {
		out = append(out, Result{
			title:    manager.Value + " may remove the pods' rules or routes",
			Summary:  "the next time it configures a link it removes what it did not make: " + manager.Value,
			Decisive: []Fact{manager},
		}.As(catalogue.Warning).WithFixes(order[0]))
	}
	return out
}

// The fixes of net/rules-flushed, from 1.
const (
	fixCloudSetup = iota + 1
	fixNetworkd
	fixNetUtils
	fixRestart
	fixRecreate
	fixFind
)

// repairFixes orders the fixes by who removes rules and routes, and by what brings them back: ours
// restores all when it starts, upstream's only what belongs to interfaces.
func (c *Case) repairFixes(manager Fact) []int {
	repair := []int{fixRestart, fixRecreate}
	if !c.Ours && len(c.seen("obs/pod-no-rule"))+len(c.seen("obs/pod-no-route")) > 0 {
		repair = []int{fixRecreate}
	}
	switch who := manager.Value; {
	case manager.State != Yes:
		return append(repair, fixFind)
	case strings.Contains(who, "nm-cloud-setup"):
		return append([]int{fixCloudSetup}, repair...)
	case strings.Contains(who, "networkd"):
		return append([]int{fixNetworkd}, repair...)
	}
	return append([]int{fixNetUtils}, repair...)
}

// differences states that our daemon finds such a difference in its pods' kernel state.
func (c *Case) differences(how string) Fact {
	return On(c, c.R.PodViews, "intro.pod", "interfaces[].differences", "none", func(views []introspect.NodePod) (any, State) {
		var out []string
		for _, v := range views {
			for _, i := range v.Interfaces {
				for _, text := range i.Differences {
					if strings.Contains(text, how) && (strings.Contains(text, "rule") || strings.Contains(text, "route")) {
						out = append(out, fmt.Sprintf("%s/%s: %s", v.Pod.Namespace, v.Pod.Name, text))
					}
				}
			}
		}
		return Some(out), stateOf(len(out) > 0)
	})
}

// repairs states that our daemon repeatedly restored network state of pods.
func (c *Case) repairs() Fact {
	return On(c, c.R.Journal, "intro.events", string(introspect.EventHostStateRepaired), "none, or a single one",
		func(doc introspect.NodeEvents) (any, State) {
			n, last := 0, ""
			for _, e := range doc.Items {
				if e.Kind == introspect.EventHostStateRepaired && strings.HasPrefix(e.Reason, "pod-") && e.At.After(c.recent()) {
					n, last = n+1, or(e.Message, e.Reason)
				}
			}
			return fmt.Sprintf("%d times in 10 minutes, the last: %s", n, clip(last)), stateOf(n >= 3)
		})
}

// RulesWrong states that rules lead addresses elsewhere than to their pods.
func (c *Case) RulesWrong() Fact {
	if !c.R.Rules.OK() && c.R.PodViews.OK() {
		return c.lasting(func(c *Case) Fact { return c.differences("is not one of the pod's") })
	}
	return c.observes("obs/rule-wrong")
}

func staleRules(c *Case) []Result {
	wrong := c.RulesWrong()
	cd := Result{Summary: "rules of earlier pods capture traffic: " + wrong.Value, Decisive: []Fact{wrong}}
	if found := c.seen("obs/rule-wrong"); len(found) > 0 {
		cd.names, cd.fixes = found[0].names, found[0].fixes
		if found[0].names["OWN_TABLE"] != "" {
			cd.title = "a pod's rule leads to the table of another interface"
			cd.Summary = "what the pod sends leaves by another interface, and EC2 drops it: " + wrong.Value
		}
	}
	return []Result{cd}
}

// shared is an address that two running pods have, or routes to two links.
type shared struct {
	text  string
	nodes []string
	wrong evidence.Pod // the one of the two to delete; empty if unknown
	fixes []int
}

// Fixes of net/duplicate-ip, from 1.
const (
	fixNewerPod = iota + 1
	fixFindOut
	fixPodWithoutRecord
)

// holders returns the pods that daemons gave addresses to, as their datastores or checkpoints have it.
func holders(cs []*Case) map[netip.Addr][]evidence.Pod {
	out := map[netip.Addr][]evidence.Pod{}
	for _, c := range cs {
		for _, a := range c.assignments() {
			out[a.Address] = append(out[a.Address], *a.Pod)
		}
		if !c.R.ENIs.OK() {
			for _, a := range c.R.Checkpoint.Content.Allocations {
				out[a.Address] = append(out[a.Address], a.Pod)
			}
		}
	}
	return out
}

// duplicates returns the addresses that two running pods have, according to Kubernetes or the
// kernel.
func duplicates(cs []*Case) (found []shared) {
	owner, held := map[netip.Addr]*evidence.KubePod{}, holders(cs)
	for _, c := range cs {
		for p := range c.pods() {
			if p.Phase != "Running" || p.HostNetwork || p.Node == nil {
				continue
			}
			for _, a := range p.IPs {
				other := owner[a]
				if other == nil || other.Pod == p.Pod {
					owner[a] = p
					continue
				}
				s := shared{fmt.Sprintf("%s: %s and %s", a, other.Pod, p.Pod), []string{*other.Node, *p.Node}, p.Pod,
					[]int{fixNewerPod, fixFindOut}}
				its, others := slices.Contains(held[a], p.Pod), slices.Contains(held[a], other.Pod)
				if its != others {
					s.fixes = []int{fixPodWithoutRecord, fixFindOut}
				}
				if its && !others || its == others && other.StartedAt.After(p.StartedAt) {
					s.wrong = other.Pod
				}
				found = append(found, s)
			}
		}
		links := map[string]string{}
		for _, r := range c.R.Routes.Content {
			link := or(string(r.Pod), r.Dev)
			if r.Table != netnames.MainTable || r.Via.IsValid() || r.Pod == "" && !strings.HasPrefix(r.Dev, c.Settings.VethPrefix) {
				continue
			}
			to := strings.TrimSuffix(strings.TrimSuffix(r.To, "/32"), "/128")
			if other, taken := links[to]; taken && other != link {
				found = append(found, shared{fmt.Sprintf("%s: routes to %s and %s", to, other, link), []string{c.Name}, r.Pod,
					[]int{fixNewerPod, fixFindOut}})
			}
			links[to] = link
		}
	}
	return found
}

func duplicateIP(cs []*Case) []Result {
	var earlier []*Case
	read := false
	for _, c := range cs {
		if c.Earlier != nil {
			earlier = append(earlier, c.Earlier)
		}
		read = read || c.R.Pods.OK() || c.R.Routes.OK()
	}
	if len(cs) == 0 {
		return nil
	}
	before := duplicates(earlier)
	var texts, nodes []string
	var names map[string]string
	fixes := []int{fixNewerPod, fixFindOut}
	for _, s := range duplicates(cs) {
		if len(earlier) == 0 || slices.ContainsFunc(before, func(b shared) bool { return b.text == s.text }) {
			texts, nodes = append(texts, s.text), append(nodes, s.nodes...)
			if names == nil && s.wrong != "" {
				names, fixes = podNames(string(s.wrong)), s.fixes
			}
		}
	}
	slices.Sort(nodes)
	const path, expected = "addresses of running pods", "each has one pod"
	source := "k8s.pod"
	if !cs[0].R.Pods.OK() {
		source = "kern.route"
	}
	found := cs[0].Known(source, path, expected, Some(texts), len(texts) > 0)
	if !read {
		found = cs[0].Unread("k8s.pod", path, expected, cs[0].R.Pods.Missing)
	}
	return []Result{{Summary: "pods share an address: " + Some(texts), Decisive: []Fact{found}, Nodes: slices.Compact(nodes), names: names,
		fixes: fixes}}
}

// chainsSplit states that the CNI's chains and kube-proxy's are in different backends.
func (c *Case) chainsSplit() Fact {
	return On(c, c.R.IPTables, "kern.ipt", "chains AWS-SNAT-CHAIN-0 and KUBE-*", "in the same backend",
		func(k evidence.IPTables) (any, State) {
			awsNFT, awsLegacy := ChainsIn(k, "AWS-SNAT-CHAIN")
			kubeNFT, kubeLegacy := ChainsIn(k, "KUBE-SERVICES") // kubelet makes some in the host's backend
			if !kubeNFT && !kubeLegacy {
				kubeNFT, kubeLegacy = ChainsIn(k, "KUBE-")
			}
			if !kubeNFT && !kubeLegacy {
				kubeNFT, kubeLegacy = k.Mode == "nft", k.Mode == "legacy"
			}
			name := map[bool]string{true: "nft", false: "legacy"}
			if awsNFT == awsLegacy || kubeNFT == kubeLegacy {
				return "not split", No
			}
			return fmt.Sprintf("those of the CNI in %s, those of kube-proxy in %s", name[awsNFT], name[kubeNFT]), stateOf(awsNFT != kubeNFT)
		})
}

// ChainsIn reports which backends have chains whose names begin with name.
func ChainsIn(k evidence.IPTables, name string) (nft, legacy bool) {
	holds := func(chain string) bool { _, chain, _ = strings.Cut(chain, " "); return strings.HasPrefix(chain, name) }
	return slices.ContainsFunc(k.NFT.Chains, holds), slices.ContainsFunc(k.Legacy.Chains, holds)
}

func backendMismatch(c *Case) []Result {
	split := c.chainsSplit()
	native := Both(c.Before(evidence.Version{1, 23}),
		On(c, c.R.KubeProxy, "k8s.kp", "mode", "not nftables before v1.23.0", func(p evidence.KubeProxy) (any, State) {
			if p.Mode == "" {
				return nil, Unread
			}
			return p.Mode, stateOf(p.Mode == "nftables")
		}))
	shown := Either(split, native)
	cd := Result{
		Summary:  "the CNI and kube-proxy use different iptables backends: " + shown.Value,
		Decisive: []Fact{shown}, Context: []Fact{native},
	}
	switch {
	case native.State == Yes, c.older(evidence.Version{1, 13, 1}):
		cd = cd.WithFixes(2, 3) // only a newer release chooses the backend, or knows nftables
	default:
		cd = cd.WithFixes(1, 3) // it chose before kube-proxy had any chains
	}
	return []Result{cd}
}

// snat states that the rules for traffic out of the VPC are missing or wrong.
func (c *Case) snat() Fact {
	return On(c, c.R.IPTables, "kern.ipt", "nat "+netnames.SNATChain, "reached from POSTROUTING, translates to the node's address",
		func(k evidence.IPTables) (any, State) {
			jumps := slices.ContainsFunc(c.IPTablesRules(), func(r string) bool {
				return strings.HasPrefix(r, "nat -A POSTROUTING ") && strings.Contains(r, "-j "+netnames.SNATChain)
			})
			translates := slices.ContainsFunc(c.IPTablesRules(), func(r string) bool {
				return strings.HasPrefix(r, "nat -A AWS-SNAT-CHAIN-") && strings.Contains(r, " -j SNAT ")
			})
			switch own := c.nodeIP(); {
			case !jumps:
				return "POSTROUTING does not jump there", Yes
			case !translates || k.SNATTo == nil:
				return "no SNAT rule", Yes
			case own.IsValid() && *k.SNATTo != own:
				return fmt.Sprintf("translates to %s, the node has %s", *k.SNATTo, own), Yes
			}
			return "translates to " + k.SNATTo.String(), No
		})
}

// proxyRulesGone reports whether the node has no rules of kube-proxy, in which case no Service answers.
func (c *Case) proxyRulesGone() bool {
	k := c.R.IPTables.Content
	if c.R.KubeProxy.Content.Mode == "nftables" {
		return k.NFTTables != nil && !slices.ContainsFunc(k.NFTTables, func(table string) bool { return strings.HasSuffix(table, " kube-proxy") })
	}
	nft, legacy := ChainsIn(k, "KUBE-SERVICES") // kubelet makes others
	return !nft && !legacy
}

func noSNAT(c *Case) []Result {
	wrong := c.lasting((*Case).snat)
	inside := c.Setting("AWS_VPC_K8S_CNI_EXTERNALSNAT", "as the routes need it",
		func(s config.Config) bool { return !s.ExternalSNAT && !s.IPv6 })
	lost := Result{Summary: "traffic of pods leaves the VPC without SNAT: " + wrong.Value, Decisive: []Fact{wrong, inside},
		unless: []Fact{Not(c.serves())}}
	lost = lost.WithFixes(4)
	if c.chainsGone() {
		lost.title = "the CNI's packet filter chains are gone"
		lost.Summary = "the CNI's chains are gone, so traffic of pods leaves the VPC without SNAT, and replies to node ports by the wrong interface"
		if c.proxyRulesGone() {
			lost.Summary += "; kube-proxy's are gone as well, so Services do not answer until it makes them again"
			lost = lost.WithFixes(4, 5)
		}
	}
	out := []Result{lost}

	if c.Settings.ExternalSNAT {
		public := On(c, c.R.RouteTables, "ec2.rtb", "default route of the pods' subnets", "a NAT gateway",
			func(all []evidence.RouteTable) (any, State) {
				for _, t := range all {
					for _, r := range t.Routes {
						if strings.HasPrefix(r.Target, "igw-") && isEverything(r.To) && c.uses(t.Subnet) {
							return t.Subnet + " to " + r.Target, Yes
						}
					}
				}
				return "no internet gateway", No
			})
		out = append(out, Result{
			Summary:  "pods reach the internet gateway with their own address, which it does not translate: " + public.Value,
			Decisive: []Fact{public, Not(inside)},
		}.WithFixes(1, 2))
	}
	if unknown := c.lasting((*Case).unlisted); wrong.State != Yes && unknown.State == Yes && c.Earlier != nil &&
		c.Now.Sub(c.Earlier.Now) > ruleRefresh {
		out = append(out, Result{
			Summary:  "traffic of pods to a CIDR of the VPC is translated as if it left the VPC: no rule excludes " + unknown.Value,
			Decisive: []Fact{unknown, inside}, unless: []Fact{Not(c.serves())},
		}.WithFixes(4))
	}
	for _, p := range c.R.Probes.Content {
		host := targetAddr(p.Target)
		within := slices.IndexFunc(c.Settings.ExcludeSNATCIDRs, func(r netip.Prefix) bool { return r.Contains(host) })
		if p.From != "host" && p.Result != "ok" && within >= 0 {
			excluded := c.Known("probe", p.Target, "ok",
				fmt.Sprintf("%s from %s, and %s is excluded from SNAT", p.Result, p.From, c.Settings.ExcludeSNATCIDRs[within]), true)
			out = append(out, Result{Summary: "the target is excluded from SNAT, and nothing routes back to pods: " + excluded.Value,
				Decisive: []Fact{excluded, inside}}.WithFixes(3))
			break
		}
	}
	return out
}

// chainsGone reports whether nothing is left of the CNI's chains and rules.
func (c *Case) chainsGone() bool {
	nft, legacy := ChainsIn(c.R.IPTables.Content, "AWS-")
	return c.R.IPTables.OK() && !nft && !legacy && !c.Settings.ExternalSNAT &&
		!slices.ContainsFunc(c.IPTablesRules(), func(r string) bool { return strings.Contains(r, "AWS") })
}

// ruleRefresh is how long a daemon takes to notice a new range of the VPC.
const ruleRefresh = 30 * time.Second

// unlisted states that the VPC has CIDRs that are missing in the rules.
func (c *Case) unlisted() Fact {
	return On(c, c.R.IPTables, "kern.ipt", "ranges of the VPC in nat "+netnames.SNATChain, "all", func(evidence.IPTables) (any, State) {
		var lacks []string
		for _, r := range c.R.IMDS.Content.VPCCIDRs {
			if !slices.ContainsFunc(c.IPTablesRules(), func(rule string) bool {
				return strings.HasPrefix(rule, "nat -A AWS-SNAT-CHAIN-") && strings.Contains(rule, "-d "+r.String()+" ")
			}) {
				lacks = append(lacks, r.String())
			}
		}
		return Some(lacks), stateOf(len(lacks) > 0)
	})
}

// uses reports whether an interface of the node lies in a subnet.
func (c *Case) uses(subnet string) bool {
	return subnet == c.subnetOfNode() || slices.ContainsFunc(c.R.ENIs.Content, func(e evidence.ENI) bool { return e.Subnet == subnet })
}

// nodeIP returns the primary address of the node, zero if unknown.
func (c *Case) nodeIP() netip.Addr {
	if e, _ := find(c.R.IMDS.Content.ENIs, evidence.IMDSInterface.IsPrimary); len(e.IPs) > 0 {
		return e.IPs[0]
	}
	return netip.Addr{}
}

// targetAddr returns the address of a probe's target, zero if the target is a name.
func targetAddr(target string) netip.Addr {
	if at, err := netip.ParseAddrPort(target); err == nil {
		return at.Addr()
	}
	addr, _ := netip.ParseAddr(target)
	return addr
}

func forwardDrop(c *Case) []Result {
	dropped := shown("the host drops forwarded traffic", "obs/forward-dropped")(c)[0]
	off := shown("the node forwards no traffic, so its pods reach nothing", "obs/forwarding-off")(c)[0].WithFixes(2, 3)
	off.title = "the node does not forward"
	return []Result{dropped, off}
}

func replyPath(c *Case) []Result {
	secondary := On(c, c.R.ENIs, "intro.enis", "addresses of pods on secondary interfaces", "none, or a way back",
		func([]evidence.ENI) (any, State) { n := c.secondaryPods(); return n, stateOf(n > 0) })
	const name, expected = "AWS_VPC_CNI_NODE_PORT_SUPPORT", "true, if node ports are used"
	shown := c.lasting((*Case).replyFault)
	on := c.Setting(name, expected, func(s config.Config) bool { return s.NodePortSupport && !s.IPv6 })
	lost := Result{
		Summary:  fmt.Sprintf("replies of pods on secondary interfaces leave through the wrong interface: %s is %s", shown.Path, shown.Value),
		Decisive: []Fact{shown, on}, required: []Fact{secondary}, names: map[string]string{"PRIMARY": c.primaryLink()},
	}
	if shown.Source != "kern.sysctl" { // a rule or a chain, which the daemon makes
		lost = lost.WithFixes(4, 3)
	}
	out := []Result{lost}
	for _, p := range c.R.Probes.Content {
		at := strings.LastIndexByte(p.Target, ':')
		if port, err := strconv.Atoi(p.Target[at+1:]); err != nil || port < 30000 || port > 32767 || p.Result == "ok" ||
			c.Settings.NodePortSupport {
			continue
		}
		fails := c.Known("probe", p.Target, "ok", p.Result, true)
		out = append(out, Result{
			Summary:  "node port " + p.Target + " does not answer, and " + name + " is false",
			Decisive: []Fact{fails, c.Setting(name, expected, func(s config.Config) bool { return !s.NodePortSupport })},
			required: []Fact{secondary},
		})
		break
	}
	return out
}

// replyFault states that part of what leads replies back is missing.
func (c *Case) replyFault() Fact {
	strict := On(c, c.R.Sysctls, "kern.sysctl", "rp_filter of the primary interface", "2", func(all map[string]string) (any, State) {
		link := c.primaryLink()
		own, there := all["net.ipv4.conf."+link+".rp_filter"]
		if link == "" || !there {
			return nil, Unread
		}
		own = max(own, all["net.ipv4.conf.all.rp_filter"]) // as the kernel does
		return fmt.Sprintf("%s on %s", own, link), stateOf(own == "1")
	})
	unmarked := On(c, c.R.IPTables, "kern.ipt", `mangle "AWS, primary ENI"`, "connections are marked, and marks restored",
		func(evidence.IPTables) (any, State) {
			sets, restores := false, false
			if c.chainsGone() {
				return "gone with the other chains", No // see noSNAT
			}
			for _, r := range c.IPTablesRules() {
				if strings.HasPrefix(r, "mangle ") && strings.Contains(r, "AWS, primary ENI") {
					restores = restores || strings.Contains(r, "--restore-mark")
					sets = sets || strings.Contains(r, "--set-")
				}
			}
			return fmt.Sprintf("marked: %v, restored: %v", sets, restores), stateOf(!sets || !restores)
		})
	lost := On(c, c.R.Rules, "kern.rule", fmt.Sprintf("rule %d for mark %#x", netnames.RuleMark, c.Settings.Connmark),
		"there, and no other rule for the mark", func([]evidence.Rule) (any, State) {
			ours := false
			for _, r := range c.PolicyRules() {
				switch {
				case r.Mark == 0 && r.Mask == 0:
				case r.Priority == netnames.RuleMark && r.Mark == c.Settings.Connmark && r.Table == netnames.MainTable:
					ours = true
				case r.Mark&r.Mask&c.Settings.Connmark != 0:
					return r.String(), Yes
				}
			}
			return map[bool]string{true: "there", false: "missing"}[ours], stateOf(!ours)
		})
	return Either(strict, unmarked, lost)
}

// primaryLink returns the name of the primary interface's link, empty if unknown.
func (c *Case) primaryLink() string {
	id, mac := c.primary()
	for _, l := range c.R.Links.Content {
		if l.Kind != "veth" && (id != "" && l.ENI == id || mac != "" && strings.EqualFold(l.MAC, mac)) {
			return l.Name
		}
	}
	return c.linkOfTable(netnames.MainTable)
}

// vethMTU states that links of pods have larger MTUs than their interfaces, and names one of both.
func (c *Case) vethMTU() (f Fact, names map[string]string, link int) {
	f = On(c, c.R.Links, "kern.link", "MTU of veths against their interface", "at most the interface's",
		func(all []evidence.Link) (any, State) {
			mtu := func(match func(evidence.Link) bool) int {
				if l, _ := find(all, match); l.MTU != nil {
					return *l.MTU
				}
				return 0
			}
			var pods []string
			state := Unread
			for _, w := range c.wired() {
				name := c.linkOfTable(w.table)
				device := mtu(func(l evidence.Link) bool { return l.Name == name })
				pod := mtu(func(l evidence.Link) bool { return l.Pod == w.pod || l.Name == veth(c.Settings.VethPrefix, w.pod) })
				if device == 0 || pod == 0 {
					continue
				}
				if state = max(state, No); pod > device {
					pods, state = append(pods, fmt.Sprintf("%s has %d, %s %d", w.pod, pod, name, device)), Yes
					if names == nil {
						names, link = podNames(string(w.pod)), device
						names["LINK"], names["BYTES"] = name, strconv.Itoa(c.Settings.ENIMTU)
					}
				}
			}
			if state == Unread && c.R.ENIs.OK() && len(c.wired()) == 0 {
				state = No
			}
			return Some(pods), state
		})
	return f, names, link
}

func mtuMismatch(c *Case) []Result {
	larger, names, link := c.vethMTU()
	veths := Result{
		Summary:  "large packets of pods are lost, because the MTU of their link is larger than the interface's: " + larger.Value,
		Decisive: []Fact{larger}, names: names,
	}.WithFixes(3) // the pods are older than the setting
	if c.settingsAt != "" && link < c.Settings.ENIMTU {
		veths = veths.WithFixes(2) // a program of the host changed the interface
	}
	out := []Result{veths}
	if lost, sized := c.largeLost(); lost.State == Yes {
		path := On(c, c.R.RouteTables, "ec2.rtb", "routes of the pods' subnets", "none to a VPN or transit gateway",
			func(all []evidence.RouteTable) (any, State) {
				for _, t := range all {
					for _, r := range t.Routes {
						if c.uses(t.Subnet) && (strings.HasPrefix(r.Target, "tgw-") || strings.HasPrefix(r.Target, "vgw-")) {
							return r.To + " to " + r.Target, Yes
						}
					}
				}
				return "none", No
			})
		small := c.Known("kern.link", "MTU of pods", "more than 1500", c.podMTU(), c.podMTU() <= 1500)
		cd := Result{
			Summary:  fmt.Sprintf("pods send packets of up to %d bytes, but the path loses large ones: %s", c.podMTU(), lost.Value),
			Decisive: []Fact{lost}, unless: []Fact{small},
		}
		if cd.Supporting = []Fact{path}; !sized { // without the sizes, only the path rules out a target that does not answer
			cd.Supporting, cd.required = nil, []Fact{path}
		}
		out = append(out, cd.WithFixes(1))
	}
	return out
}

// largeLost states that a target outside the VPC answers a pod but large packets do not get
// through. sized reports whether packets of different sizes were sent to show it.
func (c *Case) largeLost() (lost Fact, sized bool) {
	host := func(p evidence.Probe) string {
		if a := targetAddr(p.Target); a.IsValid() {
			return a.String()
		}
		return p.Target
	}
	lost = c.Known("probe", "large packets to targets that answer", "pass", "pass", false)
	for _, p := range c.R.Probes.Content {
		if p.From == "host" || p.Result != "timeout" || p.Kind == "tcp" || p.Kind == "dns" ||
			slices.ContainsFunc(c.R.IMDS.Content.VPCCIDRs, func(r netip.Prefix) bool { return r.Contains(targetAddr(p.Target)) }) {
			continue
		}
		for _, small := range c.R.Probes.Content {
			if small.From == p.From && small.Result == "ok" && host(small) == host(p) && (small.Kind == "tcp" || small.Kind == "icmp") {
				text := fmt.Sprintf("%s to %s works from %s, %s ends with %s", small.Kind, small.Target, p.From, p.Kind,
					strings.TrimSpace(p.Result+" "+p.Detail))
				return c.Known("probe", lost.Path, lost.Expected, clip(text), true), p.Kind == "icmp"
			}
		}
	}
	return lost, false
}

// podMTU returns the largest MTU of the pods' links, 0 if unknown.
func (c *Case) podMTU() (most int) {
	for _, l := range c.R.Links.Content {
		if l.Kind == "veth" && l.MTU != nil {
			most = max(most, *l.MTU)
		}
	}
	return most
}

func connectionsFull(c *Case) []Result {
	cd := shown("new connections of the node and its pods are dropped", "obs/conntrack")(c)[0]
	if c.worst("obs/conntrack") < catalogue.Error {
		cd = shown("new connections of the node and its pods are dropped once it is full", "obs/conntrack")(c)[0]
		cd.title = "the node's connection table is nearly full"
	}
	return []Result{cd}
}

func allowanceExceeded(c *Case) []Result {
	grows, counted := c.allowances()
	cd := Result{
		Summary:  "the instance drops packets beyond its network allowance: " + grows.Value,
		Decisive: []Fact{grows}, Context: []Fact{counted}, names: map[string]string{"PRIMARY": c.primaryLink()},
	}.WithFixes(2)
	if strings.Contains(grows.Value, "linklocal") {
		cd = cd.WithFixes(1, 2)
	}
	return []Result{cd}
}

// allowed are the ENA counters of dropped packets, with the growth in ten minutes above which EKS's node
// monitoring agent warns. Anything less is noise.
var allowed = []struct {
	name string
	most float64
	of   func(evidence.Allowance) *int
}{
	{"bw_in", 320, func(a evidence.Allowance) *int { return a.BWIn }},
	{"bw_out", 320, func(a evidence.Allowance) *int { return a.BWOut }},
	{"conntrack", 100, func(a evidence.Allowance) *int { return a.Conntrack }},
	{"linklocal", 100, func(a evidence.Allowance) *int { return a.LinkLocal }},
	{"pps", 100, func(a evidence.Allowance) *int { return a.PPS }},
}

// allowances states that a counter of dropped packets grows fast, and that one is not zero.
func (c *Case) allowances() (grows, counted Fact) {
	var grown, some []string
	for _, counter := range allowed {
		now := counter.of(c.R.Conntrack.Content.Allowance)
		if now == nil || *now == 0 {
			continue
		}
		some = append(some, fmt.Sprintf("%s_allowance_exceeded is %d", counter.name, *now))
		if c.Earlier == nil || !c.Earlier.R.Conntrack.OK() {
			continue
		}
		before, between := counter.of(c.Earlier.R.Conntrack.Content.Allowance), c.Now.Sub(c.Earlier.Now)
		if before != nil && float64(*now-*before)*float64(10*time.Minute) > counter.most*float64(between) {
			grown = append(grown, fmt.Sprintf("%s_allowance_exceeded rose from %d to %d in %v", counter.name, *before, *now,
				between.Round(time.Second)))
		}
	}
	const path, expected = "allowance", "not rising fast"
	counted = On(c, c.R.Conntrack, "kern.ct", path, expected, func(evidence.Conntrack) (any, State) {
		return or(strings.Join(some, ", "), "0"), stateOf(len(some) > 0)
	})
	if grows = counted; counted.State != Yes {
		return grows, counted
	}
	if c.Earlier == nil || !c.Earlier.R.Conntrack.OK() {
		return c.Unread("kern.ct", path, expected, "one reading only"), counted
	}
	return c.Known("kern.ct", path, expected, or(strings.Join(grown, ", "), strings.Join(some, ", ")), len(grown) > 0), counted
}
