package causes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/cluster"
	"cnictl/daemon/lazy"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// kubeObservers look at the objects that the CNI needs in Kubernetes.
var kubeObservers = []observer{
	{kind: "obs/daemon-not-on-node", find: daemonNotOnNode},
	{kind: "obs/daemon-silent", find: daemonSilent},
	{kind: "obs/kube-proxy-not-ready", find: proxyNotReady},
	{kind: "obs/kube-proxy-rules", find: proxyRulesLost},
	{kind: "obs/webhook", find: webhookUnreachable, wide: true},
	{kind: "obs/node-not-ready", find: nodeNotReady},
	{kind: "obs/network-not-ready", find: networkNotReady},
	{kind: "obs/node-pressure", find: nodePressure},
	{kind: "obs/startup-taint", find: startupTaint},
	{kind: "obs/cninode", find: cniNodeLacks},
	{kind: "obs/dns", find: dnsNotReady, wide: true},
	{kind: "obs/add-on", find: addOnDegraded, wide: true},
	{kind: "obs/image-releases", find: imagesDiffer, wide: true},
}

// The fixes of a container that does not run, as boot/ipamd-down, np/agent-failing and net/kube-proxy have them
// from some number on.
const (
	fixRegistry = iota // a way to the registry
	fixPullRole
	fixImageName
	fixMemory
	fixObject
	fixUndo // in those about aws-node
)

// Texts of failed pulls, by what keeps the node from the image.
var (
	textsPullDenied  = []string{"401 Unauthorized", "403 Forbidden", "no basic auth", "denied", "authorization"}
	textsPullUnknown = []string{"not found", "manifest unknown", "InvalidImageName", "couldn't parse image"}
)

// stalled returns which of the fixes fit a container that does not run, best first; none if its log says more. base is
// the number of the first such fix of the entry.
func stalled(base int, reason, last, said string) []int {
	switch {
	case slices.Contains([]string{"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"}, reason):
		return fitting(said+reason, []wayOut{{textsPullDenied, []int{base + fixPullRole, base + fixRegistry}},
			{textsPullUnknown, []int{base + fixImageName}}, {nil, []int{base + fixRegistry, base + fixPullRole, base + fixImageName}}})
	case reason == "OOMKilled" || last == "OOMKilled":
		return []int{base + fixMemory}
	case strings.HasPrefix(reason, "Create") || reason == "RunContainerError":
		return []int{base + fixObject}
	}
	return nil
}

// stalledFixes is stalled for a container of the node's aws-node pod. The entry's own fixes follow.
func (c *Case) stalledFixes(name string, base int) (order []int) {
	k := c.container(name)
	if init := c.container(containerInit); k != nil && k.Reason == "PodInitializing" && init != nil {
		k = init
	}
	if k != nil {
		last := ""
		if k.LastState != nil {
			last = k.LastState.Reason
		}
		if failingState(k) && len(rolloutStuck(c)) > 0 {
			order = append(order, base+fixUndo)
		}
		order = append(order, stalled(base, k.Reason, last, c.daemonPod().Message+" "+c.lastWarning(c.daemonPod().Pod))...)
	}
	for i := 1; i < base; i++ {
		order = append(order, i)
	}
	return order
}

// daemonPod returns the node's pod of aws-node, the zero value if there is none.
func (c *Case) daemonPod() evidence.DaemonPod {
	p, _ := find(c.R.DaemonPods.Content, func(p evidence.DaemonPod) bool { return p.Node == c.own })
	return p
}

// Fixes of boot/daemon-missing, from 1.
const (
	fixAffinity = iota + 1
	fixTolerate
	fixRoom
	fixEvicted
	fixPort
	fixPodSecurity
	fixManifest
	fixQuota
)

