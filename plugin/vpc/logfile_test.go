package vpc_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/plugin/vpc"
)

func TestAppendLog_Rotates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "plugin.log")
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	now := func() time.Time { return at }
	write := func(s string) {
		t.Helper()
		if err := vpc.AppendLog(path, []byte(s), now); err != nil {
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
	if err := os.Truncate(path, vpc.LogMaxSize); err != nil { // sparse
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
	if err := vpc.AppendLog(filepath.Join(file, "plugin.log"), []byte("x"), time.Now); err == nil {
		t.Error("no error for a path below a file")
	}
}
