package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"cnictl/testenv"
)

// mount returns a new file system for the test.
func mount(tb testing.TB, options string) string {
	tb.Helper()
	dir := tb.TempDir()
	if err := syscall.Mount("checkpoint", dir, "tmpfs", 0, options); err != nil {
		tb.Fatalf("mount tmpfs: %v", err)
	}
	tb.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			tb.Errorf("unmount tmpfs: %v", err)
		}
	})
	return dir
}

func TestStore_DiskFull(t *testing.T) {
	testenv.RequireRoot(t)
	t.Parallel()
	rows := []struct{ name, options string }{
		{"no blocks", "size=64k"},
		{"no inodes", "nr_inodes=2"}, // the root directory and the checkpoint
	}
	for _, row := range rows {
		dir := mount(t, row.options)
		path := filepath.Join(dir, "ipam.json")
		s := Open(path)
		if row.name == "no inodes" {
			if err := os.WriteFile(path, encoded(3), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := s.Write(encoded(3)); err != nil {
			t.Fatal(err)
		}
		for range 3 { // it does not get worse
			if err := s.Write(encoded(700)); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s: %v, want ENOSPC", row.name, err)
			}
		}
		wantFiles(t, dir, "ipam.json")
		if res := mustLoad(t, Open(path)); !slices.Equal(res.Entries, entries(3)) || res.Problem != nil {
			t.Errorf("%s: loaded %+v", row.name, res)
		}
		if row.name == "no blocks" {
			if err := s.Write(encoded(4)); err != nil {
				t.Errorf("a write that fits: %v", err)
			}
		}
	}
}

// A damaged file that cannot be moved is reported along with what could be read.
func TestStore_ReadOnlyDisk(t *testing.T) {
	testenv.RequireRoot(t)
	t.Parallel()
	dir := mount(t, "size=1m")
	path := filepath.Join(dir, "ipam.json")
	if err := os.WriteFile(path, encoded(3)[:len(encoded(2))], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	s := Open(path)
	if err := s.Write(encoded(1)); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write: %v, want EROFS", err)
	}
	res, err := s.Load()
	if !errors.Is(err, syscall.EROFS) || len(res.Entries) != 2 || res.Problem == nil || res.KeptAside != "" {
		t.Errorf("loaded %+v, %v", res, err)
	}
}

// BenchmarkWrite writes to a tmpfs, like /var/run on nodes.
func BenchmarkWrite(b *testing.B) {
	testenv.RequireRoot(b)
	for _, n := range []int{10, 100, 700} {
		b.Run(fmt.Sprintf("pods=%d", n), func(b *testing.B) {
			s := Open(filepath.Join(mount(b, "size=8m"), "ipam.json"))
			data := encoded(n)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := s.Write(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
