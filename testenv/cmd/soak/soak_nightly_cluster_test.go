//go:build nightly

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
)

// TestSoak is a short soak with kills in both parts.
func TestSoak(t *testing.T) {
	bin := os.Getenv("CNI_TEST_BIN")
	if os.Geteuid() != 0 || bin == "" {
		testenv.Missing(t, "kube", "needs root and CNI_TEST_BIN, a directory of built programs", "sudo make test LAYERS=cluster")
	}
	if err := cluster.Missing(bin); err != nil {
		testenv.Missing(t, "kube", err.Error(), "sudo make test LAYERS=cluster")
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "soak"),
		"--cri", "60", "--kubelet", "6", "--parallel", "12", "--kill-every", "3s", "--within", "20m").CombinedOutput()
	for _, want := range []string{"CRI: 60/60 pods", "kubelet: 6/6 pods", "leftovers 0, doubled addresses 0, failed pods 0"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%v, no %q in\n%s", err, want, out)
		}
	}
	if strings.Contains(string(out), " 0 kills in ") {
		t.Errorf("a part without a kill:\n%s", out)
	}
}
