package tunnel

import (
	"bytes"
	"io"
	"net"
	"os"
	"time"
)

// maxKept is how much room for data a stream keeps that has none.
const maxKept = 64 << 10

var errDeadline error = os.ErrDeadlineExceeded

// conn is a connection to a port through a mux: a stream of data, and beside it one of what
// the node's runtime has to complain about. A deadline ends a read, not the stream; with a
// write that has begun it ends the tunnel, as half a frame is out.
type conn struct {
	mux         *mux
	to          addr
	alone       bool   // closing it closes the mux
	fault, data uint32 // numbers of the streams

	// What is below is guarded by the mux's mu.
	in         bytes.Buffer // not read yet
	complaint  []byte
	faultEnded bool
	dataEnded  bool
	late       bool // complaintWithin has passed since the first of them ended
	wait       *time.Timer
	final      error // of all reads when in is empty; nil: there may be more
	closed     bool
	writing    bool
	reads      limit
	writes     limit
}

// Read reads data; after all of it, what the node's runtime complained about is the error.
func (c *conn) Read(p []byte) (int, error) {
	m := c.mux
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case c.reads.over:
			return 0, errDeadline
		case len(p) == 0:
			return 0, nil
		case c.in.Len() > 0:
			n, _ := c.in.Read(p) // it has some
			m.unread -= n
			if c.in.Len() == 0 && c.in.Cap() > maxKept {
				c.in = bytes.Buffer{}
			}
			return n, nil
		}
		if err := c.verdict(); err != nil {
			return 0, err
		}
		m.changed.Wait()
	}
}

// end notes that a stream of the two has ended. The other one is given a moment: they may
// end in any order.
func (c *conn) end(stream uint32) {
	if stream == c.fault {
		c.faultEnded = true
	} else {
		c.dataEnded = true
	}
	switch {
	case c.faultEnded && c.dataEnded:
		c.stopWaiting()
	case c.wait == nil && (c.dataEnded || len(c.complaint) > 0):
		c.wait = time.AfterFunc(complaintWithin, func() {
			c.mux.mu.Lock()
			defer c.mux.mu.Unlock()
			c.late = true
			c.mux.changed.Broadcast()
		})
	}
}

func (c *conn) stopWaiting() {
	if c.wait != nil {
		c.wait.Stop()
	}
}

// verdict returns why there is no more to come, io.EOF being that it is the end; nil: there
// may be more. A complaint says more than that the connection is gone.
func (c *conn) verdict() error {
	both := c.faultEnded && c.dataEnded
	lost := c.mux.err != nil
	one := c.dataEnded || c.faultEnded && len(c.complaint) > 0
	switch {
	case c.final != nil, !both && !lost && !(one && c.late):
	case len(c.complaint) > 0:
		c.final = streamError(string(c.complaint))
	case both || !lost:
		c.final = io.EOF
	default:
		c.final = c.mux.err
	}
	return c.final
}

// Write sends data in frames of bounded size.
func (c *conn) Write(p []byte) (n int, err error) {
	for n < len(p) {
		part := p[n:min(len(p), n+maxData)]
		if err := c.mux.write(c, func(b []byte) []byte { return appendData(b, c.data, 0, part) }); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// Close ends the stream, in both directions.
func (c *conn) Close() error {
	m := c.mux
	m.mu.Lock()
	if c.closed {
		m.mu.Unlock()
		return nil
	}
	c.closed = true
	c.stopWaiting()
	c.reads.stop()
	c.writes.stop()
	delete(m.conns, c.fault)
	delete(m.conns, c.data)
	m.unread -= c.in.Len()
	c.in = bytes.Buffer{}
	m.changed.Broadcast()
	gone := m.err != nil || c.faultEnded && c.dataEnded
	m.mu.Unlock()
	switch {
	case c.alone:
		m.Close()
	case !gone:
		// What resets a stream waits for the connection; who closes it need not.
		go func() { _ = m.reset(cancelled, c.fault, c.data) }() // without effect when that is gone
	}
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.mux.wire.LocalAddr() }
func (c *conn) RemoteAddr() net.Addr { return c.to }

func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t) // neither has errors
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.mux.mu.Lock()
	defer c.mux.mu.Unlock()
	c.reads.set(t, c.mux, func() {})
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mux.mu.Lock()
	defer c.mux.mu.Unlock()
	c.writes.set(t, c.mux, func() {
		if c.writing {
			c.mux.failLocked(errDeadline)
			go c.mux.wire.Close() // which may take a moment, and lets go of the write
		}
	})
	return nil
}

// limit is a deadline. It is guarded by the mu of a mux.
type limit struct {
	over  bool
	timer *time.Timer // nil: none runs
}

// set moves it; the zero time is never. When it comes, then is called with mu held, and all
// who wait look again.
func (l *limit) set(t time.Time, m *mux, then func()) {
	l.stop()
	left := time.Until(t)
	l.over = !t.IsZero() && left <= 0
	switch {
	case l.over:
		then()
	case !t.IsZero():
		var timer *time.Timer
		timer = time.AfterFunc(left, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if l.timer == timer {
				l.over = true
				then()
				m.changed.Broadcast()
			}
		})
		l.timer = timer
	}
	m.changed.Broadcast()
}

// stop lets no timer run on.
func (l *limit) stop() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}
