package causes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	hostrules "cnictl/daemon/hostnet/rules"
	"cnictl/daemon/lazy"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// valueObservers look for values out of range.
var valueObservers = []observer{
	{kind: "obs/forwarding-off", find: forwardingOff},
	{kind: "obs/sysctl", find: sysctlWrong},
	{kind: "obs/forward-dropped", find: forwardDropped},
	{kind: "obs/snat", find: snatWrong},
	{kind: "obs/reply-path", find: replyPathWrong},
	{kind: "obs/chains-split", find: chainsApart},
	{kind: "obs/conntrack", find: conntrackFull},
	{kind: "obs/allowance", find: allowanceRises, once: true},
	{kind: "obs/neighbours", find: neighboursFull, once: true},
	{kind: "obs/disk", find: diskFull},
	{kind: "obs/read-only", find: readOnly},
	{kind: "obs/memory", find: memoryLow},
	{kind: "obs/cpu", find: cpuBusy},
	{kind: "obs/clock", find: clockAhead},
	{kind: "obs/mtu", find: mtuWrong},
	{kind: "obs/max-pods-high", find: maxPodsHigh},
	{kind: "obs/max-pods-low", find: maxPodsLow},
	{kind: "obs/pool-dry", find: poolIsDry},
	{kind: "obs/subnet-low", find: subnetLow},
	{kind: "obs/stated-limit", find: limitStated},
	{kind: "obs/daemon-not-ready", find: daemonNotReady},
	{kind: "obs/daemon-restarts", find: daemonRestarts},
	{kind: "obs/probe-limits", find: probesHasty},
	{kind: "obs/init-failing", find: initFailing},
	{kind: "obs/agent-not-ready", find: agentNotReady},
	{kind: "obs/kube-proxy-ipvs", find: proxyIPVS},
	{kind: "obs/crd", find: crdAbsent},
	{kind: "obs/right", find: rightDenied},
	{kind: "obs/iam", find: roleDenied},
	{kind: "obs/rollout", find: rolloutStuck},
	{kind: "obs/network-condition", find: networkCondition},
	{kind: "obs/cni-config", find: cniConfigWrong},
	{kind: kindNoVPCCNI, find: vpcCNIAbsent, info: true},
	{kind: "obs/checkpoint", find: checkpointBad},
	{kind: "obs/metadata", find: metadataFails},
	{kind: "obs/kernel-module", find: moduleMissing},
	{kind: "obs/denial", find: accessDenied},
	{kind: "obs/quota", find: quotaUsed},
	{kind: "obs/setting", find: settingWrong},
	{kind: "obs/port", find: portHeld},
	{kind: "obs/network-manager", find: managerActive},
}

// served returns the pods of the node that run with an address of the CNI.
func (c *Case) served() (pods []string) {
	if !c.R.Pods.OK() {
		return each(c.assignments(), func(a evidence.Address) string { return string(*a.Pod) })
	}
	return each(where(c.Here(), func(p *evidence.KubePod) bool { return p.Phase == "Running" && !p.HostNetwork }), podName)
}

func forwardingOff(c *Case) (out []observation) {
	name := "net.ipv4.ip_forward"
	if c.Settings.IPv6 {
		name = "net.ipv6.conf.all.forwarding"
	}
	if v, there := c.R.Sysctls.Content[name]; there && v == "0" {
		pods := c.served()
		out = append(out, observation{subject: name, is: "0", should: "1: the node forwards the traffic of all its pods", pods: pods,
			severity: bySeverity(pods, catalogue.Error), names: map[string]string{"SYSCTL": name}})
	}
	return out
}

// sysctlWrong looks at what init container, daemon and plugin set, except what has its own kind.
func sysctlWrong(c *Case) (out []observation) {
	link := c.primaryLink()
	if link == "" || c.settingsAt == "" {
		return nil
	}
	all := c.R.Sysctls.Content
	note := func(name, want string, pods []string, otherwise catalogue.Severity) {
		if v, there := all[name]; there && v != want {
			out = append(out, observation{subject: name, is: v, should: want, severity: bySeverity(pods, otherwise), pods: pods,
				names: map[string]string{"SYSCTL": name, "VALUE": want}})
		}
	}
	networkd := c.unitActive("systemd-networkd")
	for _, s := range hostrules.Sysctls(c.Settings.IPv6, c.Settings.V6Egress, link) {
		switch name := s.Name(); {
		case strings.HasSuffix(name, ".rp_filter") || strings.HasSuffix(name, ".all.forwarding") &&
			c.Settings.IPv6: // see reply-path and forwarding-off
		case strings.HasSuffix(name, ".disable_ipv6"):
			pods := c.served()
			note(name, s.Value, pods, catalogue.Error)
			note("net.ipv6.conf."+link+".disable_ipv6", s.Value, pods, catalogue.Error)
			note("net.ipv6.conf.default.disable_ipv6", s.Value, nil, catalogue.Error)
		case networkd && all[name] == "0" && strings.HasSuffix(name, ".accept_ra"): // networkd handles router advertisements itself
		default:
			note(name, s.Value, nil, catalogue.Warning)
		}
	}
	if c.Settings.IPv6 || all["net.ipv4.ip_forward"] == "0" {
		return out // with all others: see forwardingOff
	}
	// Links that were switched off for forwarding one by one drop what comes in by them.
	const of = "net.ipv4.conf."
	note(of+"default.forwarding", "1", nil, catalogue.Error)
	note(of+link+".forwarding", "1", c.served(), catalogue.Error)
	for _, e := range c.enis() {
		if l, there := c.linkOf(e.ID); there && l.Name != link && c.serving(e) {
			note(of+l.Name+".forwarding", "1", c.onENI(e.ID), catalogue.Error)
		}
	}
	for _, l := range c.R.Links.Content {
		if l.Kind == "veth" && strings.HasPrefix(l.Name, c.Settings.VethPrefix) {
			var pods []string
			if l.Pod != "" {
				pods = []string{string(l.Pod)}
			}
			note(of+l.Name+".forwarding", "1", pods, catalogue.Error)
		}
	}
	return out
}

