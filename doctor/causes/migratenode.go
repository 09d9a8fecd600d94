package causes

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/iam"
	"cnictl/daemon/resync"
	"cnictl/deploy/chart"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// ofNode returns a finding about a node.
func ofNode(summary string, decisive ...Fact) candidate {
	return candidate{summary: summary, decisive: decisive}
}

func actionDenied(c *Case) []candidate {
	var fix int
	var more, further []iam.Feature // further: if the primary interface is excluded
	interfaces := []iam.Feature{iam.Interfaces, iam.Groups}
	if c.Ours {
		interfaces = append(interfaces, iam.Upstream)
	}
	switch {
	case !c.Settings.IPv6:
		more, fix = append(interfaces, iam.IPv4, iam.Sweep), 1
	case c.Settings.MultiNIC:
		more, fix = append(interfaces, iam.IPv6, iam.Excluded), 2
	default: // one /80 of the primary interface is enough for all pods
		more, further, fix = []iam.Feature{iam.IPv6}, append(interfaces, iam.Excluded), 2
	}
	if c.Settings.ProvisioningDisabled() {
		more, further = nil, nil
	}
	// No daemon starts without these. Ours does without the other actions of iam.Start,
	// upstream's without all of them but DescribeSubnets.
	start := []string{"ec2:DescribeNetworkInterfaces"}
	if _, listed := limits.Lookup(c.R.InstanceType.Content.InstanceType); c.R.InstanceType.OK() && !listed {
		start = append(start, "ec2:DescribeInstanceTypes")
	}
	if c.Ours {
		start = append(start, "ec2:DescribeSubnets")
	}
	all := iam.Needed(append(more, iam.Start)...)
	if c.Settings.IMDSOnly {
		start, all, further = nil, nil, nil
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
	later := lacks(slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(start, name) }))
	elsewhere := lacks(slices.DeleteFunc(iam.Needed(further...), func(name string) bool { return slices.Contains(all, name) }))
	out := []candidate{
		ofNode("the new daemon needs "+atStart.Value, atStart),
		ofNode("the daemon starts, but cannot do all of its work without "+later.Value, later).as(catalogue.Warning),
		ofNode("pods need an interface in another subnet, and the daemon cannot make one without "+elsewhere.Value, both(elsewhere, c.primaryExcluded())).as(catalogue.Warning),
	}
	for i := range out {
		out[i].fixes = []int{fix}
	}
	return out
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
	via := func(way string) Fact {
		return fact(c, c.R.Role, "iam.role", "via", "not "+way, func(r evidence.Role) (any, State) {
			return r.ARN + " by " + r.Via, stateOf(r.Via == way)
		})
	}
	associated := via(evidence.ViaPodIdentity)
	out := []candidate{
		ofNode("pods of aws-node ask the Pod Identity agent for credentials, which is not on the node", both(either(env(podIdentity, "not set, or the agent runs", true), associated), absent)),
		ofNode("the next pods use the role "+named.Value+", which those that run have never used", both(named, env("AWS_ROLE_ARN", "set", false), env(podIdentity, "set", false))).as(catalogue.Warning),
	}
	refused := fact(c, c.R.Role, "iam.role", "trust", "lets the service account of aws-node assume the role", func(r evidence.Role) (any, State) {
		why := trustRefusal(r)
		return or(why, "as it must be"), stateOf(why != "")
	})
	out = append(out, ofNode("the next pods cannot assume their role: "+refused.Value, both(either(named, associated), refused)))
	if !c.R.Role.OK() {
		return out
	}
	emptied := fact(c, c.R.IAM, "iam.sim", "actions", "some allowed", func(sim evidence.IAM) (any, State) {
		for _, decision := range sim.Actions {
			if decision != "denied" {
				return "some allowed", No
			}
		}
		return sim.Role + " allows none", stateOf(len(sim.Actions) > 0)
	})
	return append(out, ofNode("nothing but the node role is set up for aws-node, and its policies are gone: "+emptied.Value, both(via(evidence.ViaNode), emptied)))
}

