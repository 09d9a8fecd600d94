package install_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/install"
	"cnictl/testenv"
)

// tmpfs mounts a small file system.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	testenv.RequireRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestProgram_FullDisk: the old program stays intact, and nothing else is left.
func TestProgram_FullDisk(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, "size=64k")
	to := write(t, filepath.Join(dir, "plugin"), "old", 0o755)
	from := write(t, filepath.Join(t.TempDir(), "plugin"), strings.Repeat("x", 128<<10), 0o755)
	changed, err := install.Program(from, to)
	if changed || !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "the node's disk is full, the previous file is still in place") {
		t.Errorf("changed %v, error %v", changed, err)
	}
	if diff := cmp.Diff([]string{"plugin"}, names(t, dir)); diff != "" || read(t, to) != "old" {
		t.Errorf("has %q (-want +got):\n%s", read(t, to), diff)
	}
}

// TestPrograms_FullDisk: if the disk has no room for a program's dependency, the old program
// stays.
func TestPrograms_FullDisk(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), tmpfs(t, "size=64k")
	const front, behind = "portmap", "portmap.reference"
	write(t, filepath.Join(to, front), "the reference plugin itself", 0o755)
	write(t, filepath.Join(from, front), "starts what is beside it", 0o755)
	write(t, filepath.Join(from, behind), strings.Repeat("x", 128<<10), 0o755)
	installed, err := install.Programs(from, to)
	if len(installed) != 0 || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("installed %v, error %v", installed, err)
	}
	if diff := cmp.Diff([]string{front}, names(t, to)); diff != "" || read(t, filepath.Join(to, front)) != "the reference plugin itself" {
		t.Errorf("%s is %q (-want +got):\n%s", front, read(t, filepath.Join(to, front)), diff)
	}
}

// TestProgram_ReadOnly: the error says what to do; an identical file needs no write.
func TestProgram_ReadOnly(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, "size=64k")
	from := write(t, filepath.Join(t.TempDir(), "plugin"), "new", 0o755)
	same := write(t, filepath.Join(dir, "same"), "new", 0o755)
	old := write(t, filepath.Join(dir, "old"), "old", 0o755)
	// A second mount that is never written through: the first one is busy while a program
	// that another test starts holds a copy of a file opened here.
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if changed, err := install.Program(from, same); changed || err != nil {
		t.Errorf("changed %v, error %v", changed, err)
	}
	if changed, err := install.Program(from, old); changed || !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "the directory must be writable: mount the host's directory there") {
		t.Errorf("changed %v, error %v", changed, err)
	}
}
