package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// The tests of awsfaults_*_binary_test.go each inject one fault into fake AWS and check the
// same guarantees: a pod gets an address within a bound, or an error with a cause code; after
// the fault the daemon's pool equals EC2's state; nothing is lost, assigned twice or left
// behind.

// bootFaulty starts a node and makes EC2 fail from the daemon's first call on.
func (l *lab) bootFaulty(instanceType string, env map[string]string, rules ...fakeaws.Rule) *node.Node {
	l.t.Helper()
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: instanceType, SubnetID: l.subnet.ID})
	if err != nil {
		l.t.Fatal(err)
	}
	n := l.node(i.ID)
	l.breakEC2(rules...)
	l.start(n, env)
	return n
}

func (l *lab) breakEC2(rules ...fakeaws.Rule) {
	l.t.Helper()
	for _, r := range rules {
		if _, err := l.world.AddFault(r); err != nil {
			l.t.Fatal(err)
		}
	}
}

// endFaults ends all faults, and the calls that they made hang.
func (l *lab) endFaults() {
	l.t.Helper()
	l.world.RemoveFaults()
	l.world.SetMetadataLag(0)
	l.world.SetDescribeLag(0)
	for _, e := range l.world.ENIs() {
		if err := l.world.Settle(e.ID); err != nil {
			l.t.Fatal(err)
		}
	}
}

// addAsKubelet adds pods, retrying after failures, until all run or time runs out, which it does not
// before some of them run. It returns the pods that run, and the failures.
func (l *lab) addAsKubelet(n *node.Node, prefix string, count, some int, most time.Duration) (pods []*node.Pod, failed []error) {
	l.t.Helper()
	var mu sync.Mutex
	ctx, started := testenv.Context(l.t), time.Now()
	over := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ctx.Err() != nil || time.Since(started) > most && len(pods) >= some //realtime: the time in which ADDs are retried
	}
	each(count, count, func(i int) {
		tick := time.NewTicker(500 * time.Millisecond) //realtime: kubelet's pace
		defer tick.Stop()
		for {
			p, err := n.AddPod(node.PodSpec{Namespace: "default", Name: fmt.Sprintf("%s-%d", prefix, i)})
			mu.Lock()
			if err == nil {
				pods = append(pods, p)
			} else {
				failed = append(failed, err)
			}
			mu.Unlock()
			if err == nil || over() {
				return
			}
			<-tick.C
		}
	})
	l.t.Logf("%d of %d pods in %.2f s, %d ADDs failed, %s", len(pods), count, time.Since(started).Seconds(), len(failed), l.calls()) //realtime: logged
	for _, err := range failed {
		l.t.Logf("failed: %v", err)
	}
	return pods, failed
}

// explained fails the test for each failure without an expected cause code.
func (l *lab) explained(failed []error, want ...cause.Code) {
	l.t.Helper()
	for _, err := range failed {
		var p *node.PluginError
		if !errors.As(err, &p) || !slices.ContainsFunc(want, func(c cause.Code) bool { return strings.Contains(p.Details, string(c)) }) {
			l.t.Errorf("a failed ADD names none of the causes %q: %v", want, err)
		}
	}
}

// ownAddresses checks that each pod has a unique address, on an ENI of the node.
func (l *lab) ownAddresses(n *node.Node, pods []*node.Pod) {
	l.t.Helper()
	seen := map[netip.Addr]string{}
	for _, p := range pods {
		if other := seen[p.IP]; other != "" {
			l.t.Errorf("%s was given to %s and %s", p.IP, other, p.Name)
		}
		seen[p.IP] = p.Name
		if e, ok := l.world.OwnerOf(p.IP); !ok || e.Attachment.InstanceID != n.InstanceID {
			l.t.Errorf("%s has %s, which is on no ENI of the node", p.Name, p.IP)
		}
	}
}

