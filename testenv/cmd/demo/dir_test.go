package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestNewDir_RemovesThoseOfDeadRuns: nothing else with such a name is removed.
func TestNewDir_RemovesThoseOfDeadRuns(t *testing.T) {
	in := t.TempDir()
	t.Setenv("TMPDIR", in)
	made := func() *workDir {
		d, err := newDir()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	stays := func(name string) string {
		path := filepath.Join(in, dirPrefix+name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	living, kept, removed, killed := made(), made(), made(), made()
	unlocked := stays("somebody's")
	link := filepath.Join(in, dirPrefix+"link")
	if err := os.Symlink(living.path, link); err != nil {
		t.Fatal(err)
	}
	linked := stays("linked")
	if err := os.Symlink(filepath.Join(killed.path, lockName), filepath.Join(linked, lockName)); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{kept.keep(), removed.remove(), os.WriteFile(filepath.Join(killed.path, "log"), nil, 0o600), killed.lock.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	last := made()
	want := []string{living.path, kept.path, unlocked, link, linked, last.path}
	got, err := filepath.Glob(filepath.Join(in, "*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
