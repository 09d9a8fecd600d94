package bundle

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/config"
	"cnictl/doctor/evidence"
)

// anonymized replaces names, addresses and ids consistently: in members, in link names that
// derive from pods, in texts. It preserves which address is in which range, and which is the
// first of a subnet. The same evidence is always replaced the same way; without the evidence, nobody
// can reverse it.
func anonymized(ev *evidence.Evidence) *evidence.Evidence {
	digest := sha256.New()
	a := newAnonymizer(nil)
	a.collect(ev, digest)
	a.key = digest.Sum(nil)
	a.number()
	return rewrite(a.rewriter(), ev)
}

// Anonymizer replaces names, addresses and ids in documents that arrive one after the other, as
// those of a recording do. A name has the same replacement in all of them.
type Anonymizer struct {
	key      []byte
	kinds    map[string]string     // of names: pod, namespace, …
	fresh    []string              // names without a replacement yet
	names    map[string]string     // replacements
	count    map[string]int        // of replacements, by kind
	parts    map[string]bool       // of names, between dots
	longest  int                   // bytes of the longest name
	weak     map[string]bool       // first words of names that also stand for something else; see ambiguous
	shown    map[string]bool       // zones, types and versions, where they stand as such
	pairs    map[[2]string]bool    // of namespace and name; true for pods
	unlinked [][2]string           // pods whose links have no replacement yet
	links    map[string]string     // hashes in names of veths
	subnets  map[netip.Prefix]bool // ranges whose first address stays the first
	flips    map[netip.Prefix]bool // whether the bit after these is flipped, of addresses that were replaced
}

// NewAnonymizer returns an anonymizer with a random key: two recordings have nothing in common.
func NewAnonymizer() *Anonymizer {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return newAnonymizer(key)
}

func newAnonymizer(key []byte) *Anonymizer {
	return &Anonymizer{
		key: key, kinds: map[string]string{}, names: map[string]string{}, parts: map[string]bool{}, weak: map[string]bool{},
		count: map[string]int{}, shown: map[string]bool{},
		pairs: map[[2]string]bool{}, links: map[string]string{}, subnets: map[netip.Prefix]bool{}, flips: map[netip.Prefix]bool{},
	}
}

// Learn notes the names in a document. Names in free text are only recognised if they were
// learned before.
func (a *Anonymizer) Learn(document any) {
	a.collect(document, sha256.New())
	a.number()
}

// Replace returns a copy of a document without the names that were learned.
func (a *Anonymizer) Replace(document any) any {
	r := a.rewriter()
	text := r.text
	r.text = func(at place, t string) string { return accountID().ReplaceAllString(text(at, t), hiddenAccount) }
	return r.value(place{}, reflect.ValueOf(document)).Interface()
}

// kinds of texts, by TYPE.MEMBER or MEMBER, in evidence, in the daemon's documents and in
// recordings. A text of a kind that is no form or words is a name, whatever it looks like. Those
// that are fixed come from a list that the software has.
var kindOfPlace = byKind(`
	id: ID Instance InstanceID ENI ENIID Subnet SubnetID VPC Groups GroupIDs SecurityGroups Peer VPCRoute.Target
	node: Node Node.Name KubeNode.Name ObjectMeta.Name NodeCNINode.Name entry.Gone
	pod: Pod Pods PodName PodRef.Name DaemonPod.Name
	namespace: Namespace PodNamespace
	object: KubeEvent.Name KubeEvent.Object
	cluster: Cluster
	service-account: ServiceAccount ServiceAccount.Name
	service: Service
	secret: PullSecrets
	quota: Quotas
	eniconfig: ENIConfig.Name Reading.ENIConfig Feature.Value CNINodeFeature.Value
	policy: SecurityGroupPolicy.Name PolicyEndpoint.Name
	webhook: Admission.Name
	monitor: Monitor.Name
	role: IAM.Role
	container: Container.Name DaemonContainer.Name DaemonSet.Containers DaemonSet.InitContainers ContainerLog.Container Reading.LogAWSNode
	container: Reading.ContainerEnv DaemonSet.Env
	host: Probe.Target
	device: Link.Name Link.Parent Route.Dev Rule.IIF PodRoute.Link PodLink.Name
	from: Probe.From
	key: Taint.Key Toleration.Key
	value: Taint.Value
	zone: Zone
	type: InstanceType
	version: KubeletVersion Kubelet.Version Summary.Version
	words: Image Images OSImage Kernel Owner File Types CNIPlugin.Name CNIPlugin.Version Packages.Packages Units Limits Mounts Volumes
	words: Ports EnvFrom DuplicateEnv Affinity Env InitEnv Manager.Name Disk.Path Process Throttled Description Requester Audiences
	words: Webhook.Name KubeEvent.Source AddOn.Version Condition.Type
	fixed: APIVersion Kind State Status Source Via Mode Phase Level Effect Operation Strategy Cause Type Flags Token HTTPEndpoint
	fixed: HTTPTokens Hypervisor Result FailurePolicy Protocol IPFamily Support Action Architecture OS Scope Denied Reviewed Roles
	fixed: Bindings LinkPolicy SELinux Modules Actions Causes Table Forward UnmetTarget.Target
	sysctl: Sysctls
	chain: Chains NFTTables
	reason: Reason Missing
	series: Samples
`)

