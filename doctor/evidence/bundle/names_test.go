package bundle

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/testenv/situation"
)

// zone is that of the fleet.
const zone = "eu-west-1a"

// fleet is two nodes with a name in every place, and texts that mention the names. NODE and the
// other words in capitals are replaced by names.
const fleet = `schemaVersion: 1
at: 2026-11-21T12:00:00Z
base: healthy
sources:
  k8s.evt:
    - {at: -1m, reason: FailedCreatePodSandBox, message: "EVENT", name: "NAMESPACE/POD"}
    - {at: -1m, reason: FailedMount, message: "x", name: "NAMESPACE/GONE"}
    - {at: -1m, kind: Node, reason: NodeNotReady, message: "x", name: "NODE"}
    - {at: -1m, kind: Deployment, reason: ScalingReplicaSet, message: "x", name: "OWNER"}
  k8s.cm: {enable-windows-ipam: "true"}
  iam.role: {arn: "arn:aws:iam::123456789012:role/ROLE", via: node, trust: [{principals: ["arn:aws:iam::123456789012:role/PATH/ROLE"], actions: [sts:AssumeRole], subjects: ["system:serviceaccount:NAMESPACE:ACCOUNT"], audiences: []}]}
  k8s.sgp: [{name: "NAMESPACE/POLICY", podSelector: {"KEY": "VALUE"}, groupIds: [sg-0123456789abcdef0]}]
  k8s.eniconfig: [{name: "CONFIG", subnet: subnet-0aaaaaaaaaaaaaaaa, securityGroups: [sg-0123456789abcdef0]}]
  k8s.monitors: [{name: "PodMonitor/NAMESPACE/MONITOR", selector: {"KEY": "VALUE"}, ports: [metrics]}]
  k8s.admission: [{name: "HOOK", service: "NAMESPACE/SERVICE"}]
  k8s.ns: {labels: {"KEY": "VALUE"}, quotas: ["QUOTA"]}
  k8s.objects: [{name: DaemonSet/aws-node, labels: {"KEY": "VALUE", app.kubernetes.io/component: "VALUE"}, annotations: {meta.helm.sh/release-name: "RELEASE", meta.helm.sh/release-namespace: "NAMESPACE"}, managers: []}]
  host.env: {aws-node: {CLUSTER_NAME: "CLUSTER", MY_NODE_NAME: "NODE", ADDITIONAL_ENI_TAGS: "{\"KEY\":\"VALUE\"}", NO_PROXY: ".HOST.example,10.0.0.0/8", HTTPS_PROXY: "http://HOST.example:3128", TEAM_CONTACT: "VALUE"}}
  log.ipamd: {lines: [IPAMD]}
  log.kubelet: {lines: [KUBELET]}
world:
  node: "NODE"
  instance: i-0123456789abcdef0
  vpc: vpc-0bbbbbbbbbbbbbbbb
  env: {CLUSTER_NAME: "CLUSTER"}
  subnets: [{id: subnet-0aaaaaaaaaaaaaaaa, cidr: 10.20.0.0/19, tags: {Name: "SUBNET", "kubernetes.io/cluster/CLUSTER": shared, karpenter.sh/discovery: "CLUSTER", elbv2.k8s.aws/cluster: "CLUSTER", kubernetes.io/created-for/pvc/namespace: "NAMESPACE", "KEY": "VALUE"}}]
  enis: [{id: eni-0dddddddddddddddd, subnet: subnet-0aaaaaaaaaaaaaaaa, ips: 2, addresses: [10.20.7.44, 10.20.7.45], assigned: 1}]
  pods:
    - {pod: "NAMESPACE/POD", node: "NODE", eni: eni-0dddddddddddddddd, labels: {"KEY": "VALUE", app.kubernetes.io/name: "OWNER", app.kubernetes.io/part-of: "VALUE", argocd.argoproj.io/instance: "OWNER", eks.amazonaws.com/fargate-profile: "VALUE"}, serviceAccount: "ACCOUNT"}
    - {pod: "kube-system/aws-node-x7k2p", hostNetwork: true}
`

