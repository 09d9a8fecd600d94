package bundle

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/doctor/causes"
	"cnictl/doctor/evidence"
	"cnictl/testenv/situation"
)

// TestAnonymize_Findings: in any situation, the doctor's findings stay the same.
func TestAnonymize_Findings(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 10 // enough to find a race
	}
	for name, ev := range situations(t, every) {
		want := verdicts(redacted(ev))
		if diff := cmp.Diff(want, verdicts(anonymized(redacted(ev)))); diff != "" {
			t.Errorf("%s (-as it is +anonymized):\n%s", name, diff)
		}
	}
}

type verdict struct{ Code, Confidence, Severity string }

// verdicts are the doctor's findings.
func verdicts(ev *evidence.Evidence) []verdict {
	report := causes.Diagnose(ev, causes.Options{})
	var out []verdict
	for _, f := range append(report.Findings, report.Explained...) {
		out = append(out, verdict{f.Code, f.Confidence, f.Severity})
	}
	slices.SortFunc(out, func(a, b verdict) int { return strings.Compare(a.Code, b.Code) })
	return out
}

// everyName is a situation with every kind of name.
const everyName = `schemaVersion: 1
at: 2026-11-21T12:00:00Z
base: healthy
scope: {pod: orders/checkout-7d4b9c6f5-xk2lp}
report: [checkout-7d4b9c6f5-xk2lp of acme-prod gets no address from subnet-0aaaaaaaaaaaaaaaa]
world:
  node: ip-10-20-7-9.eu-west-1.compute.internal
  instance: i-0123456789abcdef0
  vpc: vpc-0bbbbbbbbbbbbbbbb
  vpcCIDRs: [10.20.0.0/16, 192.168.0.0/16]
  env: {CLUSTER_NAME: acme-prod, HTTPS_PROXY: "http://proxy.acme.example:3128"}
  subnets: [{id: subnet-0aaaaaaaaaaaaaaaa, cidr: 10.20.0.0/19, tags: {Name: acme-private}}, {id: subnet-0cccccccccccccccc, cidr: 192.168.32.0/19}]
  enis:
    - {id: eni-0dddddddddddddddd, ips: 2, mac: "02:aa:bb:cc:dd:ee", addresses: [10.20.7.44, 10.20.7.45], assigned: 1}
    - {id: eni-0eeeeeeeeeeeeeeee, subnet: subnet-0cccccccccccccccc, ips: 1, addresses: [192.168.45.7], assigned: 1}
  pods:
    - {pod: orders/checkout-7d4b9c6f5-xk2lp, node: ip-10-20-7-9.eu-west-1.compute.internal, eni: eni-0dddddddddddddddd, labels: {team: payments, app.kubernetes.io/name: checkout}, serviceAccount: checkout-sa}
    - {pod: kube-system/aws-node-x7k2p, hostNetwork: true}
sources:
  log.ipamd:
    lines:
      - {at: -1m, level: error, msg: "AssignPodIPv4Address: no address for Namespace: orders, PodName: gone-6c9fd-abcde on 10.20.7.44 (2600:1f14:aa:bb::5, ::ffff:10.20.7.44, fe80::aa:bbff:fecc:ddee)"}
      - {at: -1m, level: error, msg: "kubelet: checkout-7d4b9c6f5-xk2lp_orders(0a1b2c3d-0000-4000-8000-000000000001) on ip-10-20-7-9 via https://0123456789ABCDEF0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com"}
      - {at: -1m, level: error, msg: "arn:aws:sts::<account-id>:assumed-role/acme-node-role/i-0123456789abcdef0 is not authorized; vol-0ffffffffffffffff"}
      - {at: -1m, level: info, msg: "address assigned ip=10.20.7.45 pod=batch-29384-zz namespace=ledger"}
      - "{\"level\":\"info\",\"msg\":\"address assigned\",\"pod\":\"cron-17\",\"namespace\":\"ledger\"}"
      - "{\"level\":\"info\",\"ts\":\"2026-11-21T11:59:00.000Z\",\"msg\":\"link HOSTLINK of 02:aa:bb:cc:dd:ee up at 03:00:38\"}"
  k8s.evt:
    - {at: -1m, reason: FailedCreatePodSandBox, message: "pod orders/checkout-7d4b9c6f5-xk2lp", name: orders/checkout-7d4b9c6f5-xk2lp}
`

