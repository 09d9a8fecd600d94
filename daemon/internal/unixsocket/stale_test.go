package unixsocket

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
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