// trustRefusal returns why the trust policy of a role does not let the pods of aws-node assume it. It
// is empty if the policy does, or if the role is the node's.
func trustRefusal(r evidence.Role) string {
	const account, audience, webIdentity = "system:serviceaccount:kube-system:aws-node", "sts.amazonaws.com", "sts:AssumeRoleWithWebIdentity"
	matches := func(patterns []string, value string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(strings.ReplaceAll(p, "[", `\[`), value)
			return ok && err == nil
		})
	}
	may := func(t evidence.Trust, action string) bool { return matches(t.Actions, action) }
	switch r.Via {
	case evidence.ViaPodIdentity:
		for _, action := range []string{"sts:AssumeRole", "sts:TagSession"} {
			if !slices.ContainsFunc(r.Trust, func(t evidence.Trust) bool {
				return may(t, action) && slices.Contains(t.Principals, "pods.eks.amazonaws.com")
			}) {
				return "its trust policy does not allow " + action + " to pods.eks.amazonaws.com"
			}
		}
	case evidence.ViaIRSA:
		why := "its trust policy has no OIDC provider with " + webIdentity
		for _, t := range r.Trust {
			at := slices.IndexFunc(t.Principals, func(p string) bool { return strings.Contains(p, ":oidc-provider/") })
			if at < 0 || !may(t, webIdentity) {
				continue
			}
			switch issuer := strings.TrimPrefix(r.Issuer, "https://"); {
			case !slices.ContainsFunc(t.Principals, func(p string) bool { return strings.HasSuffix(p, ":oidc-provider/"+issuer) }) && issuer != "":
				why = fmt.Sprintf("its trust policy names the provider %s, the cluster has %s", t.Principals[at], issuer)
			case len(t.Subjects) > 0 && !matches(t.Subjects, account):
				why = fmt.Sprintf("its trust policy is for %s, not %s", strings.Join(t.Subjects, ", "), account)
			case len(t.Audiences) > 0 && !matches(t.Audiences, audience):
				why = fmt.Sprintf("its trust policy is for the audience %s, not %s", strings.Join(t.Audiences, ", "), audience)
			default:
				return ""
			}
		}
		return why
	}
	return ""
}

var (
	// pullReasons are the reasons of a container that waits for its image.
	pullReasons = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
	// ecrHost matches a registry: its account, which archives hide, its region and its domain.
	ecrHost = regexp.MustCompile(`^([^./]+)\.dkr[.-]ecr(?:-fips)?\.((?:[a-z]+-)+\d+)\.([^/]+)/`)
	// regionOfZone also takes local and Wavelength zones, such as us-west-2-lax-1a.
	regionOfZone = regexp.MustCompile(`^(?:[a-z]+-)+\d+`)
)

// partition identifies the partition of a region by the beginning of its name. Credentials of one
// partition are invalid in another.
func partition(region string) string {
	for _, p := range []string{"cn-", "us-gov-", "us-iso-", "us-isob-", "us-isof-", "eu-isoe-", "eusc-"} {
		if strings.HasPrefix(region, p) {
			return p
		}
	}
	return ""
}

