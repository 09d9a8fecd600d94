package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// taken is a node from which the test removes things, and which runs one iptables backend's
// programs.
type taken struct {
	*lab
	n     *node.Node
	path  string // PATH of the node's programs
	shown string // script that prints the CNI's state
	// prompt has the removals that the kernel notifies about.
	prompt []reassertion
}

// reassertion says how long something that was removed stayed away.
type reassertion struct {
	what string
	away time.Duration
}

func (r reassertion) String() string {
	return fmt.Sprintf("%s: %v", r.what, r.away.Round(time.Millisecond))
}

// ipv4State prints the CNI's state on an IPv4 node.
const ipv4State = `ip rule; ip -4 route show table all; ip -4 addr; ip -o link | grep -v ' lo: '
iptables-save; nft list table ip aws-cni 2>/dev/null || true; grep . /proc/sys/net/ipv4/conf/*/rp_filter | grep -v 'eni\|vlan' || true`

// takenFrom starts a node that uses an iptables backend.
func (l *lab) takenFrom(backend string, env map[string]string) *taken {
	l.t.Helper()
	return l.takenFromInstance(backend, fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID}, env)
}

// takenFromInstance does the same on an instance of the given kind.
func (l *lab) takenFromInstance(backend string, spec fakeaws.InstanceSpec, env map[string]string) *taken {
	l.t.Helper()
	tools := l.t.TempDir()
	for _, six := range []string{"", "6"} {
		for _, do := range []string{"", "-save", "-restore"} {
			program := "/usr/sbin/ip" + six + "tables-" + backend + do
			if err := os.Symlink(program, filepath.Join(tools, "ip"+six+"tables"+do)); err != nil {
				l.t.Fatal(err)
			}
		}
	}
	i, err := l.world.AddInstance(spec)
	if err != nil {
		l.t.Fatal(err)
	}
	a := &taken{lab: l, n: l.node(i.ID), path: tools + ":" + os.Getenv("PATH") + ":/usr/sbin:/sbin", shown: ipv4State}
	a.restart(env)
	return a
}

// restart starts the daemon.
func (a *taken) restart(env map[string]string) {
	a.t.Helper()
	own := map[string]string{"PATH": a.path}
	maps.Copy(own, env)
	a.start(a.n, own)
}

// sh runs a script in the node.
func (a *taken) sh(script string) string {
	a.t.Helper()
	r, err := a.n.Exec(agent.Cmd{Argv: []string{"/bin/sh", "-euc", script}, Env: []string{"PATH=" + a.path}})
	if err == nil && r.Code != 0 {
		err = errors.New(string(r.Stderr))
	}
	if err != nil {
		a.t.Fatalf("%s\n%v", script, err)
	}
	return string(r.Stdout)
}

var (
	filterCounters = regexp.MustCompile(`\[\d+:\d+\]|counter packets \d+ bytes \d+|^#.*`)
	linkNoise      = regexp.MustCompile(`^\d+: |state \w+|valid_lft.*|qlen \d+|@if\d+| link-netns \S+`)
)

