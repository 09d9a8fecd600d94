package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"cnictl/daemon/config"
	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// onDaemonSet states something about the DaemonSet. It is false if the DaemonSet does not exist.
func (c *node) onDaemonSet(path, expected string, judge func(*evidence.DaemonSet) (any, state)) fact {
	return on(c, c.R.DaemonSet, "k8s.ds", path, expected, func(ds *evidence.DaemonSet) (any, state) {
		if ds == nil {
			return "aws-node is not installed", no
		}
		return judge(ds)
	})
}

// onObject states something about an object's metadata (KIND/NAME). It is false if there is no
// such object.
func (c *node) onObject(name, path, expected string, judge func(evidence.KubeObject) (any, state)) fact {
	return on(c, c.R.Objects, "k8s.objects", name+" "+path, expected, func(all []evidence.KubeObject) (any, state) {
		if at := slices.IndexFunc(all, func(o evidence.KubeObject) bool { return o.Name == name }); at >= 0 {
			return judge(all[at])
		}
		return "it does not exist", no
	})
}

const (
	objectDaemonSet = "DaemonSet/aws-node"
	helmRelease     = "meta.helm.sh/release-name"
	releaseName     = "aws-vpc-cni"
)

// appliedByEKS states that EKS has applied the DaemonSet.
func (c *node) appliedByEKS() fact {
	return c.onObject(objectDaemonSet, "field managers", "none is eks", func(o evidence.KubeObject) (any, state) {
		for _, m := range o.Managers {
			if m.Name == "eks" && m.Operation == "Apply" {
				return "eks applied it", yes
			}
		}
		return "not eks", no
	})
}

// onAddOn states something about the managed add-on. If EKS has applied nothing, there is none.
func (c *node) onAddOn(path, expected string, judge func(*evidence.AddOn) (any, state)) fact {
	if applied := c.appliedByEKS(); !c.R.AddOn.OK() && applied.State == no {
		return applied
	}
	return on(c, c.R.AddOn, "eks.addon", path, expected, func(a *evidence.AddOn) (any, state) {
		if a == nil {
			return "no add-on", no
		}
		return judge(a)
	})
}

func ownedByAddOn(c *node) []result {
	owner := c.onAddOn("status", "no add-on", func(a *evidence.AddOn) (any, state) { return a.Version + " " + a.Status, yes })
	if owner.State == unread {
		owner = c.appliedByEKS() // a deleted add-on leaves its manager behind
	}
	return []result{ofCluster("EKS manages aws-node as the add-on vpc-cni and will overwrite it: "+owner.Value, owner)}
}

// ownerMarks are prefixes of the labels and annotations by which tools recognise their objects.
var ownerMarks = []struct{ key, tool string }{
	{"argocd.argoproj.io/", "Argo CD"},
	{"helm.toolkit.fluxcd.io/", "Flux"},
	{"kustomize.toolkit.fluxcd.io/", "Flux"},
	{"addon.kops.k8s.io/", "kOps"},
	{"addons.cluster.x-k8s.io/", "Cluster API"},
	{"cluster.x-k8s.io/", "Cluster API"},
}

// ownerManagers are the field managers of tools that may leave no mark.
var ownerManagers = map[string]string{
	"argocd-application-controller": "Argo CD",
	"argocd-controller":             "Argo CD",
	"helm-controller":               "Flux",
	"kustomize-controller":          "Flux",
}

func ownedByOther(c *node) []result {
	owner := c.onObject(objectDaemonSet, "labels, annotations, field managers", "of no other tool", func(o evidence.KubeObject) (any, state) {
		if release := o.Annotations[helmRelease]; release != "" && release != releaseName {
			return "Helm release " + release, yes
		}
		if chart := o.Labels["helm.sh/chart"]; o.Annotations[helmRelease] != "" && chart != "" && !strings.HasPrefix(chart, releaseName+"-") {
			return "Helm chart " + chart, yes
		}
		for _, m := range ownerMarks {
			for _, key := range slices.Concat(slices.Sorted(maps.Keys(o.Labels)), slices.Sorted(maps.Keys(o.Annotations))) {
				if strings.HasPrefix(key, m.key) {
					return m.tool + ": " + key, yes
				}
			}
		}
		for _, m := range o.Managers {
			if tool := ownerManagers[m.Name]; tool != "" {
				return tool + ": field manager " + m.Name, yes
			}
		}
		return "none", no
	})
	return []result{ofCluster("another tool owns aws-node and would undo the move: "+owner.Value, owner)}
}

// The selectors that charts and manifests render.
var (
	originalSelector = map[string]string{"k8s-app": "aws-node"}
	chartSelector    = map[string]string{"app.kubernetes.io/name": "aws-node", "app.kubernetes.io/instance": releaseName}
)

