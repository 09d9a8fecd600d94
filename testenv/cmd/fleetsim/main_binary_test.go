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

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
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
