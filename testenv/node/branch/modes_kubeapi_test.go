package branch_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/testenv"
	"cnictl/testenv/aws/vpcrc"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
)

// TestBranch_Strict: all traffic from and to a pod goes through its branch ENI.
func TestBranch_Strict(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	m, other := l.join(strict, vpcrc.Faults{}), l.host()
	a, b, plain := m.run("a"), m.run("b"), m.ordinary("plain")
	l.everybodyReachesEverybody(m, other, a, b, plain)
	if a.VLAN == b.VLAN {
		t.Errorf("two pods have VLAN id %d", a.VLAN)
	}

	host := netnames.HostVeth("vlan", a.Namespace, a.Name, 0)
	for _, p := range []*branchPod{a, b} {
		veth := netnames.HostVeth("vlan", p.Namespace, p.Name, 0)
		rules := m.rules("10")
		for _, want := range []string{"from all iif " + p.device() + " lookup " + p.table(), "from all iif " + veth + " lookup " + p.table()} {
			if !slices.Contains(rules, want) {
				t.Errorf("no rule %q in %q", want, rules)
			}
		}
		table := m.ip("route", "show", "table", p.table())
		gateway := vpc.Gateway(l.subnet.CIDR).String()
		for _, want := range []string{"default via " + gateway + " dev " + p.device(), gateway + " dev " + p.device() + " scope link", p.IP.String() + " dev " + veth + " scope link"} {
			if !strings.Contains(table, want) {
				t.Errorf("no route %q in table %s:\n%s", want, p.table(), table)
			}
		}
		if link := m.ip("link", "show", p.device()); !strings.Contains(link, p.MAC) || !strings.Contains(link, "mtu 9001") {
			t.Errorf("%s", link)
		}
	}
	if rules := m.rules("0"); len(rules) > 0 {
		t.Errorf("rules of priority 0: %q", rules)
	}
	if got := m.rules("20"); !slices.Equal(got, []string{"from all lookup local"}) {
		t.Errorf("rules of priority 20: %q", got)
	}

	// Other pods of the node, and the node itself, are reached through the VPC.
	l.throughVPC(m, a, func() { l.reaches("pod beside", pair{"a to b", a, b.IP}) })
	l.throughVPC(m, a, func() { l.reaches("node", pair{"node to a", m, a.IP}) })

	l.probes(m, a)
	l.noSNAT(m, a)
	if rules := m.exec("iptables-save", "-t", "mangle"); !strings.Contains(rules, `-A PREROUTING -i vlan+ -m comment --comment "AWS, primary ENI" -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80`) {
		t.Errorf("the mark is not restored for %s:\n%s", host, rules)
	}

	m.end(a)
	l.reaches("after the end of a", pair{"b to the other host", b, other.Primary.PrimaryIP})
	m.end(b)
	m.endSandbox(plain)
	m.nothingLeft()
}