func imagesUnreachable(c *Case) []candidate {
	arch := fact(c, c.R.Node, "k8s.node", "kubernetes.io/arch", "amd64 or arm64", func(n evidence.KubeNode) (any, State) {
		arch := n.Labels["kubernetes.io/arch"]
		return or(arch, "not set"), stateOf(arch != "" && arch != "amd64" && arch != "arm64")
	})
	pulls := fact(c, c.R.DaemonPods, "k8s.ds.pods", "images", "pulled", func(pods []evidence.DaemonPod) (any, State) {
		for _, p := range pods {
			for _, k := range p.Containers {
				if p.Node == c.own && slices.Contains(pullReasons, k.Reason) {
					return k.Name + ": " + k.Reason, Yes
				}
			}
		}
		return "pulled", No
	})
	// Kubelet reports a secret that it cannot read, so the doctor needs no right to read secrets.
	secret := c.onDaemonSet("imagePullSecrets", "there", func(ds *evidence.DaemonSet) (any, State) {
		if len(ds.PullSecrets) == 0 {
			return "none", No
		}
		if !c.R.Events.OK() || !c.R.DaemonPods.OK() {
			return nil, Unread
		}
		for _, e := range c.R.Events.Content {
			here := func(p evidence.DaemonPod) bool { return p.Node == c.own && string(p.Pod) == e.Name }
			if e.Reason == "FailedToRetrieveImagePullSecret" && slices.ContainsFunc(c.R.DaemonPods.Content, here) {
				return every(ds.PullSecrets), Yes
			}
		}
		return every(ds.PullSecrets), No
	})
	foreign := c.registries("of the node's partition", func(own, region string) bool { return partition(own) != partition(region) })
	remote := c.registries("of the node's region", func(own, region string) bool { return own != region && partition(own) == partition(region) })
	unpublished := c.unpublished()
	scoped := ofNode
	if len(c.move.Images) == 0 {
		scoped = ofCluster
	}
	// Only a pull shows that platform, pull secret, registry and route are right.
	unpulled := c.unpulled()
	pulled := unpulled
	if unpulled.State == Yes {
		pulled = c.unread("k8s.node", "a pull of the new images", "it works", evidence.MissingPull)
	}
	out := []candidate{
		ofNode("there is no image for the architecture "+arch.Value, arch),
		ofNode("an image of aws-node cannot be pulled: "+pulls.Value, pulls),
		ofNode("kubelet cannot read a pull secret of aws-node: "+secret.Value, secret),
		ofNode("the registry of an image is in another partition, where the node's credentials are not valid: "+foreign.Value, foreign),
		ofNode("ECR does not have an image of this name: "+unpublished.Value, unpublished),
		ofNode("an image is pulled from another region, which a VPC endpoint for ECR does not reach: "+remote.Value, remote).as(catalogue.Info),
		scoped("not checked whether nodes can pull the new images: "+unpulled.Value, pulled),
	}
	last := &out[len(out)-1]
	last.context = []Fact{unpulled}
	for i := range out[:len(out)-1] {
		switch f := out[i].decisive[0]; f.State {
		case Yes: // findings are joined, and the last is the mildest
			out[i].context = []Fact{unpulled}
		case Unread: // the check stays undecided
			last.context = append(last.context, f)
		}
	}
	return out
}

// registries states something about the regions of ECR from which the node pulls: the new images
// if they are named, else those of the DaemonSet.
func (c *Case) registries(expected string, wrong func(own, region string) bool) Fact {
	judge := func(images map[string]string) (any, State) {
		var out []string
		for _, name := range slices.Sorted(maps.Keys(images)) {
			host := ecrHost.FindStringSubmatch(images[name])
			if host == nil {
				continue
			}
			own := regionOfZone.FindString(c.R.Node.Content.Zone)
			if own == "" {
				return nil, Unread
			}
			if wrong(own, host[2]) {
				out = append(out, fmt.Sprintf("%s in %s, the node in %s", name, host[2], own))
			}
		}
		return every(out), stateOf(len(out) > 0)
	}
	if len(c.move.Images) > 0 {
		return c.onNewImages("registries of the new images", expected, judge)
	}
	return c.onDaemonSet("registries of the images", expected, func(ds *evidence.DaemonSet) (any, State) { return judge(ds.Images) })
}

// unpublished states that new images have names that ECR cannot have.
func (c *Case) unpublished() Fact {
	return c.onNewImages("names of the new images", "AWS's account and domain of the region", func(images map[string]string) (any, State) {
		var out []string
		for _, image := range slices.Sorted(maps.Keys(images)) {
			if why := notInECR(image); why != "" {
				out = append(out, image+": "+why)
			}
		}
		return every(out), stateOf(len(out) > 0)
	})
}

// unpulled states that the node may not have the new images yet.
func (c *Case) unpulled() Fact {
	return c.onNewImages("new images", "on the node", func(images map[string]string) (any, State) {
		switch {
		case len(c.move.Images) == 0:
			return "--images does not name them", Yes
		case len(images) == 0:
			return "on the node", No
		}
		return "the node reports none of " + strings.Join(slices.Sorted(maps.Keys(images)), ", "), Yes
	})
}