func otherSelector(c *node) []result {
	is := func(want map[string]string, expected string) fact {
		return c.onDaemonSet("selector", expected, func(ds *evidence.DaemonSet) (any, state) {
			if len(ds.Selector) == 0 {
				return nil, unread
			}
			known := maps.Equal(ds.Selector, originalSelector) || maps.Equal(ds.Selector, chartSelector)
			return labelsText(ds.Selector), stateOf(want == nil && !known || maps.Equal(ds.Selector, want))
		})
	}
	other := is(nil, "one that the chart or the manifest renders")
	return []result{
		ofCluster("neither chart nor manifest renders the selector of aws-node, which cannot be changed: "+other.Value, other),
		ofCluster("the selector is that of a chart installation: use the chart with the same release name and without originalMatchLabels; a manifest cannot be applied over it",
			is(chartSelector, "k8s-app=aws-node")).As(catalogue.Warning),
		ofCluster("the selector is k8s-app=aws-node: with the chart, set originalMatchLabels=true",
			is(originalSelector, "as the chart has it")).As(catalogue.Info),
	}
}

func labelsText(labels map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, name+"="+labels[name])
	}
	return strings.Join(out, ",")
}

// adopted are the chart's objects that may exist in a namespace without a release.
var adopted = []string{objectDaemonSet, "ServiceAccount/aws-node", "ClusterRole/aws-node", "ClusterRoleBinding/aws-node",
	"ConfigMap/amazon-vpc-cni", "ConfigMap/aws-node"}

// unmarked compares the marks with the release as which the chart will be installed, as Helm does.
func unmarked(c *node) []result {
	const space, expected = "kube-system", releaseName + " in kube-system, or the object does not exist"
	marks := on(c, c.R.Objects, "k8s.objects", "annotations "+helmRelease, expected, func(all []evidence.KubeObject) (any, state) {
		var refused []string
		for _, o := range all {
			release, in := o.Annotations[helmRelease], o.Annotations["meta.helm.sh/release-namespace"]
			switch {
			case !slices.Contains(adopted, o.Name) || release == releaseName && in == space && o.Labels["app.kubernetes.io/managed-by"] == "Helm":
			case release != "" && in != "" && (release != releaseName || in != space):
				refused = append(refused, fmt.Sprintf("%s (of release %s in %s)", o.Name, release, in))
			case release != "" && release != releaseName:
				refused = append(refused, fmt.Sprintf("%s (of release %s)", o.Name, release))
			default:
				refused = append(refused, o.Name)
			}
		}
		return causes.Some(refused), stateOf(len(refused) > 0)
	})
	return []result{ofCluster(fmt.Sprintf("Helm refuses to adopt %s: annotate and label them for release %s in %s, or use kubectl",
		marks.Value, releaseName, space), marks)}
}

func crdOwned(c *node) []result {
	owned := c.onObject("CustomResourceDefinition/eniconfigs.crd.k8s.amazonaws.com", "annotations",
		"of no Helm release, or helm.sh/resource-policy=keep", func(o evidence.KubeObject) (any, state) {
			release, kept := o.Annotations[helmRelease], o.Annotations["helm.sh/resource-policy"] == "keep"
			return cmp.Or(release, "no release"), stateOf(release != "" && !kept)
		})
	return []result{ofCluster("an upgrade of the Helm release "+owned.Value+" deletes the ENIConfig CRD and every ENIConfig", owned)}
}

func withoutState(nodes []*node) []result {
	var facts []fact
	var release evidence.Version
	for _, c := range nodes {
		f := c.Before(evidence.Version{1, 12})
		if facts = append(facts, f); f.State == yes {
			release = c.Release
		}
	}
	const effect = "%s keeps no ipam.json, so the new daemon does not know which addresses pods hold"
	return []result{ofCluster(fmt.Sprintf(effect, release), causes.Either(facts...))}
}

func stepTooLarge(c *node) []result {
	step := c.onAddOn("version", "at most one minor release from the next", func(a *evidence.AddOn) (any, state) {
		if c.move.To == (evidence.Version{}) {
			return "no release to go to was named", no
		}
		v, ok := evidence.ParseVersion(a.Version)
		if !ok {
			return nil, unread
		}
		minors := v[1] - c.move.To[1]
		return fmt.Sprintf("%s, to %s", v, c.move.To), stateOf(v[0] != c.move.To[0] || minors > 1 || minors < -1)
	})
	return []result{ofCluster("EKS refuses to update the add-on by more than one minor release: "+step.Value, step)}
}

// tag returns the tag of an image, empty if it has none.
func tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	return tag
}

