package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// built returns the directory of the programs from "make build".
func built(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("CNI_TEST_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "..", "bin")
	}
	return bin
}

// TestQuick: everything is measured, and nothing is left behind. The figures are not tested.
func TestQuick(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var out, errOut bytes.Buffer
	if code := program.Run(ctx, []string{"--quick", "--bin", built(t), "--source", filepath.Join("..", "..", "..")}, &out, &errOut); code != 0 {
		t.Fatalf("exit %d: %s", code, &errOut)
	}
	t.Logf("%s", &out)
	for _, want := range []string{
		"1000 nodes: exec to first rows", "LIST answered to all rows", "cnictl nodes, 1000 nodes, 32 at a time",
		"screen, 1000 nodes: first sweep", "peak memory after it", "key to frame, 200 keys, p50", "idle CPU, paused",
		"idle CPU, without the focus", "idle CPU, nothing due", "cnictl version, CPU, least", "package initialisation",
		"View after a change of data", "View after a key", "load at the end",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no row %q", want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "benchtui-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