// onNewImages states something about the new images that the node does not report, by reference. A
// node without aws-node needs none.
func (c *Case) onNewImages(path, expected string, judge func(map[string]string) (any, State)) Fact {
	return fact(c, c.R.Node, "k8s.node", path, expected, func(n evidence.KubeNode) (any, State) {
		images := map[string]string{}
		for _, image := range c.move.Images {
			reported := image
			if name, digest, pinned := strings.Cut(image, "@"); pinned { // kubelet reports no tag beside a digest
				reported = strings.TrimSuffix(name, ":"+tag(name)) + "@" + digest
			}
			hidden := reported // as a bundle has it
			if host := ecrHost.FindStringSubmatch(reported); host != nil {
				hidden = evidence.HiddenAccount + strings.TrimPrefix(reported, host[1])
			}
			if notOurs(n) == "" && !slices.Contains(n.Images, reported) && !slices.Contains(n.Images, hidden) {
				images[image] = image
			}
		}
		return judge(images)
	})
}

// notInECR returns why a registry of ECR cannot have an image, going by AWS's own accounts. It is
// empty if the registry may have it, or is not of ECR.
func notInECR(image string) string {
	host := ecrHost.FindStringSubmatch(image)
	if host == nil {
		return ""
	}
	account, region, domain := host[1], host[2], host[3]
	of := chart.Registries()
	own, known := of[region]
	aws := slices.ContainsFunc(slices.Collect(maps.Values(of)), func(r chart.Registry) bool { return r.Account == account })
	switch {
	case aws && strings.HasPrefix(imageName(image), imageOurs):
		return "the account is AWS's, which publishes no such image"
	case aws && known && account != own.Account:
		return fmt.Sprintf("AWS's account in %s is %s", region, own.Account)
	case known && domain != own.Domain && !strings.HasPrefix(domain, "on."): // dual-stack names have their own domain
		return fmt.Sprintf("the domain in %s is %s", region, own.Domain)
	}
	return ""
}

// subnetsShort compares the free addresses of each subnet with what the warm pools growing in it
// lack. A starting daemon fetches that: addresses, and in prefix mode whole /28 blocks.
func subnetsShort(cs []*Case) []candidate {
	const path, expected = "free addresses and /28 blocks against what the warm pools lack", "no fewer"
	type want struct {
		addresses, blocks int
		nodes             []string
		at                *Case
	}
	wants, seen := map[string]want{}, false
	for _, c := range cs {
		if c.Settings.IPv6 { // one /80 has addresses for all pods
			seen = true
			continue
		}
		p := c.pool()
		if p == nil || c.subnetOfNode() == "" {
			continue
		}
		seen = true
		lacks := c.keepsWarm() - p.assignable()
		if lacks <= 0 {
			continue
		}
		w := wants[c.growsIn(p)]
		if w.addresses, w.nodes, w.at = w.addresses+lacks, append(w.nodes, c.Name), c; c.prefixes() {
			w.blocks += (lacks + limits.PrefixSize - 1) / limits.PrefixSize
		}
		wants[c.growsIn(p)] = w
	}
	if len(cs) == 0 {
		return nil
	}
	read := slices.ContainsFunc(cs, func(c *Case) bool {
		return slices.ContainsFunc(c.R.Subnets.Content, func(s evidence.Subnet) bool { return s.Available != nil })
	})
	if !read || !seen {
		id, missing := "ec2.subnet", cs[0].R.Subnets.Missing
		if read {
			id, missing = "intro.enis", cs[0].R.ENIs.Missing
		}
		return []candidate{ofCluster("", cs[0].unread(id, path, expected, or(missing, "no subnet is known")))}
	}
	unread := ""                  // why blocks cannot be counted
	var short, of, texts []string // findings of one code are joined, so one names every subnet
	for _, id := range slices.Sorted(maps.Keys(wants)) {
		w := wants[id]
		text := ""
		switch s, known := w.at.subnet(id); {
		case id == "":
			text = fmt.Sprintf("%s may use no subnet: their own is excluded by its tag %s, and no other of the zone has it", count(len(w.nodes), "node"), resync.TagSubnetRole)
		case !known || s.Available == nil:
			continue
		case *s.Available < w.addresses:
			text = fmt.Sprintf("%s has %d free, and %d are needed to fill the warm pools of %s", id, *s.Available, w.addresses, count(len(w.nodes), "node"))
		case w.blocks > 0 && !w.at.R.Interfaces.OK():
			unread = w.at.R.Interfaces.Missing
			continue
		case w.at.freeBlocks(s) < w.blocks:
			text = fmt.Sprintf("%s has %d free, but at most %s, and the warm pools of %s need %s", id, *s.Available, count(w.at.freeBlocks(s), "whole /28 block"), count(len(w.nodes), "node"), count(w.blocks, "block"))
		default:
			continue
		}
		if of, texts = append(of, w.nodes...), append(texts, text); id != "" {
			short = append(short, id)
		}
	}
	if len(texts) > 0 {
		lacking := cs[0].known("ec2.subnet", path, expected, strings.Join(texts, "; "), true)
		return []candidate{{scope: document.FindingScope{Cluster: true, Subnet: strings.Join(short, ", ")}, nodes: of, summary: "subnets have too few free addresses: " + lacking.Value, decisive: []Fact{lacking}}}
	}
	if unread != "" {
		return []candidate{ofCluster("", cs[0].unread("ec2.eni", path, expected, unread))}
	}
	return []candidate{ofCluster("", cs[0].known("ec2.subnet", path, expected, "enough in each", false))}
}