func imagesMixed(c *node) []result {
	tags := c.onDaemonSet("tags of the images, VPC_CNI_VERSION", "the same", func(ds *evidence.DaemonSet) (any, state) {
		main := tag(ds.Images[evidence.ContainerNode])
		same := func(other string) bool {
			a, known := evidence.ParseVersion(main)
			b, ok := evidence.ParseVersion(other)
			return other == "" || main == "" || other == main || known && ok && a == b
		}
		if other := tag(ds.Images[evidence.ContainerInit]); !same(other) {
			return fmt.Sprintf("%s has %s, %s has %s", evidence.ContainerNode, main, evidence.ContainerInit, other), yes
		}
		if declared := ds.Env[evidence.ContainerNode]["VPC_CNI_VERSION"]; !same(declared) {
			return fmt.Sprintf("%s has %s, VPC_CNI_VERSION is %s", evidence.ContainerNode, main, declared), yes
		}
		return main, no
	})
	agent := c.Skewed(c.pairAfter())
	return []result{
		ofCluster("the daemon and the policy agent are incompatible: "+agent.Value, agent),
		ofCluster("the parts of aws-node are from different releases: "+tags.Value, tags).As(catalogue.Warning),
	}
}

// pairAfter returns the daemon and the policy agent that run after the move, the zero version for
// an unknown one. Without the names of the new images it returns those that run now: a chart or
// manifest brings the agent of its release.
func (c *node) pairAfter() (ours bool, release evidence.Version, agent *evidence.Version) {
	ours, release, agent = c.Ours, c.Release, c.Agent
	if len(c.move.Images) == 0 {
		return ours, release, agent
	}
	if ours, release = !c.Ours, (evidence.Version{}); c.move.To != (evidence.Version{}) { // a mirror may name the image otherwise
		ours, release = false, c.move.To
	}
	for _, image := range c.move.Images {
		v, known := evidence.ParseVersion(image)
		switch evidence.ImageName(image) {
		case evidence.ImageOurs:
			ours = true
		case evidence.ImageUpstream:
			if ours = false; known || c.move.To == (evidence.Version{}) {
				release = v
			}
		case evidence.ImageAgent:
			agent = &v
		}
	}
	return ours, release, agent
}

func probesElsewhere(c *node) []result {
	where := "ipamd.sock"
	if c.Ours && c.move.To != (evidence.Version{}) && c.move.To.Before(causes.OnSocket) {
		where = ":50051"
	}
	elsewhere := c.onDaemonSet("probes", "of "+where, func(ds *evidence.DaemonSet) (any, state) {
		probes := strings.Join(slices.Concat(ds.Liveness.Command, ds.Readiness.Command), " ")
		for _, address := range []string{"ipamd.sock", ":50051"} {
			if address != where && strings.Contains(probes, address) {
				return address, yes
			}
		}
		return "of " + where, no
	})
	return []result{ofCluster(fmt.Sprintf("the probes dial %s, but the new daemon serves %s: the migration must replace the probes too",
		elsewhere.Value, where), elsewhere)}
}

// envOf looks up variables of a container in the DaemonSet, as the next pods get them.
func envOf(ds *evidence.DaemonSet, container string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := ds.Env[container][name]
		return value, ok
	}
}

func envUnknown(c *node) []result {
	wrong := c.onDaemonSet("env of aws-node", "known variables with values that parse, each once", func(ds *evidence.DaemonSet) (any, state) {
		var out []string
		for _, name := range slices.Sorted(maps.Keys(ds.Env[evidence.ContainerNode])) {
			at := slices.IndexFunc(config.Table(), func(r config.Row) bool { return r.Name == name })
			switch {
			case at < 0 && !strings.HasPrefix(name, "KUBERNETES_"):
				out = append(out, name+" is unknown")
			case at >= 0 && c.Ours && config.Table()[at].Since == "ours":
				out = append(out, name+" is unknown to upstream")
			}
		}
		settings, problems := config.Load(envOf(ds, evidence.ContainerNode))
		_, ignored := c.FaultsOf(settings, problems)
		for _, p := range ignored {
			out = append(out, p.String())
		}
		for _, name := range ds.DuplicateEnv {
			out = append(out, name+" is there twice")
		}
		return causes.Some(out), stateOf(len(out) > 0)
	})
	return []result{ofCluster("variables would be ignored or misread: "+wrong.Value, wrong)}
}

