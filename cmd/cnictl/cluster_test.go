package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"cnictl/deploy"
	"cnictl/testenv/kube/fleetsim"
)

// TestScript_Cluster runs the real main against a simulated API server and its nodes:
// seven healthy ones, a dead one, one with upstream's daemon and one on Fargate. $READER, $NO_NODES,
// $NO_FORWARD, $EXPIRED, $NO_AWS and $AWAY are kubeconfigs. The user of the first has only
// the roles of deploy/rbac/cnictl.yaml. $DEAD, $OLD and $FARGATE are nodes.
func TestScript_Cluster(t *testing.T) {
	t.Parallel()
	dead, old, fargate := fleetsim.NodeName(1), fleetsim.NodeName(2), fleetsim.NodeName(3)
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 10, Seed: 1, Churn: -1, Named: map[string][]fleetsim.Trait{
		dead: {fleetsim.Refused}, old: {fleetsim.Upstream}, fargate: {fleetsim.Fargate},
	}})
	roles, err := deploy.RBAC("cnictl")
	if err != nil {
		t.Fatal(err)
	}
	granted, err := sim.KubeconfigWith("operator", roles...)
	if err != nil {
		t.Fatal(err)
	}
	reader := string(granted)
	token := reader[strings.LastIndex(reader, "  user:\n"):]
	kubeconfigs := map[string]string{
		"READER":     reader,
		"NO_NODES":   string(sim.KubeconfigOf("visitor", "list nodes", "watch nodes")),
		"NO_FORWARD": string(sim.KubeconfigOf("reader", "* pods/portforward", "* pods/exec", "* pods/proxy")),
		"EXPIRED":    string(sim.KubeconfigExpired()),
		"NO_AWS":     strings.Replace(reader, token, "  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/v1beta1\n      command: aws-of-nowhere\n      args: [eks, get-token]\n      interactiveMode: Never\n", 1),
		"AWAY":       strings.Replace(reader, sim.URL(), "https://127.0.0.1:1", 1),
	}
	dir := t.TempDir()
	for name, text := range kubeconfigs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/cluster",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for name := range kubeconfigs {
				env.Setenv(name, filepath.Join(dir, name))
			}
			env.Setenv("KUBECONFIG", filepath.Join(dir, "READER"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("DEAD", dead)
			env.Setenv("OLD", old)
			env.Setenv("FARGATE", fargate)
			env.Setenv("NODE", fleetsim.NodeName(0))
			short, _, _ := strings.Cut(fleetsim.NodeName(0), ".")
			env.Setenv("SHORT", short)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// TestProcess_FollowsLogs: following a daemon's log or events prints what happens after
// the start, and an interrupt exits with 0.
func TestProcess_FollowsLogs(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 1, Seed: 1, Churn: 50 * time.Millisecond})
	kubeconfig, err := sim.WriteKubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"logs -f --tail 1", "events -w --daemon --watch-only"} {
		t.Run(strings.Fields(args)[0], func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), binary(t), append(strings.Fields(args), "--interval=2s", "--kubeconfig="+kubeconfig)...)
			cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			seen := 0
			for lines := bufio.NewScanner(out); seen < 5 && lines.Scan(); {
				if lines.Text() != "" {
					seen++
				}
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, out); err != nil { // it may be printing
				t.Error(err)
			}
			if err := cmd.Wait(); err != nil || seen < 5 {
				t.Errorf("%v after %d lines", err, seen)
			}
		})
	}
}

// TestProcess_FollowsCluster: nodes -w prints every node of a cluster once as it is read,
// and an interrupt exits with 0.
func TestProcess_FollowsCluster(t *testing.T) {
	t.Parallel()
	const nodes = 5
	sim := fleetsim.New(t, fleetsim.Options{Nodes: nodes, Seed: 1, Churn: -1})
	kubeconfig, err := sim.WriteKubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary(t), "nodes", "-w", "-o", "json", "--kubeconfig", kubeconfig)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for len(seen) < nodes && lines.Scan() {
		var doc struct {
			State    string
			Metadata struct{ Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &doc); err != nil || doc.State != "live" {
			t.Errorf("%v: %.80s", err, lines.Bytes())
		}
		seen[doc.Metadata.Name] = true
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || len(seen) != nodes {
		t.Errorf("%v, %d nodes", err, len(seen))
	}
}

// TestProcess_UnixSocket: if a daemon listens on a Unix socket and the user may only port-forward,
// the output has its metrics, why there is nothing else, and what to do.
func TestProcess_UnixSocket(t *testing.T) {
	t.Parallel()
	node := fleetsim.NodeName(0)
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 1, Seed: 1, Churn: -1, Named: map[string][]fleetsim.Trait{node: {fleetsim.UnixSocket}}})
	kubeconfig, err := sim.WriteKubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for via, want := range map[string]struct {
		code         int
		status, said string
	}{
		"port-forward": {4, "metrics-only: introspection off", `warning: only the metrics of ` + node + ` could be read: .* Unix socket .*: --via exec, or cnictl local on the node\n`},
		"exec":         {0, "ok", "^$"},
	} {
		var out, said strings.Builder
		cmd := exec.CommandContext(t.Context(), binary(t), "nodes", "--via", via, "--kubeconfig", kubeconfig)
		cmd.Env = []string{"HOME=" + t.TempDir()}
		cmd.Stdout, cmd.Stderr = &out, &said
		err := cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != want.code || !strings.HasSuffix(out.String(), " "+want.status+"\n") || !regexp.MustCompile(want.said).MatchString(said.String()) {
			t.Errorf("%s: %v, %q, %q", via, err, out.String(), said.String())
		}
	}
}
