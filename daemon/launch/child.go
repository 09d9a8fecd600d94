package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// child is the started daemon.
type child struct {
	pid    int
	ended  chan error // receives how it ended, once
	stderr *tail
}

// startChild starts a program in a directory, with the given streams. It keeps the end of
// what the program prints to stderr.
//
// A single goroutine starts it and waits for all children: as process 1 of a container this
// process inherits all orphans. When that goroutine's thread ends, at the latest with this
// process, the kernel sends the child SIGTERM, so that no daemon outlives its entrypoint
// where the entrypoint is not process 1.
func startChild(dir, program string, stdout, stderr *os.File) (*child, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &child{ended: make(chan error, 1), stderr: &tail{to: stderr}}
	copied := make(chan struct{})
	go func() { // ends when the last holder of the pipe closes it, or by reap's deadline
		defer close(copied)
		_, _ = io.Copy(c.stderr, from)
	}()
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := os.StartProcess(program, []string{program}, &os.ProcAttr{
			Dir: dir, Files: []*os.File{nil, stdout, to},
			Sys: &syscall.SysProcAttr{Pdeathsig: unix.SIGTERM},
		})
		err = errors.Join(err, to.Close())
		if p != nil {
			c.pid = p.Pid
			_ = p.Release() // reap waits for it
		}
		started <- err
		if p == nil {
			_ = from.Close()
			return
		}
		result := reap(c.pid)
		// Programs started by the daemon may hold the pipe a little longer.
		_ = from.SetReadDeadline(time.Now().Add(time.Second))
		<-copied
		_ = from.Close()
		c.ended <- result
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// reap waits for children until pid has ended, and returns how it ended.
func reap(pid int) error {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for process %d: %w", pid, err)
		case got == pid && status.Signaled():
			return &exitError{signal: status.Signal()}
		case got == pid && status.ExitStatus() != 0:
			return &exitError{code: status.ExitStatus()}
		case got == pid:
			return nil
		}
	}
}

// signal sends a signal to the child. A child that is already gone is not an error: its end
// is about to be received.
func (c *child) signal(s syscall.Signal) error {
	if err := unix.Kill(c.pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s to the daemon: %w", unix.SignalName(s), err)
	}
	return nil
}

// exitError is any end of the child other than exit status 0.
type exitError struct {
	code   int
	signal syscall.Signal // 0: it exited by itself
}

func (e *exitError) Error() string {
	if e.signal != 0 {
		text := "the daemon was killed by " + unix.SignalName(e.signal)
		if e.signal == unix.SIGKILL {
			text += " (probably by the kernel, out of memory)"
		}
		return text
	}
	return fmt.Sprintf("the daemon exited with status %d", e.code)
}

// tailSize is enough for some lines of a daemon that ends with its reason, or the top of a
// panic's end.
const tailSize = 2 << 10

// tail forwards what is written and keeps its end.
type tail struct {
	to io.Writer

	mu   sync.Mutex // guards last
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.last = append(t.last, p...)
	if over := len(t.last) - tailSize; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	t.mu.Unlock()
	// A reader that has gone away must not stop the copying: the daemon would block.
	_, _ = t.to.Write(p)
	return len(p), nil
}

// lines returns the last complete lines, at most the given number.
func (t *tail) lines(most int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.last), []byte("\n"))
	if len(t.last) == tailSize && len(lines) > 1 {
		lines = lines[1:] // it starts mid-line
	}
	return string(bytes.Join(lines[max(0, len(lines)-most):], []byte("\n")))
}
