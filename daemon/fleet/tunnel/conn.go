package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
)

// maxComplaint bounds what is read of an error stream in bytes.
const maxComplaint = 8 << 10

// complaintWithin is how long an error stream may end after its data stream.
const complaintWithin = 500 * time.Millisecond

// conn is a stream as a net.Conn: the data, and beside it what the other side has to
// complain about.
type conn struct {
	session *session
	data    *half
	fault   *half
	frame   func(b, data []byte) []byte // appends data on its way out
	to      addr
	explain func(text string) *Error // of what the other side complains about; nil: no error
	finish  func()                   // ends what lives no longer than the stream

	reads, writes *deadline

	mu    sync.Mutex // guards all below
	text  strings.Builder
	final error // of all further reads
	once  sync.Once
}

// newConn makes a stream of what is written to stream id out and read of data.
func newConn(s *session, out uint32, data, fault *half, to addr, explain func(string) *Error, finish func()) *conn {
	return &conn{
		session: s, data: data, fault: fault, to: to, explain: explain, finish: finish, reads: newDeadline(), writes: newDeadline(),
		frame: func(b, p []byte) []byte { return appendData(b, out, 0, p) },
	}
}

// Read reads data; after all of it, what the other side complained about is the error.
func (c *conn) Read(p []byte) (int, error) {
	for {
		past := c.reads.wait()
		select {
		case <-past:
			return 0, errDeadline
		default:
		}
		n, end, ok := c.data.take(p)
		switch {
		case ok && end == nil:
			return n, nil
		case ok:
			return 0, c.verdict(end)
		}
		if c.listen() {
			if err := c.explain(c.said()); err != nil {
				return 0, c.keep(err)
			}
		}
		select {
		case <-c.data.ready:
		case <-c.fault.ready:
		case <-past:
			return 0, errDeadline
		}
	}
}

// listen takes what there is of complaints and reports whether that is all, and something.
func (c *conn) listen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var chunk [512]byte
	for {
		n, err, ok := c.fault.take(chunk[:])
		if n > 0 && c.text.Len() < maxComplaint {
			c.text.Write(chunk[:n])
		}
		if !ok || err != nil {
			return ok && c.text.Len() > 0
		}
	}
}

func (c *conn) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// verdict is the error of the stream's end: the complaint, if there is one. The two
// streams may end in any order.
func (c *conn) verdict(end error) error {
	c.mu.Lock()
	final := c.final
	c.mu.Unlock()
	if final != nil {
		return final
	}
	timer := time.NewTimer(complaintWithin)
	defer timer.Stop()
	for !c.heard() {
		select {
		case <-c.fault.ready:
			continue
		case <-timer.C:
		case <-c.reads.wait():
			return errDeadline
		}
		break
	}
	c.listen()
	if text := c.said(); text != "" {
		if err := c.explain(text); err != nil {
			return c.keep(err)
		}
		return c.keep(io.EOF)
	}
	switch {
	case errors.Is(end, io.EOF), errors.Is(end, net.ErrClosed):
		return c.keep(end)
	}
	return c.keep(&Error{Reason: introspect.ReasonTransport, Err: innermost(end)})
}

// heard reports whether the error stream has ended, taking what came.
func (c *conn) heard() bool {
	c.listen()
	c.fault.mu.Lock()
	defer c.fault.mu.Unlock()
	return c.fault.err != nil && len(c.fault.unread) == 0
}

func (c *conn) keep(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.final == nil {
		c.final = err
	}
	return c.final
}

// Write sends data in frames of bounded size.
func (c *conn) Write(p []byte) (n int, err error) {
	for n < len(p) {
		part := p[n:min(len(p), n+maxFrameData)]
		err := c.session.write(c.writes, func(b []byte) []byte { return c.frame(b, part) })
		if err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// Close ends the stream, in both directions.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.data.end(net.ErrClosed)
		c.fault.end(net.ErrClosed)
		c.reads.stop()
		c.writes.stop()
		c.finish()
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.session.conn.LocalAddr() }
func (c *conn) RemoteAddr() net.Addr { return c.to }

func (c *conn) SetDeadline(t time.Time) error {
	c.reads.set(t)
	c.writes.set(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error  { c.reads.set(t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.writes.set(t); return nil }

// addr names the other end.
type addr struct {
	pod  Pod
	what string // a port, a program
}

func (addr) Network() string  { return "tunnel" }
func (a addr) String() string { return fmt.Sprintf("%s/%s:%s", a.pod.Namespace, a.pod.Name, a.what) }

// limitOf is a deadline that passes when ctx ends; stop it.
func limitOf(ctx context.Context) (limit *deadline, stop func()) {
	limit = newDeadline()
	if at, ok := ctx.Deadline(); ok {
		limit.set(at)
	}
	undo := context.AfterFunc(ctx, func() { limit.set(time.Unix(1, 0)) })
	return limit, func() { undo(); limit.stop() }
}
