package causes

import (
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/config"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

var npRules = []Rule{
	{Code: "np/agent-unreachable", Node: agentUnreachable},
	{Code: "np/agent-version-skew", Node: agentSkew},
	{Code: "np/attach-failed", Node: attachFailed},
	{Code: "np/strict-default-deny", Node: strictDefaultDeny},
	{Code: "np/agent-failing", Node: shown("policies of new and changed pods are not enforced", "obs/agent-not-ready")},
}

func agentUnreachable(c *Case) []Result {
	logged := orElse(c.active(pattern{
		sources: pluginSays,
		texts: []string{"add cmd: failed to setup network policy", "Failed to connect to network policy agent",
			"del cmd: failed to process delete request…network policy"},
	}), c.failures(nil, cause.PolicyAgentUnreachable))
	set := c.Setting("NETWORK_POLICY_ENFORCING_MODE", "not set, or an agent that runs", func(s config.Config) bool {
		return s.NetworkPolicyMode != "" && !(c.Ours && s.NetworkPolicyMode == "none") // upstream's plugin asks the agent even then
	})
	absent := On(c, c.R.DaemonSet, "k8s.ds", "containers", containerAgent, func(ds *evidence.DaemonSet) (any, State) {
		if ds == nil {
			return nil, Unread
		}
		return strings.Join(ds.Containers, ", "), stateOf(!slices.Contains(ds.Containers, containerAgent))
	})
	down := c.inContainer(containerAgent, "ready", "true", func(k evidence.DaemonContainer) (any, State) {
		if k.Ready == nil {
			return nil, Unread
		}
		return containerText(k), stateOf(!*k.Ready || k.RestartsLastHour != nil && *k.RestartsLastHour > 1)
	})
	why := orElse(Either(absent, down), c.socketMissing())
	cd := Result{
		Summary: fmt.Sprintf("pods cannot start because the network policy agent does not answer: %s: %s", why.Path,
			or(why.Value, logged.Value)),
		Decisive: []Fact{logged}, required: []Fact{set, why}, names: podNames(string(c.daemonPod().Pod)),
	}
	// The container is there: what ails it says what to do.
	switch order := c.stalledFixes(containerAgent, fixAgentStalled); {
	case absent.State == Yes:
	case down.State == Yes:
		return []Result{cd.WithFixes(slices.DeleteFunc(order, func(i int) bool { return i < fixAgentLog })...)}
	case why.State == Yes: // its socket is missing
		return []Result{cd.WithFixes(fixAgentRestart, fixAgentLog)}
	}
	return []Result{cd}
}

// Fixes of np/agent-unreachable, from 1; before them are those for an agent that is absent.
const (
	fixAgentLog     = 3
	fixAgentStalled = 5
	fixAgentRestart = 11
)

// socketMissing states that an agent of a release that serves a socket does not.
func (c *Case) socketMissing() Fact {
	return On(c, c.R.RunFiles, "host.run", "npa.sock", "there", func(files []string) (any, State) {
		if c.Agent != nil && c.Agent.Before(agentOnSocket) {
			return nil, Unread // it serves a port
		}
		there := slices.Contains(files, "npa.sock")
		return map[bool]string{true: "there", false: "missing"}[there], stateOf(!there)
	})
}

// Releases that replace a port with a socket: the agent serves npa.sock, the CNI dials it, and
// the agent dials ipamd.sock.
var (
	agentOnSocket  = evidence.Version{1, 2, 6}
	cniDialsSocket = evidence.Version{1, 20, 2}
	agentOnIPAMD   = evidence.Version{1, 4, 1}
)

func agentSkew(c *Case) []Result {
	skew := c.Skewed(c.Ours, c.Release, c.Agent)
	return []Result{{Summary: "daemon and policy agent expect each other at different addresses: " + skew.Value, Decisive: []Fact{skew}}}
}

// Skewed states that a daemon and a policy agent do not match. Ours serves and dials the sockets of
// upstream's v1.23.0. It counts without policies too: turning them on would stop the agent.
func (c *Case) Skewed(ours bool, release evidence.Version, agent *evidence.Version) Fact {
	const path, expected = "images", "from matching releases"
	daemon := fmt.Sprintf("amazon-vpc-cni-k8s %s", release)
	if ours {
		daemon, release = "cnictl's daemon", OnSocket
	}
	switch {
	case agent != nil && *agent != evidence.Version{} && release != evidence.Version{}:
		skew := release.Before(OnSocket) != agent.Before(agentOnIPAMD) || release.Before(cniDialsSocket) != agent.Before(agentOnSocket)
		return c.Known("k8s.ds", path, expected, fmt.Sprintf("%s with policy agent %s", daemon, agent), skew)
	case c.R.DaemonSet.OK() && agent == nil:
		return c.Known("k8s.ds", path, expected, "there is no agent", false)
	}
	return c.Unread("k8s.ds", path, expected, or(c.R.DaemonSet.Missing, "the releases are unknown"))
}

func attachFailed(c *Case) []Result {
	logged := orElse(c.active(pattern{
		sources: []string{"log.np", "log.plugin", "log.awsnode/" + containerAgent, "k8s.evt"},
		texts: []string{"Attaching eBPF probe failed", "One of the policy reconcilers is not ready",
			"Failed to setup default network policy for Pod Name", "Failed to load eBPF program",
			"unknown func bpf_", "load program: invalid argument"},
	}), c.failures(nil, cause.PolicyAgentRefused))
	old, crds := c.KernelOld(), c.PolicyCRDsMissing()
	why := Either(old, crds)
	text := "the policy agent refuses pods: " + logged.Value
	switch {
	case old.State == Yes:
		text += "; the kernel is " + old.Value
	case crds.State == Yes:
		text += "; " + crds.Value
	}
	cd := Result{Summary: text, Decisive: []Fact{logged}, Supporting: []Fact{why}}
	if old.State == Yes {
		cd = cd.WithFixes(fixKernel)
	}
	const args = "args of " + containerAgent
	enforces := On(c, c.R.DaemonSet, "k8s.ds", args, "--enable-network-policy=false", func(ds *evidence.DaemonSet) (any, State) {
		if ds == nil {
			return nil, Unread
		}
		return "--enable-network-policy=true", stateOf(ds.EnforcesPolicies() && slices.Contains(ds.Containers, containerAgent))
	})
	late := Result{title: "the kernel is too old for the network policy agent",
		Summary:  "network policies are turned on, and the kernel cannot run the agent's programs: no policy is enforced on the node; it is " + old.Value,
		Decisive: []Fact{old, enforces}}
	return []Result{cd, late.As(catalogue.Warning).WithFixes(fixKernel)}
}

// fixKernel is the fix of np/attach-failed for an old kernel, from 1.
const fixKernel = 3

// KernelOld states that the kernel is too old for the policy agent.
func (c *Case) KernelOld() Fact {
	return On(c, c.R.Node, "k8s.node", "kernel", "5.10 or later", func(n evidence.KubeNode) (any, State) {
		release, _, _ := strings.Cut(n.Kernel, "-")
		v, ok := evidence.ParseVersion(release)
		if !ok {
			return nil, Unread
		}
		return n.Kernel, stateOf(v.Before(evidence.Version{5, 10}))
	})
}

// PolicyCRDsMissing states that the cluster lacks the CRDs that the policy agent needs.
func (c *Case) PolicyCRDsMissing() Fact {
	return On(c, c.R.NetworkPolicies, "k8s.np", "crds", "the CRDs of network policies are installed",
		func(p evidence.NetworkPolicies) (any, State) {
			if p.CRDs == nil {
				return nil, Unread
			}
			return map[bool]string{true: "the CRDs of network policies are installed", false: "the CRDs of network policies are missing"}[*p.CRDs],
				stateOf(!*p.CRDs)
		})
}

func strictDefaultDeny(c *Case) []Result {
	strict := c.Setting("NETWORK_POLICY_ENFORCING_MODE", "standard", func(s config.Config) bool { return s.NetworkPolicyMode == "strict" })
	if strict.State == Unread {
		return []Result{{Decisive: []Fact{strict}}}
	}
	without := c.observes("obs/pod-no-policy")
	return []Result{{
		Summary:  "in strict mode all traffic of pods without a policy is dropped: " + Some(c.hit("obs/pod-no-policy")),
		Decisive: []Fact{strict, without},
	}}
}
