package bundle

import (
	"reflect"
	"regexp"
	"strings"
	"sync"

	"cnictl/daemon/config"
	"cnictl/daemon/lazy"
	"cnictl/doctor/causes/catalogue"
)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// public names are those of Kubernetes, AWS and this project: every cluster has them.
var public = set(`default kube-system kube-public kube-node-lease aws-node aws-vpc-cni aws-vpc-cni-init amazon-vpc-cni aws-eks-nodeagent
	kube-proxy coredns k8s-app eks-vpc-resource-controller-role eks-vpc-resource-controller-rolebinding kubernetes
	kube-dns eks-pod-identity-agent networking.amazon-vpc-routed-eni amazon-elb amazon-aws control-plane master worker
	enabled system-node-critical system-cluster-critical`)

const longestPublic = 45 // bytes

// harmless keys and values of labels and tags say nothing.
var harmless = map[string]map[string]bool{"key": set("app name Name"), "value": set("true false owned shared none"), "tag": set("none")}

// commonWords are the words of the catalogue's messages, and of the forms of logs: a text with
// one of them is not about a pod or a namespace of that name, unless it says so.
var commonWords = sync.OnceValue(func() map[string]bool {
	out := set(`level ts time msg message error err caller logger info debug warn warning fatal trace true false null node pod
		namespace cluster name host local app none owned shared unreachable forbidden timeout refused disabled absent
		mode invalid failed partial unknown nat filter mangle raw return accept drop jump comment snat dnat masquerade
		mark connmark addrtype all aws eks amazon amazonaws com io org svc k8s kubernetes kube ec2 iam sts arn vpc cni
		eni http https tcp udp dns linux eth0 lo default`)
	signatures := func(all []catalogue.Signature) {
		for _, s := range all {
			addWords(out, s.Text)
			for _, w := range tokens().FindAllString(strings.ToLower(s.Text), -1) {
				out[strings.TrimRight(w, ".-_")] = true
			}
			for _, w := range wordForm().FindAllString(strings.ToLower(s.Text), -1) {
				out[w] = true
			}
		}
	}
	for e := range catalogue.All() {
		addWords(out, e.Title)
		addWords(out, e.Code)
		signatures(e.Signatures)
	}
	for _, s := range catalogue.Symptoms() {
		addWords(out, s.Title)
		signatures(s.Signatures)
	}
	return out
})

// vocabulary has, besides, the words of the catalogue's explanations, and those of the software
// around the CNI.
var vocabulary = sync.OnceValue(func() map[string]bool {
	out := set(`linux amd64 arm64 windows amazon aws eks eksbuild ec2 ecr dkr amazonaws com cn io sh org svc k8s cni vpc
		kubernetes kubelet containerd runc systemd networkd resolved udev udevd
		al2 al2023 amzn amzn2 amzn2023 bottlerocket ubuntu debian rhel centos flatcar server core standard datacenter
		generic x86 os image v1 v1beta1
		replicaset statefulset daemonset deployment job cronjob replicationcontroller node owner
		kubectl client side apply edit patch rollout set helm terraform eksctl argocd flux controller manager kustomize pulumi
		spot demand capacity type reserved managed self hybrid auto fargate gpu cpu memory storage ephemeral hugepages
		nvidia efa neuron
		aws-cni egress cni loopback portmap host bandwidth firewall tuning bridge ptp ipvlan macvlan dhcp static sbr vrf
		noop awscni egressv4 egressv6 flannel calico cilium weave multus istio linkerd canal antrea
		conf conflist json opt etc net var run log proc sys bin lib usr xtables lock bpf fs mnt dev sd home tmp
		modules dir service account token agent policy network resource controller webhook health metrics probes probe
		primary secondary branch trunk interface eni elb nlb alb nat gateway endpoint rds lambda created by for the default
		attached instance instances subnet lb
		public private quay ghcr docker gcr registry mirror api sts us eu ap sa ca af me il cn gov north south east west
		central northeast southeast northwest southwest
		noschedule noexecute prefernoschedule exists in notin doesnotexist and or control plane master worker label
		annotation component version instance part tier
		not ready unreachable unschedulable pressure disk pid unavailable outofservice uninitialized cloudprovider arch
		topology region zone hostname
		compute nodegroup nodepool nodeclass launch template id kind app name values true false enabled disabled yes no on
		off owned shared none debug info warn warning error fatal stdout stderr
		xlarge large medium small micro nano metal amazonlinux ami optimized dirty alpha beta rc dev release system critical
		cluster component pools
		access demux early key tcp udp active inactive addon agentmetrics argoproj arn bundle chart create data enforce
		exporter fips http https init java kops local manage
		meta mutating validating networking nm setup nodeagent path pin routed scheduler socat timer tracking utils
		vpcresources privileged baseline restricted keep enable disable wl wlz
		warm target minimum cooldown ipam prefix delegation externaleniconfig createdat networkmanager general purpose cloud
		karpenter ec2nodeclass elbv2 discovery
		memorypressure diskpressure pidpressure networkunavailable networkingready ipamdnotready ipamdnotrunning ipamdnoips
		ipamdrepeatedlyrestart ipamdinconsistentstate interfacenotup interfacenotrunning kubeproxynotready networksysctl`)
	for w := range commonWords() {
		out[w] = true
	}
	for _, r := range config.Table() {
		addWords(out, r.Name)
	}
	walk := reflectTexts(func(text string) { addWords(out, text) })
	for e := range catalogue.All() {
		walk(reflect.ValueOf(e))
	}
	for _, s := range catalogue.Symptoms() {
		walk(reflect.ValueOf(s))
	}
	return out
})

