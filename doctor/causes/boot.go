package causes

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/config"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/lazy"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

var bootRules = []Rule{
	{Code: "boot/apiserver", Node: apiUnreachable},
	{Code: "boot/rbac", Node: rightMissing},
	{Code: "boot/ipamd-down", Node: daemonDown},
	{Code: "boot/probe-timeout", Node: probeTimeout},
	{Code: "boot/socket-skew", Node: socketSkew},
	{Code: "boot/plugin-version-skew", Node: pluginSkew},
	{Code: "boot/checkpoint", Node: checkpointDamaged},
	{Code: "boot/backing-store", Node: checkpointUnwritable},
	{Code: "boot/iptables", Node: iptablesFailed},
	{Code: "boot/cni-config", Node: cniConfig},
	{Code: "boot/port-conflict", Node: portConflict},
	{Code: "boot/primary-link", Node: primaryLinkMissing},
	{Code: "boot/disk-full", Node: diskTrouble},
	{Code: "boot/crd-missing", Node: shown("what uses it does not work", "obs/crd")},
	{Code: "boot/webhook", All: webhooksAway},
	{Code: "boot/monitor-latched", Node: monitorLatched},
	{Code: "boot/daemon-missing", Node: shown("no pod of the node can start", "obs/daemon-not-on-node")},
	{Code: "boot/rollout", Node: shown("the rollout does not get on", "obs/rollout")},
}

// silent states that introspection does not answer although it should.
func (c *Case) silent() Fact {
	const what = "GET /v1/enis"
	switch reason := c.R.ENIs.Missing; reason {
	case "":
		return c.Known("intro.enis", what, "answers", "answers", false)
	case evidence.MissingDisabled, evidence.MissingForbidden, evidence.MissingAbsent, evidence.MissingNotAsked, evidence.MissingMode:
		return c.Unread("intro.enis", what, "answers", reason)
	default:
		return c.Known("intro.enis", what, "answers", reason, true)
	}
}

// container returns a container of the node's aws-node pod, nil if unknown.
func (c *Case) container(name string) *evidence.DaemonContainer {
	for _, p := range c.R.DaemonPods.Content {
		if i := slices.IndexFunc(p.Containers, func(k evidence.DaemonContainer) bool { return k.Name == name }); i >= 0 && p.Node == c.own {
			return &p.Containers[i]
		}
	}
	return nil
}

// inContainer states something about a container of the node's aws-node pod.
func (c *Case) inContainer(name, path, expected string, judge func(evidence.DaemonContainer) (any, State)) Fact {
	return On(c, c.R.DaemonPods, "k8s.ds.pods", name+" "+path, expected, func([]evidence.DaemonPod) (any, State) {
		if k := c.container(name); k != nil {
			return judge(*k)
		}
		return nil, Unread
	})
}

// notReady states that the container aws-node is not ready.
func (c *Case) notReady() Fact {
	return c.inContainer(containerNode, "ready", "true", func(k evidence.DaemonContainer) (any, State) {
		if k.Ready == nil {
			return nil, Unread
		}
		return containerText(k), stateOf(!*k.Ready)
	})
}

// containerText describes the state of a container in a few words.
func containerText(k evidence.DaemonContainer) string {
	text := k.State
	if k.Reason != "" {
		text += " " + k.Reason
	}
	if k.Restarts != nil && *k.Restarts > 0 {
		text += fmt.Sprintf(", %d restarts", *k.Restarts)
	}
	if last := k.LastState; last != nil && last.ExitCode != nil {
		text += fmt.Sprintf(", last exit code %d %s", *last.ExitCode, last.Reason)
	}
	return strings.TrimSpace(text)
}

// serves states that the daemon answers: introspection, or else its probe.
func (c *Case) serves() Fact {
	if c.R.DaemonSet.OK() && c.R.DaemonSet.Content == nil {
		return c.Known("k8s.ds", "aws-node", "installed", "not installed", false)
	}
	if f := Not(c.silent()); f.State != Unread {
		return f
	}
	return Not(c.notReady())
}

// unsettled states that the daemon does not serve, or did not until a moment ago.
func (c *Case) unsettled() Fact {
	return Either(Not(c.serves()), c.notReady(),
		c.inContainer(containerNode, "restarts in the last hour", "0", func(k evidence.DaemonContainer) (any, State) {
			return containerText(k), stateOf(k.RestartsLastHour != nil && *k.RestartsLastHour > 0)
		}))
}

// dies states that the daemon's start fails with one of these texts. It is false for a daemon
// that serves, even if its log was not read.
func (c *Case) dies(m pattern) Fact {
	m.cured = append(m.cured, logline.TextServing)
	f := c.active(m)
	if serves := c.serves(); f.State == Unread && serves.State == Yes {
		return Not(serves)
	}
	return f
}

// lastError returns the last error that the daemon, or else its container, logged; empty if there is none.
func (c *Case) lastError() string {
	for _, source := range []string{"log.ipamd", "log.awsnode/" + containerNode} {
		for _, l := range slices.Backward(c.logSource(source).lines) {
			if l.failed() {
				return l.text
			}
		}
	}
	return ""
}