// envDrifted compares the variables with their declarations: the manifest of kubectl apply and
// the add-on's configuration. A Helm release keeps its values in a secret, so only the managers
// of the fields are known.
func envDrifted(c *node) []result {
	var live map[string]map[string]string
	if ds := c.R.DaemonSet.Content; ds != nil {
		live = ds.Env
	}
	applied := c.onDaemonSet("last-applied-configuration", "as in the DaemonSet", func(ds *evidence.DaemonSet) (any, state) {
		if !c.R.Objects.OK() {
			return nil, unread
		}
		var out []string
		declared := c.manifest()
		for _, container := range slices.Sorted(maps.Keys(declared)) {
			names := slices.Sorted(maps.Keys(declared[container]))
			for _, name := range slices.Sorted(maps.Keys(live[container])) {
				if _, known := declared[container][name]; !known {
					names = append(names, name)
				}
			}
			out = append(out, drift(container, names, live[container], declared[container])...)
		}
		return every(out), stateOf(len(out) > 0)
	})
	configured := c.onAddOn("configurationValues", "as in the DaemonSet", func(a *evidence.AddOn) (any, state) {
		if live == nil {
			return nil, unread
		}
		out := drift(evidence.ContainerNode, slices.Sorted(maps.Keys(a.Env)), live[evidence.ContainerNode], a.Env)
		return every(out), stateOf(len(out) > 0)
	})
	byHand := c.onObject(objectDaemonSet, "managers of variables", "none that people run", func(o evidence.KubeObject) (any, state) {
		var out []string
		add := func(m evidence.Manager, container, name string) {
			text := variable(container, name)
			if value, ok := live[container][name]; ok {
				text += " is " + value
			}
			out = append(out, text+" by "+m.Name)
		}
		for _, m := range o.Managers {
			if !ofPeople(m) || c.manifest() != nil { // compared with the manifest
				continue
			}
			for _, name := range m.Env {
				if _, ok := c.addOnEnv()[name]; !ok {
					add(m, evidence.ContainerNode, name)
				}
			}
			for _, name := range m.InitEnv {
				add(m, evidence.ContainerInit, name)
			}
		}
		return every(out), stateOf(len(out) > 0)
	})
	var differ []string // findings of one code are joined, so each names all variables
	facts := []fact{applied, configured, byHand}
	for _, f := range facts {
		if f.State == yes {
			differ = append(differ, f.Value)
		}
	}
	var out []result
	for _, f := range facts {
		out = append(out, ofCluster("variables differ from what was declared, and the move sets them back: "+strings.Join(differ, "; "), f))
	}
	return out
}

// ofPeople reports whether a manager is a program that people use to change existing objects.
func ofPeople(m evidence.Manager) bool {
	made := []string{"kubectl-create", "kubectl-client-side-apply", "kubectl-last-applied"} // from a manifest
	return strings.HasPrefix(m.Name, "kubectl-") && !slices.Contains(made, m.Name) || m.Name == "k9s"
}

// manifest returns the variables that kubectl apply declared, by container. It is nil if there
// are none, or if another tool has taken over the DaemonSet, which leaves the annotation behind.
func (c *node) manifest() map[string]map[string]string {
	tookOver := func(o evidence.KubeObject) bool {
		return o.Name == objectDaemonSet && (o.Annotations[helmRelease] != "" || slices.ContainsFunc(o.Managers, func(m evidence.Manager) bool {
			return m.Operation == "Apply" && m.Name != "kubectl"
		}))
	}
	if ds := c.R.DaemonSet.Content; ds != nil && !slices.ContainsFunc(c.R.Objects.Content, tookOver) {
		return ds.Applied
	}
	return nil
}

// addOnEnv returns the variables of the add-on's configuration.
func (c *node) addOnEnv() map[string]string {
	if a := c.R.AddOn.Content; a != nil {
		return a.Env
	}
	return nil
}

// drift returns those of the named variables whose value differs from the declared one.
func drift(container string, names []string, live, declared map[string]string) (out []string) {
	value := func(of map[string]string, name string) string {
		if v, ok := of[name]; ok {
			return cmp.Or(v, "empty")
		}
		return "not set"
	}
	for _, name := range names {
		if live[name] != declared[name] {
			out = append(out, fmt.Sprintf("%s is %s, declared %s", variable(container, name), value(live, name), value(declared, name)))
		}
	}
	return out
}

// variable returns the name of a variable, after its container unless that is aws-node.
func variable(container, name string) string {
	if container == evidence.ContainerNode {
		return name
	}
	return container + " " + name
}

func envConflicts(c *node) []result {
	stops := c.onDaemonSet("env of aws-node", "settings with which a daemon starts", func(ds *evidence.DaemonSet) (any, state) {
		settings, problems := config.Load(envOf(ds, evidence.ContainerNode))
		fatal, _ := c.FaultsOf(settings, problems)
		if len(fatal) == 0 {
			return "none", no
		}
		return fatal[0].String(), yes
	})
	prefix := c.Setting("AWS_VPC_K8S_CNI_VETHPREFIX", "eni", func(s config.Config) bool { return s.VethPrefix != "eni" })
	return []result{
		ofCluster("the new daemon does not start with these settings: "+stops.Value, stops),
		ofCluster("network policies need AWS_VPC_K8S_CNI_VETHPREFIX=eni, it is "+prefix.Value, causes.Both(prefix, c.policies())),
	}
}

