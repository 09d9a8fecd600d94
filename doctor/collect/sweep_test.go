package collect

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/kube"
	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
	"cnictl/testenv"
	"cnictl/testenv/kube/fleetsim"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/situation"
)

func TestMain(m *testing.M) { kubeapi.Main(m) }

// connect connects to a simulated cluster as its administrator.
func connect(tb testing.TB, sim *fleetsim.Sim) *kube.Cluster {
	tb.Helper()
	return connectAt(tb, sim, time.Now)
}

// connectAt is connect with the given clock.
func connectAt(tb testing.TB, sim *fleetsim.Sim, now func() time.Time) *kube.Cluster {
	tb.Helper()
	c, err := kube.Connect(kube.Config{Rest: sim.RESTConfig(), UserAgent: "test", Now: now})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// collectAll collects without timeouts: no node counts as silent on a busy machine.
func collectAll(tb testing.TB, o Options) *evidence.Evidence {
	tb.Helper()
	o.Timeout, o.NodeTimeout = testenv.Left(tb), testenv.Left(tb)
	if o.Now == nil {
		o.Now = time.Now
	}
	ev, err := Collect(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return ev
}

func nodeOf(tb testing.TB, ev *evidence.Evidence, name string) evidence.Node {
	tb.Helper()
	i := slices.IndexFunc(ev.Nodes, func(n evidence.Node) bool { return n.Name == name })
	if i < 0 {
		tb.Fatalf("no node %s among %d", name, len(ev.Nodes))
	}
	return ev.Nodes[i]
}

// TestCollect sweeps a small cluster: sound nodes are read once and briefly, the others twice and
// in full.
func TestCollect(t *testing.T) {
	t.Parallel()
	const away, waits, windows, old = 3, 5, 6, 7
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 12, Seed: 4, Churn: -1, Named: map[string][]fleetsim.Trait{
		fleetsim.NodeName(away): {fleetsim.Refused}, fleetsim.NodeName(waits): {fleetsim.NotReady}, fleetsim.NodeName(windows): {fleetsim.Windows},
		fleetsim.NodeName(old): {fleetsim.Upstream},
	}})
	c := connect(t, sim)
	var mu sync.Mutex
	steps := map[string]int{}
	var states []string // of a node that refuses, as shown while it is read
	ev := collectAll(t, Options{Cluster: c, Interval: time.Millisecond, Progress: func(done, total int, what string) {
		mu.Lock()
		defer mu.Unlock()
		if steps[what]++; done > total {
			t.Errorf("%s: %d of %d", what, done, total)
		}
	}, SoFar: func(so *evidence.Evidence) {
		refused := nodeOf(t, so, fleetsim.NodeName(away))
		states = append(states, refused.First.Metrics.Missing)
		if len(so.Nodes) != 11 || refused.Second != nil {
			t.Errorf("%d nodes are shown before the second reading, one as %+v", len(so.Nodes), refused)
		}
	}})
	if n := len(states); n < 2 || states[0] != evidence.MissingNotAsked || states[n-1] != evidence.MissingRefused {
		t.Errorf("a node was shown with metrics: %q", states)
	}
	if len(ev.Nodes) != 11 || ev.Mode != evidence.ModeLaptop || !ev.Scope.Cluster || ev.Interval <= 0 {
		t.Fatalf("%d nodes, mode %s, scope %+v, interval %v", len(ev.Nodes), ev.Mode, ev.Scope, ev.Interval)
	}
	if steps["nodes"] != 12 || steps["nodes in full"] == 0 || steps["objects of Kubernetes"] != 1 || steps[SecondIn(time.Millisecond)] != 1 {
		t.Errorf("progress: %v", steps)
	}
	for _, n := range ev.Nodes {
		r := n.First
		if !r.Node.OK() || r.Node.Content.Name != n.Name || !r.InstanceType.Content.Known || len(r.Nodes.Content) != 1 {
			t.Errorf("%s: node %q, %d others", n.Name, r.Node.Content.Name, len(r.Nodes.Content))
		}
		for _, p := range r.Pods.Content {
			if p.Node != nil && *p.Node != n.Name {
				t.Errorf("%s has pod %s of %s", n.Name, p.Pod, *p.Node)
			}
		}
		if r.Rules.Missing != evidence.MissingMode || r.Interfaces.Missing != evidence.MissingNotAsked || r.Subnets.Missing != evidence.MissingNotAsked {
			t.Errorf("%s: rules %q, interfaces %q", n.Name, r.Rules.Missing, r.Interfaces.Missing)
		}
	}
	sound := nodeOf(t, ev, fleetsim.NodeName(0))
	if r := sound.First; sound.Second == nil || sound.Second.At != sound.First.At || !r.ENIs.OK() || !r.Summary.OK() || r.Metrics.Missing != evidence.MissingNotAsked || len(r.Pods.Content) == 0 {
		t.Errorf("a sound node was read as\n%+v", r)
	}
	upstream := nodeOf(t, ev, fleetsim.NodeName(old)).First
	if !upstream.ENIs.OK() || upstream.Summary.Missing != evidence.MissingAbsent || upstream.Plan.Missing != evidence.MissingAbsent {
		t.Errorf("upstream: %+v", upstream.Daemon)
	}
	refused := nodeOf(t, ev, fleetsim.NodeName(away))
	if r := refused.Second; r == nil || r.ENIs.Missing != evidence.MissingRefused || r.Plan.Missing != evidence.MissingRefused || r.Metrics.Missing != evidence.MissingRefused || !r.LogAWSNode.OK() {
		t.Errorf("a node that refuses was read as %+v", r)
	}
	waiting := nodeOf(t, ev, fleetsim.NodeName(waits))
	if r := waiting.Second; r == nil || r.DaemonPods.Content[0].Containers[0].State != "waiting" || r.Metrics.OK() || r.ENIs.OK() {
		t.Errorf("a node whose daemon does not run was read as %+v", r)
	}
	roundTrip(t, ev)
}

