package ipamd

import (
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/cluster"
	"cnictl/daemon/config"
	"cnictl/daemon/keeper"
)

// TestNodeChanged_Targets: the keeper gets the targets of the Node's labels with each change of the
// Node; a problem is reported once, and shown as long as it lasts.
func TestNodeChanged_Targets(t *testing.T) {
	t.Parallel()
	c, _ := config.Load(func(name string) (string, bool) {
		v, ok := map[string]string{"MY_NODE_NAME": "worker", "ENABLE_IPv4": "true", "WARM_IP_TARGET": "5", "MAX_ENI": "9"}[name]
		return v, ok
	})
	a := newAsked(t, c, nil)
	a.kubernetes.targets = newTargets(c, config.Facts{InstanceType: "m5.large", PrefixDelegation: true, MaxENIs: 3}, nil)
	var reported []string
	a.kubernetes.problem = func(p config.Problem) { reported = append(reported, p.Label+"="+p.Value) }
	for i, step := range []struct {
		labels   map[string]string
		want     keeper.Targets
		reported string
		problems int
	}{
		{nil, keeper.Targets{WarmENI: 1, WarmIP: 5, MaxENI: 3}, "", 1}, // MAX_ENI was reported at the start
		{map[string]string{"cnictl.dev/warm-ip-target": "8", "cnictl.dev/max-eni": "2"}, keeper.Targets{WarmENI: 1, WarmIP: 8, MaxENI: 2}, "", 0},
		{map[string]string{"cnictl.dev/warm-ip-target": "x"}, keeper.Targets{WarmENI: 1, WarmIP: 8, MaxENI: 3}, "=9 cnictl.dev/warm-ip-target=x", 2},
		{map[string]string{"cnictl.dev/warm-ip-target": "x", "other": "1"}, keeper.Targets{WarmENI: 1, WarmIP: 8, MaxENI: 3}, "", 2},
		{map[string]string{"cnictl.dev/max-eni": "7"}, keeper.Targets{WarmENI: 1, WarmIP: 5, MaxENI: 3}, "cnictl.dev/max-eni=7", 1},
		{nil, keeper.Targets{WarmENI: 1, WarmIP: 5, MaxENI: 3}, "=9", 1},
	} {
		reported = nil
		a.kubernetes.nodeChanged(t.Context(), cluster.Node{Labels: step.labels})
		if got := take[keeper.NodeRead](a).Targets; got == nil || *got != step.want {
			t.Errorf("step %d: targets %+v, want %+v", i, got, step.want)
		}
		slices.Sort(reported)
		if got := strings.Join(reported, " "); got != step.reported {
			t.Errorf("step %d: reported %q, want %q", i, got, step.reported)
		}
		if got := config.WithProblems(*a.kubernetes.targets.settings.Load()); got != step.problems {
			t.Errorf("step %d: %d settings with problems, want %d", i, got, step.problems)
		}
	}
}