const keyPolicies = "enable-network-policy-controller"

// policies states that network policies are on, for the controller or the agent.
func (c *node) policies() fact {
	flag := c.onDaemonSet(evidence.ContainerAgent+" --enable-network-policy", "false", func(ds *evidence.DaemonSet) (any, state) {
		return ds.EnforcesPolicies(), stateOf(ds.EnforcesPolicies())
	})
	key := on(c, c.R.ConfigMap, "k8s.cm", keyPolicies, "not true", func(cm map[string]string) (any, state) {
		return cmp.Or(cm[keyPolicies], "not set"), stateOf(cm[keyPolicies] == "true")
	})
	return causes.Either(flag, key)
}

func policyHalfOn(c *node) []result {
	without := c.onDaemonSet("NETWORK_POLICY_ENFORCING_MODE", "not set without "+evidence.ContainerAgent,
		func(ds *evidence.DaemonSet) (any, state) {
			mode := ds.Env[evidence.ContainerNode]["NETWORK_POLICY_ENFORCING_MODE"]
			calls := mode != "" && !(c.Ours && mode == "none")
			return cmp.Or(mode, "not set"), stateOf(calls && !slices.Contains(ds.Containers, evidence.ContainerAgent))
		})
	differ := on(c, c.R.ConfigMap, "k8s.cm", keyPolicies, "as --enable-network-policy of the agent", func(cm map[string]string) (any, state) {
		if !c.R.DaemonSet.OK() {
			return nil, unread
		}
		flag := c.R.DaemonSet.Content != nil && c.R.DaemonSet.Content.EnforcesPolicies()
		return fmt.Sprintf("%s, and the agent's flag is %v", cmp.Or(cm[keyPolicies], "not set"), flag),
			stateOf(flag != (cm[keyPolicies] == "true"))
	})
	return []result{
		ofCluster(fmt.Sprintf("NETWORK_POLICY_ENFORCING_MODE is %s and there is no %s, so every ADD fails", without.Value,
			evidence.ContainerAgent), without),
		ofCluster("network policies are not enforced: "+keyPolicies+" is "+differ.Value, differ).As(catalogue.Warning),
	}
}

func crdMissing(c *node) []result {
	cninodes := on(c, c.R.Objects, "k8s.objects", "cninodes.vpcresources.k8s.aws", "there", func(all []evidence.KubeObject) (any, state) {
		there := slices.ContainsFunc(all, func(o evidence.KubeObject) bool {
			return o.Name == "CustomResourceDefinition/cninodes.vpcresources.k8s.aws"
		})
		return map[bool]string{true: "there", false: "missing"}[there], stateOf(!there)
	})
	return []result{
		ofCluster("ENABLE_POD_ENI is on and the CNINode CRD is missing", causes.Both(c.PodENI(), cninodes)),
		ofCluster("network policies are on and the PolicyEndpoint CRD is missing", causes.Both(c.policies(), c.PolicyCRDsMissing())),
	}
}

func moveDenied(c *node) []result {
	denied := c.Denied()
	return []result{ofCluster("the service account of aws-node may not "+denied.Value, denied)}
}

// shipped are the parts that some release of either daemon contains, by kind.
var shipped = map[string][]string{
	"container": {evidence.ContainerNode, evidence.ContainerAgent, evidence.ContainerInit},
	"volume": {"cni-bin-dir", "cni-net-dir", "log-dir", "run-dir", "xtables-lock", "bpf-pin-path", "cni-config", "cni-state-dir",
		"dockershim", "dockersock", "crisock"},
	"securityContext " + evidence.ContainerInit: {"privileged=true"},
	"securityContext " + evidence.ContainerNode: {"capabilities.add=NET_ADMIN", "capabilities.add=NET_RAW", "capabilities.add=DAC_OVERRIDE",
		"capabilities.drop=ALL", "allowPrivilegeEscalation=false", "readOnlyRootFilesystem=true", "seccompProfile.type=RuntimeDefault"},
	"securityContext " + evidence.ContainerAgent: {"capabilities.add=NET_ADMIN", "privileged=true"},
	"affinity": {
		"kubernetes.io/os In linux", "kubernetes.io/arch In amd64,arm64", "kubernetes.io/arch In amd64", "beta.kubernetes.io/os In linux",
		"beta.kubernetes.io/arch In amd64,arm64", "beta.kubernetes.io/arch In amd64",
		"eks.amazonaws.com/compute-type NotIn fargate", "eks.amazonaws.com/compute-type NotIn fargate,hybrid,auto",
	},
}