// hostState returns the CNI's state on the host, as sorted lines.
func (a *taken) hostState() []string {
	a.t.Helper()
	text := a.sh(a.shown)
	var out []string
	for line := range strings.Lines(text) {
		line = filterCounters.ReplaceAllString(strings.TrimSpace(line), "")
		if !strings.Contains(line, "lookup") { // rules also start with a number
			line = linkNoise.ReplaceAllString(line, "")
		}
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

// repairs returns the daemon's counts of restored things, by kind.
func (a *taken) repairs() (out []string) {
	a.t.Helper()
	for line := range strings.Lines(a.scrape(a.n)) {
		if strings.HasPrefix(line, "awscni_host_state_repairs_total{") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// assertedBackends are the backends of iptables that are tried. The nightly run adds legacy, which
// waits for checks every 30 s: the kernel does not notify about its tables.
var assertedBackends = []string{"nft"}

// TestAssert removes each kind of state that the CNI creates on a host while pods run. The state
// is restored, and the pods still answer.
func TestAssert(t *testing.T) {
	t.Parallel()
	for _, backend := range assertedBackends {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, fakeaws.Options{})
			a, other := l.takenFrom(backend, map[string]string{"AWS_EXTERNAL_SERVICE_CIDRS": "10.77.0.0/16"}), l.boot("m5.large", nil)
			n := a.n
			pods, far := l.mustAdd(n, "p", 11, 4), l.mustAdd(other, "far", 1, 1)
			l.settled(n)
			first, last := pods[0], pods[len(pods)-1]
			second := a.secondENI()
			a.whole(last)
			words := strings.NewReplacer("$FIRST", first.IP.String(), "$LAST", last.IP.String(), "$PRIMARY", n.Link, "$ENIIP", second.PrimaryIP.String(),
				"$ENI", a.nameOf(second.MAC), "$VETH", a.linkTo(last))
			for _, row := range []struct{ what, take string }{
				{"rule to a pod", "ip rule del priority 512 to $FIRST"},
				{"rule from a pod", "ip rule del priority 1536 from $LAST"},
				{"rule of marked traffic", "ip rule del priority 1024"},
				{"rule of external services", "ip rule del priority 1535"},
				{"rule of an ENI", "ip rule del priority 32765"},
				{"route to a pod", "ip route del $LAST"},
				{"routes of an ENI's table", "ip route flush table 2"},
				{"address of an ENI", "ip addr flush dev $ENI"},
				{"further address on an ENI", "ip addr add 10.1.15.250/20 dev $ENI"},
				{"link of an ENI", "ip link set $ENI down"},
				{"MTU of an ENI", "ip link set $ENI mtu 1500"},
				{"link of a pod", "ip link set $VETH down"},
				{"MAC address of a pod's link", "ip link set $VETH address 02:00:00:00:be:ef"},
				{"MTU of the primary link", "ip link set $PRIMARY mtu 1500"},
				{"reverse path filter", "echo 1 > /proc/sys/net/ipv4/conf/$PRIMARY/rp_filter"},
				{"all rules, as networkd takes them", "ip rule flush; ip rule add from all lookup main priority 32766; ip rule add from all lookup default priority 32767"},
				{"all routes of pods", "ip route show | grep 'dev eni' | while read r; do ip route del $r; done"},
			} {
				a.takenAway(row.what, words.Replace(row.take), true)
				a.answer(row.what, first, last, far[0])
			}
			filters := map[string]string{
				"SNAT chain":       "iptables -t nat -F AWS-SNAT-CHAIN-0",
				"jump to it":       `iptables -t nat -D POSTROUTING -m comment --comment "AWS SNAT CHAIN" -j AWS-SNAT-CHAIN-0`,
				"mangle rules":     "iptables -t mangle -F PREROUTING",
				"a whole rule set": `printf "*nat\nCOMMIT\n*mangle\nCOMMIT\n" | iptables-restore`,
			}
			if backend == "nft" {
				filters["native table"] = "nft delete table ip aws-cni"
				filters["chain of the native table"] = "nft flush chain ip aws-cni snat-mark"
			} else {
				// The kernel does not notify about legacy tables, and checks run every 30 s: remove
				// parts of all tables at once.
				filters = map[string]string{
					"parts of all tables": strings.Join([]string{
						filters["SNAT chain"], filters["jump to it"], filters["mangle rules"],
						"iptables -t nat -F AWS-CONNMARK-CHAIN-0", "iptables -t nat -F PREROUTING",
					}, "; "),
					"a whole rule set": filters["a whole rule set"],
				}
			}
			for what, take := range filters {
				a.takenAway(what, take, backend == "nft")
				a.answer(what, first, last, far[0])
			}
			a.promptly()
			a.quietAfterwards()
			a.filesRemoved()

			// Nothing of the deleted pod is restored.
			l.del(n, pods[:5], 1)
			a.sh("ip rule del priority 512 to " + last.IP.String())
			testenv.Eventually(l.t, "a rule that is back", func() bool { return strings.Contains(a.sh("ip rule"), "to "+last.IP.String()+" ") })
			for _, p := range pods[:5] {
				if text := a.sh("ip rule; ip route"); regexp.MustCompile(`\b` + regexp.QuoteMeta(p.IP.String()) + `\b`).MatchString(text) {
					t.Errorf("%s of a deleted pod is there:\n%s", p.IP, text)
				}
			}
			l.del(n, pods[5:], 2)
			l.nothingLeft(n)
			l.del(other, far, 1)

			var events introspect.NodeEvents
			l.get(n, introspect.PathEvents, &events)
			if !slices.ContainsFunc(events.Items, func(e introspect.Event) bool { return e.Kind == introspect.EventHostStateRepaired && e.Message != "" }) {
				t.Error("no event reports it")
			}
		})
	}
}

// secondENI returns the first secondary ENI of a node.
func (a *taken) secondENI() fakeaws.ENI {
	a.t.Helper()
	for _, e := range a.world.ENIsOf(a.n.InstanceID) {
		if !e.Primary() && e.Attachment.Device == 1 {
			return e
		}
	}
	a.t.Fatal("no second ENI")
	return fakeaws.ENI{}
}

func (a *taken) nameOf(mac string) string {
	a.t.Helper()
	return strings.TrimSpace(a.sh("ip -o link | grep " + mac + " | cut -d' ' -f2 | cut -d@ -f1 | tr -d :"))
}

func (a *taken) linkTo(p *node.Pod) string {
	a.t.Helper()
	words := strings.Fields(a.sh("ip route get " + p.IP.String()))
	return words[slices.Index(words, "dev")+1]
}

// whole waits until the daemon has seen a pod complete and therefore restores what is removed.
// Until then nothing is restored, so the test adds the rule again before each further try.
func (a *taken) whole(p *node.Pod) {
	a.t.Helper()
	const step = 2 * time.Second
	rule := "ip rule"
	if p.IP.Is6() {
		rule = "ip -6 rule"
	}
	add, del := rule+" add priority 512 to "+p.IP.String()+" lookup main 2>/dev/null || true", rule+" del priority 512 to "+p.IP.String()
	did, began := -1, time.Now()
	testenv.Eventually(a.t, "a pod that the daemon looks after", func() bool {
		if len(a.repairs()) > 0 {
			return true
		}
		now := int(time.Since(began) / step) //realtime: a try every two seconds
		switch {
		case now == did:
		case now%2 == 0: // any change of links triggers a check
			a.sh(add + "; ip link add nudge type veth peer name nudgefar; ip link del nudge")
		default:
			a.sh(del)
		}
		did = now
		return false
	})
}

// Half of the removals that the kernel notifies about must be undone within promptness, and each
// within promptnessOfOne, where the machine does not starve us: without notifications the periodic
// check undoes them, half of them after more than 15 s and some after nearly 30 s.
const (
	promptness      = 8 * time.Second
	promptnessOfOne = 25 * time.Second
)

// takenAway runs a script that removes something, and waits until it is restored. notified means
// that the kernel notifies about the removal.
func (a *taken) takenAway(what, script string, notified bool) {
	a.t.Helper()
	want := a.hostState()
	a.sh(script)
	away := testenv.Unstarved(func() {
		testenv.EventuallyErr(a.t, what+" to be back", func() error {
			if got := a.hostState(); !slices.Equal(got, want) {
				return fmt.Errorf("(-want +have):\n%s", cmp.Diff(want, got))
			}
			return nil
		})
	})
	a.t.Logf("%s: back after %v", what, away.Round(time.Millisecond))
	if !notified {
		return
	}
	a.prompt = append(a.prompt, reassertion{what, away})
	if away > promptnessOfOne {
		a.t.Errorf("%s: back after %v, which is more than %v", what, away, promptnessOfOne)
	}
}

// promptly checks that half of the removals were undone in time.
func (a *taken) promptly() {
	a.t.Helper()
	slices.SortFunc(a.prompt, func(x, y reassertion) int { return int(x.away - y.away) })
	if len(a.prompt) == 0 {
		a.t.Fatal("nothing was measured")
	}
	median := a.prompt[len(a.prompt)/2].away
	a.t.Logf("half of %d were back after %v", len(a.prompt), median.Round(time.Millisecond))
	if median > promptness {
		a.t.Errorf("half of what was taken was away for more than %v, which is more than %v: %v", median, promptness, a.prompt)
	}
}

// answer checks that pods answer after something was removed.
func (a *taken) answer(what string, near, own, far *node.Pod) {
	a.t.Helper()
	for _, path := range []struct {
		name string
		err  error
	}{
		{"node to pod", a.n.Ping(own.IP, testenv.Left(a.t))},
		{"pod to pod", a.n.PingFrom(own, near.IP, testenv.Left(a.t))},
		{"pod to another node's", a.n.PingFrom(own, far.IP, testenv.Left(a.t))},
		{"pod to outside", a.n.PingFrom(own, vpc.Outside.Addr(), testenv.Left(a.t))},
	} {
		if path.err != nil {
			a.t.Errorf("after %s was taken away, %s: %v", what, path.name, path.err)
		}
	}
}

// filesRemoved removes the daemon's files.
func (a *taken) filesRemoved() {
	a.t.Helper()
	for _, path := range []string{node.Checkpoint, node.GRPCSocket, node.LeanSocket} {
		want := a.checkpointAllocations(path)
		a.sh("rm " + path)
		began := time.Now()
		testenv.Eventually(a.t, path+" again", func() bool {
			f, err := a.n.Open(path, unix.O_PATH, 0)
			if err != nil {
				return false
			}
			return f.Close() == nil && a.checkpointAllocations(path) == want
		})
		a.t.Logf("%s: back after %v", path, time.Since(began).Round(time.Millisecond)) //realtime: logged
	}
	a.dial(a.n, "unix", node.GRPCSocket).Close()
	a.del(a.n, a.mustAdd(a.n, "after-the-sockets", 1, 1), 1)
}

// checkpointAllocations returns the number of allocations in the checkpoint, 0 for other files.
func (a *taken) checkpointAllocations(path string) int {
	a.t.Helper()
	if path != node.Checkpoint {
		return 0
	}
	all, err := a.n.Allocations()
	if err != nil {
		a.t.Fatal(err)
	}
	return len(all)
}

// quietAfterwards checks that the daemon restores nothing on a correct node.
func (a *taken) quietAfterwards() {
	a.t.Helper()
	before, state, checked := a.repairs(), a.hostState(), len(a.checks())
	for i := range 10 {
		a.sh(fmt.Sprintf("ip link add nudge%d type veth peer name nudgefar%d; ip link del nudge%d", i, i, i))
	}
	testenv.Eventually(a.t, "a check of the node", func() bool { return len(a.checks()) > checked })
	for _, line := range a.checks()[checked:] {
		if !strings.Contains(line, `"count":0`) {
			a.t.Errorf("a check of a correct node restored something: %s", line)
		}
	}
	if after := a.repairs(); !slices.Equal(before, after) {
		a.t.Errorf("a correct node was repaired (-before +after):\n%s", cmp.Diff(before, after))
	}
	if after := a.hostState(); !slices.Equal(state, after) {
		a.t.Errorf("checks changed the node (-before +after):\n%s", cmp.Diff(state, after))
	}
}

// checks returns the daemon's log lines about its checks of the node.
func (a *taken) checks() []string {
	a.t.Helper()
	return a.logged("host network state checked")
}

// logged returns the daemon's log lines that contain a text.
func (a *taken) logged(what string) (out []string) {
	a.t.Helper()
	text, err := os.ReadFile(filepath.Join(a.n.Dir, "log", "ipamd.log"))
	if err != nil {
		a.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, what) {
			out = append(out, line)
		}
	}
	return out
}

