package pluginlog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/logfile"
)

func TestAppendLog_Rotates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "plugin.log")
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	now := func() time.Time { return at }
	write := func(s string) {
		t.Helper()
		if err := appendLog(path, []byte(s), now); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	write("two\n")
	if b, err := os.ReadFile(path); err != nil || string(b) != "one\ntwo\n" {
		t.Fatalf("%q, %v", b, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	for _, name := range []string{
		"plugin-2026-11-20T03-00-00.000.log", "plugin-2026-11-19T03-00-00.000.log.gz", "plugin-2026-11-18T03-00-00.000.log",
		"plugin-2026-11-17T03-00-00.000.log", "plugin-2026-11-16T03-00-00.000.log", "plugin-2026-01-01T03-00-00.000.log",
		"plugin-notes.log", "other-2026-01-01T03-00-00.000.log",
	} {
		if err := os.WriteFile(filepath.Join(dir, "new", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path, logfile.MaxSize); err != nil { // sparse
		t.Fatal(err)
	}
	write("last of the old\n")
	write("first of the new\n")
	if b, err := os.ReadFile(path); err != nil || string(b) != "first of the new\n" {
		t.Errorf("%q, %v", b, err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "new"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{
		"other-2026-01-01T03-00-00.000.log",
		"plugin-2026-11-17T03-00-00.000.log", "plugin-2026-11-18T03-00-00.000.log", "plugin-2026-11-19T03-00-00.000.log.gz",
		"plugin-2026-11-20T03-00-00.000.log", "plugin-2026-11-21T03-00-00.000.log", "plugin-notes.log", "plugin.log",
	}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestAppendLog_Unwritable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := appendLog(filepath.Join(file, "plugin.log"), []byte("x"), time.Now); err == nil {
		t.Error("no error for a path below a file")
	}
}

// TestAppendLog_Planted: whatever someone with write access to the log directory puts in place of a
// log, root appends to no other file, creates none and does not wait. The lines are lost, and the
// error says why.
func TestAppendLog_Planted(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		plant func(elsewhere, dir string) error // elsewhere is a directory with a file "shadow"
		says  string
	}{
		"a link":            {func(e, dir string) error { return os.Symlink(e+"/shadow", dir+"/plugin.log") }, "plugin.log is a symbolic link"},
		"a link to no file": {func(e, dir string) error { return os.Symlink(e+"/new", dir+"/plugin.log") }, "plugin.log is a symbolic link"},
		"a hard link":       {func(e, dir string) error { return os.Link(e+"/shadow", dir+"/plugin.log") }, "plugin.log is a file with several hard links"},
		"a FIFO":            {func(_, dir string) error { return unix.Mkfifo(dir+"/plugin.log", 0o600) }, "plugin.log is a FIFO"},
		"a link to a FIFO": {func(e, dir string) error {
			return errors.Join(unix.Mkfifo(e+"/fifo", 0o600), os.Symlink(e+"/fifo", dir+"/plugin.log"))
		}, "plugin.log is a symbolic link"},
		"a directory":             {func(_, dir string) error { return os.Mkdir(dir+"/plugin.log", 0o755) }, "plugin.log is a directory"},
		"a link as the directory": {func(e, dir string) error { return errors.Join(os.Remove(dir), os.Symlink(e, dir)) }, "aws-routed-eni is a symbolic link"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, elsewhere := filepath.Join(t.TempDir(), "aws-routed-eni"), t.TempDir()
			if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(elsewhere+"/shadow", []byte("root"), 0o600), row.plant(elsewhere, dir)); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadDir(elsewhere)
			if err != nil {
				t.Fatal(err)
			}
			var errOut bytes.Buffer
			l := New(dir+"/plugin.log", "debug", time.Now, &errOut)
			l.Info("a line")
			l.Flush()
			if text := errOut.String(); !strings.Contains(text, row.says) || strings.Count(text, "\n") != 1 {
				t.Errorf("standard error: %q", text)
			}
			after, err := os.ReadDir(elsewhere)
			if err != nil || len(after) != len(before) {
				t.Errorf("elsewhere is %v, %v", after, err)
			}
			if b, err := os.ReadFile(elsewhere + "/shadow"); err != nil || string(b) != "root" {
				t.Errorf("the file elsewhere: %q, %v", b, err)
			}
		})
	}
}

// TestAppendLog_Rotates_Planted: what takes the names of backups is not followed.
func TestAppendLog_Rotates_Planted(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "shadow")
	path := filepath.Join(dir, "plugin.log")
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	err := errors.Join(os.WriteFile(elsewhere, []byte("root"), 0o600), os.WriteFile(path, nil, 0o600), os.Truncate(path, logfile.MaxSize),
		os.Symlink(elsewhere, filepath.Join(dir, "plugin-2026-11-21T03-00-00.000.log")), os.Symlink(elsewhere, filepath.Join(dir, "plugin-2026-01-01T03-00-00.000.log")))
	if err != nil {
		t.Fatal(err)
	}
	if err := appendLog(path, []byte("last of the old\n"), func() time.Time { return at }); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "plugin-2026-11-21T03-00-00.000.log")); err != nil || info.Size() != logfile.MaxSize+16 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "plugin-2026-01-01T03-00-00.000.log")); err == nil {
		t.Error("the old one is still there")
	}
	if b, err := os.ReadFile(elsewhere); err != nil || string(b) != "root" {
		t.Errorf("the file elsewhere: %q, %v", b, err)
	}
}

// TestAppendLog_Parent: a link above the log directory is the operator's, and followed. A device
// is no log file, but lines may go there.
func TestAppendLog_Parent(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(root+"/data", 0o755), os.Symlink("data", root+"/log")); err != nil {
		t.Fatal(err)
	}
	if err := appendLog(root+"/log/aws-routed-eni/plugin.log", []byte("x"), time.Now); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(root + "/data/aws-routed-eni/plugin.log"); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
	if err := appendLog("/dev/null", []byte("x"), time.Now); err != nil {
		t.Error(err)
	}
}

// BenchmarkAppendLog measures what the log costs an ADD.
func BenchmarkAppendLog(b *testing.B) {
	path := filepath.Join(b.TempDir(), "plugin.log")
	lines := bytes.Repeat([]byte("x"), 2<<10)
	for b.Loop() {
		if err := appendLog(path, lines, time.Now); err != nil {
			b.Fatal(err)
		}
	}
}
