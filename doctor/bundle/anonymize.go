package bundle

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/doctor/catalogue"
	"cnictl/doctor/evidence"
)

// anonymized replaces names, addresses and ids consistently: in members, in link names that
// derive from pods, in texts. It preserves which address is in which range, and which is the
// first of it. The same evidence is always replaced the same way; without the evidence, nobody
// can reverse it.
func anonymized(ev *evidence.Evidence) *evidence.Evidence {
	a := &anonymizer{names: map[string]string{}, kinds: map[string]string{}, shortest: map[netip.Prefix]int{}, links: map[string]string{}, common: commonWords()}
	digest := sha256.New()
	a.collect(reflect.ValueOf(ev), "", digest)
	a.key = digest.Sum(nil)
	a.number()
	return rewriter{text: a.text, setting: func(name, value string) (string, string) { return a.text(name), a.text(value) }, addr: a.address}.rewrite(ev)
}

// anonymizer holds the replacement of each name.
type anonymizer struct {
	key      []byte
	kinds    map[string]string // of names: pod, namespace, …
	names    map[string]string // their replacements
	links    map[string]string // hashes in names of veths
	pods     []evidence.Pod
	shortest map[netip.Prefix]int // length of the shortest range in each network
	common   map[string]bool      // common words that identify nothing
}

// commonWords returns the words of the catalogue, and names that every cluster has.
func commonWords() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields("default aws-vpc-cni amazon-vpc-cni kube-system kube-public kube-node-lease aws-node aws-vpc-cni-init aws-eks-nodeagent kube-proxy coredns " +
		"eks-vpc-resource-controller-role eks-vpc-resource-controller-rolebinding app name true false owned shared host amazon-elb amazon-aws none local") {
		out[w] = true
	}
	add := func(texts ...string) {
		for _, text := range texts {
			for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
				out[w] = true
			}
		}
	}
	for e := range catalogue.All() {
		add(e.Title, e.Code)
		for _, s := range e.Signatures {
			add(s.Text)
		}
	}
	for _, s := range catalogue.Symptoms() {
		add(s.Title)
		for _, s := range s.Signatures {
			add(s.Text)
		}
	}
	return out
}

// revealsNothing matches versions, numbers and addresses, zones and instance types: they do not
// say who runs them, or are replaced elsewhere.
var revealsNothing = lazy(`^(v?[0-9]+([.:/][0-9]+)*([-+].*)?|[a-z]{2}(-[a-z]+)+-[0-9][a-z]?|[a-z][a-z0-9-]*\.([0-9]*x?large|medium|small|micro|nano|metal.*)|.{1000,})$`)

// name records a name to be replaced.
func (a *anonymizer) name(kind, name string) {
	if _, known := a.kinds[name]; !known && len(name) > 1 && !a.common[strings.ToLower(name)] && !revealsNothing().MatchString(name) {
		a.kinds[name] = kind
	}
}

func (a *anonymizer) pod(p evidence.Pod) {
	if namespace, name, ok := strings.Cut(string(p), "/"); ok {
		a.name("namespace", namespace)
		a.name("pod", name)
		a.pods = append(a.pods, p)
	}
}

// kindOfMember is the kind of a member's texts, by its name, in evidence and in the daemon's
// documents.
var kindOfMember = map[string]string{
	"ID": "id", "Instance": "id", "InstanceID": "id", "ENI": "id", "ENIID": "id", "Subnet": "id", "SubnetID": "id", "VPC": "id", "Groups": "id", "GroupIDs": "id",
	"SecurityGroups": "id", "Target": "id", "Peer": "id", "Node": "node", "ServiceAccount": "service-account", "Namespace": "namespace", "PodNamespace": "namespace", "PodName": "pod",
	"Service": "service", "PullSecrets": "secret", "Quotas": "quota", "Cluster": "cluster",
}

// kindOfName returns the kind of the field Name of a type.
func kindOfName(v any) string {
	switch v.(type) {
	case evidence.Node, evidence.KubeNode:
		return "node"
	case evidence.ENIConfig:
		return "eniconfig"
	case evidence.SecurityGroupPolicy, evidence.PolicyEndpoint:
		return "policy"
	case evidence.Container:
		return "container"
	case evidence.Admission:
		return "webhook"
	case evidence.Monitor:
		return "monitor"
	}
	return ""
}

