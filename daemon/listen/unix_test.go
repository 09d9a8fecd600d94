package listen

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestStale(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	listen := func(name string) *net.UnixListener {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path(name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	served := listen("served")
	defer served.Close()
	gone := listen("gone")
	gone.SetUnlinkOnClose(false)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path("gone"), path("link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ stale, refused bool }{
		"nothing": {}, "gone": {stale: true}, "served": {refused: true}, "file": {refused: true}, "link": {refused: true}, "file/below": {refused: true},
	} {
		stale, err := Stale(t.Context(), path(name))
		if stale != want.stale || (err != nil) != want.refused || errors.Is(err, ErrInUse) != (name == "served") {
			t.Errorf("%s: %t, %v", name, stale, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if stale, err := Stale(ended, path("served")); stale || err == nil {
		t.Errorf("no time to ask: %t, %v", stale, err)
	}
}

// TestUnix_Mode checks that no moment exists in which the name leads to a socket with the
// umask's mode: the name appears by a rename.
func TestUnix_Mode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	modes := make(chan fs.FileMode, 1)
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if info, err := os.Lstat(path); err == nil && info.Mode().Perm() != 0o600 {
				select {
				case modes <- info.Mode():
				default:
				}
			}
		}
	})
	for range 200 {
		s, err := Unix(t.Context(), path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("the file after Close: %v", err)
		}
	}
	close(stop)
	watch.Wait()
	select {
	case mode := <-modes:
		t.Errorf("the socket had mode %s", mode)
	default:
	}
}

func TestUnix_Leftovers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	for _, name := range []string{path, path + newSuffix} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Unix(t.Context(), path, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Lstat(path + newSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("temporary name: %v", err)
	}
}
