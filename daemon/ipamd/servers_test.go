package ipamd

import (
	"context"
	"log/slog"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// listener returns the process's listening socket at a loopback address, -1 if none.
func listener(address [4]byte) int {
	for fd := 3; fd < 1000; fd++ {
		if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on == 0 {
			continue
		}
		at, err := unix.Getsockname(fd)
		if at, ok := at.(*unix.SockaddrInet4); err == nil && ok && at.Addr == address {
			return fd
		}
	}
	return -1
}

// Introspection recovers from a broken listener.
func TestServers_IntrospectionAgain(t *testing.T) {
	t.Parallel()
	l := newLonely(t, nil)
	l.log = slog.New(slog.DiscardHandler)
	l.deps.Config.IntrospectionAddr = "127.61.67.9:0" // not used by other tests
	address := [4]byte{127, 61, 67, 9}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for round := range 3 {
		ended := make(chan error, 1)
		go func() { ended <- l.introspect(ctx) }()
		fd := -1
		for fd < 0 {
			select {
			case err := <-ended:
				t.Fatal("ended instead of serving: ", err)
			default:
				runtime.Gosched()
				fd = listener(address)
			}
		}
		if round == 2 {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			continue
		}
		// Accept then fails, as it may without memory.
		if err := unix.Shutdown(fd, unix.SHUT_RDWR); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Fatal("no error of a broken listener")
		}
	}
}