// growsIn returns the subnet of a pool's next addresses: that of its interfaces while they have
// room, else that of a new interface. It is empty if there is none.
func (c *Case) growsIn(p *pool) string {
	own := c.subnetOfNode()
	subnets, known := c.candidates()
	if !known || p.roomOnENI {
		return own
	}
	best, most := "", -1
	for _, s := range subnets {
		if s.Available == nil {
			return own
		}
		if *s.Available > most {
			best, most = s.ID, *s.Available
		}
	}
	return best
}

// freeBlocks returns how many aligned /28 blocks of a subnet contain no known address. EC2 keeps
// addresses of the first and the last.
func (c *Case) freeBlocks(s evidence.Subnet) int {
	if !s.CIDR.Addr().Is4() || s.CIDR.Bits() > 28 {
		return 0
	}
	held := map[netip.Prefix]bool{}
	take := func(a netip.Addr) {
		if block, err := a.Prefix(28); err == nil && a.Is4() && s.CIDR.Contains(a) {
			held[block] = true
		}
	}
	blocks := 1 << (28 - s.CIDR.Bits())
	last := binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(s.CIDR.Masked().Addr().AsSlice())+uint32(blocks*limits.PrefixSize-1))
	take(s.CIDR.Addr())
	take(netip.AddrFrom4([4]byte(last)))
	for i := range c.R.Interfaces.Content {
		e := &c.R.Interfaces.Content[i]
		take(e.Primary)
		for _, a := range e.IPs {
			take(a)
		}
		for _, p := range e.Prefixes {
			take(p.Addr())
		}
	}
	return blocks - len(held)
}

// keepsWarm returns how many unused addresses a node keeps.
func (c *Case) keepsWarm() int {
	perENI := 9
	if t, ok := c.limits(); ok && t.IPv4PerENI != nil {
		perENI = *t.IPv4PerENI - 1
	}
	switch {
	case c.Settings.WarmIP > 0:
		return c.Settings.WarmIP
	case c.prefixes():
		return limits.PrefixSize * max(1, c.Settings.WarmPrefix)
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
			// An adopted interface has the daemon's tag, and keeps the description of its maker.
			primary := e.Card == 0 && e.Device != nil && *e.Device == 0
			adopted := e.Tags[resync.TagInstanceID] != "" || c.Settings.ManageUntagged || !c.knows("MANAGE_UNTAGGED_ENI")
			if !primary && !strings.HasPrefix(e.Description, resync.DescriptionPrefix) && e.Type == "interface" && e.Tags[resync.TagNoManage] != "true" && adopted {
				out = append(out, fmt.Sprintf("%s (%s)", e.ID, or(e.Description, "no description")))
			}
		}
		return some(out), stateOf(len(out) > 0)
	})
	return []candidate{ofNode("a starting daemon takes these interfaces for its own: "+foreign.Value, foreign)}
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
		ofNode("the new daemon cannot restore "+runDirectory+"/ipam.json: "+lost.Value, lost),
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
		ofNode("running pods are not in the checkpoint, so their addresses may be assigned again: "+without.Value, without),
		ofNode("the checkpoint lists pods that are not on the node: "+left.Value, left).as(catalogue.Warning),
	}
}

