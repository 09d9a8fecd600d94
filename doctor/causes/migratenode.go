package causes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/iam"
	"cnictl/daemon/resync"
	"cnictl/doctor/catalogue"
	"cnictl/doctor/evidence"
)

// ofNode is a finding about a node.
func ofNode(summary string, decisive ...Fact) candidate {
	return candidate{summary: summary, decisive: decisive}
}

func actionDenied(c *Case) []candidate {
	family := iam.IPv4
	if c.Settings.IPv6 {
		family = iam.IPv6
	}
	more := []iam.Feature{family, iam.Interfaces, iam.Groups, iam.Sweep}
	if c.Settings.ProvisioningDisabled() {
		more = nil
	}
	// Without these a daemon does not start. Ours goes on without the others of iam.Start, upstream's
	// not without DescribeSubnets.
	start := []string{"ec2:DescribeNetworkInterfaces"}
	if _, listed := limits.Lookup(c.R.InstanceType.Content.InstanceType); c.R.InstanceType.OK() && !listed {
		start = append(start, "ec2:DescribeInstanceTypes")
	}
	if c.Ours {
		start = append(start, "ec2:DescribeSubnets")
	}
	all := iam.Needed(append(more, iam.Start)...)
	if c.Settings.IMDSOnly {
		start, all = nil, nil
	}
	lacks := func(names []string) Fact {
		return fact(c, c.R.IAM, "iam.sim", "actions", "all allowed", func(sim evidence.IAM) (any, State) {
			var out []string
			for _, name := range names {
				if sim.Actions[name] == "denied" {
					out = append(out, name)
				}
			}
			return some(out), stateOf(len(out) > 0)
		})
	}
	atStart := lacks(start)
	later := lacks(slices.DeleteFunc(all, func(name string) bool { return slices.Contains(start, name) }))
	return []candidate{
		ofNode("the daemon that starts needs "+atStart.Value, atStart),
		ofNode("the daemon starts, but cannot do all of its work without "+later.Value, later).as(catalogue.Warning),
	}
}

func credentialsChange(c *Case) []candidate {
	const podIdentity, agent = "AWS_CONTAINER_CREDENTIALS_FULL_URI", "eks-pod-identity-agent"
	env := func(name, expected string, set bool) Fact {
		return fact(c, c.R.ContainerEnv, "host.env", "aws-node "+name, expected, func(by map[string]map[string]string) (any, State) {
			value, ok := by[containerNode][name]
			return or(value, "not set"), stateOf(ok == set)
		})
	}
	absent := fact(c, c.R.Pods, "k8s.pod", agent, "runs on the node", func([]evidence.KubePod) (any, State) {
		for _, p := range c.here() {
			if p.Labels["app.kubernetes.io/name"] == agent || strings.HasPrefix(string(p.Pod), "kube-system/"+agent) {
				return p.Phase, stateOf(p.Phase != "Running")
			}
		}
		return "not on the node", Yes
	})
	named := fact(c, c.R.ServiceAccount, "k8s.sa", "eks.amazonaws.com/role-arn", "as the running pods use it", func(s evidence.ServiceAccount) (any, State) {
		role := s.Annotations["eks.amazonaws.com/role-arn"]
		return or(role, "not set"), stateOf(role != "")
	})
	return []candidate{
		ofNode("pods of aws-node ask the Pod Identity agent for credentials, which is not on the node", both(env(podIdentity, "not set, or the agent runs", true), absent)),
		ofNode("the next pods use the role "+named.Value+", which those that run have never used", both(named, env("AWS_ROLE_ARN", "set", false), env(podIdentity, "set", false))).as(catalogue.Warning),
	}
}

func imagesUnreachable(c *Case) []candidate {
	arch := fact(c, c.R.Node, "k8s.node", "kubernetes.io/arch", "amd64 or arm64", func(n evidence.KubeNode) (any, State) {
		arch := n.Labels["kubernetes.io/arch"]
		return or(arch, "not set"), stateOf(arch != "" && arch != "amd64" && arch != "arm64")
	})
	pulls := fact(c, c.R.DaemonPods, "k8s.ds.pods", "images", "pulled", func(pods []evidence.DaemonPod) (any, State) {
		for _, p := range pods {
			for _, k := range p.Containers {
				if p.Node == c.own && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName"}, k.Reason) {
					return k.Name + ": " + k.Reason, Yes
				}
			}
		}
		return "pulled", No
	})
	return []candidate{
		ofNode("there is no image for the architecture "+arch.Value, arch),
		ofNode("an image of aws-node cannot be pulled: "+pulls.Value, pulls),
	}
}