func TestAnonymize_Nothing(t *testing.T) {
	t.Parallel()
	link := netnames.HostVeth("eni", "orders", "checkout-7d4b9c6f5-xk2lp", 0)
	ev, err := situation.Load([]byte(strings.ReplaceAll(everyName, "HOSTLINK", link)))
	if err != nil {
		t.Fatal(err)
	}
	ev.Nodes[0].First.Summary = evidence.Read(introspect.Summary{Node: "ip-10-20-7-9.eu-west-1.compute.internal", InstanceID: "i-0123456789abcdef0", Subnets: []introspect.Subnet{{ID: "subnet-0aaaaaaaaaaaaaaaa", CIDR: "10.20.0.0/19"}}})
	ev.Nodes[0].First.PodViews = evidence.Read([]introspect.NodePod{{Interfaces: []introspect.PodInterface{{HostLink: link}}}})
	var plain, b bytes.Buffer
	if _, err := Write(&plain, ev, Options{}); err != nil {
		t.Fatal(err)
	}
	m, err := Write(&b, ev, Options{Anonymize: true})
	if err != nil || !m.Anonymized {
		t.Fatal(err, m.Anonymized)
	}
	before, after := content(t, plain.Bytes()), content(t, b.Bytes())
	secrets := []string{
		"checkout", "orders", "acme", "payments", "gone-6c9fd", "batch-29384", "ledger", "cron-17", "10.20.", "10-20-7-9", "192.168.45.7", "192.168.32.0", "2600:1f14:aa", "02:aa:bb", "aa:bbff", "0123456789abcdef0", "0aaaaaaaa",
		"0bbbbbbbb", "0cccccccc", "0dddddddd", "0eeeeeeee", "0ffffffff", "0a1b2c3d", "0123456789ABCDEF", link,
	}
	// Everything else that looks like an ID or an address.
	for _, form := range []string{`\b(?:eni|subnet|vpc|sg|i|vol)-[0-9a-f]{8,17}\b`, `\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b`, `\b\d+\.\d+\.\d+\.\d+\b`} {
		for _, m := range regexp.MustCompile(form).FindAllString(before, -1) {
			if a, err := netip.ParseAddr(m); err == nil {
				if _, ok := network(a); !ok || a == netip.MustParseAddr("192.168.0.0") { // well-known
					continue
				}
			}
			secrets = append(secrets, m)
		}
	}
	for _, secret := range slices.Compact(slices.Sorted(slices.Values(secrets))) {
		if !strings.Contains(before, secret) {
			t.Errorf("%q is not in the archive anyway", secret)
		}
		for line := range strings.Lines(after) {
			if strings.Contains(line, secret) {
				t.Errorf("%q is in the archive: %.300s", secret, line)
				break
			}
		}
	}
	for _, kept := range []string{"aws-node", "kube-system", "eu-west-1a", "m5.large", "03:00:38", "169.254.1.1", "FailedCreatePodSandBox", "v1.23.1", "127.0.0.1:61679"} {
		if !strings.Contains(after, kept) {
			t.Errorf("%q is not in the archive", kept)
		}
	}
	got, _, err := Read(&b, "")
	if err != nil {
		t.Fatal(err)
	}
	r := got.Nodes[0].First
	pod, node := got.Scope.Pod, got.Nodes[0].Name
	namespace, name, _ := strings.Cut(string(pod), "/")
	if !slices.ContainsFunc(r.Pods.Content, func(p evidence.KubePod) bool { return p.Pod == pod && *p.Node == node }) || r.Events.Content[0].Name != string(pod) || r.Events.Content[0].Message != "pod "+string(pod) ||
		r.Node.Content.Name != node || r.Summary.Content.Node != node {
		t.Errorf("pod %q on node %q are not the same everywhere", pod, node)
	}
	host := netnames.HostVeth("eni", namespace, name, 0)
	if l := r.LogIPAMD.Content.Lines; !strings.Contains(l[len(l)-1].Text, "link "+host+" of ") || r.PodViews.Content[0].Interfaces[0].HostLink != host {
		t.Errorf("the link of %s is %s in the log", pod, l[len(l)-1].Text)
	}
	for _, e := range r.ENIs.Content {
		for _, s := range r.Subnets.Content {
			for _, a := range e.IPs {
				if in := s.CIDR.Contains(a.Address); in != (s.ID == e.Subnet) {
					t.Errorf("%v of %s lies in %v: %v", a.Address, e.Subnet, s.CIDR, in)
				}
			}
			if s.CIDR != s.CIDR.Masked() {
				t.Errorf("%v is not aligned", s.CIDR)
			}
		}
	}
}