// NeedsAPI states that a mode is on in which a daemon cannot start without the API server.
func (c *Case) NeedsAPI() Fact {
	return Either(
		c.Setting("ENABLE_POD_ENI", "false", func(s config.Config) bool { return s.PodENI }),
		c.Setting("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "false", func(s config.Config) bool { return s.CustomNetworking }),
		c.Setting("ANNOTATE_POD_IP", "false", func(s config.Config) bool { return s.AnnotatePodIP }),
	)
}

func apiUnreachable(c *Case) []Result {
	m := pattern{
		sources: []string{"log.ipamd"}, cured: []string{logline.TextAPIReached},
		texts: []string{logline.TextAPIUnreachable, logline.TextAPICheckFailed, logline.TextAPISilent},
	}
	mandatory := Either(c.NeedsAPI(), c.Before(evidence.Version{1, 19, 4}))
	waits := Result{
		Summary:  "the daemon cannot reach the Kubernetes API" + c.ProxyText(),
		Decisive: []Fact{c.dies(m)},
		unless:   []Fact{Not(mandatory)},
	}
	if c.Ours { // it logs this once and serves; only pods that need an API object wait
		m.any = true
		waits.Decisive = []Fact{c.active(m)}
		waits = waits.As(catalogue.Error)
	}
	out := []Result{waits}
	if without := c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{"Proceeding without API server connectivity"},
		cured: []string{logline.TextAPIReached}}); without.State == Yes {
		out = append(out, Result{Summary: "the daemon serves without the Kubernetes API, with max-pods from its own table" + c.ProxyText(),
			Decisive: []Fact{without}}.As(catalogue.Info))
	}
	return out
}

// ProxyText adds, if it is so, that the API server is unreachable only by its cluster IP, which
// kube-proxy implements.
func (c *Case) ProxyText() string {
	if c.R.KubeProxy.OK() && !slices.ContainsFunc(c.R.KubeProxy.Content.Pods, func(p evidence.ProxyPod) bool {
		return p.Node == c.own && (p.Ready == nil || *p.Ready)
	}) {
		return "; kube-proxy is not ready on the node, so the API's cluster IP does not work"
	}
	env := c.R.ContainerEnv.Content["aws-node"]
	host, _ := netip.ParseAddr(env["KUBERNETES_SERVICE_HOST"]) // if invalid, matches no target
	port, _ := strconv.ParseUint(env["KUBERNETES_SERVICE_PORT"], 10, 16)
	service := netip.AddrPortFrom(host, uint16(port)).String()
	var failed, answers string
	for _, p := range c.R.Probes.Content {
		switch {
		case p.From != "host" || c.IsEC2(p.Target):
		case p.Target == service && p.Result != "ok":
			failed = p.Result
		case p.Target != service && p.Result == "ok":
			answers = p.Target
		}
	}
	if failed == "" || answers == "" {
		return ""
	}
	return fmt.Sprintf("; the API answers at %s but not at its cluster IP %s (%s): check kube-proxy", answers, service, failed)
}

func rightMissing(c *Case) []Result {
	denied := c.denied(c.usesRight)
	m := pattern{sources: []string{"log.ipamd", "log.np", "log.awsnode"},
		texts: []string{"forbidden: User…system:serviceaccount:kube-system:aws-node"}}
	rights := c.R.RBAC.Content
	if denied.State != Unread { // older log lines about rights that the API server grants now do not count
		for _, right := range rights.Checked() {
			if !slices.Contains(rights.Denied, right) {
				m.except = append(m.except, refusal(right, rights.Reviewed != nil))
			}
		}
	}
	logged := c.active(m)
	refused := On(c, c.R.Failures, "intro.failures", "items[].detail", "not forbidden", func(doc introspect.NodeFailures) (any, State) {
		for _, item := range doc.Items {
			if strings.Contains(item.Detail, "forbidden") && item.At.After(c.recent()) {
				return clip(item.Detail), Yes
			}
		}
		return "none", No
	})
	shown := orElse(logged, refused)
	const annotate = "patch pods" // earlier versions did not ask about it
	if denied.State != No || !c.needsRight(annotate) || slices.Contains(rights.Checked(), annotate) {
		shown = orElse(denied, shown)
	}
	cd := Result{Summary: "the service account of aws-node lacks an RBAC permission: " + shown.Value, Decisive: []Fact{shown}}
	right, _, _ := strings.Cut(shown.Value, ", ")
	if refused := catalogue.NamesIn(shown.Value); refused["VERB"] != "" {
		right = strings.TrimSuffix(refused["VERB"]+" "+refused["RESOURCE"]+"."+refused["GROUP"], ".")
	}
	verb, resource, group := evidence.SplitRight(right)
	cd.names = map[string]string{"VERB": verb, "RESOURCE": resource, "GROUP": group}
	if fix, ok := grant(slices.DeleteFunc(slices.Clone(rights.Denied), func(right string) bool { return !c.usesRight(right) })); ok {
		cd.first = []catalogue.Fix{fix}
		return []Result{cd.WithFixes(3)}
	}
	switch {
	case !slices.Contains(verbs, verb): // the refusal was cut
		return []Result{cd.WithFixes(3)}
	case group == "":
		return []Result{cd.WithFixes(2, 3)}
	}
	return []Result{cd.WithFixes(1, 3)}
}