func forwardDropped(c *Case) []observation {
	k := c.R.IPTables.Content
	if !c.R.IPTables.OK() || c.Settings.IPv6 { // the chains of IPv4
		return nil
	}
	pods := c.served()
	// by puts the program first that makes the rule or the policy again when it starts.
	by := func(o observation, units ...string) []observation {
		for _, unit := range units {
			if c.unitActive(unit) {
				o.is, o.fixes = o.is+"; "+unit+" is active", append([]int{unitFixes[unit]}, o.fixes...)
			}
		}
		return []observation{o}
	}
	for i, r := range c.IPTablesRules() {
		if to, all := strings.CutPrefix(r, "filter -A FORWARD -j "); all && (strings.HasPrefix(to, "REJECT") || to == "DROP") {
			order := []int{4}
			if i >= len(k.NFT.Rules) && k.Mode != "legacy" {
				order = []int{5}
			}
			return by(observation{subject: "FORWARD", is: fmt.Sprintf("the rule %q ends everything that no rule before it accepts", r),
				should: "no such rule", pods: pods,
				severity: bySeverity(pods, catalogue.Error), names: map[string]string{"VETHS": or(c.Settings.VethPrefix, "eni")},
				fixes: order}, "iptables", "firewalld")
		}
		if strings.HasPrefix(r, "filter -A FORWARD ") && strings.HasSuffix(r, "-j ACCEPT") {
			break // it may accept the traffic of pods
		}
	}
	if k.Forward != "DROP" || k.ForwardAccepts == nil || *k.ForwardAccepts {
		return nil
	}
	return by(observation{subject: "FORWARD", is: "its policy is DROP, and no rule accepts the traffic of pods", should: "ACCEPT", pods: pods,
		severity: bySeverity(pods, catalogue.Error), fixes: []int{1}}, "iptables", "firewalld", "ufw")
}

// unitFixes are the fixes of net/forward-drop, from 1, that are about a unit.
var unitFixes = map[string]int{"ufw": 6, "firewalld": 7, "iptables": 8}

// unitActive reports whether a service of the host is active.
func (c *Case) unitActive(name string) bool {
	units := c.R.Packages.Content.Units
	return or(units[name], units[name+".service"]) == "active"
}

func snatWrong(c *Case) []observation {
	if !c.R.IPTables.OK() || !c.Knows("AWS_VPC_K8S_CNI_EXTERNALSNAT") || c.Settings.ExternalSNAT || c.Settings.IPv6 || c.serves().State == No {
		return nil
	}
	if wrong := c.snat(); wrong.State == Yes {
		return []observation{{subject: "nat " + netnames.SNATChain, is: wrong.Value, should: wrong.Expected, pods: c.served(),
			severity: catalogue.Error}}
	}
	return nil
}

func replyPathWrong(c *Case) []observation {
	if c.settingsAt == "" || !c.Settings.NodePortSupport || c.Settings.IPv6 || c.secondaryPods() == 0 {
		return nil
	}
	wrong := c.replyFault()
	return wrong.observed(wrong.Path, catalogue.Error)
}

// secondaryPods counts the addresses of pods on other interfaces than the primary one.
func (c *Case) secondaryPods() (n int) {
	for _, e := range c.R.ENIs.Content {
		for a := range e.Records() {
			if a.Pod != nil && !e.Primary {
				n++
			}
		}
	}
	return n
}

func chainsApart(c *Case) []observation { return c.chainsSplit().observed("iptables", catalogue.Error) }

func conntrackFull(c *Case) []observation {
	k := c.R.Conntrack.Content
	if k.Count == nil || k.Max == nil || *k.Max <= 0 || *k.Count*10 < *k.Max*9 {
		return nil
	}
	o := observation{subject: "conntrack", is: fmt.Sprintf("%d of %d connections", *k.Count, *k.Max), should: "below 90 %",
		severity: catalogue.Warning, names: map[string]string{"MAXIMUM": strconv.Itoa(max(4**k.Max, 131072))}}
	if *k.Count*100 >= *k.Max*99 {
		o.severity, o.pods = catalogue.Error, c.served()
	}
	return []observation{o}
}

func allowanceRises(c *Case) []observation {
	grows, _ := c.allowances()
	return grows.observed("network allowance", catalogue.Warning)
}

// neighboursFull looks for tables of neighbours that had no room for an entry between the readings, or soon will not.
func neighboursFull(c *Case) (out []observation) {
	before := evidence.NeighbourTables{}
	if c.Earlier != nil {
		before = c.Earlier.R.Conntrack.Content.Neighbours
	}
	note := func(name string, before, now evidence.NeighbourTable, fix int) {
		if now.Entries == nil || now.Max == nil || *now.Max <= 0 {
			return
		}
		o := observation{subject: name, is: fmt.Sprintf("%d entries, at most %d", *now.Entries, *now.Max), should: "below 90 %",
			severity: catalogue.Warning, fixes: []int{fix}}
		full := before.Full != nil && now.Full != nil && *now.Full > *before.Full
		if full {
			o.is += fmt.Sprintf("; %d times within %s there was no room for another", *now.Full-*before.Full,
				c.Now.Sub(c.Earlier.Now).Round(time.Second))
			o.severity, o.pods = catalogue.Error, c.served()
		}
		// Each pod has a permanent entry of its gateway.
		if used := *now.Entries - len(c.served()); full || used*10 >= *now.Max*9 {
			out = append(out, o)
		}
	}
	now := c.R.Conntrack.Content.Neighbours
	note("ARP table", before.IPv4, now.IPv4, 1)
	note("NDP table", before.IPv6, now.IPv6, 2)
	return out
}

// diskLimits are the shares of a file system at which it will be full soon, and is full.
const (
	diskNearly = 95.0
	diskIs     = 99.0
)

// dataDisks are where Bottlerocket, and EKS on instances with disks of their own, keep what kubelet and the runtime
// write; bind mounts lead there. The latter may be volumes of pods instead.
const (
	bottlerocketData = "/local"
	instanceDisks    = "/mnt/k8s-disks/"
)

