package e2e_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"

	"cnictl/daemon/install"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
)

// TestAssert_Egress removes each kind of state that egress-cni creates for running pods of an IPv6
// cluster. The state is restored, and the pods reach the host outside again. Nothing is restored
// for a pod that ended.
func TestAssert_Egress(t *testing.T) {
	t.Parallel()
	for _, backend := range assertedBackends {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			a := egressNode(t, backend)
			r := a.newRuntime(a.n, "portmap")
			r.exec.path = a.path
			r.Path = append(r.Path, filepath.Join(a.binaries, "reference"))
			list := r.list(t, install.Template, func(s *install.Settings) {
				logs := s.PluginLogFile
				*s = install.Defaults(true)
				s.PluginLogFile, s.Egress.LogFile, s.Egress.NodeIP = logs, logs+".egress", a.n.Primary.PrimaryIP
			})
			p, _ := r.add(t, list, "p-0")
			ended, rt := r.add(t, list, "p-1")
			a.outside(p, ended)
			route := strings.Fields(a.sh("ip -4 route | grep '^169.254.172.' | head -1"))
			jump := strings.Fields(a.sh("iptables-save -t nat | grep -- '-A POSTROUTING -s " + route[0] + "/32'"))
			words := strings.NewReplacer("$IP", route[0], "$VETH", route[2], "$CHAIN", jump[len(jump)-1])
			a.seenWhole(route[0], route[2])
			const unlink = "iptables -t nat -D POSTROUTING $(iptables -t nat -L POSTROUTING -n --line-numbers | grep $CHAIN | cut -d' ' -f1)"
			for _, row := range []struct{ what, take string }{
				{"route", "ip route del $IP"},
				{"address of the link", "ip addr del 169.254.172.1/32 dev $VETH"},
				{"link", "ip link set $VETH down"},
				{"chain", unlink + "; iptables -t nat -F $CHAIN; iptables -t nat -X $CHAIN"},
				{"rules of the chain", "iptables -t nat -F $CHAIN"},
				{"jump", unlink},
				{"nat table", "iptables -t nat -F; iptables -t nat -X; ip route del $IP"},
			} {
				a.egressTaken(row.what, words.Replace(row.take))
				a.outside(p, ended)
			}

			if err := r.DelNetworkList(t.Context(), list, rt); err != nil {
				t.Fatal(err)
			}
			if err := a.n.RemoveSandbox(ended); err != nil {
				t.Fatal(err)
			}
			const ofOne = 6 // lines: chain, two rules, jump, route, address
			testenv.Eventually(a.t, "nothing of the pod that ended", func() bool { return len(a.egressState()) == ofOne })
			a.egressTaken("nat table after a pod's end", words.Replace("iptables -t nat -F; iptables -t nat -X; ip route del $IP"))
			a.outside(p)
			if state := strings.Join(a.egressState(), "\n"); strings.Contains(state, ended.ContainerID) {
				t.Errorf("a pod that ended has something again:\n%s", state)
			}

			// Concurrent DELs, each of which looks like a loss while it is in progress.
			const count = 8
			var pods [count]*node.Pod
			var runs [count]*libcni.RuntimeConf
			for i := range count {
				pods[i], runs[i] = r.add(t, list, "short-"+strconv.Itoa(i))
			}
			each(count, 4, func(i int) {
				if err := errors.Join(r.DelNetworkList(t.Context(), list, runs[i]), a.n.RemoveSandbox(pods[i])); err != nil {
					t.Error(err)
				}
			})
			testenv.Eventually(a.t, "nothing of pods that ended", func() bool { return len(a.egressState()) == ofOne })
			a.outside(p)
		})
	}
}

// egressNode starts a node of an IPv6 cluster, with its daemon running.
func egressNode(t *testing.T, backend string) *taken {
	t.Helper()
	l := newLab(t, fakeaws.Options{})
	return l.takenFromInstance(backend, fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.dual().ID, IPv6: true}, ipv6Env)
}

// egressState returns egress-cni's state on the host, as lines.
func (a *taken) egressState() (out []string) {
	a.t.Helper()
	text := a.sh(`iptables-save -t nat | grep CNI-E4- || true; ip -4 route | grep '^169.254.172.' || true; ip -4 -o addr | grep 169.254.172.1/32 || true`)
	for line := range strings.Lines(text) {
		line = filterCounters.ReplaceAllString(linkNoise.ReplaceAllString(line, ""), "")
		out = append(out, strings.Join(strings.Fields(strings.ReplaceAll(line, `\`, " ")), " "))
	}
	slices.Sort(out)
	return out
}

// seenWhole waits until the daemon has seen a pod's egress complete and therefore restores its
// route. Until then nothing is restored, so the test adds the route again before each further try.
// The check that restores it has seen the chains, too.
func (a *taken) seenWhole(ip, link string) {
	a.t.Helper()
	const step = 2 * time.Second
	did, began := -1, time.Now()
	testenv.Eventually(a.t, "a pod's egress that the daemon looks after", func() bool {
		if slices.ContainsFunc(a.repairs(), func(line string) bool { return strings.Contains(line, `"egress-route"`) }) {
			return true
		}
		if now := int(time.Since(began) / step); now != did { //realtime: a try every two seconds
			did = now
			a.sh("ip route replace " + ip + " dev " + link + " scope link; if [ " + strconv.Itoa(now%2) + " = 1 ]; then ip route del " + ip + "; fi")
		}
		return false
	})
}

// egressTaken runs a script that removes something, and waits until it is restored.
func (a *taken) egressTaken(what, script string) {
	a.t.Helper()
	want, before := a.egressState(), a.repairs()
	began := time.Now()
	a.sh(script)
	testenv.Eventually(a.t, what+" is back:\n"+strings.Join(want, "\n"), func() bool {
		return slices.Equal(want, a.egressState()) && !slices.Equal(before, a.repairs())
	})
	a.t.Logf("%s: back after %v", what, time.Since(began).Round(time.Millisecond)) //realtime: logged
}

// outside checks that pods reach the host outside.
func (a *taken) outside(pods ...*node.Pod) {
	a.t.Helper()
	var errs []error
	for _, p := range pods {
		errs = append(errs, a.n.PingFrom(p, vpc.Outside.Addr(), testenv.Left(a.t)))
	}
	if err := errors.Join(errs...); err != nil {
		a.t.Error(err)
	}
}