// verbs are those of the rights that aws-node needs.
var verbs = []string{"get", "list", "watch", "patch", "create"}

// grant is the fix for several rights that are denied, false if there is but one, or too many to grant one by one.
func grant(denied []string) (catalogue.Fix, bool) {
	const most = 8
	type kind struct{ group, resource string }
	of := map[kind][]string{}
	var kinds []kind
	for _, right := range denied {
		verb, resource, group := evidence.SplitRight(right)
		if !plain().MatchString(verb) || !plain().MatchString(resource) || strings.HasPrefix(resource, "/") ||
			group != "" && !plain().MatchString(group) {
			return catalogue.Fix{}, false // of paths, or not a right
		}
		k := kind{group, resource}
		if of[k] == nil {
			kinds = append(kinds, k)
		}
		of[k] = union(of[k], []string{verb})
	}
	if len(denied) < 2 || len(denied) > most {
		return catalogue.Fix{}, false
	}
	var texts, rules []string
	for _, k := range kinds {
		texts = append(texts, strings.Join(of[k], " and ")+" of "+k.resource)
		rules = append(rules, fmt.Sprintf(`{"op":"add","path":"/rules/-","value":{"apiGroups":[%q],"resources":[%q],"verbs":["%s"]}}`,
			k.group, k.resource, strings.Join(of[k], `","`)))
	}
	return catalogue.Fix{Text: "Grant aws-node " + strings.Join(texts, ", ") + ".",
		Command: "kubectl patch clusterrole aws-node --type json -p '[" + strings.Join(rules, ",") + "]'"}, true
}

// refusal returns how the API server words that a right is missing. The API group is left out if
// the right is spelt without it.
func refusal(right string, grouped bool) string {
	verb, resource, group := evidence.SplitRight(right)
	switch {
	case strings.HasPrefix(resource, "/"):
		return fmt.Sprintf("cannot %s path %q", verb, resource)
	case grouped:
		return fmt.Sprintf("cannot %s resource %q in API group %q", verb, resource, group)
	}
	return fmt.Sprintf("cannot %s resource %q", verb, resource)
}

// Denied states that the API server does not grant aws-node what a current release needs.
func (c *Case) Denied() Fact { return c.denied(c.needsRight) }

// denied states that the API server does not grant aws-node what it needs.
func (c *Case) denied(needs func(right string) bool) Fact {
	return On(c, c.R.RBAC, "k8s.rbac", "denied", "nothing that aws-node needs", func(r evidence.RBAC) (any, State) {
		if r.Denied == nil {
			return nil, Unread // the roles were read, but no access review
		}
		needed := slices.DeleteFunc(slices.Clone(r.Denied), func(right string) bool { return !needs(right) })
		if len(needed) == 0 && len(r.Denied) > 0 && !c.R.DaemonSet.OK() {
			return nil, Unread // its settings decide what aws-node needs
		}
		return or(strings.Join(needed, ", "), "nothing that is needed"), stateOf(len(needed) > 0)
	})
}

// needsRight reports whether aws-node of a current release uses a right ("patch pods") with these
// settings.
func (c *Case) needsRight(right string) bool {
	verb, resource, group := evidence.SplitRight(right)
	switch {
	case resource == "eniconfigs":
		return c.Settings.CustomNetworking
	case resource == "pods" && verb == "patch":
		return c.Settings.AnnotatePodIP
	case resource == "cninodes":
		return c.Settings.PodENI || c.Settings.CustomNetworking
	case resource == "events": // granted in the core group too, as upstream does; neither daemon uses that
		return verb == "create" && group != ""
	case resource == "namespaces", group == groupPolicies, strings.Contains(resource, groupPolicies): // of the policy agent
		return c.R.DaemonSet.Content != nil && c.R.DaemonSet.Content.EnforcesPolicies()
	}
	return true
}

// groupPolicies is the API group of the network policy controller.
const groupPolicies = "networking.k8s.aws"

// usesRight reports whether the running aws-node uses a right: earlier releases, whose role does
// not grant what was added later, work without it. Agents that dial the daemon's socket use all
// rights of the group; when earlier ones began to is not known.
func (c *Case) usesRight(right string) bool {
	switch verb, resource, group := evidence.SplitRight(right); {
	case resource == "cninodes" && (c.older(evidence.Version{1, 15, 1}) || verb == "watch" && c.older(evidence.Version{1, 15, 5})):
		return false
	case resource != "policyendpoints" && (group == groupPolicies || strings.Contains(resource, groupPolicies)) &&
		(c.Agent == nil || c.Agent.Before(agentOnIPAMD)):
		return false
	}
	return c.needsRight(right)
}

// textUnavailable is the plugin's error when no daemon answers.
const textUnavailable = "Error received from AddNetwork gRPC call…rpc error: code = Unavailable"

// ofDaemon reports whether an observation about a CRD is about one that the daemon uses itself.
func ofDaemon(o observation) bool { return !strings.HasSuffix(o.subject, groupPolicies) }

// fixDownStalled is the first of the fixes of boot/ipamd-down, from 1, that are about a container that does not run.
const fixDownStalled = 3