// daemonRefused returns the controller's words for a pod of the DaemonSet that the API server refuses, empty if there are
// none of the last ten minutes.
func (c *Case) daemonRefused() (text string) {
	for _, e := range c.R.Events.Content {
		if e.Kind == "DaemonSet" && strings.HasSuffix(e.Name, "/aws-node") && e.Reason == "FailedCreate" && e.At.After(c.recent()) {
			text = e.Message
		}
	}
	return text
}

func daemonNotOnNode(c *Case) []observation {
	if !c.R.DaemonSet.OK() || c.R.DaemonSet.Content == nil || !c.R.DaemonPods.OK() || len(c.R.DaemonPods.Content) == 0 && c.R.ENIs.OK() {
		return nil
	}
	p := c.daemonPod()
	o := observation{subject: c.Name, is: "it has no pod of the DaemonSet aws-node", should: "one", severity: catalogue.Error,
		names: podNames(string(p.Pod))}
	unbound := p.Phase == "Pending" && !slices.ContainsFunc(p.Containers, func(k evidence.DaemonContainer) bool { return k.State != "" })
	said := strings.TrimSpace(p.Message)
	if said == "" && p.Pod != "" {
		said = clip(c.lastWarning(p.Pod))
	}
	switch {
	case p.Pod == "":
		o.is, o.fixes = o.is+c.keepsAway(), []int{fixAffinity, fixTolerate}
		if len(c.odd()) > 0 && len(c.unmet()) == 0 {
			o.fixes = []int{fixTolerate, fixAffinity}
		}
		if refused := c.daemonRefused(); refused != "" {
			o.is = "it has no pod of the DaemonSet aws-node, which the API server refuses: " + refused
			o.fixes = fitting(refused, []wayOut{{[]string{"PodSecurity"}, []int{fixPodSecurity}}, {[]string{"quota"}, []int{fixQuota}},
				{[]string{"service account"}, []int{fixManifest}}, {nil, o.fixes}})
		}
	case unbound:
		o.is = string(p.Pod) + " is Pending: " + or(said, "the scheduler has not bound it, and says nothing")
		o.fixes = fitting(said, []wayOut{
			{[]string{"untolerated taint", "had taint"}, []int{fixTolerate}}, {[]string{"Insufficient", textsTooManyPods[0]}, []int{fixRoom}},
			{[]string{"free ports"}, []int{fixPort}}, {[]string{"affinity"}, []int{fixAffinity}},
			{nil, []int{fixRoom, fixTolerate, fixAffinity}},
		})
	case p.Phase == "Failed":
		o.is = fmt.Sprintf("%s has Failed: %s", p.Pod, or(strings.TrimSpace(p.Reason+" "+p.Message), "kubelet gives no reason"))
		for _, k := range nodePressure(c) {
			o.is += "; " + k.String()
		}
		if o.fixes = []int{fixRoom}; p.Reason == "" || p.Reason == "Evicted" {
			o.fixes = []int{fixEvicted}
		}
	default:
		return nil
	}
	o.is = clip(o.is)
	return []observation{o}
}

// odd returns the node's taints that are not Kubernetes' own, which every DaemonSet tolerates.
func (c *Case) odd() (out []string) {
	for _, t := range c.R.Node.Content.Taints {
		if !strings.HasPrefix(t.Key, "node.kubernetes.io/") && t.Effect != "PreferNoSchedule" {
			out = append(out, strings.TrimSuffix(t.Key+"="+t.Value, "=")+":"+t.Effect)
		}
	}
	return out
}

// unmet returns what the DaemonSet demands of its nodes' labels and this one lacks.
func (c *Case) unmet() (out []string) {
	for _, demand := range c.R.DaemonSet.Content.Affinity {
		key, rest, _ := strings.Cut(demand, " ")
		operator, values, _ := strings.Cut(rest, " ")
		have, there := c.R.Node.Content.Labels[key]
		in := slices.Contains(strings.Split(values, ","), have)
		if strings.HasPrefix(key, "kubernetes.io/") && !there {
			continue // kubelet sets these on every node
		}
		if operator == "In" && !(there && in) || operator == "NotIn" && there && in || operator == "Exists" && !there ||
			operator == "DoesNotExist" && there {
			out = append(out, demand)
		}
	}
	return out
}

