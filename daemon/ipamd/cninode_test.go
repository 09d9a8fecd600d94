package ipamd

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/cluster"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/logging"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/keeper"
)

const cniNodePath = "/apis/vpcresources.k8s.aws/v1alpha1/cninodes/worker"

// asking is a daemon that requests a trunk; the test plays the API server.
func asking(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) (api *kubernetes, log *strings.Builder) {
	t.Helper()
	a := newAsked(t, config.Config{NodeName: "worker", PodENI: true}, func(_ *asked, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == cniNodePath {
			answer(w, r)
			return true
		}
		return false
	})
	log = &strings.Builder{}
	a.kubernetes.log = slog.New(logging.NewHandler(log, slog.LevelInfo))
	l := newLonely(t, func(n *node) { n.config.PodENI = true })
	stop := make(chan struct{})
	go l.owner.run(stop)
	t.Cleanup(func() { close(stop); <-l.owner.ended })
	a.kubernetes.owner = l.owner
	return a.kubernetes, log
}

// TestAskForTrunk_Stripped: someone removes the features as soon as they exist. They are
// rewritten at growing intervals, whatever wakes the daemon, and that is logged once.
func TestAskForTrunk_Stripped(t *testing.T) {
	t.Parallel()
	writes := 0
	api, log := asking(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			writes++
		}
		fmt.Fprint(w, `{"metadata":{"name":"worker","resourceVersion":"7"},"spec":{}}`)
	})
	var asked trunkAsking
	now := time.Now()
	for end := now.Add(10 * time.Minute); now.Before(end); now = now.Add(100 * time.Millisecond) {
		if wait := api.askOnce(t.Context(), &asked, now); wait <= 0 {
			t.Fatalf("again after %v", wait)
		}
	}
	if writes < trunkContested || writes > 15 {
		t.Errorf("%d writes in ten minutes", writes)
	}
	if n := strings.Count(log.String(), "removed repeatedly"); n != 1 {
		t.Errorf("logged %d times that others remove the features", n)
	}
}

// TestAskForTrunk_StrippedOnce: features that were stable for long are rewritten at once.
func TestAskForTrunk_StrippedOnce(t *testing.T) {
	t.Parallel()
	writes, has := 0, false
	api, log := asking(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			writes++
			has = true
		}
		features := ""
		if has {
			features = `{"name":"SecurityGroupsForPods"}`
		}
		fmt.Fprintf(w, `{"metadata":{"name":"worker","resourceVersion":"7"},"spec":{"features":[%s]}}`, features)
	})
	var asked trunkAsking
	now := time.Now()
	for round := 1; round <= 5; round++ {
		api.askOnce(t.Context(), &asked, now)
		if writes != round {
			t.Fatalf("round %d: %d writes", round, writes)
		}
		now = now.Add(trunkAskEvery)
		if wait := api.askOnce(t.Context(), &asked, now); wait != trunkAskEvery {
			t.Errorf("round %d: looked at again after %v", round, wait)
		}
		has = false
	}
	if strings.Contains(log.String(), "removed repeatedly") {
		t.Error("another writer was logged")
	}
}

// TestAskForTrunk_Fails: a failure is counted, logged once, and retried only when due.
func TestAskForTrunk_Fails(t *testing.T) {
	t.Parallel()
	api, log := asking(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	})
	var asked trunkAsking
	now := time.Now()
	for range 5 {
		wait := api.askOnce(t.Context(), &asked, now)
		if wait <= 0 || wait > trunkAskMost || !asked.held(now) {
			t.Errorf("again after %v", wait)
		}
		now = now.Add(wait)
	}
	if n := valueOf(t, api.owner.metrics, "awscni_pod_eni_error_count", metrics.FnTryEnableSecurityGroups); n != 5 {
		t.Errorf("%v failures counted", n)
	}
	if n := strings.Count(log.String(), "trunk ENI not requested"); n != 1 {
		t.Errorf("notified %d times", n)
	}
}

// TestAwaitFeatures: only news of the missing CNINode ends a back-off.
func TestAwaitFeatures(t *testing.T) {
	t.Parallel()
	const wait = 10 * time.Second
	for _, row := range []struct {
		name     string
		held     bool
		features bool
		appeared bool
		want     time.Duration
	}{
		{"nothing happens", false, false, false, wait},
		{"a change", false, true, false, 0},
		{"a change while held", true, true, false, wait},
		{"the CNINode appears", true, false, true, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &kubernetes{features: make(chan struct{}, 1), appeared: make(chan struct{}, 1)}
				var asked trunkAsking
				if row.held {
					asked.failures.Until = time.Now().Add(wait)
				}
				if row.features {
					signal(a.features)
				}
				if row.appeared {
					signal(a.appeared)
				}
				began := time.Now()
				a.awaitFeatures(t.Context(), &asked, wait)
				if took := time.Since(began); took != row.want {
					t.Errorf("waited %v, want %v", took, row.want)
				}
				if row.appeared && asked.failures != (keeper.BackoffTimer{}) {
					t.Error("the back-off goes on")
				}
			})
		})
	}
}

// TestWatchers_NoTrunk: on an instance type without trunking none is requested.
func TestWatchers_NoTrunk(t *testing.T) {
	t.Parallel()
	a := &kubernetes{config: config.Config{PodENI: true}}
	without := len(a.watchers())
	a.trunk = true
	if with := len(a.watchers()); with != without+1 {
		t.Errorf("%d watchers with a trunk, %d without", with, without)
	}
}

// TestNodeChanged_TrunkLabel: changes of older controllers' label take effect.
func TestNodeChanged_TrunkLabel(t *testing.T) {
	t.Parallel()
	a := newAsked(t, config.Config{NodeName: "worker", PodENI: true}, nil)
	said := func(value string) (out []keeper.Message) {
		t.Helper()
		a.kubernetes.nodeChanged(t.Context(), cluster.Node{Labels: map[string]string{trunkLabel: value}})
		take[keeper.NodeRead](a)
		for len(a.owner.inbox) > 0 {
			out = append(out, (<-a.owner.inbox).message)
		}
		return out
	}
	for i, step := range []struct {
		value string
		want  string
	}{
		{"", "[]"},
		{"false", "[]"},
		{trunkUnsupported, "[{true}]"}, // refused
		{trunkUnsupported, "[]"},
		{trunkAttached, "[{false} {true}]"}, // not refused, attached
		{trunkAttached, "[]"},
	} {
		if got := fmt.Sprint(said(step.value)); got != step.want {
			t.Errorf("step %d, %q: %s, want %s", i, step.value, got, step.want)
		}
	}
}