// byKind reads lists of what is of a kind.
func byKind(lists string) func() map[string]string {
	return sync.OnceValue(func() map[string]string {
		kinds := map[string]string{}
		for line := range strings.Lines(lists) {
			kind, names, _ := strings.Cut(strings.TrimSpace(line), ": ")
			for name := range strings.FieldsSeq(names) {
				kinds[name] = kind
			}
		}
		return kinds
	})
}

// kindAt returns the kind of a text, or "" for free text.
func kindAt(at place) string {
	switch at.is() {
	case "ConfigRow.Declared", "ConfigRow.Effective", "ConfigRow.Label":
		return settingNames()[at.of.FieldByName("Name").String()]
	}
	if kind, ok := kindOfPlace()[at.is()]; ok {
		return kind
	}
	return kindOfPlace()[at.member]
}

// labelPlaces have names and values that people chose; those of environments are variables.
var (
	labelPlaces = []string{"Labels", "Annotations", "Tags", "NodeSelector", "PodSelector",
		"ServiceAccountSelector", "Selector", "PodLabels"}
	envPlaces = []string{"Env", "Applied", "ContainerEnv", "ConfigMap"}
)

// settingNames are settings, labels and tags whose value is a name, a zone or a type.
var settingNames = byKind(`
	node: MY_NODE_NAME kubernetes.io/hostname karpenter.sh/nodeclaim
	cluster: CLUSTER_NAME alpha.eksctl.io/cluster-name eks:cluster-name aws:eks:cluster-name cluster.k8s.amazonaws.com/name AWS_CLUSTER_ID
	id: VPC_ID node.k8s.amazonaws.com/instance_id
	eniconfig: k8s.amazonaws.com/eniConfig vpc.amazonaws.com/eniConfig vpc.amazonaws.com/externalEniConfig
	nodegroup: alpha.eksctl.io/nodegroup-name eks.amazonaws.com/nodegroup eks:nodegroup-name karpenter.sh/nodepool aws:autoscaling:groupName
	value: app.kubernetes.io/name app.kubernetes.io/instance app.kubernetes.io/part-of app.kubernetes.io/component
	value: app.kubernetes.io/created-by meta.helm.sh/release-name
	tag: Name
	pod: MY_POD_NAME statefulset.kubernetes.io/pod-name
	namespace: kubernetes.io/metadata.name meta.helm.sh/release-namespace
	zone: topology.kubernetes.io/zone failure-domain.beta.kubernetes.io/zone topology.ebs.csi.aws.com/zone
	zone: topology.kubernetes.io/region failure-domain.beta.kubernetes.io/region AWS_REGION AWS_DEFAULT_REGION
	type: node.kubernetes.io/instance-type beta.kubernetes.io/instance-type
`)

// keysWithName are beginnings of labels and tags that end in a name.
var keysWithName = []struct{ prefix, kind string }{
	{"kubernetes.io/cluster/", "cluster"}, {"k8s.io/cluster-autoscaler/", "cluster"}, {"node-role.kubernetes.io/", "key"},
}

// knownDomain reports whether Kubernetes or AWS define a label, annotation or tag.
func knownDomain(name string) bool {
	domain, _, ok := strings.Cut(name, "/")
	if name == "eks:eni:owner" || settingNames()[name] != "" {
		return true
	}
	for _, known := range []string{"kubernetes.io", "k8s.io", "amazonaws.com", "k8s.aws",
		"eksctl.io", "karpenter.sh", "csi.aws.com", "helm.sh", "argoproj.io", "cilium.io", config.LabelDomain} {
		if ok && (domain == known || strings.HasSuffix(domain, "."+known)) {
			return true
		}
	}
	return false
}

