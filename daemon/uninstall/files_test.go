package uninstall

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Exactly our files in the directories are listed, wherever the address book is.
func TestPaths(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	p := Paths{
		Config: root + "/conf", Binaries: root + "/bin", Run: root + "/run", Checkpoint: root + "/var/book.json",
		Host: root + "/host", State: root + "/state",
	}
	relative := func(paths []string) string {
		return strings.ReplaceAll(strings.Join(paths, " "), root+"/", "")
	}
	if got := relative(p.runtimeFiles()) + relative(p.records()) + relative(p.state()); got != "" {
		t.Errorf("of an empty node: %s", got)
	}
	for _, path := range []string{
		"conf/10-aws.conflist", "conf/10-aws.conflist.bak", "conf/99-loopback.conf", "bin/aws-cni", "bin/aws-cni-grpc", "bin/egress-cni", "bin/aws-cni-support.sh", "bin/loopback",
		"run/ipam.json", "run/ipam.json.tmp1", "run/npa.sock", "run/other.json", "run/attachments/054c-eth0.json",
		"var/book.json", "var/book.json.tmp2", "var/book.json5", "var/book-subnets.json", "var/book-subnets.json.damaged", "var/others", "state/v6pd/egress-v4-ipam/aws-cni/169.254.172.7", "state/v6pd/egress-v4-ipam/other/169.254.172.7",
		"host" + root + "/state/v4pd/egress-v6-ipam/aws-cni/lock",
	} {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for want, got := range map[string]string{
		"conf/10-aws.conflist bin/aws-cni bin/aws-cni-grpc bin/egress-cni bin/aws-cni-support.sh":                               relative(p.runtimeFiles()),
		"run/attachments hoststate/v4pd/egress-v6-ipam/aws-cni state/v6pd/egress-v4-ipam/aws-cni":                               relative(p.records()),
		"run/ipam.json run/ipam.json.tmp1 var/book-subnets.json var/book-subnets.json.damaged var/book.json var/book.json.tmp2": relative(p.state()),
	} {
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// A container without access to the host's plugin state cannot know whether there are
// leases; on the host itself an absent directory means none, even if it has a directory /host.
func TestPaths_Unseen(t *testing.T) {
	t.Parallel()
	mounted := func(points ...string) (mounts string) {
		for _, point := range points {
			mounts += "36 35 98:0 /mnt1 " + point + " rw,noatime master:1 - ext3 /dev/root rw\n"
		}
		return mounts
	}
	root := t.TempDir()
	p := Paths{Host: root + "/host", State: "/state"}
	for _, row := range []struct {
		made   string
		mounts string
		unseen bool
	}{
		{"", mounted("/", "/proc"), false},
		{"/host/etc", mounted("/", root, root+"/host"), false},
		{"/host/etc", "", false},
		{"/host/etc", mounted("/", root+"/hosts/etc"), false},
		{"/host/etc", mounted("/", root+"/host/etc"), true},
		{"/host/state", mounted("/", root+"/host/etc"), false},
	} {
		if err := os.MkdirAll(root+row.made, 0o755); err != nil {
			t.Fatal(err)
		}
		if path, unseen := p.unseen(row.mounts); unseen != row.unseen || path != root+"/host/state" {
			t.Errorf("with %q, mounted %q: %s %t", row.made, row.mounts, path, unseen)
		}
	}
}

// The setting of the address book's path removes no directory and is not used as a pattern.
func TestPaths_OddCheckpoint(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "dir")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	changes := removeAll(Paths{Run: root, Checkpoint: dir}.state(), os.Remove)
	if len(changes) != 1 || changes[0].Err == nil {
		t.Errorf("%+v", changes)
	}
	if got := (Paths{Run: root, Checkpoint: ""}).state(); got != nil {
		t.Errorf("without a path: %q", got)
	}
	if got := (Paths{Run: root, Checkpoint: root + "/*"}).state(); got != nil {
		t.Errorf("a pattern: %q", got)
	}
}

// A socket without a listener does not mean a running daemon.
func TestPaths_Running(t *testing.T) {
	t.Parallel()
	p := Paths{Run: t.TempDir()}
	if s, ok := p.running(t.Context()); ok {
		t.Errorf("%s answers", s)
	}
	l, err := net.Listen("unix", filepath.Join(p.Run, "cni.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := p.running(t.Context()); !ok || s != filepath.Join(p.Run, "cni.sock") {
		t.Errorf("%q, %t", s, ok)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if s, ok := p.running(t.Context()); ok {
		t.Errorf("%s answers without a listener", s)
	}
}