func partsAdded(c *node) []result {
	added := c.onDaemonSet("containers, volumes, variables, security, affinity, pull secrets", "those of a release",
		func(ds *evidence.DaemonSet) (any, state) {
			parts := map[string][]string{"container": slices.Concat(ds.Containers, ds.InitContainers), "volume": ds.Volumes, "variable": ds.EnvFrom,
				"affinity": ds.Affinity, "pull secret": ds.PullSecrets}
			for name, fields := range ds.Security {
				if name == "pod" || slices.Contains(shipped["container"], name) { // another container is new as a whole
					parts["securityContext "+name] = fields
				}
			}
			var out []string
			for kind, names := range parts {
				for _, name := range names {
					if !slices.Contains(shipped[kind], name) {
						out = append(out, kind+" "+name)
					}
				}
			}
			slices.Sort(out)
			return every(out), stateOf(len(out) > 0)
		})
	return []result{ofCluster("the DaemonSet has parts that are in no release, and the move drops them: "+added.Value, added)}
}

// plugins are the plugins that the images install.
var plugins = strings.Fields("aws-cni egress-cni bandwidth bridge dhcp dummy firewall host-device host-local ipvlan loopback macvlan portmap ptp sbr static tap tuning vlan vrf")

func conflistOwn(nodes []*node) []result {
	c := best(nodes, "migrate/conflist-custom")
	judge := func(expected string, wrong func(*evidence.CNIConf) (any, state)) fact {
		return on(c, c.R.Conflist, "k8s.conflist", "10-aws.conflist", expected, func(conf *evidence.CNIConf) (any, state) {
			if conf == nil {
				return "the entrypoint writes it", no
			}
			return wrong(conf)
		})
	}
	unusable := judge("valid, with plugins that the images install", func(conf *evidence.CNIConf) (any, state) {
		if !conf.Valid {
			return "it is not valid", yes
		}
		for _, plugin := range conf.Types {
			lacks := func(c *node) bool {
				return !slices.ContainsFunc(c.R.CNI.Content.Bin, func(b evidence.CNIPlugin) bool { return b.Name == plugin })
			}
			if !slices.Contains(plugins, plugin) && slices.ContainsFunc(nodes, lacks) {
				return "no image installs the plugin " + plugin, yes
			}
		}
		return strings.Join(conf.Types, ", "), no
	})
	limits := judge("without bandwidth", func(conf *evidence.CNIConf) (any, state) {
		return strings.Join(conf.Types, ", "), stateOf(slices.Contains(conf.Types, "bandwidth"))
	})
	const chain = "ENABLE_BANDWIDTH_PLUGIN"
	// the entrypoint adds it, to an own conflist too
	chained := c.onDaemonSet("env."+chain, "false", func(ds *evidence.DaemonSet) (any, state) {
		settings, _ := config.Load(envOf(ds, evidence.ContainerNode))
		return fmt.Sprintf("%s is %v", chain, settings.BandwidthPlugin), stateOf(settings.BandwidthPlugin)
	})
	own := ofCluster("your custom CNI configuration cannot be used: "+unusable.Value, unusable)
	excluded := ofCluster("the bandwidth plugin and network policies exclude each other on the links of pods: "+causes.Either(limits,
		chained).Value, causes.Both(causes.Either(limits, chained), c.policies())).As(catalogue.Warning)
	fix := 2
	if limits.State == yes {
		fix = 1
	}
	return []result{own.WithFixes(1), excluded.WithFixes(fix)}
}

// rolloutStalls counts the pods that would use up maxUnavailable: those that are not ready, and
// those whose node is under pressure, where the next pod may not start.
func rolloutStalls(cs []*node) []result {
	if len(cs) == 0 {
		return nil
	}
	c := cs[max(0, slices.IndexFunc(cs, func(c *node) bool { return c.R.DaemonSet.OK() }))]
	under, known := underPressure(cs)
	counted := func(expected string, judge func(held, allowed int, done bool) bool) fact {
		return c.onDaemonSet("pods", expected, func(ds *evidence.DaemonSet) (any, state) {
			p := ds.Pods
			if p.Desired == nil || p.Ready == nil {
				return nil, unread
			}
			unready, allowed := max(0, *p.Desired-*p.Ready), ds.AtOnce()
			rule := fmt.Sprintf("at most %d may be unavailable", allowed)
			if ds.ByHand() {
				allowed, rule = math.MaxInt, "pods are replaced when they are deleted" // nothing waits for the others
			}
			done := p.Updated == nil || *p.Updated >= *p.Desired
			text := fmt.Sprintf("%d of %d pods are not ready", unready, *p.Desired)
			if len(under) > 0 {
				text += fmt.Sprintf(", %d more on nodes under pressure", len(under))
			}
			if text += "; " + rule; !done {
				text += fmt.Sprintf("; %d updated so far", *p.Updated)
			}
			if state := stateOf(judge(unready+len(under), allowed, done)); state == yes || known {
				return text, state
			}
			return nil, unread
		})
	}
	stalls := counted("fewer that are not ready than maxUnavailable",
		func(held, allowed int, _ bool) bool { return held > 0 && held >= allowed })
	slow := counted("all ready and up to date", func(held, allowed int, done bool) bool { return held > 0 && held < allowed || !done })
	at := "the pods that are not ready"
	var pressure []fact
	var nodes []string
	if len(under) > 0 {
		at += " and the nodes under pressure"
		nodes = slices.Sorted(maps.Keys(under))
		pressure = []fact{c.Known("k8s.node", "conditions", "no pressure", labelsText(under), true)}
	}
	blocked := ofCluster("a rollout would stop at "+at+": "+stalls.Value, stalls)
	settling := ofCluster("aws-node has not settled: "+slow.Value, slow).As(catalogue.Warning)
	blocked.Nodes, blocked.Supporting = nodes, pressure
	settling.Nodes, settling.Supporting = nodes, pressure
	return []result{blocked, settling}
}

