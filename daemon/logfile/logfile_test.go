package logfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/logfile"
	"cnictl/testenv"
)

func TestDevice(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/dev/null": true, "/dev/stdout": true, "/dev/fd/1": true, "/proc/1/fd/1": true, "/proc/self/fd/2": true,
		"/var/log/aws-routed-eni/ipamd.log": false, "/dev/shm/ipamd.log": false, "/proc/1/root/var/log/ipamd.log": false,
		"/var/fd/ipamd.log": false, "ipamd.log": false, "/dev/../var/ipamd.log": false,
	} {
		if got := logfile.Device(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

// TestOpen_Lease: opening does not wait until who has a lease on the file gives it back.
func TestOpen_Lease(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	holder, err := os.Create(filepath.Join(path, "x.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if _, err := unix.FcntlInt(holder.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		testenv.Missing(t, "root", "a file system with leases: "+err.Error(), "TMPDIR=/var/tmp go test ./daemon/logfile")
	}
	dir, err := logfile.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, _, err := dir.Append("x.log"); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Error(err)
	}
}

// TestPrune: five backups are kept, none older than 30 days. One that is being compressed counts
// once, although it has two files.
func TestPrune(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	put := func(names ...string) {
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(path, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir, err := logfile.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	now := time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
	put("x-2026-10-01T03-00-00.000.log", "x-2026-11-28T03-00-00.000.log.gz", "x-2026-11-28T03-00-00.000.log", "x-2026-11-27T03-00-00.000.log.gz",
		"x-notes.log", "x-2026-11-26T03-00-00.000.txt", "y-2026-10-01T03-00-00.000.log", "x.log")
	check := func(want ...string) {
		t.Helper()
		var got []string
		for _, b := range dir.Prune("x.log", now) {
			got = append(got, b.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check("x-2026-11-28T03-00-00.000.log", "x-2026-11-28T03-00-00.000.log.gz", "x-2026-11-27T03-00-00.000.log.gz")
	put("x-2026-11-26T03-00-00.000.log", "x-2026-11-25T03-00-00.000.log", "x-2026-11-24T03-00-00.000.log", "x-2026-11-23T03-00-00.000.log")
	check("x-2026-11-28T03-00-00.000.log", "x-2026-11-28T03-00-00.000.log.gz", "x-2026-11-27T03-00-00.000.log.gz",
		"x-2026-11-26T03-00-00.000.log", "x-2026-11-25T03-00-00.000.log", "x-2026-11-24T03-00-00.000.log")
	left, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if e.Name() == "x-2026-11-23T03-00-00.000.log" || strings.HasPrefix(e.Name(), "x-2026-10") {
			t.Errorf("%s is still there", e.Name())
		}
	}
	if len(left) != 10 {
		t.Errorf("%d files are left", len(left))
	}
}
