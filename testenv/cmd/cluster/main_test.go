package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClear: a directory that is not a cluster's is left alone.
func TestClear(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{pidFile, "precious"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := clear(options{dir: dir}); err == nil || !strings.Contains(err.Error(), "precious") {
		t.Errorf("error %v, want one about the file", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left %v, %v: want both files", left, err)
	}
	if err := os.Remove(filepath.Join(dir, "precious")); err != nil {
		t.Fatal(err)
	}
	if err := clear(options{dir: dir}); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v: want nothing", left, err)
	}
}
