package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"cnictl/testenv/fleetsim"
)

// built returns the program from "make build".
func built(t *testing.T, ctx context.Context, args ...string) *exec.Cmd {
	t.Helper()
	bin := os.Getenv("CNI_TEST_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "..", "bin")
	}
	path, err := filepath.Abs(filepath.Join(bin, "fleetsim"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("built binaries are missing; run: make build: %v", err)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	return cmd
}

// TestServes_UntilASignal: the printed kubeconfig works, and nothing is left behind.
func TestServes_UntilASignal(t *testing.T) {
	t.Parallel()
	sockets := t.TempDir()
	cmd := built(t, t.Context(), "--nodes", "40", "--upstream", "30%", "--dead", "5%", "--seed", "7", "--targets", sockets)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	path := lines.Text()
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatalf("%v: %s", err, &errOut)
	}
	hc, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := hc.Get(cfg.Host + "/api/v1/nodes?limit=1")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("list: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	hc.CloseIdleConnections()
	lines.Scan()
	if targets := strings.Split(lines.Text(), ","); len(targets) != 40 || !strings.HasPrefix(targets[0], "ip-10-") {
		t.Errorf("targets: %.200s", lines.Text())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || errOut.Len() > 0 {
		t.Errorf("it ended with %v: %s", err, &errOut)
	}
	for _, dir := range []string{filepath.Dir(path), sockets} {
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestServes_ForATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config")
	if out, err := built(t, t.Context(), "--for", "10ms", "--kubeconfig", path).CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != path {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig is left behind: %v", err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	s, err := parse([]string{"--nodes", "5000", "--upstream", "30%", "--dead", "0.005", "--latency", "150ms", "--node", fleetsim.NodeName(3) + "=slow,lying"})
	if err != nil || s.opts.Nodes != 5000 || s.opts.UpstreamShare != 0.3 || s.opts.Shares[fleetsim.Dead] != 0.005 || s.opts.Latency != 150*time.Millisecond || len(s.opts.Named[fleetsim.NodeName(3)]) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, args := range [][]string{{"--dead", "120%"}, {"--dead", "some"}, {"--node", "x"}, {"now"}, {"--odd", "1"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
	for _, trait := range fleetsim.Traits() {
		if trait != fleetsim.Upstream && !strings.Contains(usage, string(trait)) {
			t.Errorf("the help does not name %s", trait)
		}
	}
}