// TestBranch_Standard: local traffic stays on the node; traffic that leaves the VPC has the
// node's address.
func TestBranch_Standard(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	m, other := l.join(standard, vpcrc.Faults{}), l.host()
	a, b, plain := m.run("a"), m.run("b"), m.ordinary("plain")
	l.everybodyReachesEverybody(m, other, a, b, plain)
	for _, p := range []*branchPod{a, b} {
		veth := netnames.HostVeth("eni", p.Namespace, p.Name, 0)
		if !slices.Contains(m.rules("512"), "from all to "+p.IP.String()+" lookup main") || !slices.Contains(m.rules("1536"), "from "+p.IP.String()+" lookup "+p.table()) {
			t.Errorf("rules:\n%s", m.ip("rule"))
		}
		if got := m.ip("route", "show", "table", "main"); !strings.Contains(got, p.IP.String()+" dev "+veth+" scope link") {
			t.Errorf("main table:\n%s", got)
		}
	}
	if got := m.rules("10"); len(got) > 0 {
		t.Errorf("rules of strict mode: %q", got)
	}
	before := m.sent(a)
	l.reaches("pod beside", pair{"a to b", a, b.IP})
	l.reaches("node", pair{"node to a", m, a.IP})
	if now := m.sent(a); now != before {
		t.Errorf("%d packets left the node on their way to a neighbour", now-before)
	}
	for _, demux := range []string{"1", "0"} {
		m.sysctl("net/ipv4/tcp_early_demux", demux)
		if err := l.probe(m, a, testenv.Left(l.t)); err != nil {
			t.Errorf("TCP probe with tcp_early_demux=%s: %v", demux, err)
		}
		if err := l.probeHTTP(m, a, testenv.Left(l.t)); err != nil {
			t.Errorf("HTTP probe with tcp_early_demux=%s: %v", demux, err)
		}
	}
	saw, err := a.Netns.AskEcho(t.Context(), "tcp", netip.Addr{}, vpc.Outside, testenv.Left(l.t))
	if err != nil || saw.Addr() != m.Primary.PrimaryIP {
		t.Errorf("the outside host saw %v, %v; want the node's %v", saw, err, m.Primary.PrimaryIP)
	}
	m.end(a, b)
	m.endSandbox(plain)
	m.nothingLeft()
}

// TestBranch_AcrossNodes: pods with branch ENIs run on two nodes, one in each mode.
func TestBranch_AcrossNodes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	m, n := l.join(strict, vpcrc.Faults{}), l.join(standard, vpcrc.Faults{})
	a, b := m.run("a"), n.run("b")
	l.reaches("across", pair{"a to b", a, b.IP}, pair{"b to a", b, a.IP}, pair{"node of b to a", n, a.IP}, pair{"node of a to b", m, b.IP})
	m.end(a)
	n.end(b)
	m.nothingLeft()
	n.nothingLeft()
}

// TestBranch_ModeChangesUnderLivingPods: a pod keeps the mode in which it was created, and is
// deleted without leftovers in either.
func TestBranch_ModeChangesUnderLivingPods(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	m, other := l.join(strict, vpcrc.Faults{}), l.host()
	old := m.run("old")
	m.restart(standard)
	young := m.run("young")
	l.reaches("after the change to standard",
		pair{"old to the other host", old, other.Primary.PrimaryIP}, pair{"the other host to old", other, old.IP},
		pair{"young to the other host", young, other.Primary.PrimaryIP}, pair{"the other host to young", other, young.IP},
		pair{"old to young", old, young.IP}, pair{"young to old", young, old.IP})
	old.Config = map[string]any{"podSGEnforcingMode": standard} // the runtime reads the current conflist
	m.restart(strict)
	young.Config = map[string]any{"podSGEnforcingMode": strict}
	l.reaches("after the change back",
		pair{"old to the other host", old, other.Primary.PrimaryIP}, pair{"young to the other host", young, other.Primary.PrimaryIP},
		pair{"the other host to young", other, young.IP})
	m.end(old, young)
	m.nothingLeft()
}

// everybodyReachesEverybody pings between pods, their gateway, their node and another host.
func (l *lab) everybodyReachesEverybody(m *member, other *node.Node, a, b *branchPod, plain *node.Pod) {
	l.t.Helper()
	gateway := vpc.Gateway(l.subnet.CIDR)
	l.reaches(m.mode,
		pair{"a to its gateway", a, gateway}, pair{"b to its gateway", b, gateway},
		pair{"a to the other host", a, other.Primary.PrimaryIP}, pair{"the other host to a", other, a.IP},
		pair{"the other host to b", other, b.IP},
		pair{"a to b", a, b.IP}, pair{"b to a", b, a.IP},
		pair{"a to an ordinary pod", a, plain.IP}, pair{"an ordinary pod to a", plain, a.IP},
		pair{"node to a", m, a.IP}, pair{"node to b", m, b.IP}, pair{"a to its node", a, m.Primary.PrimaryIP},
		pair{"an ordinary pod to the other host", plain, other.Primary.PrimaryIP},
	)
}