// subnetsShort compares the free addresses of each subnet with what the warm pools of the nodes
// in it lack, which a daemon that starts fetches.
func subnetsShort(cs []*Case) []candidate {
	const path, expected = "free addresses against what the warm pools lack", "no fewer"
	need, nodes := map[string]int{}, map[string][]string{}
	free, read, seen := map[string]int{}, false, false
	for _, c := range cs {
		for _, s := range c.R.Subnets.Content {
			if s.Available != nil {
				free[s.ID], read = *s.Available, true
			}
		}
		if subnet, p := c.subnetOfNode(), c.pool(); subnet != "" && p != nil && !c.Settings.IPv6 {
			if lacks := c.keepsWarm() - p.assignable(); lacks > 0 {
				need[subnet] += lacks
				nodes[subnet] = append(nodes[subnet], c.Name)
			}
			seen = true
		}
	}
	if len(cs) == 0 {
		return nil
	}
	if !read || !seen {
		id, missing := "ec2.subnet", cs[0].R.Subnets.Missing
		if read {
			id, missing = "intro.enis", cs[0].R.ENIs.Missing
		}
		return []candidate{ofCluster("", cs[0].unread(id, path, expected, or(missing, "no subnet is known")))}
	}
	var short, of, texts []string // findings of one code are joined, so one names every subnet
	for _, subnet := range slices.Sorted(maps.Keys(need)) {
		if have, known := free[subnet]; known && have < need[subnet] {
			short, of = append(short, subnet), append(of, nodes[subnet]...)
			texts = append(texts, fmt.Sprintf("%s has %d for the %d that the warm pools of %d nodes lack", subnet, have, need[subnet], len(nodes[subnet])))
		}
	}
	if len(short) > 0 {
		lacking := cs[0].known("ec2.subnet", path, expected, strings.Join(texts, "; "), true)
		return []candidate{{scope: document.FindingScope{Cluster: true, Subnet: strings.Join(short, ", ")}, nodes: of, summary: "subnets have too few free addresses: " + lacking.Value, decisive: []Fact{lacking}}}
	}
	return []candidate{ofCluster("", cs[0].known("ec2.subnet", path, expected, "enough in each", false))}
}

// keepsWarm is how many addresses a node keeps that no pod uses.
func (c *Case) keepsWarm() int {
	perENI := 9
	if t, ok := c.limits(); ok && t.IPv4PerENI != nil {
		perENI = *t.IPv4PerENI - 1
	}
	switch {
	case c.Settings.WarmIP > 0:
		return c.Settings.WarmIP
	case c.prefixes():
		return 16 * max(1, c.Settings.WarmPrefix)
	}
	return perENI * c.Settings.WarmENI
}

func interfacesAdopted(c *Case) []candidate {
	foreign := fact(c, c.R.Interfaces, "ec2.eni", "tags and descriptions", "the daemon's, or "+resync.TagNoManage, func([]evidence.Interface) (any, State) {
		if c.instance() == "" {
			return nil, Unread
		}
		var out []string
		for _, e := range c.attached() {
			own := e.Tags[resync.TagInstanceID] != "" || strings.HasPrefix(e.Description, resync.DescriptionPrefix)
			primary := e.Card == 0 && e.Device != nil && *e.Device == 0
			if !primary && !own && e.Type == "interface" && e.Tags[resync.TagNoManage] != "true" && (c.Settings.ManageUntagged || !c.knows("MANAGE_UNTAGGED_ENI")) {
				out = append(out, fmt.Sprintf("%s (%s)", e.ID, or(e.Description, "no description")))
			}
		}
		return some(out), stateOf(len(out) > 0)
	})
	return []candidate{ofNode("a daemon that starts takes these interfaces for its own: "+foreign.Value, foreign)}
}

