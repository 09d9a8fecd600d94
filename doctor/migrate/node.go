package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/iam"
	"cnictl/daemon/lazy"
	"cnictl/daemon/resync"
	"cnictl/deploy/chart"
	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

func actionDenied(c *node) []result {
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
	// no daemon starts without these. Ours does without the other actions of iam.Start,
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
	lacks := func(names []string) fact {
		return on(c, c.R.IAM, "iam.sim", "actions", "all allowed", func(sim evidence.IAM) (any, state) {
			var out []string
			for _, name := range names {
				if sim.Actions[name] == "denied" {
					out = append(out, name)
				}
			}
			return causes.Some(out), stateOf(len(out) > 0)
		})
	}
	atStart := lacks(start)
	later := lacks(slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(start, name) }))
	elsewhere := lacks(slices.DeleteFunc(iam.Needed(further...), func(name string) bool { return slices.Contains(all, name) }))
	out := []result{
		ofNode("the new daemon needs "+atStart.Value, atStart),
		ofNode("the daemon starts, but cannot do all of its work without "+later.Value, later).As(catalogue.Warning),
		ofNode("pods need an interface in another subnet, and the daemon cannot make one without "+elsewhere.Value,
			causes.Both(elsewhere, c.PrimaryExcluded())).As(catalogue.Warning),
	}
	for i := range out {
		out[i] = out[i].WithFixes(fix)
	}
	return out
}

