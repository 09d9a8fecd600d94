package vpc

import (
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cniwire"
)

const (
	// addDeadline is longer than the 60 s that the daemon may make an ADD wait for the
	// pool to grow, and shorter than the timeouts of the container runtimes (2 min).
	addDeadline = 90 * time.Second
	delDeadline = 30 * time.Second

	// patience is how long a call may take before the log is flushed, so that a run that
	// is killed while waiting leaves a trace.
	patience = 200 * time.Millisecond
)

// dialError means that connecting to the daemon's socket failed.
type dialError struct{ errno unix.Errno }

func (e *dialError) Error() string { return "dial daemon: " + e.errno.Error() }

// call is one request on the daemon's socket; the daemon answers one per connection.
// It uses the socket directly, because the net package costs a run 0.15 ms.
type call struct {
	fd       int
	deadline time.Time
	now      func() time.Time
}

// dial connects to the daemon. The whole call must finish within timeout.
func dial(socket string, timeout time.Duration, now func() time.Time) (*call, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, &dialError{errnoOf(err)}
	}
	c := &call{fd: fd, deadline: now().Add(timeout), now: now}
	// Also limits connect, which waits while the listener's queue is full.
	tv := unix.NsecToTimeval(int64(timeout))
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket})
		for errors.Is(err, unix.EINTR) {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket})
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, &dialError{errnoOf(err)}
	}
	return c, nil
}

func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EIO
}

func (c *call) close() { unix.Close(c.fd) }

func (c *call) send(frame []byte) error {
	for len(frame) > 0 {
		n, err := unix.Write(c.fd, frame)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		frame = frame[max(n, 0):]
	}
	return nil
}

var errDeadline = errors.New("context deadline exceeded")

// receive reads the answer. It calls slow once if the answer takes longer than patience.
func (c *call) receive(slow func()) ([]byte, error) {
	var first [4096]byte
	buf, n := first[:], 0
	late := c.now().Add(patience)
	for {
		wait := addDeadline
		if slow != nil {
			// Measured by the clock, because signals can interrupt reads again and again.
			if wait = late.Sub(c.now()); wait <= 0 {
				slow()
				slow = nil
				continue
			}
		}
		if err := c.timeout(wait); err != nil {
			return nil, err
		}
		got, err := unix.Read(c.fd, buf[n:])
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case err != nil:
			return nil, err
		case got == 0:
			return nil, io.EOF
		}
		n += max(got, 0)
		if frame, err := cniwire.CutFrame(buf[:n]); frame != nil || err != nil {
			return frame, err
		}
		if n == len(buf) {
			grown := make([]byte, cniwire.MaxFrame+4)
			copy(grown, buf[:n])
			buf = grown
		}
	}
}

// timeout limits the next read to wait and to the time left until the deadline.
func (c *call) timeout(wait time.Duration) error {
	left := c.deadline.Sub(c.now())
	if left <= 0 {
		return errDeadline
	}
	tv := unix.NsecToTimeval(int64(max(min(wait, left), time.Microsecond)))
	return unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
}

// callText is upstream's text for a failed call.
func callText(err error) string {
	var down *dialError
	var refused *cniwire.CallError
	var helper *helperError
	switch {
	case errors.As(err, &refused):
		return refused.Text
	case errors.As(err, &helper):
		return rpcText("Unavailable", helper.Error())
	case errors.As(err, &down):
		return dialText(down.errno)
	case errors.Is(err, errDeadline), errors.Is(err, unix.EAGAIN):
		return rpcText("DeadlineExceeded", errDeadline.Error())
	case errors.Is(err, cniwire.ErrMalformed), errors.Is(err, cniwire.ErrFrameTooLarge):
		return rpcText("Internal", err.Error())
	}
	return rpcText("Unavailable", "error reading from server: "+err.Error())
}