func daemonDown(c *Case) []Result {
	deaf := func(c *Case) Fact {
		return On(c, c.R.Listeners, "host.listen", "sockets of the daemon", "at least one", func(all []evidence.Listener) (any, State) {
			n := 0
			for _, l := range all {
				switch l.Process {
				case "":
					return nil, Unread // the owner is not visible
				case processDaemon:
					n++
				}
			}
			return n, stateOf(n == 0)
		})
	}
	down := func(c *Case) Fact {
		if c.R.DaemonSet.OK() && c.R.DaemonSet.Content == nil {
			return c.Known("k8s.ds", "aws-node", "installed", "not installed", false)
		}
		if f := c.silent(); f.State != Unread {
			return f
		}
		return deaf(c)
	}
	unready := Either(c.lasting((*Case).notReady), c.lasting(deaf),
		c.active(pattern{sources: pluginSays, texts: []string{textUnavailable}}))
	last := or(clip(c.lastError()), "none in the log lines that were read")
	text := "the daemon does not answer; its last error: " + last
	if k := c.container(containerNode); k != nil {
		text = fmt.Sprintf("the daemon does not answer; aws-node is %s; its last error: %s", containerText(*k), last)
	}
	if init := c.container(containerInit); init != nil && init.State == "waiting" {
		text = fmt.Sprintf("the daemon does not run; its init container is %s", containerText(*init))
	}
	if said := c.lastWarning(c.daemonPod().Pod); said != "" {
		text += "; " + clip(said)
	}
	cd := Result{Summary: text, Decisive: []Fact{c.lasting(down), unready}, unless: []Fact{c.installFails()}, Context: []Fact{unready},
		names: podNames(string(c.daemonPod().Pod)), fixes: c.stalledFixes(containerNode, fixDownStalled)}
	if crd := c.observesThose(ofDaemon, "obs/crd"); crd.State == Yes { // which it exits for
		return []Result{{Decisive: []Fact{Not(crd)}}}
	}
	if cd.fixes[0] >= fixDownStalled { // its container says why
		cd.title = "the daemon does not serve"
	}
	if means, fixes := meaning(c.lastError()); len(fixes) > 0 && cd.fixes[0] < fixDownStalled { // no other evidence of the cause
		cd.title, cd.Summary, cd.first = "the daemon does not serve", cd.Summary+". "+means, fixes
		cd.names = named(cd.names, c.lastError())
	}
	if asked := cd.Decisive[0]; asked.State == Unread && c.notReady().State == Unread {
		// Nothing else was read than what the plugin says, again and again until now.
		m := pattern{sources: []string{"log.plugin", "log.kubelet", "k8s.evt"}, texts: []string{textUnavailable}}
		if said := c.active(m); said.State == Yes && c.goesOn(said.At) && c.within(m) >= moment {
			cd.Summary = "the plugin does not reach the daemon: " + said.Value
			cd.Decisive, cd.Supporting = []Fact{said}, []Fact{asked}
		}
	}
	return []Result{cd}
}

func probeTimeout(c *Case) []Result {
	timeouts := c.active(pattern{
		sources: []string{"k8s.evt", "log.kubelet"},
		texts: []string{"aws-node…Liveness probe failed…timeout", "aws-node…Liveness probe failed…timed out",
			`probeType="Liveness"…aws-node…timeout`, `probeType="Liveness"…aws-node…timed out`},
	})
	restarts := c.inContainer(containerNode, "restarts in the last hour", "fewer than 2", func(k evidence.DaemonContainer) (any, State) {
		switch {
		case k.RestartsLastHour != nil:
			return *k.RestartsLastHour, stateOf(*k.RestartsLastHour >= 2)
		case k.Restarts == nil || k.LastState == nil:
			return nil, Unread
		}
		return *k.Restarts, stateOf(*k.Restarts >= 2 && c.Now.Sub(k.LastState.FinishedAt) < time.Hour)
	})
	killed := c.inContainer(containerNode, "last exit code", "none, or another one", func(k evidence.DaemonContainer) (any, State) {
		if k.LastState == nil || k.LastState.ExitCode == nil {
			return nil, Unread
		}
		return *k.LastState.ExitCode, stateOf(*k.LastState.ExitCode == 137 || *k.LastState.ExitCode == 143)
	})
	served := orElse(Not(c.silent()), c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{logline.TextServing},
		since: c.Now.Add(-time.Hour), any: true}))
	served = orElse(served, Not(c.notReady()))
	busy := Either(
		On(c, c.R.Resources, "host.res", "load1 against cpus", "below 2 for each CPU, nothing throttled",
			func(r evidence.Resources) (any, State) {
				if r.Load1 == nil || r.CPUs == nil {
					return "throttled: " + or(strings.Join(r.Throttled, ", "), "none"), stateOf(len(r.Throttled) > 0)
				}
				return fmt.Sprintf("%g on %d CPUs, throttled: %s", *r.Load1, *r.CPUs, or(strings.Join(r.Throttled, ", "), "none")),
					stateOf(len(r.Throttled) > 0 || *r.Load1 >= 2*float64(*r.CPUs))
			}),
		On(c, c.R.DaemonSet, "k8s.ds", "liveness.timeoutSeconds", "at least 10", func(ds *evidence.DaemonSet) (any, State) {
			if ds == nil || ds.Liveness.TimeoutSeconds == nil {
				return nil, Unread
			}
			return *ds.Liveness.TimeoutSeconds, stateOf(*ds.Liveness.TimeoutSeconds < 10)
		}),
	)
	return []Result{{
		Summary: fmt.Sprintf("kubelet kills aws-node because its liveness probe times out: %s restarts in an hour, %s (%s)",
			or(restarts.Value, "an unknown number of"), busy.Path, or(busy.Value, "unknown")),
		Decisive: []Fact{timeouts},
		required: []Fact{served}, unless: []Fact{Not(restarts), Not(killed)}, Supporting: []Fact{busy},
	}}
}

