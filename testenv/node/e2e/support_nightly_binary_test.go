//go:build nightly

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cnictl/testenv/aws/fakeaws"
)

// TestSupport_Hangs: a program that hangs costs only its own step, with and without the
// timeout program.
func TestSupport_Hangs(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	n := l.node(i.ID)
	for _, more := range [][]string{{"timeout"}, nil} {
		dir := programs(t, append(more, base...)...)
		l.write(filepath.Join(dir, "nft"), "#!/bin/sh\necho begun\nexec sleep 1000\n", 0o755)
		b := l.collect(n, dir, "-t", "1")
		if got := b.status("networking/nft.txt"); got != "cut off after 1 s" || b.files["networking/nft.txt"] != "begun\n" {
			t.Errorf("with %v: %q, %q", more, got, b.files["networking/nft.txt"])
		}
	}
}

// TestSupport_Ends checks the exit codes and their messages.
func TestSupport_Ends(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	n := l.node(i.ID)
	path := os.Getenv("PATH")
	for _, row := range []struct {
		path string
		args []string
		code int
		says string
	}{
		{path, []string{"-h"}, 0, "usage: aws-cni-support.sh"},
		{path, []string{"-x"}, 2, "usage: aws-cni-support.sh"},
		{path, []string{"here"}, 2, "unexpected argument here"},
		{path, []string{"-t", "soon"}, 2, "soon is not a number of seconds"},
		{path, []string{"-t", "0"}, 2, "0 is not a number of seconds"},
		{path, []string{"-o", "/nowhere"}, 1, "/nowhere is not a directory"},
		{path, []string{"-o", "/proc"}, 1, "make a directory in /proc"},
		{"/nowhere", nil, 1, "the program "},
	} {
		r := l.support(n, row.path, row.args...)
		if r.Code != row.code || !strings.Contains(string(r.Stdout)+string(r.Stderr), row.says) || row.code != 0 && len(r.Stdout) > 0 {
			t.Errorf("%q: exit status %d:\n%s%s", row.args, r.Code, r.Stdout, r.Stderr)
		}
	}
}