func TestAnonymize_Addresses(t *testing.T) {
	t.Parallel()
	a := newAnonymizer([]byte("key"))
	for _, text := range []string{"10.0.0.0/16", "10.0.32.0/19", "192.168.32.0/19", "2600:1f14:aa:bb00::/56", "2600:1f14:aa:bb01::/64", "0.0.0.0/0", "10.0.0.0/8"} {
		a.ranges(netip.MustParsePrefix(text))
	}
	for _, kept := range []string{"0.0.0.0", "127.0.0.1", "169.254.169.254", "169.254.1.1", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fd00:ec2::254", "ff02::1"} {
		if got := a.address(netip.MustParseAddr(kept)).String(); got != kept {
			t.Errorf("%s became %s", kept, got)
		}
	}
	seen := map[netip.Addr]string{}
	for _, text := range []string{"10.0.32.1", "10.1.32.1", "10.0.64.1", "192.168.32.1", "192.168.64.1", "172.16.0.1", "172.40.0.1", "192.40.0.1", "100.64.0.1", "100.1.0.1", "52.1.2.3", "2600:1f14:aa:bb01::5", "2600:1f14:aa:bb02::5", "fe80::aa:bbff:fecc:ddee"} {
		was := netip.MustParseAddr(text)
		is := a.address(was)
		if is == was || seen[is] != "" || was.IsPrivate() != is.IsPrivate() {
			t.Errorf("%s became %s, as did %q", was, is, seen[is])
		}
		seen[is] = text
	}
	gateway, subnet := a.address(netip.MustParseAddr("192.168.32.1")), a.address(netip.MustParseAddr("192.168.32.0"))
	if subnet.Next() != gateway {
		t.Errorf("the gateway of %v is %v", subnet, gateway)
	}
	if got := netip.PrefixFrom(a.address(netip.MustParseAddr("2600:1f14:aa:bb01::")), 80); got != got.Masked() {
		t.Errorf("%v is not aligned", got)
	}
}

// common returns how many bits two addresses share.
func common(x, y netip.Addr) int {
	for bits := x.BitLen(); ; bits-- {
		if p, err := x.Prefix(bits); err == nil && p.Contains(y) {
			return bits
		}
	}
}