// runDirectory is the host directory that daemon, plugin and policy agent share.
const runDirectory = "/var/run/aws-node"

// OnSocket is the first release that serves ipamd.sock instead of 127.0.0.1:50051.
var OnSocket = evidence.Version{1, 23}

func socketSkew(c *Case) []Result {
	differs := On(c, c.R.DaemonSet, "k8s.ds", "probes and mounts against the image", "of the same release",
		func(ds *evidence.DaemonSet) (any, State) {
			if ds == nil {
				return "there is no DaemonSet", No
			}
			image, ok := evidence.ParseVersion(ds.Images[containerNode])
			probes := strings.Join(slices.Concat(ds.Liveness.Command, ds.Readiness.Command), " ")
			switch {
			case probes == "":
				return "no probe", No
			case !ok:
				return nil, Unread
			}
			text := fmt.Sprintf("image %s", image)
			if image.Before(OnSocket) {
				return text + ", probes of ipamd.sock", stateOf(strings.Contains(probes, "ipamd.sock"))
			}
			if strings.Contains(probes, ":50051") {
				return text + ", probes of :50051", Yes
			}
			for _, name := range []string{containerNode, containerAgent} {
				if mounts, known := ds.Mounts[name]; known &&
					!slices.ContainsFunc(mounts, func(m string) bool { return path.Clean(m) == runDirectory }) {
					return text + ", no mount of " + runDirectory + " in " + name, Yes
				}
			}
			return text + ", probes and mounts match", No
		})
	return []Result{{
		Scope:    document.FindingScope{Cluster: true},
		Summary:  "image and manifest of aws-node are from different releases: " + differs.Value,
		Decisive: []Fact{differs},
		required: []Fact{c.upstream()},
	}}
}

func pluginSkew(c *Case) []Result {
	m := pattern{sources: pluginSays, texts: []string{string(cause.DaemonMismatch)}}
	if !c.Ours {
		m.texts = []string{logline.TextWrongClientVersion}
	}
	switch {
	case c.Ours || c.Release != (evidence.Version{}) && !c.Release.Before(OnSocket):
		m.texts = append(m.texts, "dial tcp 127.0.0.1:50051")
	case c.Release != evidence.Version{}:
		m.texts = append(m.texts, "dial unix "+runDirectory+"/ipamd.sock")
	}
	if started := c.started(); !started.IsZero() {
		m.since = started.Add(2 * time.Minute) // normal during a rollout
	}
	logged := c.active(m)
	installed := "of unknown version"
	for _, b := range c.R.CNI.Content.Bin {
		if b.Name == "aws-cni" && b.Version != nil {
			installed = *b.Version
		}
	}
	return []Result{{
		Summary:  fmt.Sprintf("the installed plugin (%s) and the daemon are from different releases: %s", installed, logged.Value),
		Decisive: []Fact{logged},
		unless:   []Fact{Not(c.serves())},
	}}
}

// started returns when the daemon started, zero if unknown.
func (c *Case) started() time.Time {
	at := c.R.Metrics.Content.ProcessStart
	for _, l := range c.logSource("log.ipamd").lines {
		if strings.Contains(l.text, logline.TextServing) && l.at.After(at) {
			at = l.at
		}
	}
	return at
}

// begun states that the daemon started moments ago. It does not hold if that is unknown.
func (c *Case) begun() Fact {
	at := c.started()
	if s := c.R.Summary.Content.StartedAt; s != nil && s.After(at) {
		at = *s
	}
	const path, expected = "start of the daemon", "a while ago"
	if at.IsZero() {
		return c.Known("log.ipamd", path, expected, "unknown", false)
	}
	return c.Known("log.ipamd", path, expected, at.UTC().Format(time.TimeOnly), c.Now.Sub(at) < time.Minute)
}

// CheckpointWrong states that a checkpoint exists and cannot be restored.
func (c *Case) CheckpointWrong() Fact {
	return On(c, c.R.Checkpoint, "ckpt", "content", "complete, vpc-cni-ipam/1, no duplicate address",
		func(k evidence.Checkpoint) (any, State) {
			switch {
			case k.Bytes != nil && *k.Bytes <= 0:
				return "empty", Yes // created while the disk was full
			case k.Error != nil:
				return *k.Error, stateOf(!strings.Contains(*k.Error, "no such file"))
			case k.Version != "" && k.Version != netnames.CheckpointVersion:
				return "version " + k.Version, Yes
			}
			seen := map[string]bool{}
			for _, a := range k.Allocations {
				if seen[a.Address.String()] {
					return "duplicate address " + a.Address.String(), Yes
				}
				seen[a.Address.String()] = true
			}
			return "complete", No
		})
}

