package root_test

import (
	"context"
	"testing"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/watch"
	"cnictl/testenv/kube/fleetsim"
)

// TestLive_AsksKubernetes: screens opened on a cluster also get what Kubernetes knows about
// a node.
func TestLive_AsksKubernetes(t *testing.T) {
	t.Parallel()
	original, off, ours := fleetsim.NodeName(0), fleetsim.NodeName(1), fleetsim.NodeName(2)
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 3, Seed: 1, Churn: -1, Named: map[string][]fleetsim.Trait{original: {fleetsim.Upstream}, off: {fleetsim.Refused}}})
	front := before(t, sim)
	f := factory(t, &lineWriter{}, &lineWriter{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var live watch.Source
	ended := make(chan error, 1)
	cmd := &cobra.Command{Use: "cnictl", RunE: func(*cobra.Command, []string) error {
		l, err := access.Live(ctx, f, nil)
		if err != nil {
			return err
		}
		live = l
		go func() { ended <- l.Run(ctx) }()
		return nil
	}}
	f.Prepare(cmd)
	cmd.SetArgs([]string{"--kubeconfig=" + front.kubeconfig})
	if err := cmd.ExecuteContext(ctx); err != nil {
		t.Fatal(err)
	}
	for !live.Stats().Swept || len(live.View().Nodes) < 3 {
		<-live.Changed()
	}
	use := live.Detail(ctx, off, watch.WantNodeUse, watch.Query{})
	if use.Use == nil || use.Use.Network == 0 || use.Use.Pods <= use.Use.Network || len(use.Errors) > 0 {
		t.Errorf("use of a node whose daemon does not answer: %+v, %v", use.Use, use.Errors)
	}
	logs := live.Detail(ctx, original, watch.WantLogs|watch.WantContainerLog, watch.Query{})
	if logs.Logs != nil || logs.ContainerLog == nil || len(logs.ContainerLog.Lines) == 0 || logs.ContainerLog.Container != "aws-node" {
		t.Errorf("log of upstream: %+v, %+v, %v", logs.Logs, logs.ContainerLog, logs.Errors)
	}
	for _, want := range []watch.Want{watch.WantLogs, watch.WantContainerLog} {
		if e, failed := logs.Errors[want]; failed != (want == watch.WantLogs) || failed && e.Reason != introspect.ReasonNoEndpoint {
			t.Errorf("%d: %+v", want, e)
		}
	}
	if own := live.Detail(ctx, ours, watch.WantLogs|watch.WantContainerLog, watch.Query{}); own.Logs == nil || own.ContainerLog != nil {
		t.Errorf("log of ours: %+v, %+v, %v", own.Logs, own.ContainerLog, own.Errors)
	}
	d := live.Detail(ctx, ours, watch.WantKubeEvents, watch.Query{})
	if e, failed := d.Errors[watch.WantKubeEvents]; failed || front.listed("events") == 0 {
		t.Errorf("events of Kubernetes: %d lists, %+v", front.listed("events"), e)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