// sent counts the packets that left the node through a pod's branch ENI.
func (m *member) sent(p *branchPod) (packets int) {
	m.l.t.Helper()
	text := m.exec("cat", "/proc/net/dev")
	for line := range strings.Lines(text) {
		if name, counts, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == p.device() {
			if _, err := fmt.Sscan(strings.Fields(counts)[9], &packets); err != nil {
				m.l.t.Fatal(err)
			}
			return packets
		}
	}
	m.l.t.Fatalf("no %s in\n%s", p.device(), text)
	return 0
}

func (l *lab) throughVPC(m *member, p *branchPod, f func()) {
	l.t.Helper()
	before := m.sent(p)
	f()
	if m.sent(p) == before {
		l.t.Error("nothing went by the branch ENI")
	}
}

// probe sends a TCP probe from the node to a server in a pod, as kubelet does.
func (l *lab) probe(m *member, p *branchPod, timeout time.Duration) error {
	l.t.Helper()
	server, err := p.Netns.EchoTCP(netip.AddrPortFrom(p.IP, 0))
	if err != nil {
		l.t.Fatal(err)
	}
	defer server.Close()
	_, err = m.NS.AskEcho(l.t.Context(), "tcp", netip.Addr{}, server.Addr, timeout)
	return err
}

// probeHTTP sends an HTTP probe, kubelet's other kind.
func (l *lab) probeHTTP(m *member, p *branchPod, timeout time.Duration) error {
	l.t.Helper()
	listener, err := p.Netns.Listen("tcp", netip.AddrPortFrom(p.IP, 0).String())
	if err != nil {
		l.t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: testenv.Left(l.t), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		_ = server.Close()
		<-served
	}()
	client := http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return nil, err
			}
			return m.NS.Dial(ctx, network, netip.Addr{}, to)
		}}}
	request, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/healthz", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		return errors.New(response.Status)
	}
	return nil
}

// probes checks probes with and without early demux. With it the kernel assigns a pod's reply to
// the socket before it looks at the rules, and drops it because it came in on another link.
func (l *lab) probes(m *member, p *branchPod) {
	l.t.Helper()
	m.sysctl("net/ipv4/tcp_early_demux", "0")
	if err := l.probe(m, p, testenv.Left(l.t)); err != nil {
		l.t.Errorf("TCP probe with tcp_early_demux=0: %v", err)
	}
	if err := l.probeHTTP(m, p, testenv.Left(l.t)); err != nil {
		l.t.Errorf("HTTP probe with tcp_early_demux=0: %v", err)
	}
	m.sysctl("net/ipv4/tcp_early_demux", "1")
	if err := l.probe(m, p, denial); err == nil {
		l.t.Error("TCP probe with tcp_early_demux=1 does not hang, as it is documented to")
	}
	if err := l.probeHTTP(m, p, denial); err == nil {
		l.t.Error("HTTP probe with tcp_early_demux=1 does not hang, as it is documented to")
	}
	m.sysctl("net/ipv4/tcp_early_demux", "0")
}

// noSNAT checks that packets leave the VPC with the pod's own address. Only a NAT gateway would
// accept them, and the fabric has none.
func (l *lab) noSNAT(m *member, p *branchPod) {
	l.t.Helper()
	before, err := l.fabric.PrivateDrops()
	if err != nil {
		l.t.Fatal(err)
	}
	if saw, err := p.Netns.AskEcho(l.t.Context(), "tcp", netip.Addr{}, vpc.Outside, denial); err == nil {
		l.t.Errorf("the outside host saw %v", saw)
	}
	after, err := l.fabric.PrivateDrops()
	if err != nil || after == before {
		l.t.Errorf("no packet left the VPC with the pod's address: %v", err)
	}
}