// underPressure returns what nodes with a ready pod of aws-node lack, by name, and whether every
// node was read. The pod of a node that is not ready itself counts as not ready.
func underPressure(cs []*node) (under map[string]string, known bool) {
	under, known = map[string]string{}, true
	for _, c := range cs {
		if notOurs(c.R.Node.Content) != "" {
			continue
		}
		if known = known && c.R.Node.OK(); c.unready() {
			continue
		}
		var lacks []string
		for _, condition := range c.R.Node.Content.Conditions {
			if strings.HasSuffix(condition.Type, "Pressure") && condition.Status == "True" { // of disk, memory, PIDs
				lacks = append(lacks, condition.Type)
			}
		}
		if len(lacks) > 0 {
			under[c.Name] = strings.Join(lacks, "+")
		}
	}
	return under, known
}

// unready reports whether the node, or a container of its aws-node pod, is known not to be ready.
func (c *node) unready() bool {
	return slices.ContainsFunc(c.R.Node.Content.Conditions,
		func(n evidence.Condition) bool { return n.Type == "Ready" && n.Status != "True" }) ||
		slices.ContainsFunc(c.R.DaemonPods.Content, func(p evidence.DaemonPod) bool {
			return c.Is(p.Node) && slices.ContainsFunc(p.Containers,
				func(k evidence.DaemonContainer) bool { return !k.Init && k.Ready != nil && !*k.Ready })
		})
}

func rolloutWaves(c *node) []result {
	const minutesEach = 1.5 // to pull the images and to start
	waves := c.onDaemonSet("maxUnavailable", "all at once", func(ds *evidence.DaemonSet) (any, state) {
		if ds.ByHand() {
			return "not used by OnDelete", no
		}
		if ds.Pods.Desired == nil || ds.MaxUnavailable == "" {
			return nil, unread
		}
		n := (*ds.Pods.Desired + ds.AtOnce() - 1) / ds.AtOnce()
		return fmt.Sprintf("%d waves of %d, about %.0f minutes", n, ds.AtOnce(), float64(n)*minutesEach), stateOf(n > 1)
	})
	byHand := c.onDaemonSet("updateStrategy", "RollingUpdate", func(ds *evidence.DaemonSet) (any, state) {
		return cmp.Or(ds.Strategy, "RollingUpdate"), stateOf(ds.ByHand())
	})
	rolls := ofCluster("the rollout takes "+waves.Value, waves)
	waits := ofCluster("updateStrategy is OnDelete: nothing rolls out until the pods of aws-node are deleted by hand", byHand)
	return []result{rolls.WithFixes(1), waits.WithFixes(2)}
}

func failsClosed(c *node) []result {
	closed := func(path, expected string, served func(*bool) bool) fact {
		return on(c, c.R.Admission, "k8s.admission", path, expected, func(all []evidence.Admission) (any, state) {
			var out []string
			for _, a := range all {
				if a.FailurePolicy == "Fail" && a.Service != "" && served(a.PodNetwork) {
					out = append(out, fmt.Sprintf("%s of %s", a.Name, a.Service))
				}
			}
			return every(out), stateOf(len(out) > 0)
		})
	}
	may := closed("failurePolicy", "Ignore, or not of kube-system", func(pods *bool) bool { return pods == nil || *pods })
	does := closed("pods of the service", "in the host's network", func(pods *bool) bool { return pods != nil && *pods })
	if does.State != yes { // no pods, or no right to read them
		does = c.Unread(does.Source, does.Path, does.Expected, "not in what was read")
	}
	cd := ofCluster("pods of aws-node wait for a webhook whose pods need aws-node: "+may.Value, may)
	cd.Supporting = []fact{does}
	return []result{cd}
}