// said are messages as kubelet, containerd, AWS, the daemon and the API server write them.
var said = []string{
	`failed to set up pod \"POD%NAMESPACE\" network: add cmd: failed to assign an IP address to container`,
	`AssignPodIPv4Address: no address for Namespace: NAMESPACE, PodName: POD`,
	`kubelet: POD%NAMESPACE(0a1b2c3d-0000-4000-8000-000000000001) timed out`,
	`address assigned ip=10.20.7.45 pod=POD namespace=NAMESPACE`,
	`{\"msg\":\"address assigned\",\"pod\":\"POD\",\"namespace\":\"NAMESPACE\"}`,
	`{\"msg\":\"failed\",\"podRef\":{\"name\":\"POD\",\"namespace\":\"NAMESPACE\"}}`,
	`error syncing pod NAMESPACE/POD, skipping`,
	`namespaces \"NAMESPACE\" not found`,
	`pods \"GONE\" is forbidden: User \"system:serviceaccount:NAMESPACE:ACCOUNT\" cannot get it in the namespace \"NAMESPACE\"`,
	`stat /var/log/pods/NAMESPACE%POD%0a1b2c3d-0000-4000-8000-000000000001/app/0.log`,
	`GET https://10.100.0.1:443/api/v1/namespaces/NAMESPACE/pods/POD: timeout`,
	`arn:aws:sts::123456789012:assumed-role/ROLE/i-0123456789abcdef0 may not do it`,
	`arn:aws:eks:eu-west-1:123456789012:cluster/CLUSTER is unknown`,
	`node \"NODE\" not found; user system:node:NODE`,
	`dial tcp: lookup SERVICE.NAMESPACE.svc.cluster.local: no such host`,
	`Received CNI add request: Args(IgnoreUnknown=1;K8S_POD_NAMESPACE=NAMESPACE;K8S_POD_NAME=POD;K8S_POD_INFRA_CONTAINER_ID=)`,
	`AddNetwork K8S_POD_NAME:\"LOST\" K8S_POD_NAMESPACE:\"NAMESPACE\"`,
	`Successfully assigned NAMESPACE/LOST to NODE`,
	`Node NODE status is now: NodeNotReady`,
	`syncing pods=[\"NAMESPACE/LOST\"] nodeName=\"NODE\"`,
	`1 node(s) had untolerated taint {KEY: VALUE}; selector KEY=VALUE`,
	`-A KUBE-SVC -m comment --comment \"NAMESPACE/OTHER:http\" -j RETURN`,
	`arn:aws:s3:::BUCKET/logs is not readable, nor arn:aws:elasticloadbalancing:eu-west-1:123456789012:loadbalancer/app/BUCKET/50dc6c495c0c9188`,
	`Post https://HOST.example:3128/x: proxyconnect tcp`,
}

// tricky are names that look like something else: versions, zones, types, dates, numbers, words
// of the catalogue and of logs, replacements.
var tricky = strings.Fields(`pg-customers-0 2024-acmebank us-acmebank-prod-1 3-acmeproject us-acmebank-secretdeal-1 10-acmebank-private es-master-0
	db-orders-1 eu-corp-live-2 v2-acme 1-acme 2024 2024-01-02 7 a us-east-1 eu-west-1a ap-south-2b us-gov-west-1 m5-large
	v1-29-3 1-29 v1 x86 amd64 linux security network monitoring controller proxy policy report search error info level msg
	pod node namespace cluster kubelet container address subnet the not system pods true role host service pod-1
	namespace-1 node-2 cluster-1 value-3 key-1 word-2 running summary live timeout in-use trunk veth get nodes allowed
	active strict net total ipv4 payments acmebank aws eks amazonaws com http ip-10-1-2-3 10-0-0-1 deadbeef 0x80 web prod
	app`)

// trickyDotted are names of pods, nodes, labels and hosts only.
var trickyDotted = strings.Fields(`m5.large acmebank.metal-vault c7gn.16xlarge 1.29.3 v1.23.1-acme 10.acme 2024.01.02 ip-10-9-8-7.acme.internal
	worker-1.acme.example acme.large u-6tb1.metal`)

// names returns a name for each word in capitals.
func names(r *rand.Rand) map[string]string {
	syllables := strings.Fields("zor bla vex qui mur tak pli gno wuz fyr")
	random := func() string {
		var b strings.Builder
		for range 2 + r.IntN(3) {
			b.WriteString(syllables[r.IntN(len(syllables))])
		}
		return b.String() + []string{"", "-0", "-7d4b9c6f5-xk2lp", fmt.Sprint("-", r.IntN(100))}[r.IntN(4)]
	}
	seen := map[string]bool{}
	pick := func(dotted bool) (name string) {
		for name == "" || seen[name] {
			switch n := r.IntN(10); {
			case n < 2 && dotted:
				name = trickyDotted[r.IntN(len(trickyDotted))]
			case n < 8:
				name = tricky[r.IntN(len(tricky))]
			default:
				name = random()
			}
		}
		seen[name] = true
		return name
	}
	out := map[string]string{}
	for _, word := range strings.Fields("NAMESPACE ACCOUNT ROLE PATH QUOTA CLUSTER SERVICE OWNER MONITOR SUBNET RELEASE HOST") {
		out[word] = pick(false)
	}
	for _, word := range strings.Fields("NODE POD GONE LOST BUCKET OTHER POLICY KEY VALUE CONFIG HOOK") {
		out[word] = pick(true)
	}
	return out
}

