package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/kube"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/keeper"
)

// TestNewKubernetes_Unusable: without access to the API server the ordinary modes still
// work. Those that need it do not start, because pods would get the node's security groups.
func TestNewKubernetes_Unusable(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	for _, row := range []struct {
		name  string
		c     config.Config
		fails []string // parts of the error; if empty, there is neither a client nor an error
	}{
		{"no mode", config.Config{}, nil},
		{"no mode, mistyped", config.Config{Kubeconfig: missing}, nil},
		{"pod ENIs", config.Config{PodENI: true}, []string{"ENABLE_POD_ENI", kube.ErrNotConfigured.Error(), "set KUBECONFIG"}},
		{"pod ENIs, mistyped", config.Config{PodENI: true, Kubeconfig: missing}, []string{"ENABLE_POD_ENI", missing}},
		{"custom networking", config.Config{CustomNetworking: true}, []string{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"}},
		{"annotations", config.Config{AnnotatePodIP: true}, []string{"ANNOTATE_POD_IP"}},
		{"two of them", config.Config{PodENI: true, AnnotatePodIP: true}, []string{"ENABLE_POD_ENI, ANNOTATE_POD_IP"}},
	} {
		api, err := newKubernetes(Deps{Config: row.c}, slog.New(slog.DiscardHandler))
		if api != nil || (err == nil) != (len(row.fails) == 0) {
			t.Errorf("%s: %v, %v", row.name, api, err)
			continue
		}
		for _, want := range row.fails {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", row.name, err, want)
			}
		}
		if row.name == "pod ENIs" && !errors.Is(err, kube.ErrNotConfigured) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// TestWatch_UpstreamsLineAfterAMinute: the EKS node monitoring agent takes a single line with one of
// upstream's two texts as fatal, so they are not written while the API server has been away for
// less than a minute. The first failure is logged at once, in other words.
func TestWatch_UpstreamsLineAfterAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		const refuses = `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],
			"clusters":[{"name":"k","cluster":{"server":"http://127.0.0.1:1"}}],"users":[{"name":"u","user":{}}]}`
		if err := os.WriteFile(kubeconfig, []byte(refuses), 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var log strings.Builder // written to by one goroutine at a time
		handler := slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Duration("after", a.Value.Time().Sub(began).Truncate(time.Second))
			}
			return a
		}})
		api, err := newKubernetes(Deps{Config: config.Config{Kubeconfig: kubeconfig}}, slog.New(handler))
		if err != nil {
			t.Fatal(err)
		}
		api.owner = newOwner(metrics.New(metrics.Options{}))
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { api.greet(ctx) })
		group.Wait()
		group.Go(func() { api.watch(ctx) })
		pause(t.Context(), 10*time.Minute)
		synctest.Wait()
		cancel()
		group.Wait()
		early := ""
		for line := range strings.Lines(log.String()) {
			after, err := time.ParseDuration(strings.TrimPrefix(strings.Fields(line)[0], "after="))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if after < kube.AwayAfter {
				early += line
			}
		}
		if n := strings.Count(early, textAPISilent); n != 1 || !strings.Contains(early, "after=0s level=WARN msg=\""+textAPISilent) {
			t.Errorf("the first failure is logged %d times:\n%s", n, early)
		}
		for _, text := range []string{logline.TextAPIUnreachable, logline.TextAPICheckFailed} {
			if strings.Contains(early, text) || strings.Contains(textAPISilent, text) {
				t.Errorf("within %v the log has %q:\n%s", kube.AwayAfter, text, early)
			}
		}
		if n := strings.Count(log.String(), logline.TextAPIUnreachable); n != 1 {
			t.Errorf("within ten minutes the log has upstream's line %d times:\n%s", n, log.String())
		}
		api.reached.Store(true)
		before := log.Len()
		if api.away(errors.New("refused")); log.Len() != before {
			t.Errorf("a server that was reached before: %s", log.String()[before:])
		}
	})
}

// TestFollowENIConfig_NoNodeName: the error says what is missing, instead of a wait without
// end.
func TestFollowENIConfig_NoNodeName(t *testing.T) {
	t.Parallel()
	a := newAsked(t, config.Config{CustomNetworking: true}, nil)
	a.kubernetes.followENIConfig(t.Context())
	if m := take[keeper.ENIConfigRead](a); m.Unread || m.Err == nil || !strings.Contains(m.Err.Error(), "MY_NODE_NAME") {
		t.Errorf("%+v", m)
	}
}

// TestReadENIConfig: a missing ENIConfig is reported, as certain unless a good one is known.
// Failures are retried ever less often, and only another name causes a look at the CNINode.
func TestReadENIConfig(t *testing.T) {
	t.Parallel()
	const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	denied := map[string]bool{}
	a := newAsked(t, config.Config{CustomNetworking: true, NodeName: "worker", ENIConfigLabel: "zone"}, func(_ *asked, w http.ResponseWriter, r *http.Request) bool {
		kind := strings.Split(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/apis/crd.k8s.amazonaws.com/v1alpha1/"), "/")[0]
		switch {
		case denied[kind]:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, forbidden)
		case kind == "nodes":
			fmt.Fprint(w, `{"metadata":{"name":"worker","labels":{"zone":"a"}},"status":{"capacity":{"pods":"29"}}}`)
		default:
			fmt.Fprint(w, `{"metadata":{"name":"a"},"spec":{"subnet":"subnet-0123456789abcdef0"}}`)
		}
		return true
	})
	var reading eniConfigReading
	now := time.Now()
	read := func() (keeper.ENIConfigRead, time.Duration) {
		t.Helper()
		wait := a.kubernetes.readENIConfig(t.Context(), &reading, now)
		return take[keeper.ENIConfigRead](a), wait
	}
	signalled := func() bool {
		select {
		case <-a.kubernetes.features:
			return true
		default:
			return false
		}
	}

	denied["nodes"] = true
	if m, wait := read(); m.Unread || m.Err == nil || !strings.Contains(m.Err.Error(), "the Node cannot be read") || wait <= 0 || wait > eniConfigFirst {
		t.Errorf("no right to read the Node: %+v, again after %v", m, wait)
	}
	denied["nodes"], denied["eniconfigs"] = false, true
	if m, _ := read(); m.Unread || m.Err == nil || m.Name != "a" || !signalled() {
		t.Errorf("no right to read the ENIConfig: %+v", m)
	}
	var last time.Duration
	for range 20 {
		now = now.Add(last)
		_, last = read()
		if last <= 0 || last > eniConfigMost || signalled() {
			t.Errorf("again after %v", last)
		}
	}
	if last < eniConfigMost/2 {
		t.Errorf("after twenty failures again after %v", last)
	}
	denied["eniconfigs"] = false
	if m, _ := read(); m.Err != nil || m.Config.Subnet == "" || signalled() {
		t.Errorf("readable: %+v", m)
	}
	denied["eniconfigs"] = true
	if m, wait := read(); !m.Unread || wait > eniConfigFirst {
		t.Errorf("no right any more: %+v, again after %v", m, wait)
	}
}