func checkpointDamaged(c *Case) []Result {
	damaged := c.CheckpointWrong()
	logged := c.dies(pattern{sources: []string{"log.ipamd"}, texts: signatures("boot/checkpoint")})
	decisive := logged
	if logged.State == Unread {
		decisive = Both(damaged, c.unsettled())
	}
	return []Result{{
		Summary: fmt.Sprintf("the daemon cannot read %s: %s", or(c.R.Checkpoint.Content.Path, runDirectory+"/ipam.json"),
			or(damaged.Value, logged.Value)),
		Decisive: []Fact{decisive},
		required: []Fact{c.upstream()}, Supporting: []Fact{damaged},
	}}
}

// DiskRefuses returns why nothing can be written to a file system, empty if something can.
func DiskRefuses(d evidence.Disk) string {
	switch {
	case d.ReadOnly:
		return d.Path + " is read-only"
	case d.UsedPercent != nil && *d.UsedPercent >= diskIs:
		return fmt.Sprintf("%s is %g%% full", d.Path, *d.UsedPercent)
	case d.InodesUsedPercent != nil && *d.InodesUsedPercent >= diskIs:
		return fmt.Sprintf("%s has %g%% of its inodes used", d.Path, *d.InodesUsedPercent)
	}
	return ""
}

// Unwritable states that the daemon's directory cannot be written to.
func (c *Case) Unwritable() Fact {
	return On(c, c.R.Resources, "host.res", "disks, denials", "space and inodes left, writable, no denial",
		func(r evidence.Resources) (any, State) {
			for _, d := range r.Disks {
				if !strings.HasPrefix(runDirectory, strings.TrimSuffix(d.Path, "/")) && d.Path != "/run" {
					continue
				}
				if why := DiskRefuses(d); why != "" {
					return why, Yes
				}
			}
			for _, line := range r.Denials {
				if c.enforced(line) && (strings.Contains(line, "aws") || strings.Contains(line, "ipam")) {
					return clip(line), Yes
				}
			}
			return "no problem found", No
		})
}

func checkpointUnwritable(c *Case) []Result {
	logged := orElse(
		c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{strings.TrimSuffix(logline.TextStoreFailed, ":")},
			cured: textsAssigned}),
		c.failures(textsAssigned, cause.CheckpointUnwritable))
	full := c.Unwritable()
	return []Result{{
		Summary:  fmt.Sprintf("the daemon cannot write its checkpoint (ipam.json), so every ADD fails: %s", or(full.Value, logged.Value)),
		Decisive: []Fact{logged}, Supporting: []Fact{full},
	}}
}

// Fixes of boot/iptables, from 1, that are about the lock.
const (
	fixLockMount = 2
	fixLockHeld  = 4
)

func iptablesFailed(c *Case) []Result {
	logged := c.dies(pattern{sources: []string{"log.ipamd"},
		texts: []string{"failed to detect iptables mode", "failed to create iptables", "failed to check existence of",
			"Another app is currently holding the xtables lock"}})
	cd := Result{
		Summary:  "the daemon cannot program the host's firewall: " + logged.Value + c.modulesText(),
		Decisive: []Fact{logged}, unless: []Fact{Not(c.unsettled())},
	}
	if strings.Contains(logged.Value, "xtables lock") {
		cd.fixes = []int{fixLockHeld, fixLockMount}
		if strings.Contains(c.modulesText(), "xtables.lock is not mounted") {
			cd.fixes = []int{fixLockMount, fixLockHeld}
		}
	}
	return []Result{cd}
}

// modulesText names what iptables lacks on the host, as far as known.
func (c *Case) modulesText() string {
	text := ""
	missing := slices.DeleteFunc(slices.Clone(c.R.Packages.Content.Modules), func(name string) bool { return name == ModuleVLAN })
	if len(missing) > 0 {
		text = "; kernel modules are missing: " + strings.Join(missing, ", ")
	}
	if ds := c.R.DaemonSet.Content; ds != nil && ds.Mounts[containerNode] != nil &&
		!slices.Contains(ds.Mounts[containerNode], "/run/xtables.lock") {
		text += "; /run/xtables.lock is not mounted"
	}
	return text
}

// installFails states that aws-node exits before it starts the daemon, because it cannot install
// its plugins.
func (c *Case) installFails() Fact {
	return c.active(pattern{sources: []string{"log.awsnode"}, texts: []string{"Failed to install CNI binaries", "Failed to install binaries"},
		cured: []string{"Successfully copied CNI plugin binary"}})
}

// pluginDirectory is where the CNI installs its plugins.
const pluginDirectory = "/opt/cni/bin"

// pluginPath matches where the runtime looked for a plugin.
var pluginPath = lazy.Regexp(`failed to find plugin .* in path \[([^\]]+)\]`)

