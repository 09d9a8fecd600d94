package collect

import (
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/doctor/evidence"
)

// TestFaultOf: what makes a node be read in full, and how urgently.
func TestFaultOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	node := "n"
	for name, row := range map[string]struct {
		edit func(n *introspect.NodeIPAM, r *evidence.Reading)
		want fault
	}{
		"sound": {func(*introspect.NodeIPAM, *evidence.Reading) {}, sound},
		"did not answer": {func(n *introspect.NodeIPAM, _ *evidence.Reading) {
			n.State, n.Summary, n.Error = introspect.StateUnreachable, nil, &introspect.NodeError{Reason: introspect.ReasonTimeout}
		}, faulty},
		"ADDs wait":    {func(n *introspect.NodeIPAM, _ *evidence.Reading) { n.Summary.WaitingADDs = new(2) }, faulty},
		"nothing free": {func(n *introspect.NodeIPAM, _ *evidence.Reading) { n.Summary.Cards[0].Free = 0 }, suspect},
		"cordoned":     {func(n *introspect.NodeIPAM, _ *evidence.Reading) { n.Summary.Cordoned = new(true) }, sound},
		"in a back-off": {func(n *introspect.NodeIPAM, _ *evidence.Reading) {
			n.Summary.Backoffs = []introspect.Backoff{{Cause: "subnet-exhausted"}}
		}, suspect},
		"failed lately": {func(n *introspect.NodeIPAM, _ *evidence.Reading) {
			n.Summary.LastErrors = []introspect.LastError{{At: ago(10 * time.Minute)}}
		}, suspect},
		"failed long ago": {func(n *introspect.NodeIPAM, _ *evidence.Reading) {
			n.Summary.LastErrors = []introspect.LastError{{At: ago(2 * time.Hour)}}
		}, sound},
		"a pod waits": {func(_ *introspect.NodeIPAM, r *evidence.Reading) {
			r.Pods.Content = []evidence.KubePod{pending(node, ago(time.Minute))}
		}, faulty},
		"a pod just began": {func(_ *introspect.NodeIPAM, r *evidence.Reading) {
			r.Pods.Content = []evidence.KubePod{pending(node, ago(time.Second))}
		}, sound},
		"a pod on no node": {func(_ *introspect.NodeIPAM, r *evidence.Reading) {
			p := pending(node, ago(time.Hour))
			p.Node = nil
			r.Pods.Content = []evidence.KubePod{p}
		}, sound},
		"a pod pulls its image": {func(_ *introspect.NodeIPAM, r *evidence.Reading) {
			p := pending(node, ago(time.Hour))
			p.Reason = "ImagePullBackOff"
			r.Pods.Content = []evidence.KubePod{p}
		}, sound},
		"the daemon is not ready": {func(_ *introspect.NodeIPAM, r *evidence.Reading) {
			r.DaemonPods.Content = []evidence.DaemonPod{{Containers: []evidence.DaemonContainer{{Name: "aws-node", Ready: new(false), State: "running"}}}}
		}, faulty},
		"the daemon was restarted": {func(_ *introspect.NodeIPAM, r *evidence.Reading) {
			r.DaemonPods.Content = []evidence.DaemonPod{{Containers: []evidence.DaemonContainer{{Name: "aws-node", Ready: new(true), State: "running", RestartsLastHour: new(1)}}}}
		}, suspect},
		"init is over": {func(_ *introspect.NodeIPAM, r *evidence.Reading) {
			r.DaemonPods.Content = []evidence.DaemonPod{{Containers: []evidence.DaemonContainer{{Name: "aws-vpc-cni-init", Init: true, Ready: new(false), State: "terminated"}}}}
		}, sound},
		"a sandbox failed": {func(_ *introspect.NodeIPAM, r *evidence.Reading) {
			r.Events.Content = []evidence.KubeEvent{{At: ago(time.Minute), Type: "Warning", Reason: "FailedCreatePodSandBox", Kind: "Pod", Name: "a/b"}}
		}, suspect},
		"another's warning": {func(_ *introspect.NodeIPAM, r *evidence.Reading) {
			r.Events.Content = []evidence.KubeEvent{{At: ago(time.Minute), Type: "Warning", Reason: "BackOff", Kind: "Pod", Name: "a/b"}}
		}, sound},
		"an old warning": {func(_ *introspect.NodeIPAM, r *evidence.Reading) {
			r.Events.Content = []evidence.KubeEvent{{At: ago(2 * time.Hour), Type: "Warning", Source: "aws-node"}}
		}, sound},
	} {
		n := introspect.NodeIPAM{
			State: introspect.StateLive, Source: introspect.SourceSummary, SampledAt: &now,
			Summary: &introspect.Summary{Cards: []introspect.CardSummary{{Total: 10, Assigned: 10, Free: 3}}},
		}
		r := evidence.Unread(now, evidence.MissingNotAsked)
		row.edit(&n, r)
		if got := faultOf(n, r); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

// pending is a pod whose sandbox is being made.
func pending(node string, since time.Time) evidence.KubePod {
	return evidence.KubePod{Pod: "a/b", Node: &node, Phase: "Pending", Reason: "ContainerCreating", CreatedAt: since}
}
