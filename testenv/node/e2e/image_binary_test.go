package e2e_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"cnictl/deploy/images"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// imagePath returns a PATH that has only the programs of the image aws-vpc-cni, which run
// with the image's libraries.
func (l *lab) imagePath() string {
	l.t.Helper()
	all, err := images.Read(filepath.Join(l.binaries, "aws-vpc-cni.tar"))
	if errors.Is(err, fs.ErrNotExist) {
		testenv.Missing(l.t, "images", err.Error(), "make images-here")
	}
	if err != nil {
		l.t.Fatal(err)
	}
	root, path := l.t.TempDir(), l.t.TempDir()
	for _, i := range all {
		if i.Architecture == goruntime.GOARCH {
			if err := i.Unpack(root); err != nil {
				l.t.Fatal(err)
			}
		}
	}
	one := func(pattern string) string {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) != 1 {
			l.t.Fatalf("%s: %v, %q", pattern, err, found)
		}
		return found[0]
	}
	loader, extensions := one("lib/*/ld-linux-*.so.*"), one("usr/lib/*/xtables")
	programs, err := filepath.Glob(filepath.Join(root, "usr/sbin/*"))
	if err != nil || len(programs) == 0 {
		l.t.Fatalf("%v, programs %q", err, programs)
	}
	for _, program := range programs {
		name := filepath.Base(program)
		script := strings.Join([]string{"#!/bin/sh", "export XTABLES_LIBDIR=" + extensions,
			"exec " + loader + " --library-path " + filepath.Dir(loader) + ":" + filepath.Dir(extensions) + " --argv0 " + name + " " + program + ` "$@"`, ""}, "\n")
		if err := os.WriteFile(filepath.Join(path, name), []byte(script), 0o755); err != nil {
			l.t.Fatal(err)
		}
	}
	return path
}

// TestImage_Backend: with the image's own iptables the daemon uses the backend that has
// kubelet's chain, even though plain iptables is nf_tables, and pods get their network.
func TestImage_Backend(t *testing.T) {
	t.Parallel()
	for hint, other := range map[string]string{"nft": "legacy", "legacy": "nft"} {
		t.Run(hint, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, fakeaws.Options{})
			path := l.imagePath()
			i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "t3.medium", SubnetID: l.subnet.ID})
			if err != nil {
				t.Fatal(err)
			}
			n := l.node(i.ID)
			run := func(command string) string { return l.sh(n, filepath.Join(path, command)) }
			if version := run("iptables --version"); !strings.Contains(version, "(nf_tables)") {
				t.Errorf("iptables is %s", version)
			}
			run("iptables-" + hint + " -t mangle -N KUBE-IPTABLES-HINT")
			l.start(n, map[string]string{"PATH": path})
			l.del(n, l.mustAdd(n, "p", 2, 2), 2)
			if got := run("iptables-" + hint + "-save"); !strings.Contains(got, "AWS-SNAT-CHAIN-0") {
				t.Errorf("%s has no CNI rules:\n%s", hint, got)
			}
			if got := run("iptables-" + other + "-save"); strings.Contains(got, "AWS-SNAT-CHAIN-0") {
				t.Errorf("%s has CNI rules:\n%s", other, got)
			}
			l.nothingLeft(n)
		})
	}
}