// roundTrip: evidence is the same after saving and loading.
func roundTrip(t *testing.T, ev *evidence.Evidence) {
	t.Helper()
	saved, err := file.Save(ev)
	if err != nil {
		t.Fatal(err)
	}
	again, err := file.Load(saved)
	if err != nil {
		t.Fatal(err)
	}
	second, err := file.Save(again)
	if diff := cmp.Diff(strings.Split(string(saved), "\n"), strings.Split(string(second), "\n")); err != nil || diff != "" {
		t.Errorf("saved again it is another: %v -first +again:\n%s", err, diff)
	}
}

// TestCollect_Named: a named node is read in full even if nothing is wrong with it. For a named pod,
// its node is read, with what the daemon holds for the pod.
func TestCollect_Named(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 4, Seed: 2, Churn: -1})
	c := connect(t, sim)
	targets, err := c.Targets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ev := collectAll(t, Options{Cluster: c, Targets: targets[1:2], Named: true, Once: true})
	n := ev.Nodes[0]
	if r := n.First; len(ev.Nodes) != 1 || ev.Scope.Node != targets[1].Name || n.Second != nil || len(r.Nodes.Content) != 3 {
		t.Fatalf("%+v", ev)
	}
	for id, why := range n.First.Missing() {
		if strings.HasPrefix(id, "intro.") && id != "intro.pod" || id == "metrics" || id == "log.ipamd" || id == "log.awsnode" {
			t.Errorf("%s is missing: %s", id, why)
		}
	}
	roundTrip(t, ev)

	pod := n.First.Pods.Content[slices.IndexFunc(n.First.Pods.Content, func(p evidence.KubePod) bool { return !p.HostNetwork && len(p.IPs) > 0 })].Pod
	ev = collectAll(t, Options{Cluster: c, Pod: pod, Once: true})
	r := ev.Nodes[0].First
	if len(ev.Nodes) != 1 || ev.Nodes[0].Name != targets[1].Name || ev.Scope.Pod != pod || len(r.PodViews.Content) != 1 || r.PodViews.Content[0].Pod.Namespace+"/"+r.PodViews.Content[0].Pod.Name != string(pod) {
		t.Errorf("pod %s: %+v, %+v", pod, ev.Scope, r.PodViews)
	}
	if _, err := Collect(t.Context(), Options{Cluster: c, Pod: "a/none", Once: true, Now: time.Now}); err == nil {
		t.Error("a pod that there is not has evidence")
	}
}