// settingNames are settings, labels and tags whose value is a name.
var settingNames = map[string]string{
	"MY_NODE_NAME": "node", "CLUSTER_NAME": "cluster", "VPC_ID": "id", "kubernetes.io/hostname": "node", "k8s.amazonaws.com/eniConfig": "eniconfig", "vpc.amazonaws.com/eniConfig": "eniconfig",
	"alpha.eksctl.io/cluster-name": "cluster", "alpha.eksctl.io/nodegroup-name": "nodegroup", "eks.amazonaws.com/nodegroup": "nodegroup", "eks:cluster-name": "cluster", "aws:eks:cluster-name": "cluster",
	"eks:nodegroup-name": "nodegroup", "cluster.k8s.amazonaws.com/name": "cluster", "karpenter.sh/nodepool": "nodegroup", "karpenter.sh/nodeclaim": "node", "node.k8s.amazonaws.com/instance_id": "id",
	"app.kubernetes.io/name": "value", "app.kubernetes.io/instance": "value", "app.kubernetes.io/part-of": "value", "Name": "tag", "aws:autoscaling:groupName": "nodegroup", "MY_POD_NAME": "pod",
}

// labelMembers have names and values that people chose.
var labelMembers = []string{"Labels", "Annotations", "Tags", "NodeSelector", "PodSelector", "ServiceAccountSelector", "Selector", "PodLabels"}

// knownDomain reports whether Kubernetes or AWS define a label, annotation or tag.
func knownDomain(name string) bool {
	domain, _, ok := strings.Cut(name, "/")
	if name == "eks:eni:owner" {
		return true
	}
	for _, known := range []string{"kubernetes.io", "k8s.io", "amazonaws.com", "k8s.aws", "eksctl.io", "karpenter.sh"} {
		if ok && (domain == known || strings.HasSuffix(domain, "."+known)) {
			return true
		}
	}
	return false
}

// collect walks over everything, records names, and adds all of it to the digest.
func (a *anonymizer) collect(v reflect.Value, member string, digest hash.Hash) {
	switch x := v.Interface().(type) {
	case netip.Addr:
		fmt.Fprintln(digest, x)
		return
	case netip.Prefix:
		fmt.Fprintln(digest, x)
		a.ranges(x)
		return
	case map[string]string:
		for _, name := range slices.Sorted(maps.Keys(x)) {
			fmt.Fprintln(digest, name, x[name])
			a.scan(name)
			a.scan(x[name])
			switch kind := settingNames[name]; {
			case kind != "":
				a.name(kind, x[name])
			case slices.Contains(labelMembers, member) && !knownDomain(name):
				a.name("key", name)
				a.name("value", x[name])
			}
		}
		return
	case evidence.Pod:
		a.pod(x)
	case introspect.PodRef:
		a.pod(evidence.Pod(x.Namespace + "/" + x.Name))
	case evidence.KubeEvent:
		switch x.Kind {
		case "Pod":
			a.pod(evidence.Pod(x.Name))
		case "Node":
			a.name("node", x.Name)
		}
	}
	switch v.Kind() {
	case reflect.String:
		fmt.Fprintln(digest, v.String())
		a.scan(v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			a.collect(v.Elem(), member, digest)
		}
	case reflect.Slice:
		for i := range v.Len() {
			a.collect(v.Index(i), member, digest)
		}
	case reflect.Map:
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) }) {
			a.collect(key, member, digest)
			a.collect(v.MapIndex(key), member, digest)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Type.PkgPath() == "time" {
				continue
			}
			kind := kindOfMember[f.Name]
			if f.Name == "Name" {
				kind = kindOfName(v.Interface())
			}
			if _, probe := v.Interface().(evidence.Probe); probe && f.Name == "Target" && strings.Contains(v.Field(i).String(), ".amazonaws.com") {
				kind = "" // an AWS endpoint; other names in it are found in the text
			}
			if kind != "" {
				a.texts(kind, v.Field(i))
			}
			a.collect(v.Field(i), f.Name, digest)
		}
	}
}