// render replaces the words in capitals, and % by _.
func render(text string, names map[string]string) string {
	text = regexp.MustCompile(`\b[A-Z]{3,}\b`).ReplaceAllStringFunc(text, func(word string) string {
		if name, ok := names[word]; ok {
			return name
		}
		return word
	})
	return strings.ReplaceAll(text, "%", "_")
}

// times returns how often a name stands in a text as a whole.
func times(text, name string) int {
	return len(regexp.MustCompile(`(?:^|[^0-9A-Za-z])`+regexp.QuoteMeta(name)+`(?:$|[^0-9A-Za-z])`).FindAllString(text, -1))
}

// nameSeeds is how many sets of names TestAnonymize_Names draws; at night more.
var nameSeeds = 4

// TestAnonymize_Names: whatever names look like, an archive has none of them where names stand,
// nor in messages that are about them.
func TestAnonymize_Names(t *testing.T) {
	t.Parallel()
	failures := 0
	blank := map[string]string{}
	for word := range names(rand.New(rand.NewPCG(0, 0))) {
		blank[word] = strings.ToLower(word) + "zzz"
	}
	var b bytes.Buffer
	if _, err := Write(&b, fleetOf(t, blank), Options{Anonymize: true}); err != nil {
		t.Fatal(err)
	}
	others := content(t, b.Bytes())
	for seed := range nameSeeds {
		names := names(rand.New(rand.NewPCG(uint64(seed), 27)))
		ev := fleetOf(t, names)
		var b bytes.Buffer
		if _, err := Write(&b, ev, Options{Anonymize: true}); err != nil {
			t.Fatal(err)
		}
		got, notes, err := Read(bytes.NewReader(b.Bytes()), "")
		if err != nil || len(notes) > 0 {
			t.Fatal(err, notes)
		}
		checkNames(t, fmt.Sprintf("seed %d", seed), got, names)
		text := content(t, b.Bytes())
		for word, name := range names {
			if times(others, name) > 0 || public[name] {
				continue // the software says it too
			}
			for line := range strings.Lines(text) {
				if times(line, name) > 0 {
					t.Errorf("seed %d: %s %q is in the archive: %.200s", seed, word, name, line)
					break
				}
			}
		}
		if t.Failed() {
			if failures++; failures > 6 {
				t.FailNow()
			}
			t.Logf("seed %d: %v", seed, names)
		}
		if diff := cmp.Diff(verdicts(redacted(ev)), verdicts(anonymized(redacted(ev)))); diff != "" {
			t.Errorf("seed %d %v: findings (-as it is +anonymized):\n%s", seed, names, diff)
		}
	}
}

func fleetOf(t *testing.T, names map[string]string) *evidence.Evidence {
	t.Helper()
	var lines []string
	for _, s := range said {
		lines = append(lines, `{at: -1m, level: error, msg: "`+s+`"}`)
	}
	all := "[" + strings.Join(lines, ", ") + "]"
	text := strings.NewReplacer("[IPAMD]", all, "[KUBELET]", all, "EVENT", said[0]).Replace(fleet)
	ev, err := situation.Load([]byte(render(text, names)))
	if err != nil {
		t.Fatalf("%v: %v", names, err)
	}
	r := ev.Nodes[0].First
	r.Summary = evidence.Read(introspect.Summary{Node: names["NODE"], InstanceID: "i-0123456789abcdef0"})
	r.PodViews = evidence.Read([]introspect.NodePod{{Pod: introspect.PodRef{Namespace: names["NAMESPACE"], Name: names["POD"]}}})
	cluster := names["CLUSTER"]
	row := introspect.ConfigRow{Name: "CLUSTER_NAME", Declared: &cluster, Effective: cluster}
	r.Config = evidence.Read(introspect.NodeConfig{Items: []introspect.ConfigRow{row}})
	r.Node.Content.Taints = []evidence.Taint{{Key: names["KEY"], Value: names["VALUE"], Effect: "NoSchedule"}}
	r.Node.Content.Labels[names["KEY"]] = names["VALUE"]
	r.Node.Content.Labels["vpc.amazonaws.com/externalEniConfig"] = names["CONFIG"]
	for _, key := range []string{"eks.amazonaws.com/nodeclass", "karpenter.k8s.aws/ec2nodeclass", "example.k8s.io/team", "node.kubernetes.io/x"} {
		r.Node.Content.Labels[key] = names["VALUE"]
	}
	r.Node.Content.Labels["node-role.kubernetes.io/"+names["OWNER"]] = ""
	r.Node.Content.Annotations["eks.amazonaws.com/role-arn"] = "arn:aws:iam::123456789012:role/" + names["ROLE"]
	return ev
}

