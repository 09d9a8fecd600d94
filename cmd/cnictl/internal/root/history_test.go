package root

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/testenv/kube/fleetsim"
)

// TestHistory: without a recording, subnets, status and the forecast know what the daemons counted before,
// as far back as the oldest of them, and how good forecasts of it would have been.
func TestHistory(t *testing.T) {
	t.Parallel()
	const days = 10
	sim := fleetsim.New(t, fleetsim.Options{
		Nodes: 12, Seed: 5, Churn: -1, Sound: true, History: days * 24 * time.Hour,
		Named: map[string][]fleetsim.Trait{fleetsim.NodeName(2): {fleetsim.Upstream}},
	})
	kubeconfig := altered(t, sim, func(string, map[string]any) {}, nil)
	run := func(args string, into any) string {
		var out, said bytes.Buffer
		f := &cli.Factory{
			Streams: &cli.Streams{Out: &out, Err: &said}, Env: call{}.lookup, Name: "cnictl", Now: time.Now,
			LocalTarget: func(context.Context) (fleet.Target, bool) { return fleet.Target{}, false },
		}
		if code := Main(t.Context(), f, append(strings.Fields(args), "--kubeconfig="+kubeconfig)); code != 0 {
			t.Fatalf("%s: exit %d, %s", args, code, said.String())
		}
		if into != nil {
			if err := json.Unmarshal(out.Bytes(), into); err != nil {
				t.Fatalf("%s: %v", args, err)
			}
		}
		return out.String()
	}
	var list document.SubnetList
	var status document.FleetStatus
	var forecast document.CapacityForecastList
	var tests document.CapacityBacktestList
	run("subnets -o json", &list)
	run("status -o json", &status)
	run("capacity forecast -o json", &forecast)
	run("capacity forecast --backtest -o json", &tests)
	if n := len(list.Items); n == 0 || len(forecast.Items) != n || len(status.Subnets) != n || len(tests.Items) != 3*n {
		t.Fatalf("%d, %d, %d subnets, %d tests", n, len(status.Subnets), len(forecast.Items), len(tests.Items))
	}
	furthest := 0.
	for i, s := range list.Items {
		rough := strings.Contains(s.Left, "reading") && !strings.HasPrefix(s.Left, ">")
		if s.MeasuredSeconds == nil || *s.MeasuredSeconds < 5*24*3600 || s.Left == "" || rough {
			t.Errorf("%+v", s)
		}
		furthest = max(furthest, forecast.Items[i].Seconds)
	}
	if furthest < (days*24-1)*3600 || furthest > (days+1)*24*3600 {
		t.Errorf("the counts go back %g s", furthest)
	}
	for _, b := range tests.Items {
		if b.Cases == 0 || b.Error == nil || b.Within == nil || *b.Error > *b.LastValue {
			t.Errorf("%+v", b)
		}
	}
	for args, want := range map[string]string{"capacity forecast": "OVER", "capacity forecast --backtest": "LAST WEEK", "subnets": "LEFT"} {
		if out := run(args, nil); !strings.Contains(out, want) {
			t.Errorf("%s:\n%s", args, out)
		}
	}
}