// dataDisk reports whether a file system has the data of kubelet and of the runtime, among others.
func (c *Case) dataDisk(path string) bool {
	if path == bottlerocketData || strings.HasPrefix(path, bottlerocketData+"/var") {
		return true
	}
	elsewhere := func(d evidence.Disk) bool { return d.Path == "/var/lib/containerd" || d.Path == "/var/lib/kubelet" }
	return strings.HasPrefix(path, instanceDisks) && !slices.ContainsFunc(c.R.Resources.Content.Disks, elsewhere)
}

// nodeDisk reports whether a file system matters to the CNI, kubelet or the runtime.
func (c *Case) nodeDisk(path string) bool {
	if c.dataDisk(path) {
		return true
	}
	for _, used := range []string{runDirectory, "/var/log/aws-routed-eni", "/opt/cni/bin", "/etc/cni/net.d", "/var/lib/kubelet",
		"/var/lib/containerd", "/run"} {
		if path == "/" || used == path || strings.HasPrefix(used, strings.TrimSuffix(path, "/")+"/") {
			return true
		}
	}
	return false
}

// The fixes of boot/disk-full, from 1.
const (
	fixImages = iota + 1
	fixFiles
	fixReadOnlyNode
	fixJournal
)

// textNoSpace is what a write says that fails; limits of watches and control groups say it too.
var textNoSpace = pattern{
	sources: []string{"log.kubelet", "k8s.evt"}, texts: []string{"no space left on device"},
	except: []string{"inotify", "watch", "cgroup", "failed to setup network"},
}

// writtenTo finds the directory that a failed write names.
var writtenTo = lazy.Regexp(`/(?:run|var/log|var|tmp|opt|etc)\b`)

// diskFull looks for full file systems. It is worse than a warning if pods fail already.
func diskFull(c *Case) (out []observation) {
	fails := c.stuck(attachTime).State == Yes || slices.ContainsFunc(c.R.DaemonPods.Content, func(p evidence.DaemonPod) bool {
		return p.Node == c.own && p.Phase == "Failed"
	})
	for p := range c.pods() {
		fails = fails || p.Reason == "Evicted" && p.Node != nil && *p.Node == c.own
	}
	note := func(subject, is, should, path, source string, full bool) {
		o := observation{subject: subject, is: is, should: should, severity: catalogue.Warning, names: map[string]string{"PATH": path},
			fixes: []int{fixFiles}, source: source}
		if full && fails {
			o.severity = catalogue.Error
		}
		switch images := "/var/lib/containerd"; {
		case path == "/" || c.dataDisk(path) || images == path || strings.HasPrefix(images, path+"/"):
			o.fixes = []int{fixImages, fixFiles}
		case strings.HasPrefix(path, "/var/log"):
			o.fixes = []int{fixJournal, fixFiles}
		}
		out = append(out, o)
	}
	if k, there := c.condition("DiskPressure"); there && k.Status == "True" {
		fails = true // kubelet admits no more pods
	}
	for _, d := range c.R.Resources.Content.Disks {
		report := func(what string, used *float64) {
			// What is read-only does not fill: the root of an immutable system has no free space.
			if used != nil && *used >= diskNearly && !d.ReadOnly && c.nodeDisk(d.Path) {
				note(d.Path, fmt.Sprintf("%g %% of its %s are used", *used, what), fmt.Sprintf("below %g %%", diskNearly), d.Path, "", *used >= diskIs)
			}
		}
		report("bytes", d.UsedPercent)
		report("inodes", d.InodesUsedPercent)
	}
	if f := c.active(textNoSpace); f.State == Yes {
		path := or(writtenTo().FindString(f.Value), "/")
		note("a write", f.Value, "it succeeds", path, f.Source, true)
	}
	return out
}

// image reports whether a file system is read-only by design: the root of Bottlerocket, and images such as squashfs,
// which have neither a free block nor a free inode. What the CNI writes is elsewhere.
func (c *Case) image(d evidence.Disk) bool {
	whole := func(used *float64) bool { return used != nil && *used >= 100 }
	return d.Path == "/" && strings.Contains(strings.ToLower(c.R.Node.Content.OSImage), "bottlerocket") ||
		whole(d.UsedPercent) && whole(d.InodesUsedPercent)
}

func readOnly(c *Case) (out []observation) {
	for _, d := range c.R.Resources.Content.Disks {
		if d.ReadOnly && c.nodeDisk(d.Path) && !c.image(d) {
			out = append(out, observation{subject: d.Path, is: "read-only", should: "writable", severity: catalogue.Error,
				names: map[string]string{"PATH": d.Path}})
		}
	}
	return out
}

func diskTrouble(c *Case) []Result {
	full := shown("what is written to it fails", "obs/disk")(c)[0]
	if full.title = "a file system of the node is full"; c.worst("obs/disk") < catalogue.Error {
		full.title, full.mild = "a file system of the node is full or nearly so", true
	}
	if found := c.seen("obs/disk"); len(found) > 0 {
		full = full.WithFixes(found[0].fixes...)
	}
	locked := shown("nothing can be written to it", "obs/read-only")(c)[0].WithFixes(fixReadOnlyNode)
	locked.title = "a file system of the node is read-only"
	return []Result{full, locked}
}

// memoryLeast is less than the daemon and a plugin need to start.
const memoryLeast = 64 // MiB

func memoryLow(c *Case) []observation {
	if m := c.R.Resources.Content.MemoryFreeMiB; m != nil && *m < memoryLeast {
		return []observation{{subject: "memory", is: fmt.Sprintf("%d MiB are available", *m), should: fmt.Sprintf("at least %d MiB", memoryLeast),
			severity: catalogue.Warning}}
	}
	return nil
}