func stateRules(c *Case) []candidate {
	lacks, wrong := c.rulesLacking(), c.rulesWrong()
	return []candidate{
		ofNode("the new daemon repairs what running pods lack: "+lacks.Value, lacks),
		ofNode("the new daemon removes rules of other addresses: "+wrong.Value, wrong),
	}
}

func portsHeldByOthers(c *Case) []candidate {
	taken := c.portTaken(append(portsHeld[:len(portsHeld):len(portsHeld)], cniwire.Socket, cniwire.GRPCSocket, cniwire.PolicySocket))
	return []candidate{ofNode("another process holds a port or a socket of aws-node: "+taken.Value, taken)}
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
	left, marks := c.chainsLeft(), c.marksOfOthers()
	return []candidate{
		ofNode("the CNI's rules in one iptables backend stay there: "+left.Value, left),
		ofNode("others use the mark of the CNI's connections: "+marks.Value, marks),
	}
}

// chainsLeft states that the CNI has chains in the backend that a daemon does not use: not
// kube-proxy's or, if that is unclear, not that of the host's iptables.
func (c *Case) chainsLeft() Fact {
	return fact(c, c.R.IPTables, "kern.ipt", "chains AWS-*", "in the backend of kube-proxy alone", func(k evidence.IPTables) (any, State) {
		kubeNFT, kubeLegacy := chainsIn(k, "KUBE-")
		if kubeNFT == kubeLegacy {
			kubeNFT = k.Mode == "nft"
		}
		nft, legacy := chainsIn(k, "AWS-")
		switch {
		case kubeNFT && legacy:
			return "AWS-* in legacy, the daemon uses nft", Yes
		case !kubeNFT && nft:
			return "AWS-* in nft, the daemon uses legacy", Yes
		}
		return "none in the other one", No
	})
}

// marksOfOthers states that rules other than the CNI's write or match the bits of
// AWS_VPC_K8S_CNI_CONNMARK. A firewall rule that sets a whole mark writes them too.
func (c *Case) marksOfOthers() Fact {
	ours := uint64(c.Settings.Connmark)
	expected := fmt.Sprintf("%#x is the CNI's alone", ours)
	if !c.knows("AWS_VPC_K8S_CNI_CONNMARK") {
		return c.unread("kern.ipt", "marks", expected, "the settings were not read")
	}
	marks := fact(c, c.R.IPTables, "kern.ipt", "marks", expected, func(evidence.IPTables) (any, State) {
		for _, rule := range c.rulesOfIPTables() {
			if mark, mask, ok := markSet(rule); ok && (mark|mask)&ours != 0 && !strings.Contains(rule, "AWS") {
				return rule, Yes
			}
		}
		return "none of others", No
	})
	routed := fact(c, c.R.Rules, "kern.rule", "fwmark", expected, func([]evidence.Rule) (any, State) {
		for _, r := range c.policyRules() {
			if uint64(r.Mark&r.Mask)&ours != 0 && (r.Priority != netnames.RuleMark || r.Table != netnames.MainTable) {
				return fmt.Sprintf("rule %q", r), Yes
			}
		}
		return "none of others", No
	})
	return either(marks, routed)
}

// markSet returns how a line of iptables-save changes the mark of packets or connections: it
// clears the bits of mask and flips those of mark.
func markSet(rule string) (mark, mask uint64, ok bool) {
	words := strings.Fields(rule)
	for i, word := range words[:max(0, len(words)-1)] {
		if word != "--set-xmark" && word != "--set-mark" && word != "--tproxy-mark" {
			continue
		}
		value, of, masked := strings.Cut(words[i+1], "/")
		mark, err := strconv.ParseUint(value, 0, 32)
		mask := uint64(1<<32 - 1)
		if masked && err == nil {
			mask, err = strconv.ParseUint(of, 0, 32)
		}
		return mark, mask, err == nil
	}
	return 0, 0, false
}

func hostManagers(c *Case) []candidate {
	manager := c.manager()
	out := []candidate{ofNode("another program also manages the interfaces: "+manager.Value, manager)}
	out[0].fixes = []int{1}
	if c.Ours && c.move.To != (evidence.Version{}) && c.move.To.Before(macsKept) {
		policy := c.linkPolicy()
		out = append(out, ofNode(fmt.Sprintf("udev changes the MAC addresses of new veths, which %s does not expect: MACAddressPolicy=%s", c.move.To, policy.Value), policy))
		out[1].fixes = []int{2}
	}
	return out
}