func cniConfig(c *Case) []Result {
	wrong := c.observesThose(func(o observation) bool { return o.subject != pluginPortmap }, "obs/cni-config")
	notFound := pattern{sources: []string{"log.kubelet", "k8s.evt"}, texts: []string{`failed to find plugin…in path`}}
	logged := Either(
		c.installFails(),
		c.active(notFound),
		c.active(pattern{sources: []string{"log.plugin", "k8s.evt"},
			texts: []string{"add cmd: error loading config from args", "add cmd: failed to load k8s config from arg",
				"conf.VethPrefix can be at most 4 characters long"}}),
		c.active(pattern{sources: []string{"log.ipamd"}, texts: []string{logline.TextNoKey}}),
	)
	shown := orElse(Either(wrong, onlyIfTrue(logged)), c.failures(nil, cause.InvalidConfig, cause.InvalidRequest))
	uninitialized := On(c, c.R.Node, "k8s.node", "condition Ready", "the network plugin is ready", func(n evidence.KubeNode) (any, State) {
		k, there := find(n.Conditions, func(k evidence.Condition) bool {
			return k.Status != "True" && matchesAny(k.Message, textsNetworkNotReady)
		})
		return or(clip(k.Message), "ready"), stateOf(there)
	})
	cd := Result{Summary: "the CNI configuration cannot be used: " + shown.Value, Decisive: []Fact{shown}, Context: []Fact{uninitialized}}
	if shown.State == Unread {
		cd.Summary = "kubelet finds no CNI configuration that it can use"
	}
	if found := c.seen("obs/cni-config"); len(found) > 0 && found[0].names != nil {
		cd.names = found[0].names
		return []Result{cd.WithFixes(1)}
	}
	last, _, _ := c.lastMessage(notFound)
	at := pluginPath().FindStringSubmatch(last.text)
	if at != nil && c.active(notFound).State == Yes && !strings.Contains(at[1], pluginDirectory) {
		cd.title = "the runtime looks for plugins in another directory"
		cd.Summary = fmt.Sprintf("the runtime looks for plugins in %s, and the CNI installs them in %s: %s", at[1], pluginDirectory, shown.Value)
		return []Result{cd.WithFixes(6, 2)}
	}
	return []Result{cd.WithFixes(fitting(shown.Value, []wayOut{
		{[]string{"read-only file system"}, []int{3, 2}}, {[]string{"no space left"}, []int{4, 2}},
		{[]string{"permission denied", "operation not permitted"}, []int{5, 2}}, {nil, []int{2}},
	})...)}
}

// kindNoVPCCNI is what is said about a node of another CNI, and all that is said.
const kindNoVPCCNI = "obs/no-vpc-cni"

// noVPCCNI reports whether the cluster certainly has no DaemonSet aws-node, and no daemon answers.
func (c *Case) noVPCCNI() bool {
	return c.R.DaemonSet.OK() && c.R.DaemonSet.Content == nil && len(c.R.DaemonPods.Content) == 0 && !c.R.ENIs.OK()
}

func vpcCNIAbsent(c *Case) []observation {
	if !c.noVPCCNI() {
		return nil
	}
	o := observation{subject: c.Name, is: "there is no DaemonSet aws-node, and no daemon answers",
		should: "the VPC CNI, if it is to give pods their addresses", severity: catalogue.Info}
	o.fixes = []int{2, 1} // another CNI may be there
	if k := c.R.CNI.Content; c.R.CNI.OK() && len(k.Conf) > 0 {
		o.is += "; " + k.Conf[0].File + " configures the runtime"
		if slices.ContainsFunc(k.Conf, func(f evidence.CNIConf) bool { return !slices.Contains(f.Types, "aws-cni") }) {
			o.fixes = []int{2} // to install a second one breaks the node
		}
	} else if c.R.CNI.OK() {
		o.is, o.severity, o.fixes = o.is+"; nothing configures the runtime, so no pod starts", catalogue.Error, []int{1}
	}
	return []observation{o}
}

// textShadows stands between a file and the one that it keeps the runtime from using.
const textShadows = " sorts before "

// CNIProblem returns what keeps the runtime from using aws-cni and its chain, empty if nothing
// does.
func CNIProblem(n evidence.CNI) string {
	var conf evidence.CNIConf // the first: it may be another program's chain with aws-cni in it
	for _, f := range n.Conf {
		if own := slices.Contains(f.Types, "aws-cni") || f.File == "10-aws.conflist"; own && (conf.File == "" || f.File < conf.File) {
			conf = f
		}
	}
	if conf.File == "" {
		return "there is no configuration for aws-cni"
	}
	if !conf.Valid {
		return conf.File + " is not valid"
	}
	for _, other := range n.Conf {
		if other.File < conf.File && !slices.Contains(other.Types, "multus") && !strings.Contains(other.File, "multus") {
			return other.File + textShadows + conf.File
		}
	}
	for _, plugin := range slices.Concat(conf.Types, []string{"loopback"}) { // the runtime runs it in every sandbox
		at := slices.IndexFunc(n.Bin, func(b evidence.CNIPlugin) bool { return b.Name == plugin })
		if len(n.Bin) > 0 && at < 0 {
			return "plugin " + plugin + " is not installed"
		}
		if at >= 0 && n.Bin[at].Size != nil && *n.Bin[at].Size <= 0 { // copied while the disk was full
			return "plugin " + plugin + " is an empty file"
		}
	}
	return ""
}