// reflectTexts returns a function that calls each for all texts of a value.
func reflectTexts(each func(string)) (walk func(v reflect.Value)) {
	return func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			each(v.String())
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		}
	}
}

func addWords(to map[string]bool, text string) {
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
		to[w] = true
	}
}

var (
	wordForm   = lazy.Regexp(`[A-Za-z0-9]+`)
	numberForm = lazy.Regexp(`^[vV]?[0-9][0-9.:_/-]*[A-Za-z]?$`)
	hexWord    = lazy.Regexp(`^(?:[0-9a-f]{7,}|[0-9A-F]{7,})$`)
)

// timeForm matches a moment, as in the tag node.k8s.amazonaws.com/createdAt.
var timeForm = lazy.Regexp(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,}(?:Z|[+-][0-9:]{4,6})$`)

// plain reports whether all words of a text are in the vocabulary, or numbers. Such a text says
// nothing about who runs the cluster.
func plain(text string) bool {
	if timeForm().MatchString(text) {
		return true
	}
	for _, w := range wordForm().FindAllString(text, -1) {
		lower := strings.ToLower(w)
		known := len(w) == 1 || vocabulary()[lower] || vocabulary()[strings.TrimSuffix(lower, "s")]
		if !known && !numberForm().MatchString(w) && !(hexWord().MatchString(w) && strings.ContainsAny(w, "0123456789")) {
			return false
		}
	}
	return true
}

// Forms of what is shown as it is where it stands as such, and nowhere else.
var forms = map[string]func() *regexp.Regexp{
	"zone": lazy.Regexp(`^(?:us|eu|ap|sa|ca|af|me|il|mx|cn)(?:-gov|-iso[a-z]?)?-(?:north|south|east|west|central|(?:north|south)(?:east|west))` +
		`-[0-9]{1,2}[a-z]?(?:-(?:wl[0-9]{1,2}-)?[a-z]{3}-(?:wlz-)?[0-9]{1,2}[a-z]?)?$`),
	"type": lazy.Regexp(`^[a-z]{1,4}[0-9]{1,2}[a-z0-9-]{0,6}\.(?:[0-9]{0,3}x?large|medium|small|micro|nano|metal(?:-[0-9]{1,3}xl)?)$`),
	"version": lazy.Regexp(`^v?[0-9]{1,4}(?:\.[0-9]{1,6}){0,3}` +
		`(?:[-+](?:eksbuild|eks|rc|alpha|beta|dirty|dev|g?[0-9a-f]{7,40})(?:[.-](?:[0-9]{1,6}|dirty|g?[0-9a-f]{7,40}))*)*$`),
}

func isForm(kind, text string) bool { return forms[kind]().MatchString(text) }

// ambiguous reports whether a name may stand for something else in a text.
func (a *Anonymizer) ambiguous(name string) bool {
	lower := strings.ToLower(name)
	switch a.kinds[name] {
	case "key", "value", "tag", "word", "variable", "container", "role", "resource", "object", "host", "chain":
		if vocabulary()[lower] {
			return true
		}
	}
	return len(name) < 2 || commonWords()[lower] || numberForm().MatchString(name) || a.shown[name]
}

// knownDevice matches names of devices that the kernel, systemd or software around the CNI chooses.
var knownDevice = lazy.Regexp(`^(?:lo|eth[0-9]+|en[ops][0-9]+(?:[a-z]{1,2}[0-9]+)*|eni|eth|ens|vlan|veth|cali|lxc|docker|cni|(?:[a-z]{1,4}|dummy)[0-9a-f]{11}|vlan\.eth\.[0-9]+|` +
	`vlan[0-9]+|dummy[0-9]+|mNicIf[0-9]+|v[46]if[0-9]+|pod-id-link[0-9]+|veth[0-9a-f]+|docker[0-9]+|docker_gwbridge|br-[0-9a-f]{12}|` +
	`cni[0-9]+|cni-podman[0-9]+|cbr[0-9]+|nodelocaldns|kube-ipvs[0-9]+|kube-bridge|kube-dummy-if|` +
	`cilium_(?:host|net|vxlan|geneve|wg[0-9]+|ipip[46])|lxc[0-9a-f]+|lxc_health|flannel\.[0-9]+|flannel-(?:v6\.[0-9]+|wg|wg-v6)|` +
	`vxlan(?:-v6)?\.calico|vxlan[0-9]+|wireguard\.cali|tunl[0-9]+|(?:ip6)?erspan[0-9]+|(?:ip6)?gre(?:tap)?[0-9]+|sit[0-9]+|` +
	`ip6tnl[0-9]+|ip6?_vti[0-9]+|ifb[0-9]+|bond[0-9]+|virbr[0-9]+|%[a-z0-9]{0,3})$`)

// linkOfSysctl finds the link in the name of a kernel parameter.
var linkOfSysctl = lazy.Regexp(`^(net\.(?:ipv4|ipv6|mpls)\.(?:conf|neigh)\.)(.+)(\.[a-z0-9_]+)$`)

// knownChain matches chains and targets of iptables and tables of nftables that the kernel or
// software around the CNI chooses.
var knownChain = lazy.Regexp(`^(?:PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING|ACCEPT|DROP|RETURN|REJECT|QUEUE|NFQUEUE|LOG|NFLOG|` +
	`ULOG|AUDIT|TRACE|MARK|CONNMARK|SECMARK|CONNSECMARK|SNAT|DNAT|NETMAP|MASQUERADE|REDIRECT|TPROXY|NOTRACK|CT|CHECKSUM|CLASSIFY|` +
	`CLUSTERIP|DNPT|SNPT|DSCP|ECN|HL|TTL|TOS|TCPMSS|TCPOPTSTRIP|TEE|SET|SYNPROXY|HMARK|IDLETIMER|LED|RATEEST|BALANCE|` +
	`(?:KUBE|AWS|CNI|DOCKER|LIBVIRT|NETAVARK|ISTIO|FLANNEL|WEAVE)-.*|DOCKER|(?:CILIUM|OLD_CILIUM|ISTIO|IN_public|FWDI|FWDO)_.*|` +
	`cali-.*|f2b-sshd|filter|nat|mangle|raw|security|route|firewalld|aws-cni|kube-proxy|calico|cilium|istio|` +
	`(?:cni_|cni-)(?:hostport|plugins?_[a-z]+)|libvirt_network|netavark|podman|docker-bridges)$`)

// Hosts of AWS, of registries and within the cluster. Of some, the first part is a name.
var (
	publicHost = lazy.Regexp(`(?:^|\.)(?:amazonaws\.com|amazonaws\.com\.cn|amazon\.com|api\.aws|ec2\.internal|compute\.internal|localhost|` +
		`cluster\.local|svc|k8s\.io|kubernetes\.io|docker\.io|quay\.io|ghcr\.io|gcr\.io|ecr\.aws|microsoft\.com|github\.com)$`)
	ownerOfHost = lazy.Regexp(`^([^.]+)\.(?:s3|s3[.-][a-z0-9-]+|[a-z]{2}(?:-[a-z]+)+-[0-9]\.elb|elb\.[a-z]{2}(?:-[a-z]+)+-[0-9]|` +
		`cluster-[a-z0-9-]+\.[a-z0-9-]+\.rds|[a-z0-9]+\.[a-z0-9-]+\.rds)\.amazonaws\.`)
	inCluster = lazy.Regexp(`^[a-z0-9-]+\.svc(?:\.|$)`)
)

func publicDomain(host string) bool { return publicHost().MatchString(host) }
