package e2e_test

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
)

// followers are the rows of TestBackend_Follows. The nightly run has one for IPv6. Each takes a
// minute: the daemon looks every 30 s, and the rules move there and back.
var followers = map[string]func(t *testing.T){
	"IPv4": func(t *testing.T) {
		l := newLab(t, fakeaws.Options{})
		a := l.takenFrom("nft", nil)
		pods := l.mustAdd(a.n, "p", 11, 4)
		l.settled(a.n)
		a.follows("AWS-SNAT-CHAIN-0", pods[0], pods[len(pods)-1]) // on the primary ENI and on another one
		l.del(a.n, pods, 4)
		l.nothingLeft(a.n)
	},
}

// TestBackend_Follows: kubelet's or kube-proxy's chains appear in the other backend of iptables
// while the daemon and pods run. The rules move there once and back once, each with one event, and
// no packet of the pods is lost or leaves untranslated.
func TestBackend_Follows(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, followers, func(t *testing.T, run func(*testing.T)) { run(t) })
}

// follows moves the rules to the legacy backend and back, and looks for one of them there.
func (a *taken) follows(rule string, pods ...*node.Pod) {
	a.t.Helper()
	stop := a.talk(pods...)
	for i, row := range []struct{ appears, to, from, backend string }{
		{"iptables-legacy -t mangle -N KUBE-KUBELET-CANARY; iptables-legacy -t nat -N KUBE-SERVICES; iptables-legacy -t nat -A PREROUTING -j KUBE-SERVICES", "legacy", "nft", "iptables"},
		{"nft add table ip kube-proxy", "nft", "legacy", "nftables"},
	} {
		a.sh(row.appears)
		testenv.Eventually(a.t, "the event of a move", func() bool { return len(a.events(introspect.EventBackendChanged)) > i })
		a.quietAfterwards()
		if e := a.events(introspect.EventBackendChanged)[i]; e.Reason != row.backend || !strings.Contains(e.Message, "to "+row.backend) {
			a.t.Errorf("%s: %+v", row.appears, e)
		}
		if to, from := a.sh("iptables-"+row.to+"-save"), a.sh("iptables-"+row.from+"-save"); !strings.Contains(to, rule) || strings.Contains(from, rule) {
			a.t.Errorf("%s has\n%s\nand %s has\n%s", row.to, to, row.from, from)
		}
		if text := a.scrape(a.n); !strings.Contains(text, `awscni_connmark_backend{backend="`+row.backend+`"} 1`) || strings.Count(text, "awscni_connmark_backend{") != 1 {
			a.t.Errorf("the metric does not follow to %s", row.backend)
		}
	}
	stop()
	if n := len(a.events(introspect.EventBackendChanged)); n != 2 {
		a.t.Errorf("%d events, want 2", n)
	}
	if moves := a.logged("packet filter rules moved to the other backend of iptables"); len(moves) != 2 {
		a.t.Errorf("%d log lines, want 2: %s", len(moves), moves)
	}
	if repaired := a.events(introspect.EventHostStateRepaired); len(repaired) > 0 {
		a.t.Errorf("others are blamed for the moves: %+v", repaired)
	}
}

// events returns the daemon's events of a kind.
func (a *taken) events(kind introspect.EventKind) (out []introspect.Event) {
	a.t.Helper()
	var all introspect.NodeEvents
	a.get(a.n, introspect.PathEvents, &all)
	for _, e := range all.Items {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// talk keeps opening connections from pods to the host outside, which answers the node's primary
// address only, until stop is called. A packet that had to be sent again is an error.
func (a *taken) talk(pods ...*node.Pod) (stop func()) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.t.Context())
	var group sync.WaitGroup
	for _, p := range pods {
		group.Go(func() {
			tick := time.NewTicker(5 * time.Millisecond) //realtime: the pace of connections
			defer tick.Stop()
			count := 0
			for ; ctx.Err() == nil; count++ {
				<-tick.C
				saw, err := p.Netns.AskEchoAtOnce(context.WithoutCancel(ctx), netip.Addr{}, vpc.Outside, testenv.Left(a.t), testenv.Left(a.t))
				if err != nil || saw.Addr() != a.n.Primary.PrimaryIP {
					a.t.Errorf("connection %d of %s: seen from %s, %v", count, p.Name, saw, err)
					return
				}
			}
			a.t.Logf("%d connections of %s", count, p.Name)
		})
	}
	return func() {
		cancel()
		group.Wait()
	}
}