// TestAnonymize_Ranges: whatever ranges the evidence has, addresses stay in them, all bits between
// the network and the last ones may change, and one address does not tell another.
func TestAnonymize_Ranges(t *testing.T) {
	t.Parallel()
	parse := netip.MustParsePrefix
	short := []netip.Prefix{parse("10.0.0.0/9"), parse("10.64.0.0/10"), parse("10.96.0.0/12"), parse("172.16.0.0/13"), parse("2600::/20")}
	wide := []netip.Prefix{parse("0.0.0.0/1"), parse("128.0.0.0/1"), parse("10.0.0.0/8"), parse("172.16.0.0/12"), parse("::/0")}
	own := []netip.Prefix{parse("10.20.0.0/16"), parse("10.20.32.0/19"), parse("10.20.33.0/24"), parse("10.20.33.16/28"), parse("10.100.0.0/16"),
		parse("192.168.0.0/17"), parse("192.168.64.0/18"), parse("172.20.0.0/16"), parse("2600:1f14:aa:bb00::/56"), parse("2600:1f14:aa:bb01::/64")}
	r := rand.New(rand.NewPCG(1, 2))
	known, other := netip.MustParseAddr("10.100.0.10"), netip.MustParseAddr("10.20.171.44") // of the service of EKS's DNS, and a pod
	flips, same := [32]int{}, 0
	const keys = 64
	for key := range keys {
		a := newAnonymizer([]byte{byte(key)})
		for _, p := range slices.Concat(short, wide, own) {
			a.ranges(p)
		}
		x, y := a.address(known).As4(), a.address(other).As4()
		was, is := known.As4(), other.As4()
		alike := true
		for bit := range 32 {
			mask := byte(0x80) >> (bit % 8)
			flipped := (is[bit/8]^y[bit/8])&mask != 0
			if flipped {
				flips[bit]++
			}
			alike = alike && flipped == ((was[bit/8]^x[bit/8])&mask != 0)
		}
		if alike {
			same++
		}
		for _, p := range wide {
			if got := a.prefix(p); got != p {
				t.Errorf("%v became %v", p, got)
			}
		}
		var addresses []netip.Addr
		for _, p := range slices.Concat(short, own) {
			first := a.prefix(p)
			if first != first.Masked() || first.Bits() != p.Bits() {
				t.Errorf("%v became %v", p, first)
			}
			if got := a.address(p.Addr()); slices.Contains(own, p) && p.Bits() != 16 && p.Bits() != 56 && got != first.Addr() {
				t.Errorf("the first address of %v is %v of %v", p, got, first)
			}
			if got, want := a.text("to "+p.String()+" via x"), "to "+first.String()+" via x"; got != want {
				t.Errorf("%v in a text: %s, want %s", p, got, want)
			}
			for range 4 {
				b := p.Addr().AsSlice()
				for bit := p.Bits(); bit < len(b)*8; bit++ {
					b[bit/8] ^= byte(r.IntN(2)) << (7 - bit%8)
				}
				address, _ := netip.AddrFromSlice(b)
				addresses = append(addresses, address)
				if !first.Contains(a.address(address)) {
					t.Errorf("%v of %v became %v, not of %v", address, p, a.address(address), first)
				}
			}
		}
		for _, x := range addresses {
			for _, y := range addresses {
				if x.Is4() == y.Is4() && common(x, y) != common(a.address(x), a.address(y)) {
					t.Errorf("%v and %v share %d bits, now %d", x, y, common(x, y), common(a.address(x), a.address(y)))
				}
			}
		}
	}
	for bit, n := range flips {
		if in := bit >= 8 && bit < 24; in && (n < keys/5 || n > keys*4/5) || !in && n > 0 {
			t.Errorf("bit %d of %v is flipped with %d of %d keys", bit, other, n, keys)
		}
	}
	if same > 0 {
		t.Errorf("with %d of %d keys, %v is replaced with the same mask as %v", same, keys, other, known)
	}
	a := newAnonymizer([]byte("key"))
	if got, want := a.text("64:ff9b::10.20.7.44"), netip.AddrFrom16([16]byte{1: 0x64, 2: 0xff, 3: 0x9b}); common(netip.MustParseAddr(got), want) < 96 ||
		a.text(got) == a.text("10.20.7.44") || strings.HasSuffix(got, "a14:72c") {
		t.Errorf("an address of NAT64 became %s", got)
	}
}