// moduleVLAN is the kernel module for VLAN devices, which branch ENIs need.
const moduleVLAN = "8021q"

func kernelLacks(c *Case) []candidate {
	old := c.kernelOld()
	unmounted := fact(c, c.R.Packages, "host.pkg", "bpffs", "mounted", func(p evidence.Packages) (any, State) {
		if p.BPFFS == nil {
			return nil, Unread
		}
		return map[bool]string{true: "mounted", false: "not mounted"}[*p.BPFFS], stateOf(!*p.BPFFS)
	})
	vlan := fact(c, c.R.Packages, "host.pkg", "modules", moduleVLAN, func(p evidence.Packages) (any, State) {
		if p.Modules == nil {
			return nil, Unread
		}
		return "missing: " + some(p.Modules), stateOf(slices.Contains(p.Modules, moduleVLAN))
	})
	return []candidate{
		ofNode("network policies need kernel 5.10, the node has "+old.Value, both(old, c.policies())),
		ofNode("network policies need bpffs, and /sys/fs/bpf is not mounted", both(unmounted, c.policies())),
		ofNode("security groups for pods need the kernel module "+moduleVLAN, both(vlan, c.podENI())),
	}
}

func metadataSilent(c *Case) []candidate {
	silent := fact(c, c.R.IMDS, "imds", "token, instance, enis", "ok", func(i evidence.IMDS) (any, State) {
		switch {
		case i.Token != "ok":
			return or(i.Failure, i.Token), Yes
		case i.Instance == "":
			return "no instance ID", Yes
		case len(i.ENIs) == 0:
			return "no MAC addresses", Yes
		}
		return i.Token, No
	})
	return []candidate{ofNode("the metadata service is not usable: "+silent.Value, silent)}
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
		ofNode(fmt.Sprintf("the new daemon sets the MTU of interfaces to %d: %s", c.Settings.ENIMTU, interfaces.Value), interfaces),
		ofNode(fmt.Sprintf("new pods get the MTU %d, those that run keep theirs: %s", c.Settings.PodMTU, pods.Value), pods),
	}
}

func maxPodsAbove(c *Case) []candidate {
	if c.Settings.IPv6 { // one prefix exceeds what any node's pods need
		return nil
	}
	above, n := c.maxPodsAbove(2, c.misfit)
	return []candidate{ofNode(fmt.Sprintf("max-pods is %d more than the node can ever address (%s)", n, c.whyFewer()), above)}
}

func pluginOther(c *Case) []candidate {
	other := fact(c, c.R.CNI, "host.cni", "aws-cni", "the file of the running image", func(n evidence.CNI) (any, State) {
		at := slices.IndexFunc(n.Bin, func(b evidence.CNIPlugin) bool { return b.Name == "aws-cni" })
		if at < 0 {
			return "not installed", No // migrate/cni-dir reports it
		}
		if b := n.Bin[at]; b.OfImage != nil {
			return map[bool]string{true: "the file of the running image", false: "another file"}[*b.OfImage], stateOf(!*b.OfImage)
		}
		// Without the image's file, the versions are compared.
		switch {
		case !c.R.DaemonSet.OK():
			return nil, Unread
		case c.R.DaemonSet.Content == nil:
			return "aws-node is not installed", No
		}
		image, known := evidence.ParseVersion(c.R.DaemonSet.Content.Images[containerNode])
		if n.Bin[at].Version == nil || !known {
			return "not known", No
		}
		v, ok := evidence.ParseVersion(*n.Bin[at].Version)
		return fmt.Sprintf("%s, image %s", v, image), stateOf(ok && v != image)
	})
	return []candidate{ofNode("the installed plugin is not that of aws-node: "+other.Value, other)}
}

func programsLeft(c *Case) []candidate {
	pinned := fact(c, c.R.BPFPins, "host.bpf", "pins", "none while network policies are off", func(pins []string) (any, State) {
		return some(pins), stateOf(len(pins) > 0)
	})
	return []candidate{ofNode("filters of an earlier policy agent are still pinned: "+pinned.Value, both(pinned, not(c.policies())))}
}