// texts records the texts of a member.
func (a *anonymizer) texts(kind string, v reflect.Value) {
	switch x := v.Interface().(type) {
	case string:
		if namespace, name, ok := strings.Cut(x, "/"); ok && kind == "policy" {
			a.name("namespace", namespace)
			x = name
		}
		if kind != "id" || strings.Contains(x, "-") {
			a.name(kind, x)
		}
	case *string:
		if x != nil {
			a.name(kind, *x)
		}
	case []string:
		for _, text := range x {
			a.texts(kind, reflect.ValueOf(text))
		}
	}
}

// Names within texts of logs and events.
var (
	namedPod       = lazy(`(?i)\bpod_?name["':=\\\s(]+([a-z0-9][a-z0-9.-]+)`)
	namedNamespace = lazy(`(?i)\b(?:pod_?)?namespace["':=\\\s(]+([a-z0-9][a-z0-9-]+)`)
	wholePod       = lazy(`(?i)\bpods?["':=\\\s(]+([a-z0-9][a-z0-9-]*)/([a-z0-9][a-z0-9.-]*)`)
	memberPod      = lazy(`\bpod(?:=|":")([a-z0-9][a-z0-9.-]*)(?: |",")"?namespace(?:=|":")([a-z0-9][a-z0-9-]*)`) // as our daemon logs
	kubeletPod     = lazy(`\b([a-z0-9][a-z0-9.-]*)_([a-z0-9][a-z0-9-]*)\([0-9a-f]{8}-`)
	namedRole      = lazy(`:(?:role|assumed-role|user|instance-profile)/([\w+=,.@-]+)`)
	rangeText      = lazy(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/\d{1,2}\b|[0-9a-fA-F:]*::[0-9a-fA-F:]*/\d{1,3}\b`)
	hostOfURL      = lazy(`://(?:[^/@\s]*@)?([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)`)
)

// scan records the names in a text.
func (a *anonymizer) scan(text string) {
	for _, m := range rangeText().FindAllString(text, -1) {
		if p, err := netip.ParsePrefix(m); err == nil {
			a.ranges(p)
		}
	}
	for _, m := range namedPod().FindAllStringSubmatch(text, -1) {
		a.name("pod", m[1])
	}
	for _, m := range namedNamespace().FindAllStringSubmatch(text, -1) {
		a.name("namespace", m[1])
	}
	for _, m := range wholePod().FindAllStringSubmatch(text, -1) {
		a.pod(evidence.Pod(m[1] + "/" + strings.TrimRight(m[2], ".-")))
	}
	for _, m := range memberPod().FindAllStringSubmatch(text, -1) {
		a.pod(evidence.Pod(m[2] + "/" + m[1]))
	}
	for _, m := range kubeletPod().FindAllStringSubmatch(text, -1) {
		a.pod(evidence.Pod(m[2] + "/" + m[1]))
	}
	for _, m := range namedRole().FindAllStringSubmatch(text, -1) {
		a.name("role", m[1])
	}
	for _, m := range hostOfURL().FindAllStringSubmatch(text, -1) {
		if _, err := netip.ParseAddr(m[1]); err != nil && !strings.HasSuffix(m[1], ".amazonaws.com") && !strings.HasSuffix(m[1], ".svc") {
			a.name("host", m[1])
		}
	}
}

// number chooses the replacement of each name. The order reveals nothing about the names.
func (a *anonymizer) number() {
	names := slices.SortedFunc(maps.Keys(a.kinds), func(x, y string) int { return strings.Compare(a.sum(x), a.sum(y)) })
	count := map[string]int{}
	for _, name := range names {
		kind := a.kinds[name]
		switch first, _, _ := strings.Cut(name, "."); {
		case kind == "id":
			a.names[name] = a.id(name)
			continue
		case kind == "node" && hostForm().FindString(first) == first:
			continue // replaced like the address in it
		}
		count[kind]++
		a.names[name] = fmt.Sprintf("%s-%d", kind, count[kind])
		for _, known := range []string{"aws-node-", "kube-proxy-", "coredns-"} {
			if kind == "pod" && strings.HasPrefix(name, known) {
				a.names[name] = known + a.sum(name)[:5]
			}
		}
	}
	for _, p := range a.pods {
		namespace, name, _ := strings.Cut(string(p), "/")
		for i := range 4 {
			a.links[netnames.Hash(namespace, name, i)] = netnames.Hash(a.text(namespace), a.text(name), i)
		}
	}
}

// sum returns hexadecimal digits that derive from a text.
func (a *anonymizer) sum(text string) string {
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// id replaces an id and keeps its form.
func (a *anonymizer) id(id string) string {
	kind := idKind().FindString(id)
	digits := len(id) - len(kind)
	if strings.Trim(id[len(kind):], "0123456789abcdef") != "" || digits < 8 {
		digits = 8
	}
	if kind == "" {
		kind = "id-"
	}
	return kind + a.sum(id)[:min(digits, 64)]
}

// tokens matches what is replaced in a text, and whatever could be confused with it.
var tokens = lazy(`[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}` + // UUID
	`|(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}` + // MAC
	`|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){1,6}:[0-9]{1,3}(?:\.[0-9]{1,3}){3}` + // IPv4 in IPv6
	`|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}` + // IPv6
	`|[0-9A-Za-z][0-9A-Za-z._-]*`) // names, ids, IPv4

// Forms within a name.
var (
	idKind   = lazy(`^(?:eni-attach|tgw-attach|eni|subnet|vpc|sg|sgr|i|vol|rtb|acl|igw|nat|eipalloc|eipassoc|pcx|tgw|vpce|lt|cr|r|ami|fleet|scr)-`)
	idForm   = lazy(`^(?:eni-attach|tgw-attach|eni|subnet|vpc|sg|sgr|i|vol|rtb|acl|igw|nat|eipalloc|eipassoc|pcx|tgw|vpce|lt|cr|r|ami|fleet|scr)-(?:[0-9a-f]{17}|[0-9a-f]{8})`)
	hostForm = lazy(`^ip-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}`)
	ipv4Form = lazy(`^[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}`)
	vethForm = lazy(`^[a-z]{1,4}[0-9a-f]{11}`)
	hexForm  = lazy(`^(?:[0-9A-F]{32,}|[0-9a-f]{32,})`)
)

// text replaces the names in a text.
func (a *anonymizer) text(text string) string {
	if to, ok := a.names[text]; ok {
		return to
	}
	return tokens().ReplaceAllStringFunc(text, a.token)
}

func (a *anonymizer) token(token string) string {
	if to, ok := a.names[token]; ok {
		return to
	}
	if strings.Contains(token, ":") {
		if len(token) == 17 && strings.Count(token, ":") == 5 {
			return a.mac(token)
		}
		if address, err := netip.ParseAddr(token); err == nil {
			return a.address(address).String()
		}
		return token
	}
	if len(token) == 36 && strings.Count(token, "-") == 4 && token[8] == '-' && token[23] == '-' {
		if sum := a.sum(token); strings.Trim(token, "-0123456789abcdefABCDEF") == "" {
			return sum[:8] + "-" + sum[8:12] + "-" + sum[12:16] + "-" + sum[16:20] + "-" + sum[20:32]
		}
	}
	var out strings.Builder
	for i := 0; i < len(token); {
		from, to := token[i:], ""
		n := 0
		if i == 0 || !wordByte(token[i-1]) {
			n, to = a.part(from)
		}
		if n == 0 {
			n, to = 1, from[:1]
		}
		out.WriteString(to)
		i += n
	}
	return out.String()
}

// part replaces the beginning of a piece of a name; n is 0 if there is nothing to replace.
func (a *anonymizer) part(text string) (n int, to string) {
	ends := func(n int) bool { return n > 0 && (n == len(text) || !wordByte(text[n])) }
	for n := len(text); n > 1; n-- {
		if to, ok := a.names[text[:n]]; ok && ends(n) {
			return n, to
		}
	}
	if m := idForm().FindString(text); ends(len(m)) {
		return len(m), a.id(m)
	}
	if m := hostForm().FindString(text); ends(len(m)) {
		if address, err := netip.ParseAddr(strings.ReplaceAll(m[3:], "-", ".")); err == nil {
			return len(m), "ip-" + strings.ReplaceAll(a.address(address).String(), ".", "-")
		}
	}
	if m := ipv4Form().FindString(text); ends(len(m)) {
		if address, err := netip.ParseAddr(m); err == nil {
			return len(m), a.address(address).String()
		}
	}
	if m := vethForm().FindString(text); ends(len(m)) && strings.ContainsAny(m, "0123456789") {
		prefix, hash := m[:len(m)-11], m[len(m)-11:]
		if to, ok := a.links[hash]; ok {
			return len(m), prefix + to
		}
		return len(m), prefix + a.sum(hash)[:11]
	}
	if m := hexForm().FindString(text); ends(len(m)) {
		return len(m), a.sum(m)[:32]
	}
	return 0, ""
}

func wordByte(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// mac replaces a MAC address, but keeps its first byte, which shows who made the interface.
func (a *anonymizer) mac(mac string) string {
	mac = strings.ToLower(mac)
	if mac == "00:00:00:00:00:00" || mac == "ff:ff:ff:ff:ff:ff" {
		return mac
	}
	sum := a.sum(mac)
	return mac[:2] + ":" + sum[:2] + ":" + sum[2:4] + ":" + sum[4:6] + ":" + sum[6:8] + ":" + sum[8:10]
}

// network returns the range that an address stays in; its length is how much of the address is
// kept. It returns false for an address that reveals nothing and is kept as it is.
func network(address netip.Addr) (netip.Prefix, bool) {
	bits := 16
	if address.Is4() {
		b := address.As4()
		switch {
		case b[0] == 0, b[0] == 127, b[0] >= 224, b[0] == 169 && b[1] == 254:
			return netip.Prefix{}, false
		case b[0] == 10:
			bits = 8
		case b[0] == 172 && b[1]&0xf0 == 16:
			bits = 12
		case b[0] == 100 && b[1]&0xc0 == 64:
			bits = 10
		case b[0] != 100 && b[0] != 169 && b[0] != 172 && b[0] != 192 && b[0] != 198 && b[0] != 203:
			bits = 8
		}
	} else {
		b := address.As16()
		if b[0]&0xe0 != 0x20 && b[0]&0xfe != 0xfc || netip.MustParsePrefix("fd00:ec2::/32").Contains(address) {
			return netip.Prefix{}, false
		}
	}
	p, err := address.WithZone("").Prefix(bits)
	return p, err == nil
}

// ranges records the length of the shortest range in a network.
func (a *anonymizer) ranges(p netip.Prefix) {
	if !p.IsValid() {
		return
	}
	net, ok := network(p.Addr().Unmap())
	if was := a.shortest[net]; ok && p.Bits() > net.Bits() && (was == 0 || p.Bits() < was) {
		a.shortest[net] = p.Bits()
	}
}

// address flips some of the bits between those of its network and those of its shortest range,
// always the first of them.
func (a *anonymizer) address(address netip.Addr) netip.Addr {
	if address.Is4In6() {
		return netip.AddrFrom16(a.address(address.Unmap()).As16())
	}
	net, ok := network(address)
	if !ok {
		return a.linkLocal(address)
	}
	b := address.AsSlice()
	end := min(cmp.Or(a.shortest[net], 64), len(b)*8*3/4, 64)
	sum, err := hex.DecodeString(a.sum(net.String()))
	if err != nil {
		return address
	}
	for bit := net.Bits(); bit < end; bit++ {
		if bit == net.Bits() || sum[bit/8]>>(bit%8)&1 == 1 {
			b[bit/8] ^= 0x80 >> (bit % 8)
		}
	}
	out, _ := netip.AddrFromSlice(b)
	return out.WithZone(address.Zone())
}

// linkLocal replaces the MAC address in an address that was made from one.
func (a *anonymizer) linkLocal(address netip.Addr) netip.Addr {
	b := address.As16()
	if !address.IsLinkLocalUnicast() || address.Is4() || b[11] != 0xff || b[12] != 0xfe {
		return address
	}
	var m [6]byte
	text := a.mac(fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[8]^2, b[9], b[10], b[13], b[14], b[15]))
	if _, err := fmt.Sscanf(text, "%02x:%02x:%02x:%02x:%02x:%02x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]); err != nil {
		return address
	}
	b[8], b[9], b[10], b[13], b[14], b[15] = m[0]^2, m[1], m[2], m[3], m[4], m[5]
	return netip.AddrFrom16(b).WithZone(address.Zone())
}
