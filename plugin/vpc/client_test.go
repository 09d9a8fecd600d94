package vpc_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/plugin/vpc"
	"cnictl/testenv"
)

// TestCall_Deadline: a call to a daemon that never answers ends, and the log is flushed long
// before that.
func TestCall_Deadline(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "c") // a socket path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// Signals interrupt reads, which must not extend the deadline.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	caller, stop := unix.Gettid(), make(chan struct{})
	var signals sync.WaitGroup
	signals.Go(func() {
		testenv.Eventually(t, "the end of the call", func() bool {
			_ = unix.Tgkill(unix.Getpid(), caller, unix.SIGURG) // the Go runtime sends it, too
			select {
			case <-stop:
				return true
			default:
				return false
			}
		})
	})
	slow := 0
	text := vpc.CallText(path, 3*time.Second, func() { slow++ })
	close(stop)
	signals.Wait()
	if want := "rpc error: code = DeadlineExceeded desc = context deadline exceeded"; text != want || slow != 1 {
		t.Errorf("%s, slow called %d times; want %s, once", text, slow, want)
	}
	text = vpc.CallText(filepath.Join(dir, "none"), time.Second, nil)
	if want := `rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /var/run/aws-node/ipamd.sock: connect: no such file or directory"`; text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}
