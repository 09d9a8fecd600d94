package collect

import (
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/evidence"
)

// TestFaultOf: which problems cause a node to be read in full, and how urgently.
func TestFaultOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	node := "n"
	for name, row := range map[string]struct {
		edit func(n *document.NodeIPAM, r *evidence.Reading)
		want fault
	}{
		"sound": {func(*document.NodeIPAM, *evidence.Reading) {}, sound},
		"did not answer": {func(n *document.NodeIPAM, _ *evidence.Reading) {
			n.State, n.Summary, n.Error = document.StateUnreachable, nil, &document.NodeError{Reason: introspect.ReasonTimeout}
		}, faulty},
		"ADDs wait":    {func(n *document.NodeIPAM, _ *evidence.Reading) { n.Summary.WaitingADDs = new(2) }, faulty},
		"nothing free": {func(n *document.NodeIPAM, _ *evidence.Reading) { n.Summary.Cards[0].Free = 0 }, suspect},
		"cordoned":     {func(n *document.NodeIPAM, _ *evidence.Reading) { n.Summary.Cordoned = new(true) }, sound},
		"in a back-off": {func(n *document.NodeIPAM, _ *evidence.Reading) {
			n.Summary.Backoffs = []introspect.Backoff{{Cause: "subnet-exhausted"}}
		}, suspect},
		"failed lately": {func(n *document.NodeIPAM, _ *evidence.Reading) {
			n.Summary.LastErrors = []introspect.LastError{{At: ago(10 * time.Minute)}}
		}, suspect},
		"failed long ago": {func(n *document.NodeIPAM, _ *evidence.Reading) {
			n.Summary.LastErrors = []introspect.LastError{{At: ago(2 * time.Hour)}}
		}, sound},
		"a pod waits": {func(_ *document.NodeIPAM, r *evidence.Reading) {
			r.Pods.Content = []evidence.KubePod{pending(node, ago(time.Minute))}
		}, faulty},
		"a pod just began": {func(_ *document.NodeIPAM, r *evidence.Reading) {
			r.Pods.Content = []evidence.KubePod{pending(node, ago(time.Second))}
		}, sound},
		"a pod on no node": {func(_ *document.NodeIPAM, r *evidence.Reading) {
			p := pending(node, ago(time.Hour))
			p.Node = nil
			r.Pods.Content = []evidence.KubePod{p}
		}, sound},
		"a pod pulls its image": {func(_ *document.NodeIPAM, r *evidence.Reading) {
			p := pending(node, ago(time.Hour))
			p.Reason = "ImagePullBackOff"
			r.Pods.Content = []evidence.KubePod{p}
		}, sound},
		"the daemon is not ready": {func(_ *document.NodeIPAM, r *evidence.Reading) {
			r.DaemonPods.Content = []evidence.DaemonPod{{Containers: []evidence.DaemonContainer{{Name: "aws-node", Ready: new(false), State: "running"}}}}
		}, faulty},
		"the daemon was restarted": {func(_ *document.NodeIPAM, r *evidence.Reading) {
			r.DaemonPods.Content = []evidence.DaemonPod{{Containers: []evidence.DaemonContainer{{Name: "aws-node", Ready: new(true), State: "running", RestartsLastHour: new(1)}}}}
		}, suspect},
		"init is over": {func(_ *document.NodeIPAM, r *evidence.Reading) {
			r.DaemonPods.Content = []evidence.DaemonPod{{Containers: []evidence.DaemonContainer{{Name: "aws-vpc-cni-init", Init: true, Ready: new(false), State: "terminated"}}}}
		}, sound},
		"a sandbox failed": {func(_ *document.NodeIPAM, r *evidence.Reading) {
			r.Events.Content = []evidence.KubeEvent{{At: ago(time.Minute), Type: "Warning", Reason: "FailedCreatePodSandBox", Kind: "Pod", Name: "a/b"}}
		}, suspect},
		"another's warning": {func(_ *document.NodeIPAM, r *evidence.Reading) {
			r.Events.Content = []evidence.KubeEvent{{At: ago(time.Minute), Type: "Warning", Reason: "BackOff", Kind: "Pod", Name: "a/b"}}
		}, sound},
		"an old warning": {func(_ *document.NodeIPAM, r *evidence.Reading) {
			r.Events.Content = []evidence.KubeEvent{{At: ago(2 * time.Hour), Type: "Warning", Source: "aws-node"}}
		}, sound},
	} {
		n := document.NodeIPAM{
			State: document.StateLive, Source: document.SourceSummary, SampledAt: &now,
			Summary: &introspect.Summary{Cards: []introspect.CardSummary{{Total: 10, Assigned: 10, Free: 3}}},
		}
		r := evidence.Unread(now, evidence.MissingNotAsked)
		row.edit(&n, r)
		if got := faultOf(n, r); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

// pending is a pod whose sandbox is being created.
func pending(node string, since time.Time) evidence.KubePod {
	return evidence.KubePod{Pod: "a/b", Node: &node, Phase: "Pending", Reason: "ContainerCreating", CreatedAt: since}
}
