package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"--nodes", "2", "--env", "A=1", "--env", "B=x=y", "--dir", "/d", "--bin", "/b", "--proxy", "nftables", "--type", "t3.medium"})
	if err != nil {
		t.Fatal(err)
	}
	if o.nodes != 2 || !maps.Equal(o.env, settings{"A": "1", "B": "x=y"}) || o.dir != "/d" || o.bin != "/b" {
		t.Errorf("got %+v", o)
	}
	c := o.cluster()
	if len(c.Nodes) != 2 || c.Nodes[1].Type != "t3.medium" || c.ProxyMode != "nftables" || c.Dir != "/d/files" {
		t.Errorf("cluster %+v", c)
	}
	for _, bad := range []struct{ args, says string }{
		{"--nodes 0", "--nodes 0: from 1 to 20"},
		{"--nodes 21", "from 1 to 20"},
		{"--env A", "want NAME=VALUE"},
		{"more", `unknown argument "more"`},
	} {
		if _, err := parse(strings.Fields(bad.args)); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%s: error %v, want %q", bad.args, err, bad.says)
		}
	}
}

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