func cpuBusy(c *Case) (out []observation) {
	r, asks := c.R.Resources.Content, ""
	if ds := c.R.DaemonSet.Content; ds != nil {
		asks = "; aws-node requests " + or(ds.CPURequest, "no CPU")
	}
	if r.Load1 != nil && r.CPUs != nil && *r.CPUs > 0 && *r.Load1 >= 8*float64(*r.CPUs) {
		out = append(out, observation{subject: "load", is: fmt.Sprintf("%g on %d CPUs", *r.Load1, *r.CPUs) + asks, should: "below 8 for each CPU",
			severity: catalogue.Warning})
	}
	for _, name := range r.Throttled {
		severity, is := catalogue.Info, "its CPU is throttled"
		if strings.Contains(name, processDaemon) || strings.Contains(name, "aws-node") {
			severity, is = catalogue.Warning, is+asks
		}
		out = append(out, observation{subject: name, is: is, should: "not throttled", severity: severity})
	}
	return out
}

// clockSkew is how far EC2 accepts a signature's time to differ from its own.
const clockSkew = 5 * time.Minute

// textsSkewed are what AWS answers to a request whose time is not its own; textAuth may mean that, or
// credentials that are not valid.
var textsSkewed = []string{"RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch", "InvalidSignatureException",
	"Signature expired", "Signature not yet current"}

const textAuth = "AuthFailure"

func clockWrong(c *Case) []Result {
	differs, refused, auth := c.observes("obs/clock"), c.ec2Fails(textsSkewed...), c.ec2Fails(textAuth)
	out := []Result{{Summary: "EC2 refuses requests because the node's clock is wrong: " + quoted(refused), Decisive: []Fact{refused},
		Supporting: []Fact{differs}}}
	if refused.State != Yes {
		out = append(out,
			Result{
				title:    "EC2 refuses the node's signatures: its clock or its credentials are wrong",
				Summary:  "EC2 does not accept what the daemon signs, most often because the clock is wrong: " + quoted(auth),
				Decisive: []Fact{auth}, Supporting: []Fact{differs},
			})
	}
	if refused.State != Yes && auth.State != Yes {
		out = append(out, Result{Summary: "the node's clock differs from that of the doctor: " + differs.Value,
			Decisive: []Fact{differs}}.As(catalogue.Warning))
	}
	return out
}

// clockAhead compares the times that the node wrote with that of the reading.
func clockAhead(c *Case) []observation {
	var latest time.Time
	what := ""
	note := func(at time.Time, of string) {
		if at.After(latest) {
			latest, what = at, of
		}
	}
	note(c.R.Checkpoint.Content.ModifiedAt, "the checkpoint")
	for _, a := range c.R.Checkpoint.Content.Allocations {
		note(a.At, "an allocation of the checkpoint")
	}
	for _, l := range c.logSource("log.ipamd").lines {
		note(l.at, "a line of the daemon's log")
	}
	if latest.Sub(c.Now) < clockSkew {
		return nil
	}
	return []observation{{subject: "clock", is: fmt.Sprintf("%s is of %s after the reading", what, age(latest.Sub(c.Now))),
		should: "within " + age(clockSkew), severity: catalogue.Warning}}
}

func mtuWrong(c *Case) (out []observation) {
	for _, e := range c.R.ENIs.Content {
		l, there := c.linkOf(e.ID)
		if !there || l.MTU == nil || c.settingsAt == "" || c.Settings.ENIMTU <= 0 || *l.MTU == c.Settings.ENIMTU || e.Excluded ||
			c.settling(e.ID) {
			continue
		}
		out = append(out, observation{subject: l.Name, is: fmt.Sprintf("its MTU is %d", *l.MTU),
			should:   fmt.Sprintf("%d, as AWS_VPC_ENI_MTU says", c.Settings.ENIMTU),
			severity: catalogue.Info, names: map[string]string{"LINK": l.Name}})
	}
	larger, _, _ := c.vethMTU()
	return append(out, larger.observed("veths", catalogue.Warning)...)
}

func maxPodsHigh(c *Case) []observation {
	n, known := c.misfit()
	if most, _ := c.maxPods(); known && n > 2 && !c.Settings.IPv6 {
		return []observation{{subject: "max-pods", is: fmt.Sprintf("%d, %d more than the node can address", most, n), should: "no more",
			severity: catalogue.Warning}}
	}
	return nil
}

// textTooManyPods is what the scheduler and kubelet say when max-pods is reached.
var textsTooManyPods = []string{"Too many pods", "OutOfpods", "Node didn't have enough resource: pods"}

// tooMany returns the pods that max-pods keeps from the node.
func (c *Case) tooMany() (pods []string) {
	for p := range c.pods() {
		elsewhere := p.On() != "" && p.On() != c.own
		if !elsewhere && (p.Phase == "Pending" || p.Phase == "Failed") && matchesAny(p.Message+" "+p.Reason, textsTooManyPods) {
			pods = append(pods, string(p.Pod))
		}
	}
	for _, e := range c.R.Events.Content {
		if e.Kind == "Pod" && e.At.After(c.recent()) && matchesAny(e.Message, textsTooManyPods) && !slices.Contains(pods, e.Name) {
			if on, known := c.podNode[evidence.Pod(e.Name)]; !known || on == "" {
				pods = append(pods, e.Name)
			}
		}
	}
	return pods
}

func maxPodsLow(c *Case) []observation {
	n, known := c.misfit()
	most, _ := c.maxPods()
	if !known || n >= 0 || most == 0 {
		return nil
	}
	o := observation{subject: "max-pods", is: fmt.Sprintf("%d, and the node could address %d", most, most-n),
		should: "as many as the addresses allow", severity: catalogue.Info}
	if waiting := c.tooMany(); len(waiting) > 0 && c.filled(most) {
		o.severity, o.pods = catalogue.Error, waiting
	}
	return []observation{o}
}

// filled reports whether a node has as many pods as max-pods allows; it counts as filled if they
// cannot be counted.
func (c *Case) filled(most int) bool {
	n := 0
	for _, p := range c.Here() {
		n += max(1, p.Count)
	}
	return !c.R.Pods.OK() || n >= most
}

