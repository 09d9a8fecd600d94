package egress

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childDeadline bounds a program that we run: iptables waits for its lock, host-local
// for its directory.
const childDeadline = time.Minute

// child is a program that runs.
type child struct {
	name     string
	pid      int
	fds      [3]int // our ends of its standard streams; -1: closed
	in       []byte // what it has still to read
	output   [3][]byte
	deadline time.Time
	now      func() time.Time
}

// start starts a program on the calling thread, hence in its network namespace, and
// returns while it runs. os/exec would link what costs each start of ours.
func (p *Process) start(path string, args, env []string, in []byte) (_ *child, err error) {
	c := &child{name: path, in: in, now: p.Now, deadline: p.Now().Add(childDeadline), fds: [3]int{-1, -1, -1}}
	theirs := [3]int{-1, -1, -1}
	defer func() {
		closeAll(&theirs)
		if err != nil {
			closeAll(&c.fds)
		}
	}()
	for i := range c.fds {
		var ends [2]int // read, write
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			return nil, err
		}
		if i == 0 {
			theirs[i], c.fds[i] = ends[0], ends[1]
		} else {
			c.fds[i], theirs[i] = ends[0], ends[1]
		}
	}
	if err := unix.SetNonblock(c.fds[0], true); err != nil {
		return nil, err
	}
	c.pid, err = syscall.ForkExec(path, append([]string{path}, args...), &syscall.ProcAttr{
		Env: env, Files: []uintptr{uintptr(theirs[0]), uintptr(theirs[1]), uintptr(theirs[2])},
	})
	if err != nil {
		return nil, &startError{path, err}
	}
	return c, nil
}

// startError is a program that could not be started.
type startError struct {
	path string
	err  error
}

func (e *startError) Error() string { return "fork/exec " + e.path + ": " + e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

func closeAll(fds *[3]int) {
	for i, fd := range fds {
		if fd >= 0 {
			_ = unix.Close(fd)
			fds[i] = -1
		}
	}
}

// exitError is a program that failed.
type exitError struct {
	name, how string
	stdout    []byte
	stderr    []byte
}

func (e *exitError) Error() string {
	text := strings.TrimSpace(string(e.stderr))
	if text == "" {
		return e.name + ": " + e.how
	}
	return e.name + ": " + e.how + ": " + text
}

// wait feeds the program and waits for its end.
func (c *child) wait() (stdout, stderr []byte, _ error) {
	timedOut := false
	for c.fds[1] >= 0 || c.fds[2] >= 0 {
		left := c.deadline.Sub(c.now())
		if left <= 0 {
			timedOut = true
			_ = unix.Kill(c.pid, unix.SIGKILL)
			break
		}
		if err := c.turn(int(left/time.Millisecond) + 1); err != nil {
			_ = unix.Kill(c.pid, unix.SIGKILL)
			break
		}
	}
	closeAll(&c.fds)
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(c.pid, &status, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	how := ""
	switch {
	case timedOut:
		how = "did not end within " + childDeadline.String()
	case status.Signaled():
		how = "signal: " + status.Signal().String()
	case status.ExitStatus() != 0:
		how = "exit status " + strconv.Itoa(status.ExitStatus())
	default:
		return c.output[1], c.output[2], nil
	}
	return nil, nil, &exitError{c.name, how, c.output[1], c.output[2]}
}

// turn moves what can be moved between the program and us.
func (c *child) turn(timeout int) error {
	var polled []unix.PollFd
	for i, fd := range c.fds {
		events := int16(unix.POLLIN)
		if i == 0 {
			events = unix.POLLOUT
		}
		if fd >= 0 {
			polled = append(polled, unix.PollFd{Fd: int32(fd), Events: events})
		}
	}
	if _, err := unix.Poll(polled, timeout); err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	for _, p := range polled {
		if p.Revents == 0 {
			continue
		}
		for i := range c.fds {
			if c.fds[i] == int(p.Fd) && !c.move(i) {
				_ = unix.Close(c.fds[i])
				c.fds[i] = -1
			}
		}
	}
	return nil
}

// move is false when the stream is at its end.
func (c *child) move(stream int) bool {
	if stream == 0 {
		n, err := unix.Write(c.fds[0], c.in)
		if err != nil {
			return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
		}
		c.in = c.in[n:]
		return len(c.in) > 0
	}
	var buf [4 << 10]byte
	n, err := unix.Read(c.fds[stream], buf[:])
	if err != nil {
		return errors.Is(err, unix.EINTR)
	}
	c.output[stream] = append(c.output[stream], buf[:n]...)
	return n > 0
}

// with is an environment with one variable changed.
func with(env []string, changes ...string) []string {
	out := make([]string, 0, len(env)+len(changes))
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		keep := true
		for _, change := range changes {
			changed, _, _ := strings.Cut(change, "=")
			keep = keep && key != changed
		}
		if keep {
			out = append(out, kv)
		}
	}
	return append(out, changes...)
}

// regular reports whether there is a file at a path, or an executable one.
func regular(path string, executable bool) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	return !executable || unix.Access(path, unix.X_OK) == nil
}