// enumerations are labels, annotations and tags whose values Kubernetes, AWS or this software
// choose. All other values are names that people chose, though their key may be well-known.
var enumerations = set(`kubernetes.io/os kubernetes.io/arch beta.kubernetes.io/os beta.kubernetes.io/arch kubernetes.io/role
	node.kubernetes.io/windows-build node.kubernetes.io/exclude-from-external-load-balancers node.alpha.kubernetes.io/ttl
	volumes.kubernetes.io/controller-managed-attach-detach alpha.kubernetes.io/provided-node-ip
	kubernetes.io/config.source kubernetes.io/config.seen kubernetes.io/config.hash kubectl.kubernetes.io/restartedAt
	deployment.kubernetes.io/revision batch.kubernetes.io/job-completion-index apps.kubernetes.io/pod-index
	scheduler.alpha.kubernetes.io/critical-pod cluster-autoscaler.kubernetes.io/safe-to-evict
	topology.k8s.aws/zone-id k8s.amazonaws.com/accelerator k8s.amazonaws.com/nicConfig
	kubernetes.io/role/cni kubernetes.io/role/elb kubernetes.io/role/internal-elb
	app.kubernetes.io/managed-by app.kubernetes.io/version helm.sh/hook helm.sh/hook-weight helm.sh/resource-policy
	karpenter.sh/capacity-type karpenter.sh/initialized karpenter.sh/registered karpenter.sh/do-not-disrupt
	karpenter.sh/nodepool-hash karpenter.sh/nodepool-hash-version karpenter.k8s.aws/ec2nodeclass-hash
	karpenter.k8s.aws/ec2nodeclass-hash-version
	eks.amazonaws.com/capacityType eks.amazonaws.com/compute-type eks.amazonaws.com/sourceLaunchTemplateVersion
	eks.amazonaws.com/nodegroup-image eks.amazonaws.com/sourceLaunchTemplateId eks.amazonaws.com/sts-regional-endpoints
	eks.amazonaws.com/token-expiration node.k8s.amazonaws.com/no_manage vpc.amazonaws.com/primary-ipv6
	vpc.amazonaws.com/has-trunk-attached vpc.amazonaws.com/pod-ips vpc.amazonaws.com/PrivateIPv4Address
	node.k8s.amazonaws.com/createdAt node.k8s.aws/createdAt eks:eni:owner`)

// ofInstance are what such keys of an instance type end in.
var ofInstance = set(`category family size generation cpu cpu-manufacturer cpu-sustained-clock-speed-mhz memory hypervisor tenancy
	ebs-bandwidth network-bandwidth local-nvme encryption-in-transit-supported capability-flex gpu-name gpu-manufacturer gpu-count
	gpu-memory accelerator-name accelerator-manufacturer accelerator-count`)

func enumerated(key string) bool {
	domain, name, _ := strings.Cut(key, "/")
	property, instance := strings.CutPrefix(name, "instance-")
	return enumerations[key] || domain == "pod-security.kubernetes.io" ||
		instance && ofInstance[property] && (domain == "karpenter.k8s.aws" || domain == "eks.amazonaws.com")
}

// knownVariables are beginnings of names of variables that are no one's own.
var knownVariables = []string{"AWS_", "KUBERNETES_", "HTTP", "http", "NO_PROXY", "no_proxy", "MY_", "HOSTNAME", "PATH", "HOME", "GO"}