// checkNames looks at each place where a name stands.
func checkNames(t *testing.T, what string, got *evidence.Evidence, names map[string]string) {
	t.Helper()
	hidden := func(place, is, word string) {
		if was := names[word]; is == was && !public[was] && was != zone {
			t.Errorf("%s: %s is still %q", what, place, is)
		}
	}
	pod := func(place string, p evidence.Pod, word string) {
		namespace, name, _ := strings.Cut(string(p), "/")
		hidden(place, namespace, "NAMESPACE")
		hidden(place, name, word)
	}
	labels := func(place string, m map[string]string) {
		for key, value := range m {
			if !harmless["key"][key] {
				hidden(place, key, "KEY")
			}
			if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok && !harmless["key"][role] {
				hidden(place, role, "OWNER")
			}
			for _, word := range []string{"VALUE", "OWNER", "SUBNET", "CLUSTER", "RELEASE", "NAMESPACE"} {
				own := key != "topology.kubernetes.io/zone" && key != "node.kubernetes.io/instance-type"
				if own && !enumerated(key) && !harmless["value"][value] && value != "" {
					hidden(place+" "+key, value, word)
				}
			}
			if cluster, ok := strings.CutPrefix(key, "kubernetes.io/cluster/"); ok {
				hidden(place, cluster, "CLUSTER")
			}
		}
	}
	n := got.Nodes[0]
	r := n.First
	hidden("the node", n.Name, "NODE")
	hidden("the Node", r.Node.Content.Name, "NODE")
	hidden("the summary", r.Summary.Content.Node, "NODE")
	hidden("the pod's view", r.PodViews.Content[0].Pod.Namespace, "NAMESPACE")
	hidden("the pod's view", r.PodViews.Content[0].Pod.Name, "POD")
	hidden("a setting", *r.Config.Content.Items[0].Declared, "CLUSTER")
	hidden("a setting", r.Config.Content.Items[0].Effective, "CLUSTER")
	for _, taint := range r.Node.Content.Taints {
		labels("a taint", map[string]string{taint.Key: taint.Value})
	}
	labels("a label of the Node", r.Node.Content.Labels)
	if is, want := r.Node.Content.Labels["vpc.amazonaws.com/externalEniConfig"], r.ENIConfigs.Content[0].Name; is != want {
		t.Errorf("%s: the node's label has the ENIConfig %q, which is now %q", what, is, want)
	}
	for _, p := range r.Pods.Content {
		if !strings.HasPrefix(string(p.Pod), "kube-system/") {
			pod("a pod", p.Pod, "POD")
			hidden("its account", p.ServiceAccount, "ACCOUNT")
			hidden("its node", *p.Node, "NODE")
			labels("its label", p.Labels)
		}
	}
	for _, e := range r.Events.Content {
		hidden("an event", e.Name, "NODE")
		hidden("an event", e.Name, "OWNER")
		pod("an event", evidence.Pod(e.Name), "GONE")
	}
	for _, s := range r.Subnets.Content {
		labels("a tag", s.Tags)
	}
	for _, p := range r.GroupPolicies.Content {
		pod("a policy", evidence.Pod(p.Name), "POLICY")
		labels("a selector", *p.PodSelector)
	}
	pod("a service", evidence.Pod(r.Admission.Content[0].Service), "SERVICE")
	hidden("a webhook", r.Admission.Content[0].Name, "HOOK")
	pod("a monitor", evidence.Pod(strings.TrimPrefix(r.Monitors.Content[0].Name, "PodMonitor/")), "MONITOR")
	hidden("a quota", r.Namespace.Content.Quotas[0], "QUOTA")
	labels("a label of the namespace", r.Namespace.Content.Labels)
	for _, o := range r.Objects.Content {
		labels("a label of an object", o.Labels)
		labels("an annotation", o.Annotations)
	}
	hidden("a role", strings.TrimPrefix(r.Role.Content.ARN, "arn:aws:iam::"+evidence.HiddenAccount+":role/"), "ROLE")
	for _, env := range r.ContainerEnv.Content {
		for name, value := range env {
			if word := map[string]string{"CLUSTER_NAME": "CLUSTER", "MY_NODE_NAME": "NODE"}[name]; word != "" {
				hidden("the variable "+name, value, word)
			}
			tag := !harmless["key"][names["KEY"]] && strings.Contains(value, `"`+names["KEY"]+`":`)
			if tag || strings.Contains(value, names["HOST"]+".example") {
				t.Errorf("%s: the variable %s is %s", what, name, value)
			}
		}
	}
	blank := map[string]string{}
	for word := range names {
		blank[word] = "zzz"
	}
	for _, log := range []evidence.Log{r.LogIPAMD.Content, r.LogKubelet.Content} {
		for i, line := range log.Lines[max(0, len(log.Lines)-len(said)):] {
			text := line.Msg + line.Text
			for word, name := range names {
				if !strings.Contains(name, "-") {
					text = regexp.MustCompile(`(?:[a-z]+-)+[0-9]+`).ReplaceAllString(text, "") // replacements
				}
				others := render(strings.ReplaceAll(said[i], `\"`, `"`), blank)
				if word == "VALUE" && harmless["value"][name] || word == "KEY" && harmless["key"][name] {
					continue
				}
				if strings.Contains(said[i], word) && !public[name] && times(text, name) > times(others, name) {
					t.Errorf("%s: %s is in the message %s", what, name, line.Msg+line.Text)
				}
			}
		}
	}
}

