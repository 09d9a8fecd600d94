package e2e_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/install"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/aws/monitoring"
	"cnictl/testenv/node"
)

// monitored is a node that the EKS node monitoring agent looks at.
type monitored struct {
	*lab
	n      *node.Node
	agent  monitoring.Agent
	before monitoring.View // in the settled state before
	looked bool
}

// finds waits until the pool is settled, looks at the node, and returns the reasons that the agent
// would report, given this look and the last one.
func (m *monitored) finds(pods ...*node.Pod) []monitoring.Finding {
	m.t.Helper()
	m.settled(m.n)
	now, err := m.n.Monitoring(pods...)
	if err != nil {
		m.t.Fatal(err)
	}
	if !m.looked {
		m.before, m.looked = now, true
	}
	if now.ENIs, err = monitoring.Named(now.ENIs); err != nil {
		m.t.Fatal(err)
	}
	for _, p := range pods {
		if !slices.Contains(monitoring.Compared(now.ENIs), p.IP.String()) || !strings.Contains(string(now.Checkpoint), p.ContainerID) {
			m.t.Errorf("%s (%s) is not among what the agent compares", p.Name, p.IP)
		}
	}
	found := m.agent.Check(m.before, now)
	m.before = now
	return found
}

// sound fails the test unless the agent finds exactly what is expected.
func (m *monitored) sound(when string, expected []string, pods ...*node.Pod) {
	m.t.Helper()
	if found := m.finds(pods...); !slices.Equal(monitoring.Reasons(found), expected) {
		m.t.Errorf("%s the EKS node monitoring agent finds, want %q:", when, expected)
		for _, f := range found {
			m.t.Errorf("  %s", f)
		}
	}
}

// life takes a node through growth, churn, the release of an ENI and restarts.
func (m *monitored) life(expected []string, env map[string]string) {
	m.t.Helper()
	m.sound("at the start", expected)
	pods := m.mustAdd(m.n, "p", 12, 4)
	m.sound("after growth", expected, pods...)
	m.sound("after growth, again", expected, pods...)
	for round := range 2 {
		m.del(m.n, pods[8:], 4)
		pods = append(pods[:8:8], m.mustAdd(m.n, fmt.Sprintf("r%d", round), 4, 4)...)
		m.sound("after churn", expected, pods...)
	}
	attached := len(m.world.ENIsOf(m.n.InstanceID))
	m.del(m.n, pods[1:], 4)
	if attached > 1 {
		testenv.Eventually(m.t, "an ENI is released", func() bool { return len(m.world.ENIsOf(m.n.InstanceID)) < attached })
	}
	m.sound("after the release of an ENI", expected, pods[0])
	for start := 2; start <= 5; start++ {
		m.kill(m.n, 9)
		m.start(m.n, env)
		want := expected
		if start == 5 {
			want = append([]string{"IPAMDRepeatedlyRestart"}, expected...)
		}
		m.sound(fmt.Sprintf("after start %d", start), want, pods[0])
	}
	m.del(m.n, pods[:1], 1)
	m.sound("without pods", append([]string{"IPAMDRepeatedlyRestart"}, expected...))
}

// dual adds a dual-stack subnet.
func (l *lab) dual() fakeaws.Subnet {
	l.t.Helper()
	v := l.world.AddVPC(netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
	s, err := l.world.AddSubnet(fakeaws.SubnetSpec{
		VPCID: v.ID, CIDR: netip.MustParsePrefix("10.2.0.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1:2::/64"),
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// soundNode is a node of TestMonitoring.
type soundNode struct {
	env      map[string]string
	ipv6     bool
	expected []string
}

// egressGuard is what the agent finds on a node that may have egress addresses.
var egressGuard = []string{"UnexpectedRejectRule"}

// soundNodes are those that do not wait until an ENI may be released. The nightly run has more.
var soundNodes = map[string]soundNode{
	"prefixes": {env: merged(releasing, env{"ENABLE_PREFIX_DELEGATION": "true"})},
	"IPv6":     {env: ipv6Env, ipv6: true, expected: egressGuard},
}

// releasing lets a pool shrink at once.
var releasing = env{"WARM_IP_TARGET": "1", "MINIMUM_IP_TARGET": "1", "IP_COOLDOWN_PERIOD": "0"}

// TestMonitoring: the EKS node monitoring agent, whose fatal findings cost the node, finds nothing
// on a sound node in any settled state, but the rule that guards egress addresses, as with
// upstream, and the fifth start.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	for name, row := range soundNodes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, fakeaws.Options{})
			spec := fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID}
			if row.ipv6 {
				spec.SubnetID, spec.IPv6 = l.dual().ID, true
			}
			i, err := l.world.AddInstance(spec)
			if err != nil {
				t.Fatal(err)
			}
			m := &monitored{lab: l, n: l.node(i.ID)}
			m.start(m.n, row.env)
			m.life(row.expected, row.env)
			m.agent.AllowedChains = []string{"FORWARD"} // the advice of docs/operations.md
			m.sound("with allowedIPTablesChains", []string{"IPAMDRepeatedlyRestart"})
		})
	}
}

// TestMonitoring_APIServerLate: nor does it find anything while the API server does not answer yet,
// as before kube-proxy has started. daemon/ipamd tests for how long.
func TestMonitoring_APIServerLate(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	m := &monitored{lab: l, n: l.node(i.ID)}
	m.start(m.n, map[string]string{"KUBECONFIG": l.refusingAPI(m.n), "MY_NODE_NAME": "worker-7"})
	l.says(m.n, logline.TextAPISilent)
	m.sound("without an API server", nil)
}

// TestMonitoring_Egress: the same with the links and chains of egress-cni.
func TestMonitoring_Egress(t *testing.T) {
	t.Parallel()
	a := egressNode(t, "nft")
	r := a.newRuntime(a.n, "portmap")
	r.exec.path = a.path
	r.Path = append(r.Path, filepath.Join(a.binaries, "reference"))
	list := r.list(t, install.Template, func(s *install.Settings) {
		logs := s.PluginLogFile
		*s = install.Defaults(true)
		s.PluginLogFile, s.Egress.LogFile, s.Egress.NodeIP = logs, logs+".egress", a.n.Primary.PrimaryIP
	})
	m := &monitored{lab: a.lab, n: a.n}
	guard := egressGuard
	m.sound("at the start", guard)
	p, rt := r.add(t, list, "p-0")
	ended, endedRT := r.add(t, list, "p-1")
	m.sound("with pods", guard, p, ended)
	m.sound("with pods, again", guard, p, ended)
	if !strings.Contains(m.before.Filters[0], "CNI-E4-") {
		t.Errorf("no egress on the node:\n%s", m.before.Filters[0])
	}
	end := func(p *node.Pod) {
		if err := a.n.RemoveSandbox(p); err != nil {
			t.Error(err)
		}
	}
	if err := r.DelNetworkList(t.Context(), list, endedRT); err != nil {
		t.Error(err)
	}
	end(ended)
	m.sound("after a pod's end", guard, p)
	if err := r.DelNetworkList(t.Context(), list, rt); err != nil {
		t.Error(err)
	}
	end(p)
	m.sound("without pods", guard)
}
