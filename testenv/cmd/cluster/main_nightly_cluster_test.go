//go:build nightly

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
)

// built returns the program under test, as built by make test.
func built(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("CNI_TEST_BIN")
	if os.Geteuid() != 0 || bin == "" {
		testenv.Missing(t, "kube", "needs root and CNI_TEST_BIN, a directory of built programs", "sudo make test LAYERS=cluster")
	}
	if err := cluster.Missing(bin); err != nil {
		testenv.Missing(t, "kube", err.Error(), "sudo make test LAYERS=cluster")
	}
	return filepath.Join(bin, "cluster")
}

// command runs the program and returns its output.
func command(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	return string(out), err
}

// get sends a request to the API server with the kubeconfig, from the machine's network.
func get(t *testing.T, kubeconfig, path string) error {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	client.Timeout = testenv.Left(t)
	resp, err := client.Get(config.Host + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// leftCgroups returns the groups of all clusters, including those of running ones.
func leftCgroups(t *testing.T) map[string]bool {
	t.Helper()
	left := map[string]bool{}
	for _, pattern := range []string{"/sys/fs/cgroup/cnictl-*", "/sys/fs/cgroup/*/cnictl-*"} { // version 2, then version 1
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			left[f] = true
		}
	}
	return left
}

// TestUpAndDown: a one-node cluster stays after up, is reachable from the machine and by
// cnictl, and is gone without a trace after down, even if it was killed first.
func TestUpAndDown(t *testing.T) {
	program, dir := built(t), filepath.Join(t.TempDir(), "c")
	t.Cleanup(func() {
		if out, err := command(t, program, "down", "--dir", dir); t.Failed() {
			t.Log(out, err)
		}
	})
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%v", killed), func(t *testing.T) {
			before := leftCgroups(t)
			out, err := command(t, program, "up", "--nodes", "1", "--dir", dir)
			if err != nil || !strings.Contains(out, "export KUBECONFIG="+filepath.Join(dir, kubeconfigFile)) {
				t.Fatalf("up: %v\n%s", err, out)
			}
			kubeconfig := filepath.Join(dir, kubeconfigFile)
			if err := get(t, kubeconfig, "/api/v1/nodes"); err != nil {
				t.Errorf("list nodes: %v", err)
			}
			out, err = command(t, filepath.Join(filepath.Dir(program), "cnictl"), "nodes", "--kubeconfig", kubeconfig, "-o", "json")
			if err != nil || !strings.Contains(out, `"state": "live"`) {
				t.Errorf("cnictl nodes: %v\n%s", err, out)
			}
			if out, err := command(t, program, "up", "--dir", dir); err == nil || !strings.Contains(out, errRuns.Error()) {
				t.Errorf("a second up: %v\n%s", err, out)
			}
			if err := get(t, kubeconfig, "/api/v1/nodes"); err != nil {
				t.Errorf("list nodes after a second up: %v", err)
			}
			o := options{dir: dir}
			if killed {
				if err := signalRun(o, unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := command(t, program, "down", "--dir", dir); err != nil {
				t.Errorf("down: %v\n%s", err, out)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the directory is there after down: %v", err)
			}
			for group := range leftCgroups(t) {
				if !before[group] {
					t.Errorf("left after down: %s", group)
				}
			}
		})
	}
	if out, err := command(t, program, "down", "--dir", dir); err != nil {
		t.Errorf("down without a cluster: %v\n%s", err, out)
	}
}