func podsRefused(c *node) []result {
	const label = "pod-security.kubernetes.io/enforce"
	level := on(c, c.R.Namespace, "k8s.ns", label, "privileged, or not set", func(n evidence.Namespace) (any, state) {
		return cmp.Or(n.Labels[label], "not set"), stateOf(n.Labels[label] == "baseline" || n.Labels[label] == "restricted")
	})
	quotas := on(c, c.R.Namespace, "k8s.ns", "resource quotas", "none that counts pods of system-node-critical",
		func(n evidence.Namespace) (any, state) {
			return causes.Some(n.Quotas), stateOf(len(n.Quotas) > 0)
		})
	return []result{
		ofCluster("the namespace refuses privileged pods: "+label+" is "+level.Value, level),
		ofCluster("a resource quota may refuse pods of aws-node: "+quotas.Value, quotas).As(catalogue.Warning),
	}
}

// Labels and ports of the pods after the migration.
var (
	podLabels = map[string]string{"k8s-app": "aws-node", "app.kubernetes.io/name": "aws-node", "app.kubernetes.io/instance": releaseName}
	podPorts  = []string{"metrics", "agentmetrics"}
)

func monitorsLost(c *node) []result {
	within := func(selector, labels map[string]string) bool {
		for name, value := range selector {
			if labels[name] != value {
				return false
			}
		}
		return len(selector) > 0
	}
	monitors := func(kind, expected string, judge func(evidence.Monitor) string) fact {
		return on(c, c.R.Monitors, "k8s.monitors", kind+" selectors and ports", expected, func(all []evidence.Monitor) (any, state) {
			if !c.R.DaemonSet.OK() {
				return nil, unread
			}
			if c.R.DaemonSet.Content == nil {
				return "aws-node is not installed", no
			}
			var out []string
			for _, m := range all {
				if strings.HasPrefix(m.Name, kind+"/") && within(m.Selector, c.R.DaemonSet.Content.PodLabels) {
					if text := judge(m); text != "" {
						out = append(out, text)
					}
				}
			}
			return causes.Some(out), stateOf(len(out) > 0)
		})
	}
	lost := monitors("PodMonitor", "those of the new pods", func(m evidence.Monitor) string {
		if !within(m.Selector, podLabels) {
			return fmt.Sprintf("%s selects %s", m.Name, labelsText(m.Selector))
		}
		if at := slices.IndexFunc(m.Ports, func(port string) bool { return !slices.Contains(podPorts, port) }); at >= 0 {
			text := fmt.Sprintf("%s reads port %s", m.Name, m.Ports[at])
			if has := c.R.DaemonSet.Content.Ports; has != nil && !slices.Contains(has, m.Ports[at]) {
				text += ", which the present pods lack too"
			}
			return text
		}
		return ""
	})
	// Services usually have the labels of their pods, and ports of their own.
	through := monitors("ServiceMonitor", "none with labels of aws-node", func(m evidence.Monitor) string { return m.Name })
	services := through
	if through.State == yes {
		services = c.Unread("k8s.monitors", "Services", "they select the new pods", evidence.MissingServices)
	}
	unchecked := ofCluster(fmt.Sprintf("%s selects Services, which are not read: check that they still select aws-node's pods", through.Value),
		services)
	unchecked.Context = []fact{through}
	found := ofCluster("monitoring loses sight of aws-node: "+lost.Value, lost)
	if through.State == yes {
		found.Context = []fact{through}
	}
	return []result{found, unchecked}
}

// notOurs returns the kind of a node on which aws-node does not run, empty if it does.
func notOurs(n evidence.KubeNode) string {
	kind := n.Labels["eks.amazonaws.com/compute-type"]
	if n.Labels["kubernetes.io/os"] == "windows" {
		kind = "windows"
	}
	if slices.Contains([]string{"windows", "fargate", "auto", "hybrid"}, kind) {
		return kind
	}
	return ""
}

func nodesWithout(nodes []*node) []result {
	kinds := map[string]string{} // by node
	for _, c := range nodes {
		for _, n := range slices.Concat(c.R.Nodes.Content, []evidence.KubeNode{c.R.Node.Content}) { // the others, and this one
			if kind := notOurs(n); kind != "" {
				kinds[n.Name] = kind
			}
		}
	}
	c := best(nodes, "migrate/other-nodes")
	others := on(c, c.R.Nodes, "k8s.nodes", "labels", "Linux nodes with aws-node", func([]evidence.KubeNode) (any, state) {
		count := map[string]int{}
		for _, kind := range kinds {
			count[kind]++
		}
		var out []string
		for _, kind := range slices.Sorted(maps.Keys(count)) {
			out = append(out, fmt.Sprintf("%d %s", count[kind], kind))
		}
		return causes.Some(out), stateOf(len(out) > 0)
	})
	return []result{ofCluster("these nodes are not part of the move: "+others.Value, others)}
}