// TestAnonymize_Words: a namespace whose name is a word of the catalogue does not change what the
// doctor recognises.
func TestAnonymize_Words(t *testing.T) {
	t.Parallel()
	matcher := catalogue.NewMatcher()
	check := func(signatures []catalogue.Signature) {
		for _, s := range signatures {
			line := strings.ReplaceAll(s.Text, "…", " x ")
			a := newAnonymizer([]byte("key"))
			for _, w := range regexp.MustCompile(`[A-Za-z0-9-]+`).FindAllString(line, -1) {
				a.pair("pod", strings.ToLower(w), w)
			}
			a.number()
			if got := a.text(line); matcher.Match([]byte(line)) && !matcher.Match([]byte(got)) {
				t.Errorf("%q became %q", line, got)
			}
		}
	}
	for e := range catalogue.All() {
		check(e.Signatures)
	}
	for _, s := range catalogue.Symptoms() {
		check(s.Signatures)
	}
}

// TestAnonymize_KnownKeys: of labels that Kubernetes and AWS define, only those values stay that
// they define too.
func TestAnonymize_KnownKeys(t *testing.T) {
	t.Parallel()
	kept := map[string]string{
		"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", "karpenter.sh/capacity-type": "on-demand",
		"eks.amazonaws.com/capacityType": "SPOT", "eks.amazonaws.com/compute-type": "fargate", "topology.kubernetes.io/zone": "eu-west-1a",
		"topology.kubernetes.io/region": "eu-west-1", "node.kubernetes.io/instance-type": "m5.large",
		"karpenter.k8s.aws/instance-size": "xlarge", "eks.amazonaws.com/instance-generation": "5",
		"kubernetes.io/cluster/x": "shared", "kubernetes.io/role/cni": "0", "k8s.amazonaws.com/nicConfig": "multi-nic-attachment", "app.kubernetes.io/managed-by": "Helm", "vpc.amazonaws.com/has-trunk-attached": "true",
		"pod-security.kubernetes.io/enforce": "privileged", "node.k8s.amazonaws.com/createdAt": "2026-11-21T12:00:00Z",
	}
	replaced := map[string]string{
		"karpenter.sh/discovery": "network", "elbv2.k8s.aws/cluster": "security", "eks.amazonaws.com/nodeclass": "network-security",
		"karpenter.k8s.aws/ec2nodeclass": "monitoring", "eks.amazonaws.com/fargate-profile": "2024",
		"kubernetes.io/created-for/pvc/namespace": "policy", "argocd.argoproj.io/instance": "report", "kubernetes.io/os": "acmebank",
		"karpenter.k8s.aws/instance-profile": "proxy", "karpenter.sh/capacity-type": "zorbla",
	}
	type node struct{ Labels map[string]string }
	a := newAnonymizer([]byte("key"))
	a.Learn([]node{{kept}, {replaced}})
	got := a.Replace([]node{{kept}, {replaced}}).([]node)
	for key, value := range kept {
		if is := got[0].Labels[a.replaceKey(key)]; is != value {
			t.Errorf("%s=%s became %q", key, value, is)
		}
	}
	for key, value := range replaced {
		if is := got[1].Labels[a.replaceKey(key)]; is == value || is == "" {
			t.Errorf("%s=%s became %q", key, value, is)
		}
	}
}