func knownVariable(name string) bool {
	return settingNames()[name] != "" || slices.ContainsFunc(config.Table(), func(r config.Row) bool { return r.Name == name }) ||
		slices.ContainsFunc(knownVariables, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// collect notes names, and adds everything to the digest.
func (a *Anonymizer) collect(document any, digest hash.Hash) {
	rewrite(rewriter{
		object: a.object,
		text: func(at place, text string) string {
			fmt.Fprintln(digest, text)
			a.learn(kindAt(at), text)
			return text
		},
		setting: func(at place, name, value string) (string, string) {
			fmt.Fprintln(digest, name, value)
			a.setting(at, name, value)
			return name, value
		},
		addr: func(addr netip.Addr) netip.Addr {
			fmt.Fprintln(digest, addr)
			return addr
		},
		prefix: func(p netip.Prefix) netip.Prefix {
			fmt.Fprintln(digest, p)
			a.ranges(p)
			return p
		},
	}, document)
}

// object notes names whose kind depends on another member.
func (a *Anonymizer) object(v any) {
	get := func(member string) string {
		if f := reflect.ValueOf(v).FieldByName(member); f.IsValid() && f.Kind() == reflect.String {
			return f.String()
		}
		return ""
	}
	switch reflect.TypeOf(v).Name() {
	case "PodRef", "DaemonPod":
		a.pair("pod", get("Namespace"), get("Name"))
	case "NodeAddress":
		a.pair("pod", get("PodNamespace"), get("PodName"))
	case "KubeEvent":
		kind := map[string]string{"Pod": "pod", "Node": "node", "CNINode": "node"}[get("Kind")]
		object := get("Object") // of a recording; there, Name is that of the event
		a.learn(cmp.Or(kind, "object"), cmp.Or(object, get("Name")))
	}
}

// pair notes the names of an object in a namespace.
func (a *Anonymizer) pair(kind, namespace, name string) {
	if namespace == "" || name == "" {
		return
	}
	a.name("namespace", namespace)
	a.name(kind, name)
	p := [2]string{namespace, name}
	if pod, known := a.pairs[p]; kind == "pod" && !pod {
		a.pairs[p] = true
		a.unlinked = append(a.unlinked, p)
	} else if !known {
		a.pairs[p] = false
	}
}

// learn notes what a text of a kind holds.
func (a *Anonymizer) learn(kind, text string) {
	switch kind {
	case "", "reason", "series":
	case "fixed":
		return
	case "zone", "type", "version":
		if isForm(kind, text) {
			a.shown[text] = true
			a.weak[wordForm().FindString(text)] = true
		} else {
			a.words(text)
		}
	case "words":
		a.words(text)
	case "host":
		a.host(text)
	case "id":
		if strings.Contains(text, "-") && !strings.Contains(text, ":") {
			a.name(kind, text)
		}
	case "device":
		if !knownDevice().MatchString(text) {
			a.name(kind, text)
		}
	case "from": // the host, or a pod
		if namespace, name, ok := strings.Cut(text, "/"); ok {
			a.pair("pod", namespace, name)
		}
	case "chain": // TABLE CHAIN of iptables, FAMILY TABLE of nftables
		if _, name, ok := strings.Cut(text, " "); ok {
			a.chain(name)
		}
	case "sysctl":
		if m := linkOfSysctl().FindStringSubmatch(text); m != nil && m[2] != "all" && m[2] != "default" {
			a.learn("device", strings.ReplaceAll(m[2], "/", "."))
		}
		return
	case "key":
		a.labelKey(text)
	case "monitor": // KIND/NAMESPACE/NAME
		_, object, _ := strings.Cut(text, "/")
		namespace, name, _ := strings.Cut(object, "/")
		a.pair(kind, namespace, name)
	default:
		if namespace, name, ok := strings.Cut(text, "/"); ok && structured(kind) {
			a.pair(kind, namespace, name)
		} else if !strings.HasPrefix(text, "arn:") {
			a.name(kind, text)
		}
	}
	a.scan(text)
}

// structured reports whether names of a kind may have a namespace before them.
func structured(kind string) bool {
	return slices.Contains([]string{"pod", "object", "service", "policy", "monitor"}, kind)
}

// setting notes what a label, a tag, a variable or another entry of a map holds.
func (a *Anonymizer) setting(at place, name, value string) {
	a.scan(name)
	a.scan(value)
	kind := settingNames()[name]
	switch {
	case kind == "zone" && len(value) > 0 && !isForm("zone", value) && !isForm("zone", value+"a"):
		a.name("value", value)
	case kind != "":
		a.learn(kind, value)
	case slices.Contains(labelPlaces, at.member):
		a.labelKey(name)
		if !readable(name, value) {
			a.name("value", value)
		}
	case slices.Contains(envPlaces, at.member):
		a.variable(name, value)
	case kindAt(at) == "words":
		a.words(name)
		a.words(value)
	case kindAt(at) == "sysctl":
		a.learn("sysctl", name)
	}
}

// readable reports whether the value of a label is no name: its parts are replaced one by one.
func readable(name, value string) bool {
	structured := strings.HasPrefix(value, "arn:") || strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{")
	return knownDomain(name) && (structured || enumerated(name) &&
		(plain(value) || isForm("zone", value) || isForm("type", value) || isForm("version", value)))
}

func (a *Anonymizer) labelKey(name string) {
	for _, k := range keysWithName {
		if rest, ok := strings.CutPrefix(name, k.prefix); ok {
			a.name(k.kind, rest)
			return
		}
	}
	if !knownDomain(name) {
		a.name("key", name)
	} else {
		a.words(name)
	}
}

func (a *Anonymizer) variable(name, value string) {
	switch tags := tagsIn(value); {
	case tags != nil:
		for tag, value := range tags {
			a.setting(place{member: "Tags"}, tag, value)
		}
	case strings.HasSuffix(strings.ToLower(name), "_proxy"):
		for _, host := range strings.Split(value, ",") {
			a.host(strings.TrimPrefix(strings.TrimSpace(host), "."))
		}
	case !knownVariable(name) && !plain(value):
		a.name("value", value)
	}
	if !knownVariable(name) && !plain(name) {
		a.name("variable", name)
	}
}

// tagsIn returns the tags of a variable such as ADDITIONAL_ENI_TAGS; nil if it holds none.
func tagsIn(value string) (tags map[string]string) {
	if !strings.HasPrefix(value, "{") || json.Unmarshal([]byte(value), &tags) != nil {
		return nil
	}
	return tags
}

// name notes a name to be replaced. Addresses are replaced elsewhere.
func (a *Anonymizer) name(kind, name string) {
	if _, known := a.kinds[name]; known || name == "" || name[0] == '(' || public[name] ||
		name == evidence.HiddenAccount || harmless[kind][name] {
		return
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return
	}
	if _, err := netip.ParsePrefix(name); err == nil {
		return
	}
	if kind != "node" && idForm().FindString(name) == name {
		kind = "id"
	}
	a.kinds[name] = kind
	a.fresh = append(a.fresh, name)
	for _, part := range strings.Split(name, ".") {
		a.parts[part] = true
	}
	if kind == "node" || kind == "host" {
		if first, domain, dotted := strings.Cut(name, "."); dotted && !numberForm().MatchString(name) && !publicDomain(domain) {
			if kind == "host" && strings.Contains(domain, ".") {
				a.name("host", domain)
			} else if kind == "node" {
				a.name("node", first)
				a.name("host", domain)
			}
		}
	}
}

// chain notes the name of a chain of iptables or a table of nftables.
func (a *Anonymizer) chain(name string) {
	if !knownChain().MatchString(name) {
		a.name("chain", name)
	}
}

// words notes words that neither the catalogue nor the software around the CNI uses.
func (a *Anonymizer) words(text string) {
	for _, w := range wordForm().FindAllString(text, -1) {
		if !plain(w) {
			a.name("word", w)
		}
	}
}

// host notes a host name, with or without a port.
func (a *Anonymizer) host(host string) {
	host = strings.TrimSuffix(strings.TrimSpace(host), ".")
	if i := strings.LastIndexByte(host, ':'); i > 0 && strings.Count(host, ":") == 1 {
		host = host[:i]
	}
	switch {
	case len(host) < 2 || strings.ContainsAny(host, "/: \"'"):
		return
	case publicDomain(host):
		if m := ownerOfHost().FindStringSubmatch(host); m != nil {
			a.name("host", m[1])
		}
		if service, rest, ok := strings.Cut(host, "."); ok && inCluster().MatchString(rest) {
			namespace, _, _ := strings.Cut(rest, ".")
			a.pair("service", namespace, service)
		}
	default:
		a.name("host", host)
	}
}

// number chooses the replacements of new names. The order reveals nothing about the names, and no
// replacement is a name.
func (a *Anonymizer) number() {
	slices.SortFunc(a.fresh, func(x, y string) int { return strings.Compare(a.sum(x), a.sum(y)) })
	for _, name := range a.fresh {
		kind := a.kinds[name]
		a.longest = max(a.longest, len(name))
		first, _, _ := strings.Cut(name, ".")
		switch {
		case kind == "id":
			a.names[name] = a.id(name)
			continue
		case kind == "node" && hostForm().FindString(first) == first:
			continue // replaced like the address in it
		}
		a.names[name] = a.next(kind, name)
		if a.ambiguous(name) {
			a.weak[wordForm().FindString(name)] = true
		}
	}
	for _, name := range a.fresh { // a node's short name follows from its name
		if first, _, dotted := strings.Cut(name, "."); dotted && a.kinds[name] == "node" && a.kinds[first] == "node" &&
			a.names[first] != "" && a.names[name] != "" {
			a.names[first] = a.names[name]
		}
	}
	a.fresh = nil
	for _, p := range a.unlinked {
		for i := range 4 {
			a.links[netnames.Hash(p[0], p[1], i)] = netnames.Hash(a.replace("namespace", p[0]), a.replace("pod", p[1]), i)
		}
	}
	a.unlinked = nil
}

func (a *Anonymizer) next(kind, name string) string {
	for _, known := range []string{"aws-node-", "kube-proxy-", "coredns-"} {
		if kind == "pod" && strings.HasPrefix(name, known) {
			return known + a.sum(name)[:5]
		}
	}
	for {
		a.count[kind]++
		to := fmt.Sprintf("%s-%d", kind, a.count[kind])
		if _, taken := a.kinds[to]; !taken && !a.parts[to] {
			return to
		}
	}
}

// sum returns hexadecimal digits that derive from a text.
func (a *Anonymizer) sum(text string) string {
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// rewriter replaces what was noted.
func (a *Anonymizer) rewriter() rewriter {
	return rewriter{
		text:    func(at place, text string) string { return a.replace(kindAt(at), text) },
		setting: a.replaceSetting,
		addr:    a.address,
		prefix:  a.prefix,
	}
}

// replace replaces a text of a kind.
func (a *Anonymizer) replace(kind, text string) string {
	switch kind {
	case "":
		return a.text(text)
	case "zone", "type", "version":
		if isForm(kind, text) {
			return text
		}
		return a.text(text)
	case "words":
		if plain(text) && !hexForm().MatchString(text) && !idWithin().MatchString(text) {
			return text
		}
		return a.text(text)
	case "fixed":
		return text
	case "reason":
		if !strings.Contains(text, " ") && commonWords()[text] || evidence.Untried(text) {
			return text
		}
		return a.text(text)
	case "series":
		name, labels, _ := strings.Cut(text, "{")
		if labels != "" {
			labels = "{" + a.text(labels)
		}
		return name + labels
	case "chain":
		table, name, ok := strings.Cut(text, " ")
		if to, replaced := a.names[name]; ok && replaced {
			return table + " " + to
		}
		return text
	case "sysctl":
		m := linkOfSysctl().FindStringSubmatch(text)
		if m == nil || m[2] == "all" || m[2] == "default" {
			return text
		}
		link := a.replace("device", strings.ReplaceAll(m[2], "/", "."))
		if strings.Contains(m[2], "/") {
			link = strings.ReplaceAll(link, ".", "/")
		}
		return m[1] + link + m[3]
	case "device":
		if knownDevice().MatchString(text) {
			return a.text(text)
		}
	case "from":
		if !strings.Contains(text, "/") {
			return text
		}
		return a.replace("pod", text)
	case "key", "value", "tag", "eniconfig":
		if harmless[kind][text] || kind != "key" && a.shown[text] && isForm("zone", text) {
			return text // ENIConfigs are found by the zone of a node
		}
	}
	if to, ok := a.names[text]; ok {
		return to
	}
	if strings.Contains(text, "/") && structured(kind) {
		parts := strings.Split(text, "/")
		for i := range parts {
			parts[i] = a.replace("name", parts[i])
		}
		return strings.Join(parts, "/")
	}
	if public[text] {
		return text
	}
	return a.text(text)
}

func (a *Anonymizer) replaceSetting(at place, name, value string) (string, string) {
	kind := settingNames()[name]
	switch {
	case kind != "":
		return name, a.replace(kind, value)
	case slices.Contains(labelPlaces, at.member):
		if readable(name, value) && a.kinds[value] != "eniconfig" { // ENI_CONFIG_LABEL_DEF names any label
			return a.replaceKey(name), a.text(value)
		}
		return a.replaceKey(name), a.replace("value", value)
	case slices.Contains(envPlaces, at.member):
		if tags := tagsIn(value); tags != nil {
			out := map[string]string{}
			for tag, value := range tags {
				tag, value = a.replaceSetting(place{member: "Tags"}, tag, value)
				out[tag] = value
			}
			if text, err := json.Marshal(out); err == nil {
				return a.replace("variable", name), string(text)
			}
		}
		if knownVariable(name) {
			return name, a.text(value)
		}
		return a.replace("variable", name), a.replace("value", value)
	case kindAt(at) != "":
		return a.replace(kindAt(at), name), a.replace(kindAt(at), value)
	}
	return a.text(name), a.text(value)
}

func (a *Anonymizer) replaceKey(name string) string {
	for _, k := range keysWithName {
		if rest, ok := strings.CutPrefix(name, k.prefix); ok {
			return k.prefix + a.replace(k.kind, rest)
		}
	}
	if knownDomain(name) && plain(name) {
		return name
	}
	return a.replace("key", name)
}