// TestAssert_WhileTheDaemonIsDown: state that was removed while the daemon was down is restored
// after a restart, even if only rules are missing. Nothing is restored for a pod that ended
// meanwhile.
func TestAssert_WhileTheDaemonIsDown(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	a := l.takenFrom("nft", nil)
	pods := l.mustAdd(a.n, "p", 11, 4)
	l.settled(a.n)
	gone, first, last := pods[1], pods[0], pods[len(pods)-1]
	l.kill(a.n, syscall.SIGKILL)
	if err := a.n.RemoveSandbox(gone); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(l.t, "the links of a pod are gone", func() bool { return !strings.Contains(a.sh("ip route"), gone.IP.String()+" ") })
	want := slices.DeleteFunc(a.hostState(), func(line string) bool {
		return strings.Contains(line, " "+gone.IP.String()+" ")
	})
	a.sh("ip rule flush; ip rule add from all lookup main priority 32766; ip rule add from all lookup default priority 32767; ip route flush table 2; ip route del " + first.IP.String() + "; ip route del " + last.IP.String())
	a.restart(nil)
	testenv.Eventually(a.t, "everything again", func() bool { return slices.Equal(a.hostState(), want) })
	if err := errors.Join(a.n.Ping(first.IP, testenv.Left(t)), a.n.Ping(last.IP, testenv.Left(t)), a.n.PingFrom(last, vpc.Outside.Addr(), testenv.Left(t))); err != nil {
		t.Error(err)
	}
	l.del(a.n, pods, 2)
	l.nothingLeft(a.n)
}

