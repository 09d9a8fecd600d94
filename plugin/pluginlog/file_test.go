package pluginlog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	if err := os.Truncate(path, logMaxSize); err != nil { // sparse
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

// TestAppendLog_Link checks that root appends to no file that whoever can write to the log
// directory links to.
func TestAppendLog_Link(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "shadow")
	if err := os.WriteFile(target, []byte("root"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"plugin.log": target, "new.log": filepath.Join(dir, "created")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := appendLog(filepath.Join(dir, name), []byte("x"), time.Now); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "root" {
		t.Errorf("the file that the link leads to: %q, %v", b, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "created")); err == nil {
		t.Error("a file is created through a link")
	}
}