// keepsAway says what may keep the DaemonSet from the node.
func (c *Case) keepsAway() (text string) {
	if unmet := c.unmet(); len(unmet) > 0 && len(c.R.Node.Content.Labels) > 0 {
		text += "; the node lacks what it demands: " + every(unmet)
	}
	if odd := c.odd(); len(odd) > 0 {
		text += "; taints of the node: " + every(odd)
	}
	if n := c.R.DaemonSet.Content.Pods.Desired; n != nil && *n == 0 {
		text += "; it matches no node at all"
	}
	return text
}

// daemonSilent: kubelet's probe is answered, and introspection is not.
func daemonSilent(c *Case) []observation {
	reason := c.R.ENIs.Missing
	k := c.container(containerNode)
	if reason != "refused" || k == nil || k.Ready == nil || !*k.Ready || c.Mode != evidence.ModeNode && c.Mode != evidence.ModeLaptop ||
		c.Settings.IntrospectionOff || c.env["INTROSPECTION_BIND_ADDRESS"] != "" {
		return nil
	}
	return []observation{{subject: string(c.daemonPod().Pod), is: "kubelet reports it as ready, and its introspection is " + reason,
		should: "answers", severity: catalogue.Warning, names: podNames(string(c.daemonPod().Pod))}}
}

// Fixes of net/kube-proxy, from 1; those of a container that does not run follow.
const (
	fixProxyLog = iota + 1
	fixProxyRestart
	fixProxyHere
	fixProxyRoom
	fixProxyStalled
)

func proxyNotReady(c *Case) (out []observation) {
	const should = "ready: Services of the node go to pods that are gone"
	here := false
	for _, p := range c.R.KubeProxy.Content.Pods {
		here = here || p.Node == c.own
		if p.Node != c.own || (p.Ready == nil || *p.Ready) && p.Reason == "" {
			continue
		}
		said := p.Message + " " + c.lastWarning(p.Pod)
		o := observation{subject: string(p.Pod), is: clip(or(p.Reason, p.Phase) + ", not ready " + strings.TrimSpace(said)), should: should,
			severity: catalogue.Error, names: podNames(string(p.Pod)), fixes: []int{fixProxyLog, fixProxyRestart}}
		if p.Phase == "Pending" && (p.Reason == "" || p.Reason == "Unschedulable") {
			o.fixes = []int{fixProxyRoom, fixProxyHere}
		}
		if order := stalled(fixProxyStalled, p.Reason, "", said); len(order) > 0 {
			o.fixes = order
		}
		out = append(out, o)
	}
	// Without a mode there is no kube-proxy in the cluster: another program does its work.
	if installed := c.R.KubeProxy.Content.Mode != "" || len(c.R.KubeProxy.Content.Pods) > 0; c.R.KubeProxy.OK() && installed && !here &&
		!c.young() {
		is := "no pod of kube-proxy runs on it"
		if odd := c.odd(); len(odd) > 0 {
			is += "; taints of the node: " + every(odd)
		}
		out = append(out, observation{subject: c.Name, is: is, should: should, severity: catalogue.Error, fixes: []int{fixProxyHere}})
	}
	return out
}

// proxyRulesLost: kube-proxy runs, and another program flushed what it made. In IPVS mode the rules are few.
func proxyRulesLost(c *Case) []observation {
	p, runs := find(c.R.KubeProxy.Content.Pods, func(p evidence.ProxyPod) bool {
		return p.Node == c.own && p.Ready != nil && *p.Ready && p.Reason == ""
	})
	mode := c.R.KubeProxy.Content.Mode
	nft, legacy := ChainsIn(c.R.IPTables.Content, "KUBE-SERVICES")
	if !runs || !c.R.IPTables.OK() || mode != "iptables" && mode != "nftables" || nft || legacy || !c.proxyRulesGone() ||
		c.chainsGone() || c.young() || c.chainsSplit().State == Yes { // see noSNAT where nothing is left at all
		return nil
	}
	return []observation{{subject: string(p.Pod), is: "it runs in " + mode + " mode, and the node has none of its rules",
		should: "chains KUBE-SERVICES, or the table kube-proxy", severity: catalogue.Error, names: podNames(string(p.Pod)),
		fixes: []int{fixProxyRestart, fixProxyLog}}}
}