// TestAssert_Contested: state that another program keeps removing is restored with growing
// delays, and is there in the end.
func TestAssert_Contested(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	a := l.takenFrom("nft", nil)
	pods := l.mustAdd(a.n, "p", 1, 1)
	a.whole(pods[0])
	rule := "to " + pods[0].IP.String() + " "
	testenv.Eventually(l.t, "a rule that is back", func() bool { return strings.Contains(a.sh("ip rule"), rule) })
	const taken = 9
	began := time.Now()
	for range taken {
		testenv.Eventually(l.t, "a rule that is back again", func() bool { return strings.Contains(a.sh("ip rule"), rule) })
		a.sh("ip rule del priority 512 " + rule)
	}
	// The first five times it was restored immediately, then after 1 s, 2 s and 4 s; one more
	// restore may be immediate.
	if took := time.Since(began); took < 3*time.Second { //realtime: a lower bound
		t.Errorf("removed %d times in %v", taken, took)
	}
	testenv.Eventually(l.t, "a rule that is back after all", func() bool { return strings.Contains(a.sh("ip rule"), rule) })
	var events introspect.NodeEvents
	l.get(a.n, introspect.PathEvents, &events)
	repaired := 0
	for _, e := range events.Items {
		if e.Kind == introspect.EventHostStateRepaired {
			repaired++
		}
	}
	if repaired > taken+3 {
		t.Errorf("%d repair events for %d removals", repaired, taken)
	}
	l.del(a.n, pods, 1)
	l.nothingLeft(a.n)
}