// processDaemon and processAgent are the processes of the DaemonSet.
const (
	processDaemon = "aws-k8s-agent"
	processAgent  = "controller"
)

// portsHeld are the ports of the daemon and of the policy agent.
var portsHeld = []string{"61678", "61679", "8162", "8163"}

// PortTaken states that another process listens on a port of portsHeld, or on another of these ports or sockets.
func (c *Case) PortTaken(others ...string) Fact {
	held := slices.Concat(portsHeld, others)
	return On(c, c.R.Listeners, "host.listen", "owners of the ports", "the daemon and the policy agent",
		func(all []evidence.Listener) (any, State) {
			for _, l := range all {
				if slices.Contains(held, l.Address[strings.LastIndexByte(l.Address, ':')+1:]) && l.Process != "" && l.Process != processDaemon &&
					l.Process != processAgent {
					return l.Process + " listens on " + l.Address, Yes
				}
			}
			return "no other process", No
		})
}

func portConflict(c *Case) []Result {
	ports := slices.Clone(portsHeld)
	if !c.Ours && c.Release.Before(OnSocket) {
		ports = append(ports, "50051", "50052", "8080")
	}
	var texts []string
	for _, p := range ports {
		texts = append(texts, p+"…address already in use", "address already in use…"+p)
	}
	owner := c.PortTaken(ports...)
	// A conflict about metrics is logged once.
	logged := c.active(pattern{sources: []string{"log.ipamd", "log.np", "log.awsnode"}, texts: texts, any: owner.State == Yes})
	return []Result{{
		Summary:  "another process uses a port that aws-node needs: " + or(owner.Value, logged.Value),
		Decisive: []Fact{Either(logged, Both(c.silent(), owner))}, unless: []Fact{Not(owner)},
	}}
}

func primaryLinkMissing(c *Case) []Result {
	m := pattern{
		sources: []string{"log.ipamd", "log.awsnode"},
		texts:   []string{"failed to find the link primary ENI", "no primary interface found", "no link of this node has MAC address"},
	}
	for _, id := range m.sources {
		for _, l := range c.logSource(id).lines {
			// Upstream loses the error and names no link.
			if _, link, ok := strings.Cut(l.text, "Failed to set rp_filter for"); ok &&
				strings.IndexAny(strings.TrimLeft(link, " ")+":", ":\",\n") == 0 {
				m.texts = append(m.texts, l.text)
			}
		}
	}
	logged := c.dies(m)
	absent := On(c, c.R.Links, "kern.link", "link of the primary interface", "there", func(all []evidence.Link) (any, State) {
		id, mac := c.primary()
		if id == "" {
			return nil, Unread
		}
		there := slices.ContainsFunc(all, func(l evidence.Link) bool {
			return l.ENI == id || mac != "" && strings.EqualFold(l.MAC, mac)
		})
		return map[bool]string{true: "there", false: "no link with " + or(mac, "the MAC address of "+id)}[there], stateOf(!there)
	})
	return []Result{{
		Summary:  "the node has no link for the primary interface: " + logged.Value,
		Decisive: []Fact{logged}, Supporting: []Fact{absent},
	}}
}

// monitorLatched reports a condition of the node monitoring agent that outlived its reason: the
// agent sets it on one line of the log, and nothing clears it.
func monitorLatched(c *Case) []Result {
	latched := On(c, c.R.Node, "k8s.node", "condition NetworkingReady", "True", func(evidence.KubeNode) (any, State) {
		k, there := c.condition("NetworkingReady")
		if !there {
			return "not set", No
		}
		return conditionText(k), stateOf(k.Status == "False" && strings.HasPrefix(k.Reason, "IPAMDNot"))
	})
	text := "the node's condition NetworkingReady is False, but the daemon serves: with node auto repair it is replaced for nothing"
	return []Result{{Summary: text + ": " + latched.Value, Decisive: []Fact{latched, c.serves()}}}
}

// webhooksAway shows each webhook that does not answer, once for the cluster; only one that fails closed keeps pods from
// being made.
func webhooksAway(cs []*Case) (out []Result) {
	const kind = "obs/webhook"
	seen := map[string]bool{}
	for _, c := range cs {
		for _, o := range c.seen(kind) {
			if seen[o.subject] {
				continue
			}
			seen[o.subject] = true
			effect := "pods are made without what it adds or checks: "
			if o.severity == catalogue.Error {
				effect = "pods cannot be created: "
			}
			cd := Result{Scope: document.FindingScope{Cluster: true}, Summary: effect + o.String(), names: o.names, fixes: o.fixes,
				Decisive: []Fact{c.observesThose(func(of observation) bool { return of.subject == o.subject }, kind)}}
			if o.fixes[0] == fixWebhookCertificate {
				cd.title = "the certificate of an admission webhook is not valid"
			}
			out = append(out, cd.As(o.severity))
		}
	}
	if len(out) == 0 {
		out = []Result{{Decisive: []Fact{cs[0].observes(kind)}}}
	}
	return out
}