func poolIsDry(c *Case) []observation {
	if found := c.series("awscni_no_available_ip_addresses"); !c.R.ENIs.OK() && found.State == Yes { // the only evidence
		return []observation{{subject: "pool", is: "requests that found no address: " + found.Value, should: "not rising",
			severity: catalogue.Error, source: "metrics"}}
	}
	if c.dry().State != Yes || c.Settings.IPv6 {
		return nil
	}
	o := observation{subject: "pool", is: poolText(c.pool()), should: "a free address", severity: catalogue.Info}
	if waiting := c.waiting(); len(waiting) > 0 || c.failing().State == Yes {
		o.severity = catalogue.Error
		o.pods = each(waiting, podName)
	}
	return []observation{o}
}

func subnetLow(c *Case) (out []observation) {
	subnets, known := c.candidates()
	if !known || c.Settings.IPv6 {
		return nil
	}
	least := c.request(c.pool())
	for _, s := range subnets {
		if s.Available == nil || *s.Available >= least {
			continue
		}
		o := observation{subject: s.ID, is: fmt.Sprintf("%d free addresses", *s.Available), should: fmt.Sprintf("%d, for one request", least),
			severity: catalogue.Info, names: map[string]string{"SUBNET": s.ID}}
		if most, all := fullest(subnets); all && most < least && c.growable().State == Yes && c.growthStopped().State != Yes &&
			c.dry().State == Yes {
			o.severity = catalogue.Warning // the next pod of the node fails
		}
		out = append(out, o)
	}
	return out
}

func limitStated(c *Case) (out []observation) {
	for _, card := range c.R.Summary.Content.Cards {
		for what, s := range map[string]*introspect.StatedLimit{"interfaces": card.StatedENILimit,
			"addresses of an interface": card.StatedSlots} {
			if s != nil {
				out = append(out, observation{subject: fmt.Sprintf("card %d, %s", card.Card, what), is: fmt.Sprintf("EC2 accepts %d", s.Limit),
					should: fmt.Sprintf("%d, as the type has", s.OfType), severity: catalogue.Info})
			}
		}
	}
	slices.SortFunc(out, func(a, b observation) int { return strings.Compare(a.subject, b.subject) })
	return out
}

// unreadyContainer describes a container that is not ready, empty if it is or that is unknown.
func (c *Case) unreadyContainer(name string) string {
	k := c.container(name)
	if k == nil || k.Init || k.Ready == nil || *k.Ready {
		return ""
	}
	text := containerText(*k)
	if k.State == "running" {
		text = "it runs, and its readiness probe fails" + strings.TrimPrefix(text, k.State)
	}
	return text
}

// failingState reports whether a container's state is one that does not pass by itself.
func failingState(k *evidence.DaemonContainer) bool {
	return k != nil && (slices.Contains([]string{"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull",
		"InvalidImageName", "CreateContainerConfigError",
		"CreateContainerError", "RunContainerError", "OOMKilled", "Error"}, k.Reason) || k.RestartsLastHour != nil && *k.RestartsLastHour > 1)
}

// young reports whether the node joined so recently that it may still start.
func (c *Case) young() bool {
	at := c.R.Node.Content.CreatedAt
	return !at.IsZero() && c.Now.Sub(at) < 3*time.Minute
}

// starting reports whether the node's pod of aws-node is so new that it may still start.
func (c *Case) starting() bool {
	at := c.daemonPod().CreatedAt
	return !at.IsZero() && c.Now.Sub(at) < startUp(c.R.DaemonSet.Content)
}

func daemonNotReady(c *Case) []observation {
	if k := c.container(containerNode); k != nil && (c.young() || c.starting()) && !failingState(k) {
		return nil
	}
	if text := c.unreadyContainer(containerNode); text != "" {
		return []observation{{subject: containerNode, is: text, should: "ready: no pod can start or end meanwhile", severity: catalogue.Error,
			names: podNames(string(c.daemonPod().Pod)), fixes: c.stalledFixes(containerNode, 4)}}
	}
	return nil
}

func daemonRestarts(c *Case) []observation {
	k := c.container(containerNode)
	if k == nil || k.RestartsLastHour == nil || *k.RestartsLastHour < 2 {
		return nil
	}
	return []observation{{subject: containerNode, is: containerText(*k), should: "no restarts", severity: catalogue.Warning,
		names: podNames(string(c.daemonPod().Pod))}}
}

// What the manifests of both daemons give the probes of aws-node, in seconds.
const (
	probeAnswers = 10  // to answer
	probeStarts  = 90  // from the start until a daemon that does not answer is killed
	probeNotices = 120 // until it is noticed whether the daemon serves
)

// probesHasty looks for probes that give the daemon less time than the manifests do, or notice late how it is.
func probesHasty(c *Case) (out []observation) {
	ds := c.R.DaemonSet.Content
	if ds == nil {
		return nil
	}
	severity := catalogue.Info
	if k := c.container(containerNode); len(daemonRestarts(c)) > 0 && k.LastState != nil && k.LastState.ExitCode != nil &&
		(*k.LastState.ExitCode == 137 || *k.LastState.ExitCode == 143) {
		severity = catalogue.Warning
	}
	note := func(name string, probe evidence.HealthProbe, judge func(first, until int) string) {
		if probe.TimeoutSeconds == nil && probe.PeriodSeconds == nil && probe.FailureThreshold == nil {
			return // there is none
		}
		or := func(n *int, otherwise int) int { // Kubernetes' own
			if n == nil {
				return otherwise
			}
			return *n
		}
		var wrong []string
		if answers := or(probe.TimeoutSeconds, 1); answers < probeAnswers {
			wrong = append(wrong, fmt.Sprintf("the daemon has %d s to answer", answers))
		}
		first := or(probe.InitialDelaySeconds, 0)
		if text := judge(first, first+or(probe.PeriodSeconds, 10)*or(probe.FailureThreshold, 3)); text != "" {
			wrong = append(wrong, text)
		}
		if len(wrong) > 0 {
			out = append(out, observation{subject: name, is: every(wrong), should: "as in the manifest of the CNI", severity: severity})
		}
	}
	note("livenessProbe", ds.Liveness, func(_, until int) string {
		switch {
		case until < probeStarts:
			return fmt.Sprintf("it is killed %d s after its start if it does not answer by then", until)
		case until-probeStarts > probeNotices:
			return fmt.Sprintf("one that hangs is killed only after up to %d s", until)
		}
		return ""
	})
	severity = catalogue.Info // kubelet kills for the other alone
	note("readinessProbe", ds.Readiness, func(first, until int) string {
		switch {
		case first > probeStarts:
			return fmt.Sprintf("a rollout waits %d s for each node", first)
		case until-first > probeNotices:
			return fmt.Sprintf("it is noticed only after %d s that the daemon does not serve", until-first)
		}
		return ""
	})
	return out
}