// difference describes how the daemon's pool differs from EC2, "" if it does not: in the ENIs
// attached to the node, and in the addresses of each.
func (l *lab) difference(n *node.Node) string {
	l.t.Helper()
	var enis introspect.ENIs
	l.get(n, introspect.PathENIs, &enis)
	known := map[string][]string{}
	for id, e := range enis["0"].ENIs {
		known[id] = []string{}
		for c := range e.AvailableIPv4Cidrs {
			known[id] = append(known[id], c)
		}
		slices.Sort(known[id])
	}
	there := map[string][]string{}
	for _, e := range l.world.ENIs() {
		switch {
		case e.Attachment.ID == "":
			return fmt.Sprintf("%s has no owner (tags %v)", e.ID, e.Tags)
		case e.Attachment.InstanceID != n.InstanceID:
			continue
		case !e.Attached():
			return fmt.Sprintf("%s is %s", e.ID, e.Attachment.Status)
		}
		there[e.ID] = []string{}
		for _, c := range e.CIDRs() {
			if c.Addr() != e.PrimaryIP {
				there[e.ID] = append(there[e.ID], c.String())
			}
		}
		slices.Sort(there[e.ID])
	}
	if fmt.Sprint(known) == fmt.Sprint(there) {
		return ""
	}
	return fmt.Sprintf("the daemon knows %v, EC2 has %v", known, there)
}

// converged waits until the pool is idle and equals EC2's state.
func (l *lab) converged(n *node.Node, within time.Duration) {
	l.t.Helper()
	started := time.Now()
	const what = "the pool after the fault's end"
	testenv.Within(l.t, within, what, func() {
		testenv.EventuallyErr(l.t, what, func() error {
			var s introspect.Summary
			l.get(n, introspect.PathSummary, &s)
			if different := l.difference(n); len(s.Operations) > 0 || different != "" {
				operations, _ := json.Marshal(s.Operations) // these types always encode
				return fmt.Errorf("%s; in progress: %s", different, operations)
			}
			return nil
		})
	})
	l.t.Logf("settled %.2f s after the fault's end", time.Since(started).Seconds()) //realtime: logged
}

// convergence bounds the wait until the daemon notices what a fault hid from it: a released
// address is not assigned again for a minute, and the resync interval is another minute, with
// jitter.
const convergence = 3 * time.Minute

// faultRow is one fault of EC2 or of the metadata service.
type faultRow struct {
	name  string
	rules []fakeaws.Rule
	env   map[string]string
	lag   func(*fakeaws.World)
	most  time.Duration // until the pods must have addresses, default a minute and a half
	// held means that pods beyond the primary ENI's addresses cannot start before the
	// fault ends: their ADDs fail with a cause instead.
	held bool
}

// runAll runs rows in parallel.
func runAll(t *testing.T, rows []faultRow, run func(faultRow, *testing.T)) {
	for _, row := range rows {
		atOnce(t, row.name, func(t *testing.T) { run(row, t) })
	}
}

// run starts pods during the fault, ends it, and expects the same state as without the fault.
func (row faultRow) run(t *testing.T) {
	l := newLab(t, fakeaws.Options{Latency: map[string]time.Duration{}})
	env := map[string]string{"CNI_ADD_WAIT": "5s"}
	for k, v := range row.env {
		env[k] = v
	}
	if row.most == 0 {
		row.most = 90 * time.Second
	}
	some := 12
	if row.held {
		some = 9
	}
	n := l.bootFaulty("m5.large", env, row.rules...)
	if row.lag != nil {
		row.lag(l.world)
	}
	pods, failed := l.addAsKubelet(n, "p", 12, some, row.most)
	l.explained(failed, cause.PoolDry, cause.EC2Error, cause.EC2Throttled, cause.ENILinkMissing, cause.SubnetExhausted)
	if got, want := len(pods), some; got != want {
		t.Errorf("%d of %d pods have an address after %v", got, want, row.most)
	}
	l.endFaults()
	if missing := 12 - len(pods); missing > 0 {
		later, _ := l.addAsKubelet(n, "later", missing, missing, testenv.Left(t))
		pods = append(pods, later...)
	}
	l.ownAddresses(n, pods)
	l.converged(n, convergence)
	l.del(n, pods, 4)
	l.nothingLeft(n)
}
