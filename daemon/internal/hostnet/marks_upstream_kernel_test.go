package hostnet

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/hostnet/rules"
)

// A kernelRule is a rule of table ip aws-cni as the kernel holds it: expressions, not text.
type kernelRule struct {
	handle string
	exprs  []string
}

// prerouting reads the rules of the base chain from the kernel.
func (n *bed) prerouting() (list []kernelRule) {
	n.t.Helper()
	dump, _, _ := strings.Cut(n.sh("nft --debug=netlink list chain ip aws-cni nat-prerouting"), "\ntable ip ")
	for block := range strings.SplitSeq(strings.TrimSpace(dump), "\n\n") {
		head, body, _ := strings.Cut(block, "\n")
		r := kernelRule{handle: strings.Fields(strings.TrimPrefix(head, "ip aws-cni nat-prerouting "))[0]}
		for line := range strings.Lines(body) {
			r.exprs = append(r.exprs, strings.Trim(line, " \n[]"))
		}
		list = append(list, r)
	}
	return list
}

func (r kernelRule) has(pattern string) bool {
	return slices.ContainsFunc(r.exprs, regexp.MustCompile(`^`+pattern+`$`).MatchString)
}

// The rules of upstream's base chain in order: how it recognises each in the kernel, and how
// it writes it. An optional comparison in a restore rule is ignored.
var upstreamPrerouting = []struct {
	recognise func(kernelRule) bool
	text      string
}{
	{func(r kernelRule) bool { return r.has(`fib daddr type .*`) && r.has(`immediate reg 0 return ?`) }, "fib daddr type local return"},
	{func(r kernelRule) bool {
		return r.has(`meta load iifname .*`) && r.has(`counter .*`) && r.has(`immediate reg 0 jump -> snat-mark ?`)
	}, `iifname "eni*" counter jump snat-mark`},
	{isUpstreamRestore, "counter meta mark set ct mark & 0x80"},
}

func isUpstreamRestore(r kernelRule) bool {
	return r.has(`counter .*`) && r.has(`ct load mark .*`) &&
		r.has(`bitwise reg \d+ = \( reg \d+ & 0x00000080 \) \^ 0x00000000 ?`) && r.has(`meta set mark with .*`)
}

// upstreamPass does to the base chain what upstream does at each start: it keeps one of each
// rule that it recognises, removes unknown rules, appends missing ones, and rewrites the
// chain if the order is then wrong.
func (n *bed) upstreamPass() {
	n.t.Helper()
	found := make([]bool, len(upstreamPrerouting))
	var kept []int
	for _, r := range n.prerouting() {
		at := slices.IndexFunc(upstreamPrerouting, func(w struct {
			recognise func(kernelRule) bool
			text      string
		}) bool {
			return w.recognise(r)
		})
		if at < 0 || found[at] {
			n.sh("nft delete rule ip aws-cni nat-prerouting handle " + r.handle)
			continue
		}
		found[at], kept = true, append(kept, at)
	}
	for i, w := range upstreamPrerouting {
		if !found[i] {
			n.sh("nft 'add rule ip aws-cni nat-prerouting " + w.text + "'")
			kept = append(kept, i)
		}
	}
	if slices.IsSorted(kept) {
		return
	}
	n.sh("nft flush chain ip aws-cni nat-prerouting")
	for _, w := range upstreamPrerouting {
		n.sh("nft 'add rule ip aws-cni nat-prerouting " + w.text + "'")
	}
}

// secondaryENI makes eth1 and sends the pod's traffic there, as a pod's rule does.
func (n *bed) secondaryENI() {
	n.sh(`ip link add eth1 type veth peer name eth1far
ip link set eth1far up
ip link set eth1 up
ip neigh add 10.0.0.1 lladdr 02:00:00:00:00:fd dev eth1
ip route add default via 10.0.0.1 dev eth1 onlink table 2
ip rule add from 10.0.0.21 lookup 2 priority 1536`)
}

// nativeTable prints the table with handles, so that rewritten rules show.
func (n *bed) nativeTable() string { return n.sh("nft -a -s list table ip aws-cni") }

// again is set at night: TestMarks_DowngradeAndUpgrade goes back and forth twice.
var again bool