func initFailing(c *Case) []observation {
	for _, p := range c.R.DaemonPods.Content {
		for i := range p.Containers {
			k := &p.Containers[i]
			if p.Node == c.own && k.Init && (failingState(k) || k.State == "waiting" && k.Reason != "" && k.Reason != "PodInitializing" ||
				k.State == "terminated" && k.Reason == "Error") {
				return []observation{{subject: k.Name, is: containerText(*k), should: "completed: the daemon starts after it",
					severity: catalogue.Error, names: podNames(string(p.Pod)), fixes: c.stalledFixes(containerInit, 4)}}
			}
		}
	}
	return nil
}

func agentNotReady(c *Case) []observation {
	k, order := c.container(containerAgent), c.stalledFixes(containerAgent, 3)
	if k != nil && k.Reason == "PodInitializing" {
		return nil // it waits for the init container
	}
	is := c.unreadyContainer(containerAgent)
	switch {
	case is == "" && k != nil && k.RestartsLastHour != nil && *k.RestartsLastHour > 1:
		is = containerText(*k)
	case is == "" && c.Agent != nil && c.socketMissing().State == Yes && c.begun().State != Yes && !c.young():
		is, order = "its socket npa.sock is missing", []int{len(kindEntries()["obs/agent-not-ready"].Fixes)}
	}
	if is == "" {
		return nil
	}
	o := observation{subject: containerAgent, is: is, should: "ready: policies of new and changed pods are not enforced meanwhile",
		severity: catalogue.Warning, names: podNames(string(c.daemonPod().Pod)), fixes: order}
	if c.Settings.NetworkPolicyMode == "strict" {
		o.severity = catalogue.Error // a pod without policy has no network at all
	}
	return []observation{o}
}

func proxyIPVS(c *Case) []observation {
	if c.R.KubeProxy.Content.Mode != "ipvs" || !c.strictBranches() {
		return nil
	}
	pods := c.onTrunk()
	if len(pods) == 0 {
		return nil
	}
	return []observation{{subject: "kube-proxy", is: "ipvs mode, with pods that have security groups in strict mode: they reach no Service",
		should: "iptables mode, or standard mode", pods: pods, severity: catalogue.Error}}
}

func crdAbsent(c *Case) (out []observation) {
	if crds := c.R.NetworkPolicies.Content.CRDs; crds != nil && !*crds {
		severity := catalogue.Info
		if ds := c.R.DaemonSet.Content; ds != nil && (ds.EnforcesPolicies() || failingState(c.container(containerAgent))) {
			severity = catalogue.Error
		}
		out = append(out, observation{subject: "policyendpoints.networking.k8s.aws", is: "the CRD is missing", should: "installed",
			severity: severity})
	}
	asks := pattern{sources: []string{"log.np", "log.awsnode"}, texts: []string{`no matches for kind "PolicyEndpoint"`,
		"no matches for networking.k8s.aws"}}
	if said := c.active(asks); c.R.NetworkPolicies.Content.CRDs == nil && said.State == Yes {
		out = append(out, observation{subject: "policyendpoints.networking.k8s.aws", is: "the CRD is missing: " + said.Value,
			should: "installed", severity: catalogue.Error, source: said.Source})
	}
	for _, k := range []struct {
		kind, plural, group, use, source string
		needed, absent, none             bool
	}{
		{"ENIConfig", "eniconfigs", "crd.k8s.amazonaws.com", "custom networking", "k8s.eniconfig",
			c.Knows("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG") && c.Settings.CustomNetworking,
			c.R.ENIConfigs.Missing == evidence.MissingAbsent, len(c.R.ENIConfigs.Content) == 0},
		{"CNINode", "cninodes", "vpcresources.k8s.aws", "security groups for pods", "k8s.cninode", c.Knows("ENABLE_POD_ENI") && c.Settings.PodENI,
			c.R.CNINode.Missing == evidence.MissingAbsent, c.R.CNINode.Content == nil},
	} {
		if !k.needed {
			continue
		}
		o := observation{subject: k.plural + "." + k.group, is: "the CRD is missing, and " + k.use + " needs it", should: "installed",
			severity: catalogue.Error, source: k.source}
		said := c.active(pattern{sources: []string{"log.ipamd", "log.awsnode"}, cured: grown,
			texts: []string{"no matches for " + k.group, fmt.Sprintf("no matches for kind %q", k.kind)}})
		switch {
		case k.absent:
			out = append(out, o)
		case said.State == Yes && k.none:
			o.is, o.source = o.is+": "+said.Value, said.Source
			out = append(out, o)
		}
	}
	return out
}

func rightDenied(c *Case) (out []observation) {
	if denied := c.denied(c.usesRight); denied.State == Yes {
		out = append(out, observation{subject: "aws-node", is: "it may not " + denied.Value, should: "what the role grants",
			severity: catalogue.Error})
	}
	if lacks := c.controllerLacks(); lacks != "" {
		out = append(out, observation{subject: "VPC resource controller", is: lacks + " is missing", should: "there: it makes the branch ENIs",
			severity: catalogue.Info})
	}
	return out
}