// failedWebhook matches the API server's words for a webhook that does not answer.
var failedWebhook = lazy.Regexp(`failed calling webhook "([^"]+)"`)

// Fixes of boot/webhook, from 1.
const (
	fixWebhookServer = iota + 1
	fixWebhookEKS
	fixWebhookIgnore
	fixWebhookCertificate
)

// servedBy matches the service behind a webhook, and its namespace.
var servedBy = lazy.Regexp(`https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc\b`)

// failedCall is what an event says of a webhook that does not answer.
type failedCall struct {
	webhook, is, why string
}

// failedCalls returns the last call of each webhook that failed within minutes.
func (c *Case) failedCalls() (out []failedCall) {
	for _, e := range slices.Backward(c.R.Events.Content) {
		m := failedWebhook().FindStringSubmatch(e.Message)
		if m == nil || !e.At.After(c.recent()) || slices.ContainsFunc(out, func(f failedCall) bool { return f.webhook == m[1] }) {
			continue
		}
		_, why, _ := strings.Cut(e.Message, m[0])
		is := fmt.Sprintf("%s %s cannot create its pods: it is asked and does not answer%s", e.Kind, e.Name, why)
		out = append(out, failedCall{m[1], clip(is), why})
	}
	return out
}

// ofEKS reports whether a webhook or its configuration is that of EKS's resource controller.
func ofEKS(name string) bool {
	return strings.Contains(name, "vpc-resource") || strings.HasSuffix(name, ".vpc.k8s.aws")
}

// of reports whether a configuration has the webhook that was called: events name the webhook, objects the configuration.
func (f failedCall) of(configuration string) bool {
	m := servedBy().FindStringSubmatch(f.why)
	return f.webhook == configuration || ofEKS(f.webhook) && ofEKS(configuration) ||
		m != nil && !ofEKS(configuration) && m[2] != "kube-system" && strings.Contains(configuration, m[2])
}

func webhookUnreachable(c *Case) (out []observation) {
	add := func(name, is, why string, severity catalogue.Severity, source string) {
		o := observation{subject: name, is: is, should: "it answers", severity: severity, names: map[string]string{"WEBHOOK": name},
			source: source, said: why, fixes: []int{fixWebhookServer, fixWebhookIgnore}}
		if m := servedBy().FindStringSubmatch(why); m != nil {
			o.names["NAMESPACE"] = m[2]
		}
		if matchesAny(why, []string{"x509:", "failed to verify certificate"}) {
			o.fixes[0] = fixWebhookCertificate
		}
		for _, kind := range []string{"validating", "mutating"} {
			if strings.Contains(name, kind) {
				o.names["KIND"] = kind + "webhookconfiguration"
			}
		}
		if ofEKS(name) {
			o.fixes = []int{fixWebhookEKS, fixWebhookIgnore}
		}
		if severity == catalogue.Warning { // it fails open already
			o.fixes = o.fixes[:1]
		}
		out = append(out, o)
	}
	failed := c.failedCalls()
	for _, w := range c.R.Webhooks.Content {
		if w.Reachable == nil || *w.Reachable {
			continue
		}
		is, why, severity := "it cannot be reached, and its failure policy is "+or(w.FailurePolicy, "unknown"), "", catalogue.Warning
		if w.FailurePolicy != "Ignore" {
			severity = catalogue.Error
		}
		failed = slices.DeleteFunc(failed, func(f failedCall) bool {
			same := f.of(w.Name)
			if same {
				is, why, severity = is+"; "+f.is, f.why, catalogue.Error
			}
			return same
		})
		add(w.Name, is, why, severity, "k8s.wh")
	}
	for _, f := range failed {
		add(f.webhook, f.is, f.why, catalogue.Error, "k8s.evt")
	}
	return out
}