// TestCollect_Exec accepts the output of our image's program only for what nothing but the node can
// see, whatever it prints.
func TestCollect_Exec(t *testing.T) {
	t.Parallel()
	whole, err := situation.Load([]byte("schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nonce: true\nsources:\n  host.res: {missing: forbidden}\n  eks.addon: {version: forged}\n"))
	if err != nil {
		t.Fatal(err)
	}
	printed, err := file.Save(whole)
	if err != nil {
		t.Fatal(err)
	}
	const invalid = "exec: what the node printed is not evidence: "
	large, refused := bytes.Repeat([]byte("a"), file.MaxBytes+100), invalid+"the file has"
	if testing.Short() { // the race detector makes reading it so slow that the connection's ping resets it
		large, refused = []byte("{}"), invalid
	}
	old := fleetsim.NodeName(3)
	prints := map[string][]byte{
		fleetsim.NodeName(0): printed, fleetsim.NodeName(1): []byte("{}"), fleetsim.NodeName(2): large,
	}
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 4, Seed: 2, Churn: -1, Named: map[string][]fleetsim.Trait{old: {fleetsim.Upstream}}, Doctor: func(node string) []byte { return prints[node] }})
	c := connect(t, sim)
	ev := collectAll(t, Options{Cluster: c, Named: true, Once: true, Exec: true})
	r := nodeOf(t, ev, fleetsim.NodeName(0)).First
	if len(r.Rules.Content) == 0 || r.Checkpoint.Content.Path == "" || r.IMDS.Content.Token != "ok" || r.Resources.Missing != evidence.MissingForbidden {
		t.Errorf("rules %+v, checkpoint %+v, resources %+v", r.Rules, r.Checkpoint, r.Resources)
	}
	if r.Node.Content.Name != fleetsim.NodeName(0) || r.Interfaces.Missing != evidence.MissingNotAsked || len(r.Webhooks.Content) > 0 || r.Summary.Content.Node != fleetsim.NodeName(0) {
		t.Errorf("the node's word was taken for others: %+v, %+v, %+v", r.Node, r.Interfaces, r.Webhooks)
	}
	if r.AddOn.OK() {
		t.Errorf("the node's word was taken for that of EKS: %+v", r.AddOn.Content)
	}
	for node, want := range map[string]string{
		fleetsim.NodeName(1): invalid, fleetsim.NodeName(2): refused,
		old: "upstream's image has no cnictl",
	} {
		if r := nodeOf(t, ev, node).First; !strings.HasPrefix(r.Rules.Missing, want) {
			t.Errorf("%s: %q, want %q", node, r.Rules.Missing, want)
		}
	}
}

// TestCollect_ExecTwice: the second output of the node is in the second reading.
func TestCollect_ExecTwice(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 1, Seed: 2, Churn: -1, Doctor: func(string) []byte {
		return fmt.Appendf(nil, "schemaVersion: 2\nat: 2026-11-21T14:02:11Z\nonce: true\nsources: {kern.sysctl: {reading: %q}}\n", fmt.Sprint(calls.Add(1)))
	}})
	n := collectAll(t, Options{Cluster: connect(t, sim), Named: true, Interval: time.Millisecond, Exec: true}).Nodes[0]
	if first, second := n.First.Sysctls.Content["reading"], n.Second.Sysctls.Content["reading"]; first != "1" || second != "2" {
		t.Errorf("%q, then %q", first, second)
	}
}

// TestCollect_Targets reads nodes without a cluster.
func TestCollect_Targets(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 2, Seed: 2, Churn: -1})
	named, err := sim.ServeTargets(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	targets, err := fleet.ParseTargets(strings.Split(named, ","))
	if err != nil {
		t.Fatal(err)
	}
	ev := collectAll(t, Options{Targets: targets, Named: true, Once: true})
	if r := ev.Nodes[0].First; len(ev.Nodes) != 2 || !r.ENIs.OK() || !r.Plan.OK() || r.Node.Missing != evidence.MissingMode || !strings.Contains(r.Metrics.Missing, "cannot be reached") {
		t.Errorf("%+v", r)
	}
}