// controllerLacks names what the resource controller lacks in kube-system, empty if it has it or no branch ENIs are
// wanted.
func (c *Case) controllerLacks() string {
	switch {
	case !c.R.RBAC.OK() || !c.Knows("ENABLE_POD_ENI") || !c.Settings.PodENI:
		return ""
	case len(c.R.RBAC.Content.Roles) == 0:
		return "its role in kube-system"
	case len(c.R.RBAC.Content.Bindings) == 0:
		return "the binding of its role in kube-system"
	}
	return ""
}

// needed are the actions without which pods get no addresses.
func neededAction(c *Case, action string) bool {
	switch action {
	case "ec2:DescribeSubnets":
		return c.Settings.SubnetDiscovery && !c.Settings.CustomNetworking
	case "ec2:AssignIpv6Addresses":
		return c.Settings.IPv6
	case "ec2:DescribeInstanceTypes":
		return false // asked for only if the type is unknown
	}
	return !c.Settings.IPv6 && !c.Settings.ProvisioningOff
}

func roleDenied(c *Case) (out []observation) {
	for _, action := range slices.Sorted(maps.Keys(c.R.IAM.Content.Actions)) {
		if c.R.IAM.Content.Actions[action] == "denied" && neededAction(c, action) {
			severity := catalogue.Error
			if slices.Contains(givingBack, action) {
				severity = catalogue.Warning
			}
			out = append(out, observation{subject: action, is: "the role " + c.R.IAM.Content.Role + " may not call it", should: "allowed",
				severity: severity, names: map[string]string{"ACTION": action, "ROLE": roleName(c.R.IAM.Content.Role)}})
		}
	}
	return out
}

// rolloutStuck looks for a rollout that does not get on. One that goes on is nothing to report.
func rolloutStuck(c *Case) []observation {
	if !c.rollsOut() {
		return nil
	}
	ds := c.R.DaemonSet.Content
	o := observation{subject: "aws-node", is: fmt.Sprintf("%d of %d pods are updated", *ds.Pods.Updated, *ds.Pods.Desired), should: "all",
		severity: catalogue.Warning, fixes: []int{1, 2}, since: ds.ChangedAt}
	if ds.ByHand() {
		o.severity = catalogue.Info // someone deletes the pods
	}
	fails, late := c.newPod()
	if c.heldUp != nil {
		fails, late = c.heldUp()
	}
	if fails { // going back comes first
		o.fixes = []int{2, 1}
	}
	stuck := ds.Pods.Ready == nil || *ds.Pods.Ready < *ds.Pods.Desired || c.Earlier != nil && !c.Earlier.grewTo(*ds.Pods.Updated)
	if !ds.ByHand() && !ds.ChangedAt.IsZero() {
		steps := int(c.Now.Sub(ds.ChangedAt) / startUp(ds))
		stuck = fails || late || *ds.Pods.Updated < steps*ds.AtOnce()
	}
	if !stuck {
		return nil
	}
	return []observation{o}
}

// startUp is how long a new pod of aws-node may take, the pull of its images included.
func startUp(ds *evidence.DaemonSet) time.Duration {
	seconds := probeNotices
	if ds != nil {
		seconds += min(max(0, ds.MinReady), 24*60*60) // an evidence file may say anything
	}
	return time.Duration(seconds) * time.Second
}

// newPod reports whether the node's aws-node pod, unless it is of a release before, does not run or takes too long
// to become ready.
func (c *Case) newPod() (fails, late bool) {
	p, ds := c.daemonPod(), c.R.DaemonSet.Content
	if p.Pod == "" || ds == nil || !p.CreatedAt.IsZero() && p.CreatedAt.Before(ds.ChangedAt) {
		return false, false
	}
	ready := len(p.Containers) > 0
	for i := range p.Containers {
		k := &p.Containers[i]
		fails = fails || failingState(k)
		ready = ready && (k.Init || k.Ready == nil || *k.Ready)
	}
	return fails, !ready && !p.CreatedAt.IsZero() && c.Now.Sub(p.CreatedAt) > startUp(ds)
}

// grewTo reports whether fewer pods of aws-node were updated then: the rollout goes on.
func (c *Case) grewTo(updated int) bool {
	ds := c.R.DaemonSet.Content
	return ds == nil || ds.Pods.Updated == nil || *ds.Pods.Updated < updated
}

// condition returns a condition of the node.
func (c *Case) condition(kind string) (evidence.Condition, bool) {
	return find(c.R.Node.Content.Conditions, func(k evidence.Condition) bool { return k.Type == kind })
}

func conditionText(k evidence.Condition) string { return clip(k.Type + " is " + conditionIs(k)) }

// conditionIs returns what a condition says, for an observation whose subject is its name.
func conditionIs(k evidence.Condition) string {
	return clip(strings.TrimSpace(k.Status + " " + k.Reason + " " + k.Message))
}

func networkCondition(c *Case) []observation {
	if k, there := c.condition("NetworkingReady"); there && k.Status == "False" {
		return []observation{{subject: k.Type, is: conditionIs(k), should: "True: node auto repair replaces the node",
			severity: catalogue.Warning, since: k.Since, said: conditionText(k)}}
	}
	return nil
}

func cniConfigWrong(c *Case) []observation {
	if !c.R.CNI.OK() {
		return nil
	}
	text := CNIProblem(c.R.CNI.Content)
	other, _, shadowed := strings.Cut(text, textShadows)
	if text == "" {
		return portmapAbsent(c)
	}
	if !shadowed && c.begun().State == Yes { // the daemon installs both once it serves
		return nil
	}
	o := observation{subject: "/etc/cni/net.d", is: text, should: "10-aws.conflist first, with all of its plugins installed",
		severity: catalogue.Error}
	if shadowed {
		o.names = map[string]string{"FILE": other}
	}
	return []observation{o}
}

// pluginPortmap makes the host ports of pods reachable.
const pluginPortmap = "portmap"