// textsNetworkNotReady are kubelet's words for a network plugin that has not configured the node.
var textsNetworkNotReady = []string{"NetworkPluginNotReady", "cni plugin not initialized", "cni config uninitialized",
	"network plugin is not ready", "network is not ready"}

// notReadyFor returns what the node's conditions say of why it takes no pods, by whether that is the network plugin.
func notReadyFor(c *Case, network bool) (out []observation) {
	for kind, should := range map[string]string{"Ready": "True", "NetworkUnavailable": "False"} {
		k, there := c.condition(kind)
		if !there || k.Status == should || k.Status == "" || c.young() || matchesAny(k.Message, textsNetworkNotReady) != network {
			continue
		}
		out = append(out, observation{subject: kind, is: conditionIs(k), should: should, severity: catalogue.Error, since: k.Since,
			said: conditionText(k), names: map[string]string{"INSTANCE": c.instance()}})
	}
	slices.SortFunc(out, func(a, b observation) int { return strings.Compare(b.subject, a.subject) })
	return out
}

func nodeNotReady(c *Case) []observation { return notReadyFor(c, false) }

// networkNotReady also believes kubelet's log where the Node was not read: kubelet says it every few seconds.
func networkNotReady(c *Case) []observation {
	if c.R.Node.OK() {
		return notReadyFor(c, true)
	}
	repeats := pattern{sources: []string{"log.kubelet"}, texts: textsNetworkNotReady, cured: []string{"just became ready", "NodeReady"}}
	said := c.active(repeats)
	if said.State != Yes || !c.goesOn(said.At) || c.within(repeats) < moment {
		return nil
	}
	return []observation{{subject: "kubelet", is: said.Value, should: "the network is ready", severity: catalogue.Error, since: said.At,
		source: said.Source}}
}

func nodePressure(c *Case) (out []observation) {
	for i, kind := range []string{"DiskPressure", "MemoryPressure", "PIDPressure"} { // as the fixes are
		if k, there := c.condition(kind); there && k.Status == "True" {
			out = append(out, observation{subject: kind, is: conditionIs(k), should: "False", severity: catalogue.Warning, since: k.Since,
				fixes: []int{i + 1}})
		}
	}
	return out
}

// startupTaints are the taints that a program removes once it runs on a node, with the program.
var startupTaints = map[string]string{
	"node.cilium.io/agent-not-ready":                 "Cilium's agent",
	"node.cloudprovider.kubernetes.io/uninitialized": "the cloud controller manager",
	"karpenter.sh/unregistered":                      "Karpenter",
	"ebs.csi.aws.com/agent-not-ready":                "the EBS CSI driver",
	"efs.csi.aws.com/agent-not-ready":                "the EFS CSI driver",
}

func startupTaint(c *Case) (out []observation) {
	if c.young() {
		return nil
	}
	for _, t := range c.R.Node.Content.Taints {
		who := startupTaints[t.Key]
		if who == "" || t.Effect == "PreferNoSchedule" {
			continue
		}
		o := observation{subject: t.Key, is: fmt.Sprintf("%s has not removed it from the node (%s)", who, t.Effect),
			should:   "removed when the program runs",
			severity: catalogue.Warning, said: "untolerated taint {" + t.Key, names: map[string]string{"TAINT": t.Key}}
		for _, p := range podUnschedulable(c) {
			if strings.Contains(p.is, t.Key) {
				o.severity, o.pods = catalogue.Error, append(o.pods, p.subject)
			}
		}
		out = append(out, o)
	}
	return out
}

// Fixes of obs/cninode, from 1.
const (
	fixController = iota + 1
	fixFeature
)