// planted are the shares of nodes with each cause, and its code.
var planted = map[fleetsim.Trait]struct {
	share float64
	code  string
}{
	fleetsim.FullSubnet:   {0.02, "ip/subnet-exhausted"},
	fleetsim.Throttled:    {0.012, "aws/throttled"},
	fleetsim.Unauthorized: {0.008, "aws/iam"},
}

// plantedFleet is a cluster with both daemons and these causes.
func plantedFleet(tb testing.TB, nodes int) *fleetsim.Sim {
	shares := map[fleetsim.Trait]float64{}
	for t, p := range planted {
		shares[t] = p.share
	}
	return fleetsim.New(tb, fleetsim.Options{Nodes: nodes, UpstreamShare: 0.3, Seed: 1, Churn: -1, Shares: shares})
}

// count counts the nodes of each cause above info, and compares with those planted.
func count(tb testing.TB, ev *evidence.Evidence, nodes int) {
	tb.Helper()
	got, want := map[string]int{}, map[string]int{}
	for _, f := range causes.Diagnose(ev, causes.Options{}).Findings {
		if f.Severity != catalogue.Info.String() {
			got[f.Code] += len(f.Nodes)
		}
	}
	for _, p := range planted {
		want[p.code] = int(math.Round(p.share * float64(nodes)))
	}
	if d := cmp.Diff(want, got); d != "" {
		tb.Errorf("nodes of each cause (-want +got):\n%s", d)
	}
}

// TestCollect_Planted finds every node of each cause, and no others.
func TestCollect_Planted(t *testing.T) {
	t.Parallel()
	const nodes = 250
	count(t, collectAll(t, Options{Cluster: connect(t, plantedFleet(t, nodes)), Interval: time.Millisecond}), nodes)
}

// TestCollect_Access: for an installation, AWS is queried about the instances that EC2 has, and each
// node gets the answer for its instance. Otherwise EKS and IAM are not called.
func TestCollect_Access(t *testing.T) {
	t.Parallel()
	c := connect(t, fleetsim.New(t, fleetsim.Options{Nodes: 2, Seed: 4, Churn: -1}))
	o := Options{
		Cluster: c, Once: true, Installation: true,
		AWS: func(_ context.Context, _ string, ids []string) (*evidence.Reading, map[string]evidence.InstanceType) {
			r := evidence.Unread(time.Time{}, evidence.MissingNotAsked)
			r.Instances = evidence.Read([]evidence.Instance{{ID: ids[0], Cluster: "shop"}})
			return r, nil
		},
		Access: func(_ context.Context, _ string, instances []evidence.Instance, role string) map[string]*evidence.Reading {
			if len(instances) != 1 || instances[0].Cluster != "shop" || role != "" {
				t.Errorf("asked about %+v with the role %q", instances, role)
			}
			return map[string]*evidence.Reading{instances[0].ID: {Installation: evidence.Installation{Role: evidence.Read(evidence.Role{ARN: "arn", Via: evidence.ViaNode})}}}
		},
	}
	ev := collectAll(t, o)
	mine, other := nodeOf(t, ev, fleetsim.NodeName(0)).Last(), nodeOf(t, ev, fleetsim.NodeName(1)).Last()
	if mine.Role.Content.ARN != "arn" || !mine.AddOn.OK() || !mine.IAM.OK() {
		t.Errorf("%+v, %+v, %+v", mine.Role, mine.AddOn, mine.IAM)
	}
	for id, why := range map[string]string{"role": other.Role.Missing, "add-on": other.AddOn.Missing, "simulation": other.IAM.Missing} {
		if !strings.Contains(why, "does not have the instance") {
			t.Errorf("%s of the node without an instance is missing because of %q", id, why)
		}
	}
	o.Installation = false
	if r := nodeOf(t, collectAll(t, o), fleetsim.NodeName(0)).Last(); r.IAM.OK() || r.Role.OK() {
		t.Errorf("not of an installation: %+v, %+v", r.IAM, r.Role)
	}
}