// portmapAbsent looks for the plugin in the CNI's own file, where only the CNI's plugins make the network of pods.
func portmapAbsent(c *Case) []observation {
	conf, there := find(c.R.CNI.Content.Conf, func(f evidence.CNIConf) bool { return f.File == "10-aws.conflist" })
	if !there || slices.ContainsFunc(conf.Types, func(t string) bool { return t == pluginPortmap || strings.Contains(t, "cilium") }) {
		return nil
	}
	o := observation{subject: pluginPortmap, is: conf.File + " does not list it, so nothing leads from the host ports of pods to them",
		should: "in the list", severity: catalogue.Warning}
	var ports []string
	for _, p := range c.Pooled() {
		for _, k := range p.Containers {
			if p.Phase == "Running" && len(k.HostPorts) > 0 {
				o.pods, o.severity = union(o.pods, []string{string(p.Pod)}), catalogue.Error
				ports = append(ports, fmt.Sprintf("%d of %s", k.HostPorts[0], p.Pod))
			}
		}
	}
	if len(ports) > 0 {
		o.is += ": " + Some(ports)
	}
	return []observation{o}
}

func checkpointBad(c *Case) []observation {
	k := c.R.Checkpoint.Content
	if wrong := c.CheckpointWrong(); wrong.State == Yes {
		return wrong.observed(or(k.Path, "ipam.json"), catalogue.Warning)
	}
	if k.Temporary != nil && *k.Temporary > 0 {
		return []observation{{subject: or(k.Path, "ipam.json"),
			is:     Count(*k.Temporary, "unfinished file") + " beside it: the daemon ended, or the disk was full, while it wrote",
			should: "none", severity: catalogue.Info}}
	}
	return nil
}

func metadataFails(c *Case) []observation {
	i := c.R.IMDS.Content
	if !c.R.IMDS.OK() || i.Token == "ok" || i.Token == "" {
		return nil
	}
	return []observation{{subject: "metadata service", is: strings.TrimSpace(i.Token + " " + i.Failure), should: "answers",
		severity: catalogue.Warning}}
}

func moduleMissing(c *Case) (out []observation) {
	for _, name := range c.R.Packages.Content.Modules {
		severity := catalogue.Info
		if name == ModuleVLAN && c.Settings.PodENI {
			severity = catalogue.Warning
		}
		out = append(out, observation{subject: name, is: "the kernel lacks it", should: "there", severity: severity, fixes: []int{1, 3},
			names: map[string]string{"MODULE": name}})
	}
	if fs := c.R.Packages.Content.BPFFS; fs != nil && !*fs {
		severity := catalogue.Info
		if ds := c.R.DaemonSet.Content; ds != nil && ds.EnforcesPolicies() || c.Settings.NetworkPolicyMode != "" ||
			len(c.R.NetworkPolicies.Content.Endpoints) > 0 {
			severity = catalogue.Warning
		}
		out = append(out, observation{subject: "/sys/fs/bpf", is: "not mounted", should: "mounted: policies are attached there",
			severity: severity, fixes: []int{2}})
	}
	return out
}

func accessDenied(c *Case) (out []observation) {
	for _, line := range c.R.Resources.Content.Denials {
		severity := catalogue.Info
		if strings.Contains(line, "aws") || strings.Contains(line, "ipam") {
			severity = catalogue.Warning
			if slices.ContainsFunc(unstarted(c, true), func(o observation) bool { return o.severity == catalogue.Error }) {
				severity = catalogue.Error
			}
		}
		is := "denied"
		if !c.enforced(line) {
			is, severity = "logged, and not denied: SELinux is permissive", catalogue.Info
		}
		out = append(out, observation{subject: clip(line), is: is, should: "allowed", severity: severity})
	}
	return out
}

// enforced reports whether an access in a line of the audit log was denied: a permissive SELinux only logs.
func (c *Case) enforced(line string) bool {
	return !strings.Contains(line, "permissive=1") &&
		!(strings.Contains(line, "avc:") && strings.EqualFold(c.R.Packages.Content.SELinux, "permissive"))
}

func quotaUsed(c *Case) []observation {
	if q := c.R.Quota.Content; q.Limit != nil && q.Used != nil && *q.Used*100 >= *q.Limit*99 { // each node that joins takes some
		return []observation{{subject: "interfaces of the region", is: fmt.Sprintf("%d of %d", *q.Used, *q.Limit), should: "fewer than the quota",
			severity: catalogue.Warning}}
	}
	return nil
}

func settingWrong(c *Case) (out []observation) {
	fatal, ignored := c.faults()
	for _, p := range fatal {
		out = append(out, observation{subject: p.Variable, is: clip(p.String()), should: or(p.Accepted, "a value that the daemon accepts"),
			severity: catalogue.Error})
	}
	for _, p := range ignored {
		out = append(out, observation{subject: p.Variable, is: clip(p.String()), should: or(p.Accepted, "a value that has an effect"),
			severity: catalogue.Warning})
	}
	return append(out, agentFamily(c)...)
}

// agentFamily compares the IP family for which the policy agent is started with that of the cluster.
func agentFamily(c *Case) []observation {
	ds := c.R.DaemonSet.Content
	if ds == nil || !ds.EnforcesPolicies() || !c.Knows("ENABLE_IPv6") {
		return nil
	}
	for _, arg := range ds.Args[containerAgent] {
		if is, family := strings.CutPrefix(arg, "--enable-ipv6="); family && (is == "true") != c.Settings.IPv6 {
			return []observation{{subject: "argument --enable-ipv6 of " + containerAgent,
				is:     is + ", and the cluster is not of that family: it enforces no policy",
				should: strconv.FormatBool(c.Settings.IPv6), severity: catalogue.Warning}}
		}
	}
	return nil
}

func portHeld(c *Case) []observation {
	if owner := c.PortTaken(); owner.State == Yes {
		o := observation{subject: "ports of aws-node", is: owner.Value, should: owner.Expected, severity: catalogue.Warning, fixes: []int{1}}
		if strings.HasSuffix(owner.Value, ":61679") { // the only port that can be moved
			o.fixes = []int{1, 2}
		}
		return []observation{o}
	}
	return nil
}

func managerActive(c *Case) []observation {
	return c.NetworkManager().observed("network manager", catalogue.Info)
}
