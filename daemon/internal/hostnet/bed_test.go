package hostnet

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/hostnet/rules"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

const primaryMAC = "02:fa:4e:00:00:01"

// bed is a node in its own network namespace, with a Host.
type bed struct {
	t    testing.TB
	ns   *netns.NS
	host *Host
	tool string // "iptables-nft" or "iptables-legacy"

	mu   sync.Mutex
	runs []Run
}

// backends runs a test with both programs.
func backends(t *testing.T, f func(t *testing.T, n *bed)) {
	testenv.RequireKernel(t, "veth", "iptables", "nft")
	for _, tool := range []string{"iptables-nft", "iptables-legacy"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			f(t, newBed(t, tool))
		})
	}
}

// newBed makes a node whose primary ENI is eth0, 10.0.0.10/18.
func newBed(t testing.TB, tool string) *bed {
	t.Helper()
	testenv.RequireKernel(t, "veth", "iptables", "nft")
	n := &bed{t: t, ns: netns.New(t), tool: tool}
	n.sh(`ip link add eth0 address ` + primaryMAC + ` type veth peer name eth0far
ip addr add 10.0.0.10/18 dev eth0
ip link set eth0far up
ip link set eth0 up
ip route add default via 10.0.0.1 dev eth0`)
	var err error
	n.host, err = New(t.Context(), Options{
		Log:          slog.New(slog.NewTextHandler(t.Output(), nil)),
		IPTables:     tool,
		PrimaryWait:  20 * time.Second,
		RouteBackoff: time.Millisecond,
		Observe: func(r Run) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.runs = append(n.runs, r)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// do runs f in the node's namespace.
func (n *bed) do(f func() error) {
	n.t.Helper()
	if err := n.ns.Do(f); err != nil {
		n.t.Fatal(err)
	}
}

// sh runs a script in the node's namespace and returns what it prints.
func (n *bed) sh(script string) string {
	n.t.Helper()
	return shell(n.t, n.ns, script)
}

func shell(t testing.TB, ns *netns.NS, script string) string {
	t.Helper()
	out, err := try(ns, script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func try(ns *netns.NS, script string) (string, error) {
	var out, problem bytes.Buffer
	err := ns.Do(func() error {
		cmd := exec.Command("sh", "-euc", "PATH=$PATH:/usr/sbin:/sbin\n"+script)
		cmd.Stdout, cmd.Stderr = &out, &problem
		return cmd.Run()
	})
	if err != nil {
		return "", fmt.Errorf("%s\n%w: %s", script, err, problem.String())
	}
	return out.String(), nil
}

func input(change ...func(*rules.NodeInput)) rules.NodeInput {
	in := rules.NodeInput{
		PrimaryMAC: primaryMAC, PrimaryIP: netip.MustParseAddr("10.0.0.10"), MTU: 9001,
		VPCCIDRs:        []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")},
		NodePortSupport: true, RandomizeSNAT: rules.SNATPRNG, ConnMark: 0x80, VethPrefix: "eni",
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

// setup runs a pass and returns the programs that wrote.
func (n *bed) setup(change ...func(*rules.NodeInput)) (wrote []string) {
	n.t.Helper()
	n.mu.Lock()
	n.runs = nil
	n.mu.Unlock()
	n.do(func() error { return n.host.SetupNode(n.t.Context(), input(change...)) })
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.runs {
		if r.Input != "" {
			wrote = append(wrote, r.Program)
		}
	}
	return wrote
}

// quiet fails the test if a pass writes anything.
func (n *bed) quiet(change ...func(*rules.NodeInput)) {
	n.t.Helper()
	before := n.everything()
	if wrote := n.setup(change...); wrote != nil {
		n.t.Errorf("a pass over a node that is as wanted wrote with %q", wrote)
	}
	if d := cmp.Diff(before, n.everything()); d != "" {
		n.t.Errorf("a pass over a node that is as wanted changed it (-before +after):\n%s", d)
	}
}

// everything prints filters with handles but without counters, and rules, routes and
// addresses. It omits IPv6 routes and addresses, which the kernel keeps changing. The kernel
// also sends IPv6 packets, which are counted.
func (n *bed) everything() string {
	// The kernel notices by itself, some time later, that a link has its peer.
	return n.sh("nft -a -s list ruleset; ip rule; ip -6 rule; ip -4 route show table all | sed 's/linkdown //'; ip -4 addr") + n.saved()
}

// saved returns the output of iptables-save without its comment lines.
func (n *bed) saved() string {
	n.t.Helper()
	return withoutComments(n.sh(n.tool + "-save"))
}

func (n *bed) load(ruleset string) {
	n.t.Helper()
	n.sh(n.tool + "-restore <<'EOF'\n" + ruleset + "\nEOF")
}

func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// want returns the state that a pass on this node should reach.
func (n *bed) want(change ...func(*rules.NodeInput)) rules.NodeState {
	in := input(change...)
	in.PrimaryLink, in.Backend, in.RandomFully = "eth0", rules.Backend(n.host.Backend()), true
	return rules.Node(in)
}
