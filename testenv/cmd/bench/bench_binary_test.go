package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cnictl/testenv"
)

// built returns the directory of the programs from "make build".
func built() string {
	if bin := os.Getenv("CNI_TEST_BIN"); bin != "" {
		return bin
	}
	return filepath.Join("..", "..", "..", "bin")
}

// TestQuick: some phases measure, and leave nothing behind. The figures are not tested.
func TestQuick(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var out, errOut bytes.Buffer
	args := []string{"tui", "--quick", "--phases", "first,sweep,start", "--bin", built()}
	if code := program.Run(testenv.Context(t), args, &out, &errOut); code != 0 {
		t.Fatalf("exit %d: %s", code, &errOut)
	}
	for _, want := range []string{
		"1000 nodes: exec to first rows", "LIST answered to all rows", "cnictl nodes, 1000 nodes, 32 at a time", "cnictl version, CPU, least",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
