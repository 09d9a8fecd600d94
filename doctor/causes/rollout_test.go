package causes

import (
	"fmt"
	"testing"

	"cnictl/testenv/situation"
)

// TestRollout: one reading tells a rollout that goes on from one that does not.
func TestRollout(t *testing.T) {
	t.Parallel()
	const starts, pulls = "ready: false, state: running", "ready: false, state: waiting, reason: ErrImagePull"
	const crashes = "ready: false, restartsLastHour: 9, state: waiting, reason: CrashLoopBackOff"
	for name, tt := range map[string]struct {
		set     string // of the DaemonSet
		made    string // when the node's pod was made
		state   string // of its container
		desired int
		updated int
		stuck   bool
		undo    bool // goes back first
	}{
		"just begun":                              {"changedAt: -20s", "-15s", starts, 3, 1, false, false},
		"a pod takes its time":                    {"changedAt: -110s", "-105s", starts, 3, 1, false, false},
		"a pod takes too long":                    {"changedAt: -150s", "-130s", starts, 3, 1, true, false},
		"a pod takes too long, others go on":      {"changedAt: -150s, maxUnavailable: 50%", "-130s", starts, 40, 39, true, false},
		"pods must be ready for three minutes":    {"changedAt: -150s, minReadySeconds: 180", "-130s", starts, 3, 1, false, false},
		"no such image":                           {"changedAt: -20s", "-15s", pulls, 3, 1, true, true},
		"a new pod crashes":                       {"changedAt: -40s", "-35s", crashes, 3, 1, true, true},
		"a pod of the release before crashes":     {"changedAt: -40s", "-3h", crashes, 3, 1, false, false},
		"a tenth at a time":                       {"changedAt: -5m, maxUnavailable: 10%", "-3h", "ready: true", 40, 20, false, false},
		"one at a time, slower than pods start":   {"changedAt: -10m", "-3h", "ready: true", 30, 4, true, false},
		"nobody began it":                         {"changedAt: -3m, maxUnavailable: 10%", "-3h", "ready: true", 40, 0, true, false},
		"it is done":                              {"changedAt: -1h", "-30m", crashes, 3, 3, false, false},
		"when it began is unknown":                {"strategy: RollingUpdate", "-3h", starts, 3, 1, true, false},
		"pods are deleted by hand, one by one":    {"strategy: OnDelete, changedAt: -3h", "-3h", "ready: true", 3, 1, false, false},
		"by hand, and the node's pod is crashing": {"strategy: OnDelete, changedAt: -3h", "-2h", crashes, 3, 1, true, true},
	} {
		ready := tt.desired
		if tt.state != "ready: true" {
			ready--
		}
		ev, err := situation.Load([]byte(fmt.Sprintf(`schemaVersion: 1
at: 2026-11-21T14:02:11Z
base: healthy
once: true
sources:
  k8s.ds: {%s, pods: {desired: %d, updated: %d, ready: %d}}
  k8s.ds.pods: {with: [{pod: kube-system/aws-node-1, createdAt: %s, containers: {with: [{name: aws-node, %s}]}}]}
`, tt.set, tt.desired, tt.updated, ready, tt.made, tt.state)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found := Cases(ev)[0].seen("obs/rollout")
		if stuck := len(found) > 0; stuck != tt.stuck {
			t.Errorf("%s: stuck %t", name, stuck)
		} else if stuck && (found[0].fixes[0] == 2) != tt.undo {
			t.Errorf("%s: fixes %v", name, found[0].fixes)
		}
	}
}