// A downgrade, restarts and an upgrade: each side keeps its own rules and replaces all of
// the other's, and old and new connections of a pod on a secondary ENI always leave by the
// primary ENI.
func TestMarks_DowngradeAndUpgrade(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	pod := n.pod()
	n.secondaryENI()
	n.setup()

	const packets = 5
	type step struct {
		name string
		do   func()
		want string // the resulting table
	}
	ours, upstream := n.want().NFT.String(), recordedTable(t)
	restarted := func(pass func()) func() {
		return func() {
			before := n.nativeTable()
			pass()
			if d := cmp.Diff(before, n.nativeTable()); d != "" {
				t.Errorf("the restart changed the table (-before +after):\n%s", d)
			}
		}
	}
	ownPass := func() { n.setup() }
	old := n.dial(pod, outside)
	if seen := n.sendOn(old, packets); seen["ours"] != packets {
		t.Fatalf("before the downgrade: %v", seen)
	}
	steps := []step{
		{"downgrade", n.upstreamPass, upstream},
		{"upstream restarts", restarted(n.upstreamPass), upstream},
		{"upgrade", ownPass, ours},
		{"ours restarts", restarted(ownPass), ours},
	}
	if again {
		steps = append(steps, step{"downgrade again", n.upstreamPass, upstream}, step{"upgrade again", ownPass, ours})
	}
	for _, s := range steps {
		s.do()
		table, err := rules.ParseNFT(n.sh("nft list table ip aws-cni"))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(s.want, table.String()); d != "" {
			t.Errorf("%s: table (-want +kernel):\n%s", s.name, d)
		}
		for kind, seen := range map[string]map[string]int{
			"old": n.sendOn(old, packets), "new": n.send(pod, outside, packets),
		} {
			if seen["ours"] != packets || seen["translated"] != packets || seen["aside"] != 0 {
				t.Errorf("%s: %s connection to the outside: %v", s.name, kind, seen)
			}
		}
		if seen := n.send(pod, inVPC, packets); seen["none"] != packets || seen["aside"] != packets {
			t.Errorf("%s: connection to the VPC: %v", s.name, seen)
		}
	}
}

// recordedTable is upstream's table as our parser prints it.
func recordedTable(t *testing.T) string {
	t.Helper()
	table, err := rules.ParseNFT(originalTable(t))
	if err != nil {
		t.Fatal(err)
	}
	return table.String()
}

// Why restore rules have no counter: upstream takes a counted one for its own, even after a
// restart, and then the first packet of each connection leaves by the secondary ENI. Our
// next pass repairs that.
func TestMarks_UpstreamKeepsACountedRule(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	pod := n.pod()
	n.secondaryENI()
	n.setup()
	n.sh("nft -f - <<'EOF'\n" + rules.ReplaceNFT(counted(*n.want().NFT)) + "EOF")
	for range 2 {
		n.upstreamPass()
		if seen := n.send(pod, outside, 1); seen["aside"] != 1 {
			t.Errorf("upstream was expected to lose the mark: %v", seen)
		}
	}
	n.setup()
	if seen := n.send(pod, outside, 1); seen["ours"] != 1 || seen["aside"] != 0 {
		t.Errorf("after our pass: %v", seen)
	}
}

// counted adds a counter to each restore rule, as our first releases did.
func counted(t rules.NFTTable) rules.NFTTable {
	for i, r := range t.Chains[0].Rules {
		t.Chains[0].Rules[i] = strings.Replace(r, " meta mark set", " counter meta mark set", 1)
	}
	return t
}

// What upstream's form covers, on rules read back from the kernel.
func TestMarks_UpstreamShape(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	own := []string{}
	for _, mark := range []uint32{0x80, 0x81, 0xffffffff} {
		in := n.want(func(in *rules.NodeInput) { in.ConnMark = mark })
		own = append(own, in.NFT.Chains[0].Rules...)
	}
	n.sh("nft add table ip aws-cni; nft 'add chain ip aws-cni nat-prerouting { type nat hook prerouting priority -90; }'; nft add chain ip aws-cni snat-mark")
	for _, row := range []struct {
		name  string
		rules []string
		want  bool
	}{
		{"upstream's", []string{"counter meta mark set ct mark & 0x80"}, true},
		{"ours with a counter", counted(*n.want().NFT).Chains[0].Rules[2:], true},
		{"another mask", []string{"counter meta mark set ct mark & 0x40"}, false},
		{"ours", own, false},
	} {
		script := "flush chain ip aws-cni nat-prerouting\n"
		for _, r := range row.rules { // ours are 68
			script += "add rule ip aws-cni nat-prerouting " + r + "\n"
		}
		n.sh("nft -f - <<'EOF'\n" + script + "EOF")
		got := n.prerouting()
		if len(got) != len(row.rules) {
			t.Fatalf("%s: %d rules read, want %d", row.name, len(got), len(row.rules))
		}
		for i, r := range got {
			if is := isUpstreamRestore(r); is != row.want {
				t.Errorf("%s: %q taken for upstream's restore rule: %t, want %t", row.name, row.rules[i], is, row.want)
			}
		}
	}
}