// TestAnonymize_Kernel: chains, nft tables and links that are no software's own are replaced the
// same way wherever they stand.
func TestAnonymize_Kernel(t *testing.T) {
	t.Parallel()
	type reading struct {
		IPTables evidence.IPTables
		Sysctls  map[string]string
		Links    []evidence.Link
	}
	kept := reading{
		IPTables: evidence.IPTables{
			Legacy: evidence.Backend{Chains: []string{"nat AWS-SNAT-CHAIN-0", "nat KUBE-SERVICES", "filter FORWARD", "mangle cali-PREROUTING", "nat CILIUM_PRE_nat"}},
			NFT: evidence.Backend{Rules: []string{"nat -A POSTROUTING -o eni+ -m comment --comment \"AWS SNAT CHAIN\" -j AWS-SNAT-CHAIN-0",
				"mangle -A PREROUTING -i eth0 -j CONNMARK --restore-mark"}},
			NFTTables: []string{"ip aws-cni", "inet filter", "ip nat", "ip6 kube-proxy"},
		},
		Sysctls: map[string]string{"net.ipv4.conf.all.rp_filter": "1", "net.ipv4.conf.eth0.rp_filter": "1", "net.ipv4.ip_forward": "1", "net.ipv6.conf.vlan/eth/1.forwarding": "1"},
	}
	for _, name := range []string{"lo", "eth0", "ens5", "enp0s6", "docker0", "vlan.eth.12", "dummy0", "cali", "gre0", "gretap0", "sit0", "ip6tnl0", "cni0", "mNicIf1", "br-0123456789ab"} {
		kept.Links = append(kept.Links, evidence.Link{Name: name})
	}
	a := newAnonymizer([]byte("key"))
	a.Learn(kept)
	if diff := cmp.Diff(kept, a.Replace(kept)); diff != "" {
		t.Errorf("what software chose (-before +after):\n%s", diff)
	}

	own := reading{
		IPTables: evidence.IPTables{
			Legacy: evidence.Backend{Chains: []string{"nat ACMEBANK-FW", "filter SECURITY"}},
			NFT: evidence.Backend{Rules: []string{"filter -A ACMEBANK-FW -i acmevpn+ -j ACMEBANK-DROP", "nat -A POSTROUTING -j ACMEBANK-FW",
				"nat -A OUTPUT -o acmelink3 -g SECURITY", "filter -A FORWARD -i eth0 -o acmetun0 -j ACCEPT"}},
			NFTTables: []string{"inet acmebank_fw", "ip monitoring"},
		},
		Sysctls: map[string]string{"net.ipv4.conf.acmebank0.rp_filter": "1", "net.ipv6.conf.acme/vpn.forwarding": "0"},
	}
	links := []string{"acmebank0", "acme.vpn", "greenbank0", "sitebank1", "dummybank", "enibank0", "vlan.acme", "cilium_acme", "docker-acme", "br-acme", "kube-acme", "lxcacme", "eth0acme"}
	for _, name := range links {
		own.Links = append(own.Links, evidence.Link{Name: name})
	}
	a.Learn(own)
	got := a.Replace(own).(reading)
	for i, l := range got.Links {
		if l.Name == links[i] {
			t.Errorf("the link %s stays", l.Name)
		}
	}
	text := fmt.Sprintf("%+v", got)
	for _, name := range append(links, "ACMEBANK", "acme", "SECURITY", "monitoring") {
		if strings.Contains(text, name) {
			t.Errorf("%s is in %s", name, text)
		}
	}
	_, chain, _ := strings.Cut(got.IPTables.Legacy.Chains[0], " ")
	if r := got.IPTables.NFT.Rules; !strings.HasPrefix(r[0], "filter -A "+chain+" -i ") || r[1] != "nat -A POSTROUTING -j "+chain {
		t.Errorf("the chain is %s, in rules %q", chain, r)
	}
	if _, ok := got.Sysctls["net.ipv4.conf."+got.Links[0].Name+".rp_filter"]; !ok || len(got.Sysctls) != 2 {
		t.Errorf("the link is %s, in %v", got.Links[0].Name, got.Sysctls)
	}
}

// TestAnonymizer_Learn: what a document costs does not depend on how much was learned before it.
func TestAnonymizer_Learn(t *testing.T) { // not parallel: it counts allocations
	cost := func(pods int) float64 {
		a := NewAnonymizer()
		var all []introspect.PodRef
		for i := range pods {
			all = append(all, introspect.PodRef{Namespace: fmt.Sprintf("acme-%d", i%7), Name: fmt.Sprintf("checkout-%d", i)})
		}
		a.Learn(all)
		if len(a.links) < 4*pods || len(a.unlinked) != 0 {
			t.Fatalf("%d links of %d pods", len(a.links), pods)
		}
		return testing.AllocsPerRun(10, func() { a.Learn(all[:5]) })
	}
	if few, many := cost(5), cost(500); many > few+1 {
		t.Errorf("five known pods cost %.0f allocations after 5 pods, and %.0f after 500", few, many)
	}
}
