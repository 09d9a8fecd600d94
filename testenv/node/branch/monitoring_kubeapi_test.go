package branch_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/aws/monitoring"
	"cnictl/testenv/aws/vpcrc"
	"cnictl/testenv/node"
)

// TestBranch_Monitoring: the EKS node monitoring agent, whose fatal findings cost the node, finds
// nothing on a node with branch ENIs, in any settled state.
func TestBranch_Monitoring(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{strict, standard} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			m := l.join(mode, vpcrc.Faults{})
			look := func(pods ...*node.Pod) monitoring.View {
				v, err := m.Monitoring(pods...)
				if err != nil {
					t.Fatal(err)
				}
				if v.ENIs, err = monitoring.Named(v.ENIs); err != nil {
					t.Fatal(err)
				}
				return v
			}
			testenv.Eventually(l.t, "the ENIs' devices to be up", func() bool {
				return !slices.ContainsFunc(look().Links, func(l monitoring.Link) bool {
					return strings.HasPrefix(l.Name, "ens") && l.Flags&net.FlagUp == 0
				})
			})
			before := look()
			sound := func(when string, pods ...*node.Pod) {
				now := look(pods...)
				for _, f := range (monitoring.Agent{}).Check(before, now) {
					t.Errorf("%s the EKS node monitoring agent finds: %s", when, f)
				}
				before = now
			}
			sound("with a trunk")
			a, b, plain := m.run("a"), m.run("b"), m.ordinary("plain")
			sound("with pods", a.Pod, b.Pod, plain)
			sound("with pods, again", a.Pod, b.Pod, plain)
			if got := monitoring.Compared(before.ENIs); !slices.Contains(got, plain.IP.String()) {
				t.Errorf("the agent compares only %q", got)
			}
			if !slices.ContainsFunc(before.Links, func(l monitoring.Link) bool { return l.Name == a.device() }) {
				t.Errorf("no device of a branch ENI among %v", before.Links)
			}
			m.end(a)
			sound("after a pod's end", b.Pod, plain)
			sound("after a pod's end, again", b.Pod, plain)
			m.restart(mode)
			sound("after a restart", b.Pod, plain)
			m.end(b)
			m.endSandbox(plain)
			sound("without pods")
			sound("without pods, again")
		})
	}
}