func credentialsChange(c *node) []result {
	const podIdentity, agent = "AWS_CONTAINER_CREDENTIALS_FULL_URI", "eks-pod-identity-agent"
	env := func(name, expected string, set bool) fact {
		return on(c, c.R.ContainerEnv, "host.env", "aws-node "+name, expected, func(by map[string]map[string]string) (any, state) {
			value, ok := by[evidence.ContainerNode][name]
			return cmp.Or(value, "not set"), stateOf(ok == set)
		})
	}
	absent := on(c, c.R.Pods, "k8s.pod", agent, "runs on the node", func([]evidence.KubePod) (any, state) {
		for _, p := range c.Here() {
			if p.Labels["app.kubernetes.io/name"] == agent || strings.HasPrefix(string(p.Pod), "kube-system/"+agent) {
				return p.Phase, stateOf(p.Phase != "Running")
			}
		}
		return "not on the node", yes
	})
	named := on(c, c.R.ServiceAccount, "k8s.sa", "eks.amazonaws.com/role-arn", "as the running pods use it",
		func(s evidence.ServiceAccount) (any, state) {
			role := s.Annotations["eks.amazonaws.com/role-arn"]
			return cmp.Or(role, "not set"), stateOf(role != "")
		})
	via := func(way string) fact {
		return on(c, c.R.Role, "iam.role", "via", "not "+way, func(r evidence.Role) (any, state) {
			return r.ARN + " by " + r.Via, stateOf(r.Via == way)
		})
	}
	associated := via(evidence.ViaPodIdentity)
	out := []result{
		ofNode("pods of aws-node ask the Pod Identity agent for credentials, which is not on the node",
			causes.Both(causes.Either(env(podIdentity, "not set, or the agent runs", true), associated), absent)),
		ofNode("the next pods use the role "+named.Value+", which those that run have never used",
			causes.Both(named, env("AWS_ROLE_ARN", "set", false), env(podIdentity, "set", false))).As(catalogue.Warning),
	}
	refused := on(c, c.R.Role, "iam.role", "trust", "lets the service account of aws-node assume the role",
		func(r evidence.Role) (any, state) {
			why := trustRefusal(r)
			return cmp.Or(why, "as it must be"), stateOf(why != "")
		})
	out = append(out, ofNode("the next pods cannot assume their role: "+refused.Value, causes.Both(causes.Either(named, associated), refused)))
	if !c.R.Role.OK() {
		return out
	}
	emptied := on(c, c.R.IAM, "iam.sim", "actions", "some allowed", func(sim evidence.IAM) (any, state) {
		for _, decision := range sim.Actions {
			if decision != "denied" {
				return "some allowed", no
			}
		}
		return sim.Role + " allows none", stateOf(len(sim.Actions) > 0)
	})
	return append(out, ofNode("nothing but the node role is set up for aws-node, and its policies are gone: "+emptied.Value,
		causes.Both(via(evidence.ViaNode), emptied)))
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
	ecrHost = lazy.Regexp(`^([^./]+)\.dkr[.-]ecr(?:-fips)?\.((?:[a-z]+-)+\d+)\.([^/]+)/`)
	// regionOfZone also takes local and Wavelength zones, such as us-west-2-lax-1a.
	regionOfZone = lazy.Regexp(`^(?:[a-z]+-)+\d+`)
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

func imagesUnreachable(c *node) []result {
	arch := on(c, c.R.Node, "k8s.node", "kubernetes.io/arch", "amd64 or arm64", func(n evidence.KubeNode) (any, state) {
		arch := n.Labels["kubernetes.io/arch"]
		return cmp.Or(arch, "not set"), stateOf(arch != "" && arch != "amd64" && arch != "arm64")
	})
	pulls := on(c, c.R.DaemonPods, "k8s.ds.pods", "images", "pulled", func(pods []evidence.DaemonPod) (any, state) {
		for _, p := range pods {
			for _, k := range p.Containers {
				if c.Is(p.Node) && slices.Contains(pullReasons, k.Reason) {
					return k.Name + ": " + k.Reason, yes
				}
			}
		}
		return "pulled", no
	})
	// Kubelet reports a secret that it cannot read, so the doctor needs no right to read secrets.
	secret := c.onDaemonSet("imagePullSecrets", "there", func(ds *evidence.DaemonSet) (any, state) {
		if len(ds.PullSecrets) == 0 {
			return "none", no
		}
		if !c.R.Events.OK() || !c.R.DaemonPods.OK() {
			return nil, unread
		}
		for _, e := range c.R.Events.Content {
			here := func(p evidence.DaemonPod) bool { return c.Is(p.Node) && string(p.Pod) == e.Name }
			if e.Reason == "FailedToRetrieveImagePullSecret" && slices.ContainsFunc(c.R.DaemonPods.Content, here) {
				return every(ds.PullSecrets), yes
			}
		}
		return every(ds.PullSecrets), no
	})
	foreign := c.registries("of the node's partition", func(own, region string) bool { return partition(own) != partition(region) })
	remote := c.registries("of the node's region",
		func(own, region string) bool { return own != region && partition(own) == partition(region) })
	unpublished := c.unpublished()
	scoped := ofNode
	if len(c.move.Images) == 0 {
		scoped = ofCluster
	}
	// Only a pull shows that platform, pull secret, registry and route are right.
	unpulled := c.unpulled()
	pulled := unpulled
	if unpulled.State == yes {
		pulled = c.Unread("k8s.node", "a pull of the new images", "it works", evidence.MissingPull)
	}
	out := []result{
		ofNode("there is no image for the architecture "+arch.Value, arch),
		ofNode("an image of aws-node cannot be pulled: "+pulls.Value, pulls),
		ofNode("kubelet cannot read a pull secret of aws-node: "+secret.Value, secret),
		ofNode("the registry of an image is in another partition, where the node's credentials are not valid: "+foreign.Value, foreign),
		ofNode("ECR does not have an image of this name: "+unpublished.Value, unpublished),
		ofNode("an image is pulled from another region, which a VPC endpoint for ECR does not reach: "+remote.Value, remote).As(catalogue.Info),
		scoped("not checked whether nodes can pull the new images: "+unpulled.Value, pulled),
	}
	last := &out[len(out)-1]
	last.Context = []fact{unpulled}
	for i := range out[:len(out)-1] {
		switch f := out[i].Decisive[0]; f.State {
		case yes: // findings are joined, and the last is the mildest
			out[i].Context = []fact{unpulled}
		case unread: // the check stays undecided
			last.Context = append(last.Context, f)
		}
	}
	return out
}

// registries states something about the regions of ECR from which the node pulls: the new images
// if they are named, else those of the DaemonSet.
func (c *node) registries(expected string, wrong func(own, region string) bool) fact {
	judge := func(images map[string]string) (any, state) {
		var out []string
		for _, name := range slices.Sorted(maps.Keys(images)) {
			host := ecrHost().FindStringSubmatch(images[name])
			if host == nil {
				continue
			}
			own := regionOfZone().FindString(c.R.Node.Content.Zone)
			if own == "" {
				return nil, unread
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
	return c.onDaemonSet("registries of the images", expected, func(ds *evidence.DaemonSet) (any, state) { return judge(ds.Images) })
}

// unpublished states that new images have names that ECR cannot have.
func (c *node) unpublished() fact {
	return c.onNewImages("names of the new images", "AWS's account and domain of the region", func(images map[string]string) (any, state) {
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
func (c *node) unpulled() fact {
	return c.onNewImages("new images", "on the node", func(images map[string]string) (any, state) {
		switch {
		case len(c.move.Images) == 0:
			return "--images does not name them", yes
		case len(images) == 0:
			return "on the node", no
		}
		return "the node reports none of " + strings.Join(slices.Sorted(maps.Keys(images)), ", "), yes
	})
}

// onNewImages states something about the new images that the node does not report, by reference. A
// node without aws-node needs none.
func (c *node) onNewImages(path, expected string, judge func(map[string]string) (any, state)) fact {
	return on(c, c.R.Node, "k8s.node", path, expected, func(n evidence.KubeNode) (any, state) {
		images := map[string]string{}
		for _, image := range c.move.Images {
			reported := image
			if name, digest, pinned := strings.Cut(image, "@"); pinned { // kubelet reports no tag beside a digest
				reported = strings.TrimSuffix(name, ":"+tag(name)) + "@" + digest
			}
			hidden := reported // as a bundle has it
			if host := ecrHost().FindStringSubmatch(reported); host != nil {
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
	host := ecrHost().FindStringSubmatch(image)
	if host == nil {
		return ""
	}
	account, region, domain := host[1], host[2], host[3]
	of := chart.Registries()
	own, known := of[region]
	aws := slices.ContainsFunc(slices.Collect(maps.Values(of)), func(r chart.Registry) bool { return r.Account == account })
	switch {
	case aws && strings.HasPrefix(evidence.ImageName(image), evidence.ImageOurs):
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
func subnetsShort(nodes []*node) []result {
	const path, expected = "free addresses and /28 blocks against what the warm pools lack", "no fewer"
	type want struct {
		causes.WarmLack
		nodes []string
		at    *node
	}
	wants, seen := map[string]want{}, false
	for _, c := range nodes {
		lack, known := c.WarmLack()
		if seen = seen || known; lack.Addresses <= 0 {
			continue
		}
		w := wants[lack.Subnet]
		w.Addresses, w.Blocks, w.nodes, w.at = w.Addresses+lack.Addresses, w.Blocks+lack.Blocks, append(w.nodes, c.Name), c
		wants[lack.Subnet] = w
	}
	first := nodes[0]
	read := slices.ContainsFunc(nodes, func(c *node) bool {
		return slices.ContainsFunc(c.R.Subnets.Content, func(s evidence.Subnet) bool { return s.Available != nil })
	})
	if !read || !seen {
		id, missing := "ec2.subnet", first.R.Subnets.Missing
		if read {
			id, missing = "intro.enis", first.R.ENIs.Missing
		}
		return []result{ofCluster("", first.Unread(id, path, expected, cmp.Or(missing, "no subnet is known")))}
	}
	missing := ""                 // why blocks cannot be counted
	var short, of, texts []string // findings of one code are joined, so one names every subnet
	for _, id := range slices.Sorted(maps.Keys(wants)) {
		w := wants[id]
		var s evidence.Subnet
		at := slices.IndexFunc(w.at.R.Subnets.Content, func(s evidence.Subnet) bool { return s.ID == id })
		if at >= 0 {
			s = w.at.R.Subnets.Content[at]
		}
		text, pools := "", causes.Count(len(w.nodes), "node")
		switch {
		case id == "":
			text = fmt.Sprintf("%s may use no subnet: their own is excluded by its tag %s, and no other of the zone has it",
				pools, resync.TagSubnetRole)
		case s.Available == nil:
			continue
		case *s.Available < w.Addresses:
			text = fmt.Sprintf("%s has %d free, and %d are needed to fill the warm pools of %s", id, *s.Available, w.Addresses, pools)
		case w.Blocks > 0 && !w.at.R.Interfaces.OK():
			missing = w.at.R.Interfaces.Missing
			continue
		case w.at.FreeBlocks(s) < w.Blocks:
			text = fmt.Sprintf("%s has %d free, but at most %s, and the warm pools of %s need %s", id, *s.Available,
				causes.Count(w.at.FreeBlocks(s), "whole /28 block"), pools, causes.Count(w.Blocks, "block"))
		default:
			continue
		}
		if of, texts = append(of, w.nodes...), append(texts, text); id != "" {
			short = append(short, id)
		}
	}
	switch {
	case len(texts) > 0:
		lacking := first.Known("ec2.subnet", path, expected, strings.Join(texts, "; "), true)
		found := ofCluster("subnets have too few free addresses: "+lacking.Value, lacking)
		found.Scope.Subnet, found.Nodes = strings.Join(short, ", "), of
		return []result{found}
	case missing != "":
		return []result{ofCluster("", first.Unread("ec2.eni", path, expected, missing))}
	}
	return []result{ofCluster("", first.Known("ec2.subnet", path, expected, "enough in each", false))}
}

func interfacesAdopted(c *node) []result {
	foreign := on(c, c.R.Interfaces, "ec2.eni", "tags and descriptions", "the daemon's, or "+resync.TagNoManage,
		func([]evidence.Interface) (any, state) {
			attached, known := c.Attached()
			if !known {
				return nil, unread
			}
			var out []string
			for _, e := range attached {
				// An adopted interface has the daemon's tag, and keeps the description of its maker.
				adopted := e.Tags[resync.TagInstanceID] != "" || c.Settings.ManageUntagged || !c.Knows("MANAGE_UNTAGGED_ENI")
				if !e.IsPrimary() && !strings.HasPrefix(e.Description, resync.DescriptionPrefix) && e.Type == "interface" &&
					e.Tags[resync.TagNoManage] != "true" && adopted {
					out = append(out, fmt.Sprintf("%s (%s)", e.ID, cmp.Or(e.Description, "no description")))
				}
			}
			return causes.Some(out), stateOf(len(out) > 0)
		})
	return []result{ofNode("a starting daemon takes these interfaces for its own: "+foreign.Value, foreign)}
}

// runDirectory is the host directory that daemon, plugin and policy agent share.
var runDirectory = path.Dir(cniwire.Socket)

func stateLost(c *node) []result {
	lost := c.CheckpointWrong()
	absent := c.R.Checkpoint.Missing == evidence.MissingAbsent
	if k := c.R.Checkpoint.Content.Error; absent || k != nil {
		lost = c.Known("ckpt", "content", lost.Expected, "it does not exist", true)
		if k != nil {
			lost.Value = *k
		}
	}
	full := c.Unwritable()
	return []result{
		ofNode("the new daemon cannot restore "+runDirectory+"/ipam.json: "+lost.Value, lost),
		ofNode("nothing can be written to "+runDirectory+": "+full.Value, full),
	}
}

func statePods(c *node) []result {
	const late = 2 * time.Minute // files and pods are not read at the same moment
	held := c.Saved()
	without := on(c, c.R.Checkpoint, "ckpt", "addresses of running pods", "all in the file", func(evidence.Checkpoint) (any, state) {
		if !c.R.Pods.OK() {
			return nil, unread
		}
		var out []string
		for _, p := range c.Pooled() {
			if p.Phase == "Running" && len(p.IPs) > 0 && !held[p.IPs[0]] && p.Annotations["vpc.amazonaws.com/pod-eni"] == "" &&
				c.Now.Sub(p.StartedAt) > late {
				out = append(out, fmt.Sprintf("%s %s", p.Pod, p.IPs[0]))
			}
		}
		return causes.Some(out), stateOf(len(out) > 0)
	})
	left := on(c, c.R.Links, "kern.link", "links of the pods in the file", "all there", func([]evidence.Link) (any, state) {
		if !c.R.Checkpoint.OK() {
			return nil, unread
		}
		var out []string
		for _, a := range c.R.Checkpoint.Content.Allocations {
			if !c.HasVeth(a.Pod) && c.Now.Sub(a.At) > late {
				out = append(out, fmt.Sprintf("%s %s", a.Pod, a.Address))
			}
		}
		return causes.Some(out), stateOf(len(out) > 0)
	})
	return []result{
		ofNode("running pods are not in the checkpoint, so their addresses may be assigned again: "+without.Value, without),
		ofNode("the checkpoint lists pods that are not on the node: "+left.Value, left).As(catalogue.Warning),
	}
}

func stateRules(c *node) []result {
	lacks, wrong := c.RulesLacking(), c.RulesWrong()
	return []result{
		ofNode("the new daemon repairs what running pods lack: "+lacks.Value, lacks),
		ofNode("the new daemon removes rules of other addresses: "+wrong.Value, wrong),
	}
}

func portsHeldByOthers(c *node) []result {
	taken := c.PortTaken(cniwire.Socket, cniwire.GRPCSocket, cniwire.PolicySocket)
	return []result{ofNode("another process holds a port or a socket of aws-node: "+taken.Value, taken)}
}

func cniDirectories(c *node) []result {
	conf := on(c, c.R.CNI, "host.cni", "conf, bin", "10-aws.conflist first, all of its plugins there", func(n evidence.CNI) (any, state) {
		text := causes.CNIProblem(n)
		return cmp.Or(text, "as installed"), stateOf(text != "")
	})
	disk := on(c, c.R.Resources, "host.res", "disks", "space left, writable", func(r evidence.Resources) (any, state) {
		for _, d := range r.Disks {
			at := strings.TrimSuffix(d.Path, "/")
			if !strings.HasPrefix("/opt/cni/bin", at) && !strings.HasPrefix("/etc/cni/net.d", at) {
				continue
			}
			if why := causes.DiskRefuses(d); why != "" {
				return why, yes
			}
		}
		return "writable", no
	})
	return []result{
		ofNode("the CNI configuration of the node cannot be used: "+conf.Value, conf),
		ofNode("plugins and configuration cannot be installed: "+disk.Value, disk),
	}
}

func chainsElsewhere(c *node) []result {
	left, marks := c.chainsLeft(), c.marksOfOthers()
	return []result{
		ofNode("the CNI's rules in one iptables backend stay there: "+left.Value, left),
		ofNode("others use the mark of the CNI's connections: "+marks.Value, marks),
	}
}

// chainsLeft states that the CNI has chains in the backend that a daemon does not use: not
// kube-proxy's or, if that is unclear, not that of the host's iptables.
func (c *node) chainsLeft() fact {
	return on(c, c.R.IPTables, "kern.ipt", "chains AWS-*", "in the backend of kube-proxy alone", func(k evidence.IPTables) (any, state) {
		kubeNFT, kubeLegacy := causes.ChainsIn(k, "KUBE-")
		if kubeNFT == kubeLegacy {
			kubeNFT = k.Mode == "nft"
		}
		nft, legacy := causes.ChainsIn(k, "AWS-")
		switch {
		case kubeNFT && legacy:
			return "AWS-* in legacy, the daemon uses nft", yes
		case !kubeNFT && nft:
			return "AWS-* in nft, the daemon uses legacy", yes
		}
		return "none in the other one", no
	})
}

// marksOfOthers states that rules other than the CNI's write or match the bits of
// AWS_VPC_K8S_CNI_CONNMARK. A firewall rule that sets a whole mark writes them too.
func (c *node) marksOfOthers() fact {
	ours := uint64(c.Settings.Connmark)
	expected := fmt.Sprintf("%#x is the CNI's alone", ours)
	if !c.Knows("AWS_VPC_K8S_CNI_CONNMARK") {
		return c.Unread("kern.ipt", "marks", expected, "the settings were not read")
	}
	marks := on(c, c.R.IPTables, "kern.ipt", "marks", expected, func(evidence.IPTables) (any, state) {
		for _, rule := range c.IPTablesRules() {
			if mark, mask, ok := markSet(rule); ok && (mark|mask)&ours != 0 && !strings.Contains(rule, "AWS") {
				return rule, yes
			}
		}
		return "none of others", no
	})
	routed := on(c, c.R.Rules, "kern.rule", "fwmark", expected, func([]evidence.Rule) (any, state) {
		for _, r := range c.PolicyRules() {
			if uint64(r.Mark&r.Mask)&ours != 0 && (r.Priority != netnames.RuleMark || r.Table != netnames.MainTable) {
				return fmt.Sprintf("rule %q", r), yes
			}
		}
		return "none of others", no
	})
	return causes.Either(marks, routed)
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

func hostManagers(c *node) []result {
	manager := c.NetworkManager()
	out := []result{ofNode("another program also manages the interfaces: "+manager.Value, manager).WithFixes(1)}
	if c.Ours && c.move.To != (evidence.Version{}) && c.move.To.Before(causes.MACsKept) {
		policy := c.LinkPolicy()
		out = append(out, ofNode(fmt.Sprintf("udev changes the MAC addresses of new veths, which %s does not expect: MACAddressPolicy=%s",
			c.move.To, policy.Value), policy).WithFixes(2))
	}
	return out
}

// causes.ModuleVLAN is the kernel module for VLAN devices, which branch ENIs need.
func kernelLacks(c *node) []result {
	old := c.KernelOld()
	unmounted := on(c, c.R.Packages, "host.pkg", "bpffs", "mounted", func(p evidence.Packages) (any, state) {
		if p.BPFFS == nil {
			return nil, unread
		}
		return map[bool]string{true: "mounted", false: "not mounted"}[*p.BPFFS], stateOf(!*p.BPFFS)
	})
	vlan := on(c, c.R.Packages, "host.pkg", "modules", causes.ModuleVLAN, func(p evidence.Packages) (any, state) {
		if p.Modules == nil {
			return nil, unread
		}
		return "missing: " + causes.Some(p.Modules), stateOf(slices.Contains(p.Modules, causes.ModuleVLAN))
	})
	return []result{
		ofNode("network policies need kernel 5.10, the node has "+old.Value, causes.Both(old, c.policies())),
		ofNode("network policies need bpffs, and /sys/fs/bpf is not mounted", causes.Both(unmounted, c.policies())),
		ofNode("security groups for pods need the kernel module "+causes.ModuleVLAN, causes.Both(vlan, c.PodENI())),
	}
}

func metadataSilent(c *node) []result {
	silent := on(c, c.R.IMDS, "imds", "token, instance, enis", "ok", func(i evidence.IMDS) (any, state) {
		switch {
		case i.Token != "ok":
			return cmp.Or(i.Failure, i.Token), yes
		case i.Instance == "":
			return "no instance ID", yes
		case len(i.ENIs) == 0:
			return "no MAC addresses", yes
		}
		return i.Token, no
	})
	return []result{ofNode("the metadata service is not usable: "+silent.Value, silent)}
}

func apiPath(c *node) []result {
	unreachable := on(c, c.R.Probes, "probe", "the API server from the host", "ok", func(all []evidence.Probe) (any, state) {
		state, text := unread, ""
		for _, p := range all {
			if p.From != "host" || c.IsEC2(p.Target) || p.Kind == "icmp" || p.Kind == "dns" {
				continue
			}
			if p.Result == "ok" {
				return p.Target + ": ok", no
			}
			state, text = yes, p.Target+": "+p.Result
		}
		return text, state
	})
	return []result{ofNode("the node does not reach the API server, which the settings need at the start: "+unreachable.Value+c.ProxyText(),
		causes.Both(c.NeedsAPI(), unreachable))}
}

func linksMTU(c *node) []result {
	other := func(path, name string, want int, of func(evidence.Link) bool) fact {
		return on(c, c.R.Links, "kern.link", path, name, func(all []evidence.Link) (any, state) {
			if !c.Knows(name) {
				return nil, unread
			}
			var out []string
			for _, l := range all {
				if of(l) && l.MTU != nil && *l.MTU != want {
					out = append(out, fmt.Sprintf("%s has %d", cmp.Or(string(l.Pod), l.Name), *l.MTU))
				}
			}
			return causes.Some(out), stateOf(len(out) > 0)
		})
	}
	interfaces := other("MTU of interfaces", "AWS_VPC_ENI_MTU", c.Settings.ENIMTU,
		func(l evidence.Link) bool { return l.ENI != "" && l.Kind != "veth" })
	pods := other("MTU of pods", "POD_MTU", c.Settings.PodMTU, func(l evidence.Link) bool {
		return l.Kind == "veth" && (l.Pod != "" || strings.HasPrefix(l.Name, c.Settings.VethPrefix))
	})
	return []result{
		ofNode(fmt.Sprintf("the new daemon sets the MTU of interfaces to %d: %s", c.Settings.ENIMTU, interfaces.Value), interfaces),
		ofNode(fmt.Sprintf("new pods get the MTU %d, those that run keep theirs: %s", c.Settings.PodMTU, pods.Value), pods),
	}
}

func maxPodsAbove(c *node) []result {
	if c.Settings.IPv6 { // one prefix exceeds what any node's pods need
		return nil
	}
	above, n, why := c.MaxPodsAbove()
	return []result{ofNode(fmt.Sprintf("max-pods is %d more than the node can ever address (%s)", n, why), above)}
}

func pluginOther(c *node) []result {
	other := on(c, c.R.CNI, "host.cni", "aws-cni", "the file of the running image", func(n evidence.CNI) (any, state) {
		at := slices.IndexFunc(n.Bin, func(b evidence.CNIPlugin) bool { return b.Name == "aws-cni" })
		if at < 0 {
			return "not installed", no // migrate/cni-dir reports it
		}
		if b := n.Bin[at]; b.OfImage != nil {
			return map[bool]string{true: "the file of the running image", false: "another file"}[*b.OfImage], stateOf(!*b.OfImage)
		}
		// Without the image's file, the versions are compared.
		switch {
		case !c.R.DaemonSet.OK():
			return nil, unread
		case c.R.DaemonSet.Content == nil:
			return "aws-node is not installed", no
		}
		image, known := evidence.ParseVersion(c.R.DaemonSet.Content.Images[evidence.ContainerNode])
		if n.Bin[at].Version == nil || !known {
			return "not known", no
		}
		v, ok := evidence.ParseVersion(*n.Bin[at].Version)
		return fmt.Sprintf("%s, image %s", v, image), stateOf(ok && v != image)
	})
	return []result{ofNode("the installed plugin is not that of aws-node: "+other.Value, other)}
}

func programsLeft(c *node) []result {
	pinned := on(c, c.R.BPFPins, "host.bpf", "pins", "none while network policies are off", func(pins []string) (any, state) {
		return causes.Some(pins), stateOf(len(pins) > 0)
	})
	return []result{ofNode("filters of an earlier policy agent are still pinned: "+pinned.Value,
		causes.Both(pinned, causes.Not(c.policies())))}
}