// cniNodeLacks: the resource controller makes the CNINode, and the daemon asks there for branch ENIs.
func cniNodeLacks(c *Case) []observation {
	if !c.Knows("ENABLE_POD_ENI") || !c.Settings.PodENI || !c.R.CNINode.OK() || c.feature().State == Yes || c.young() ||
		c.trunkCapable().State == No || c.slotless().State == Yes || c.trunk() != "" {
		return nil
	}
	o := observation{subject: c.Name, is: "its CNINode has no feature " + cluster.FeatureSecurityGroupsForPods, should: "there",
		severity: catalogue.Warning, fixes: []int{fixFeature, fixController}}
	if c.R.CNINode.Content == nil {
		o.is, o.fixes = "it has no CNINode, which the resource controller makes when a node joins", []int{fixController, fixFeature}
	}
	for p := range c.pods() {
		if p.Phase == "Pending" && asksFirst(p) && (p.On() == "" || p.On() == c.own) && c.Now.Sub(p.CreatedAt) > branchTime {
			o.severity, o.pods = catalogue.Error, append(o.pods, string(p.Pod))
		}
	}
	return []observation{o}
}

// isDNS reports whether a pod is CoreDNS of the cluster.
func isDNS(p *evidence.KubePod) bool {
	return p.Labels["k8s-app"] == "kube-dns" || strings.HasPrefix(string(p.Pod), "kube-system/coredns-")
}

func dnsNotReady(c *Case) (out []observation) {
	ready := 0
	for p := range c.pods() {
		if !isDNS(p) || ended(p) || p.Phase == "Pending" && len(p.IPs) == 0 { // see podNotStarting
			continue
		}
		if c.ready[p.Pod] {
			ready++
			continue
		}
		if p.On() != "" && p.On() != c.own || !c.old(p.StartedAt) || !c.old(p.CreatedAt) {
			continue
		}
		why := cmp.Or(p.Reason, c.lastWarning(p.Pod), p.Phase+", not ready")
		out = append(out, observation{subject: string(p.Pod), is: clip(why), should: "ready: pods resolve no names without it",
			severity: catalogue.Error, since: p.CreatedAt, names: podNames(string(p.Pod))})
	}
	for i := range out {
		if ready > 0 {
			out[i].severity = catalogue.Warning // others answer
		}
	}
	return out
}

// addOnDegraded looks whether EKS could install or update the managed add-on, and what it finds wrong with it.
func addOnDegraded(c *Case) []observation {
	a := c.R.AddOn.Content
	if a == nil || len(a.Issues) == 0 && a.Status != "DEGRADED" && !strings.HasSuffix(a.Status, "_FAILED") {
		return nil
	}
	o := observation{subject: "add-on vpc-cni", is: "status " + a.Status, should: "ACTIVE", severity: catalogue.Warning,
		names: map[string]string{"VERSION": a.Version}}
	if len(a.Issues) > 0 {
		o.is += ": " + clip(strings.Join(a.Issues, "; "))
	}
	o.fixes = fitting(strings.Join(a.Issues, " "), []wayOut{{[]string{"ConfigurationConflict"}, []int{1}},
		{[]string{"AccessDenied", "IamRole"}, []int{2}}})
	return []observation{o}
}

// imagesDiffer compares the releases of the two images of the DaemonSet that are always of one.
func imagesDiffer(c *Case) []observation {
	ds := c.R.DaemonSet.Content
	if ds == nil {
		return nil
	}
	daemon, known := evidence.ParseVersion(ds.Images[containerNode])
	first, too := evidence.ParseVersion(ds.Images[containerInit])
	if !known || !too || daemon == first {
		return nil
	}
	return []observation{{subject: "DaemonSet aws-node", is: fmt.Sprintf("%s is of %s, %s of %s", containerNode, daemon, containerInit, first),
		should: "one release", severity: catalogue.Warning, names: map[string]string{"VERSION": daemon.String()}}}
}