func stateLost(c *Case) []candidate {
	lost := c.checkpointWrong()
	absent := c.R.Checkpoint.Missing == evidence.MissingAbsent
	if k := c.R.Checkpoint.Content.Error; absent || k != nil {
		lost = c.known("ckpt", "content", lost.Expected, "it does not exist", true)
		if k != nil {
			lost.Value = *k
		}
	}
	full := c.unwritable()
	return []candidate{
		ofNode("the daemon that starts cannot restore "+runDirectory+"/ipam.json: "+lost.Value, lost),
		ofNode("nothing can be written to "+runDirectory+": "+full.Value, full),
	}
}

func statePods(c *Case) []candidate {
	const late = 2 * time.Minute // files and pods are not read at the same moment
	held := map[netip.Addr]bool{}
	for _, a := range c.R.Checkpoint.Content.Allocations {
		held[a.Address] = true
	}
	without := fact(c, c.R.Checkpoint, "ckpt", "addresses of running pods", "all in the file", func(evidence.Checkpoint) (any, State) {
		if !c.R.Pods.OK() {
			return nil, Unread
		}
		var out []string
		for _, p := range c.pooled() {
			if p.Phase == "Running" && len(p.IPs) > 0 && !held[p.IPs[0]] && p.Annotations[limitPodENI] == "" && c.Now.Sub(p.StartedAt) > late {
				out = append(out, fmt.Sprintf("%s %s", p.Pod, p.IPs[0]))
			}
		}
		return some(out), stateOf(len(out) > 0)
	})
	left := fact(c, c.R.Links, "kern.link", "links of the pods in the file", "all there", func([]evidence.Link) (any, State) {
		if !c.R.Checkpoint.OK() {
			return nil, Unread
		}
		var out []string
		for _, a := range c.R.Checkpoint.Content.Allocations {
			if !c.hasVeth(a.Pod) && c.Now.Sub(a.At) > late {
				out = append(out, fmt.Sprintf("%s %s", a.Pod, a.Address))
			}
		}
		return some(out), stateOf(len(out) > 0)
	})
	return []candidate{
		ofNode("running pods are not in the file of assignments, so their addresses may be given away: "+without.Value, without),
		ofNode("the file of assignments has pods that are not on the node: "+left.Value, left).as(catalogue.Warning),
	}
}

func stateRules(c *Case) []candidate {
	lacks, wrong := c.rulesLacking(), c.rulesWrong()
	return []candidate{
		ofNode("the daemon that starts repairs what running pods lack: "+lacks.Value, lacks),
		ofNode("the daemon that starts removes rules of other addresses: "+wrong.Value, wrong),
	}
}

func portsHeldByOthers(c *Case) []candidate {
	taken := c.portTaken(portsHeld)
	return []candidate{ofNode("another process holds a port of aws-node: "+taken.Value, taken)}
}

func cniDirectories(c *Case) []candidate {
	conf := fact(c, c.R.CNI, "host.cni", "conf, bin", "10-aws.conflist first, all of its plugins there", func(n evidence.CNI) (any, State) {
		text := cniProblem(n)
		return or(text, "as installed"), stateOf(text != "")
	})
	disk := fact(c, c.R.Resources, "host.res", "disks", "space left, writable", func(r evidence.Resources) (any, State) {
		for _, d := range r.Disks {
			at := strings.TrimSuffix(d.Path, "/")
			if !strings.HasPrefix("/opt/cni/bin", at) && !strings.HasPrefix("/etc/cni/net.d", at) {
				continue
			}
			switch {
			case d.ReadOnly:
				return d.Path + " is read-only", Yes
			case d.UsedPercent != nil && *d.UsedPercent >= 99:
				return fmt.Sprintf("%s is %g%% full", d.Path, *d.UsedPercent), Yes
			}
		}
		return "writable", No
	})
	return []candidate{
		ofNode("the CNI configuration of the node cannot be used: "+conf.Value, conf),
		ofNode("plugins and configuration cannot be installed: "+disk.Value, disk),
	}
}

func chainsElsewhere(c *Case) []candidate {
	split := c.chainsSplit()
	return []candidate{ofNode("what the CNI left in one back end of the firewall stays there: "+split.Value, split)}
}

func hostManagers(c *Case) []candidate {
	manager := c.manager()
	return []candidate{ofNode("another program works on the interfaces: "+manager.Value, manager)}
}

