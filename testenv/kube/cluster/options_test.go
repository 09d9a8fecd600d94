package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOptions_Check(t *testing.T) {
	t.Parallel()
	for what, o := range map[string]Options{
		"no directory":             {Binaries: "b", Nodes: make([]NodeOptions, 1)},
		"no directory of programs": {Dir: "d", Nodes: make([]NodeOptions, 1)},
		"no nodes":                 {Dir: "d", Binaries: "b"},
		"unknown proxy mode":       {Dir: "d", Binaries: "b", Nodes: make([]NodeOptions, 1), ProxyMode: "ipvs"},
	} {
		if err := o.check(); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// TestRemoveTree removes only directories, as cgroups require: their files go with them.
func TestRemoveTree(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	if err := os.MkdirAll(filepath.Join(dir, "b", "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
	if err := removeTree(dir); err != nil {
		t.Errorf("of what is gone: %v", err)
	}
}
