package rpcclient

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/grpcwire"
)

const (
	// once as the time to dial means a single attempt, as grpc makes for a call.
	once = 0
	// redial is the pause between two attempts.
	redial = 50 * time.Millisecond
	// attempts bounds how often a call goes to a server that is ending: a new one may
	// listen by then.
	attempts = 2

	userAgent = "aws-cni"
)

// DialError: nobody listens on the socket.
type DialError struct {
	Socket string
	Errno  unix.Errno
}

func (e *DialError) Error() string {
	return grpcwire.Broken("transport: Error while dialing: dial unix " + e.Socket + ": connect: " + e.Errno.Error()).Error()
}

func (e *DialError) Unwrap() error { return e.Errno }

// errTimeout is what grpc says of a call whose time is over.
var errTimeout = &StatusError{Code: grpcwire.CodeDeadlineExceeded, Message: "context deadline exceeded"}

// call makes one unary call and returns the reply's message.
func call(socket string, dial, timeout time.Duration, method string, message []byte) ([]byte, error) {
	deadline := time.Now().Add(timeout)
	for attempt := 1; ; attempt++ {
		c, err := connect(socket, min(dial, timeout), deadline)
		if err != nil {
			return nil, err
		}
		reply, err := c.do(grpcwire.Request{Method: method, UserAgent: userAgent, Timeout: time.Until(deadline), Message: message})
		unix.Close(c.fd)
		switch {
		case err == nil:
			return reply, nil
		case time.Until(deadline) <= 0:
			return nil, errTimeout // the server, which knows the deadline, may have seen it first
		case !errors.Is(err, grpcwire.ErrUnprocessed):
			return nil, err
		}
		if attempt == attempts {
			return nil, &StatusError{Code: grpcwire.CodeUnavailable, Message: err.Error()}
		}
	}
}

// conn is a connection. It uses the socket directly, because the net package costs a
// run of the plugin more than the call.
type conn struct {
	fd       int
	socket   string
	deadline time.Time
}

// connect tries again for some time while nobody listens.
func connect(socket string, patience time.Duration, deadline time.Time) (*conn, error) {
	until := time.Now().Add(patience)
	for {
		c, err := connectOnce(socket, deadline)
		var nobody *DialError
		if !errors.As(err, &nobody) || time.Until(until) < redial {
			return c, err
		}
		<-time.NewTimer(redial).C
	}
}

func connectOnce(socket string, deadline time.Time) (*conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, &DialError{socket, errnoOf(err)}
	}
	c := &conn{fd: fd, socket: socket, deadline: deadline}
	err = c.bound(unix.SO_SNDTIMEO) // also of connect, which waits while the listener's queue is full
	if err == nil {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket})
		}
	}
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, unix.EAGAIN):
		err = errTimeout
	case !errors.Is(err, errTimeout):
		err = &DialError{socket, errnoOf(err)}
	}
	unix.Close(fd)
	return nil, err
}

func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EIO
}

// bound lets the next operation take what is left of the time.
func (c *conn) bound(option int) error {
	left := time.Until(c.deadline)
	if left <= 0 {
		return errTimeout
	}
	tv := unix.NsecToTimeval(int64(max(left, time.Microsecond)))
	return unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, option, &tv)
}

func (c *conn) do(r grpcwire.Request) ([]byte, error) {
	h := grpcwire.NewCall(r)
	buf := make([]byte, 4096)
	for !h.Done() {
		// What cannot be written may have its reason in what is there to be read.
		if err := c.write(h.Output()); err != nil && !errors.Is(err, unix.EPIPE) {
			return nil, c.failed(h, err)
		}
		n, err := c.read(buf)
		switch {
		case err != nil:
			return nil, c.failed(h, err)
		case n == 0:
			h.End("EOF")
		default:
			h.Input(buf[:n])
		}
	}
	return h.Result()
}

// failed is the error of a call whose connection failed.
func (c *conn) failed(h *grpcwire.Call, err error) error {
	if errors.Is(err, errTimeout) || errors.Is(err, unix.EAGAIN) {
		return errTimeout
	}
	h.End("read unix @->" + c.socket + ": read: " + err.Error()) // as package net words it
	_, err = h.Result()
	return err
}

func (c *conn) write(b []byte) error {
	for len(b) > 0 {
		if err := c.bound(unix.SO_SNDTIMEO); err != nil {
			return err
		}
		n, err := unix.Write(c.fd, b)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		b = b[max(n, 0):]
	}
	return nil
}

func (c *conn) read(b []byte) (int, error) {
	for {
		if err := c.bound(unix.SO_RCVTIMEO); err != nil {
			return 0, err
		}
		n, err := unix.Read(c.fd, b)
		if err == nil || !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