func kernelLacks(c *Case) []candidate {
	old := c.kernelOld()
	vlan := fact(c, c.R.Packages, "host.pkg", "modules", "8021q", func(p evidence.Packages) (any, State) {
		return "missing: " + some(p.Modules), stateOf(slices.Contains(p.Modules, "8021q"))
	})
	return []candidate{
		ofNode("network policies need kernel 5.10, the node has "+old.Value, both(old, c.policies())),
		ofNode("security groups for pods need the kernel module 8021q", both(vlan, c.podENI())),
	}
}

func metadataSilent(c *Case) []candidate {
	silent := fact(c, c.R.IMDS, "imds", "token", "ok", func(i evidence.IMDS) (any, State) { return i.Token, stateOf(i.Token != "ok") })
	return []candidate{ofNode("the metadata service does not answer: "+silent.Value, silent)}
}

func apiPath(c *Case) []candidate {
	unreachable := fact(c, c.R.Probes, "probe", "the API server from the host", "ok", func(all []evidence.Probe) (any, State) {
		state, text := Unread, ""
		for _, p := range all {
			if p.From != "host" || c.isEC2(p.Target) || p.Kind == "icmp" || p.Kind == "dns" {
				continue
			}
			if p.Result == "ok" {
				return p.Target + ": ok", No
			}
			state, text = Yes, p.Target+": "+p.Result
		}
		return text, state
	})
	return []candidate{ofNode("the node does not reach the API server, which the settings need at the start: "+unreachable.Value+c.proxyText(), both(c.needsAPI(), unreachable))}
}

func linksMTU(c *Case) []candidate {
	other := func(path, name string, want int, of func(evidence.Link) bool) Fact {
		return fact(c, c.R.Links, "kern.link", path, name, func(all []evidence.Link) (any, State) {
			if !c.knows(name) {
				return nil, Unread
			}
			var out []string
			for _, l := range all {
				if of(l) && l.MTU != nil && *l.MTU != want {
					out = append(out, fmt.Sprintf("%s has %d", or(string(l.Pod), l.Name), *l.MTU))
				}
			}
			return some(out), stateOf(len(out) > 0)
		})
	}
	interfaces := other("MTU of interfaces", "AWS_VPC_ENI_MTU", c.Settings.ENIMTU, func(l evidence.Link) bool { return l.ENI != "" && l.Kind != "veth" })
	pods := other("MTU of pods", "POD_MTU", c.Settings.PodMTU, func(l evidence.Link) bool {
		return l.Kind == "veth" && (l.Pod != "" || strings.HasPrefix(l.Name, c.Settings.VethPrefix))
	})
	return []candidate{
		ofNode(fmt.Sprintf("the daemon that starts sets the MTU of interfaces to %d: %s", c.Settings.ENIMTU, interfaces.Value), interfaces),
		ofNode(fmt.Sprintf("new pods get the MTU %d, those that run keep theirs: %s", c.Settings.PodMTU, pods.Value), pods),
	}
}

func maxPodsAbove(c *Case) []candidate {
	if c.Settings.IPv6 { // a prefix is more than any node's pods need
		return nil
	}
	above, n := c.maxPodsAbove(2, c.misfit)
	return []candidate{ofNode(fmt.Sprintf("max-pods is %d more than the node can ever address (%s)", n, c.whyFewer()), above)}
}

func pluginOther(c *Case) []candidate {
	other := fact(c, c.R.CNI, "host.cni", "version of aws-cni", "that of the image", func(n evidence.CNI) (any, State) {
		if !c.R.DaemonSet.OK() {
			return nil, Unread
		}
		if c.R.DaemonSet.Content == nil {
			return "aws-node is not installed", No
		}
		image, known := evidence.ParseVersion(c.R.DaemonSet.Content.Images[containerNode])
		for _, b := range n.Bin {
			if b.Name != "aws-cni" || b.Version == nil || !known {
				continue
			}
			v, ok := evidence.ParseVersion(*b.Version)
			return fmt.Sprintf("%s, image %s", v, image), stateOf(ok && v != image)
		}
		return "not known", No
	})
	return []candidate{ofNode("the installed plugin is not that of aws-node: "+other.Value, other)}
}

func programsLeft(c *Case) []candidate {
	pinned := fact(c, c.R.BPFPins, "host.bpf", "pins", "none while network policies are off", func(pins []string) (any, State) {
		return some(pins), stateOf(len(pins) > 0)
	})
	return []candidate{ofNode("filters of an earlier policy agent are still pinned: "+pinned.Value, both(pinned, not(c.policies())))}
}
