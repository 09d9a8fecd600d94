package tunnel

import (
	"bytes"
	"io"
	"net"
	"os"
	"time"
)

// maxKept is the largest empty read buffer that a stream keeps.
const maxKept = 64 << 10

var errDeadline error = os.ErrDeadlineExceeded

// conn is a connection to a port through a mux: a data stream, and an error stream on which the
// node's runtime reports problems. An expired deadline ends a read, not the stream; during a
// write it ends the tunnel, as half a frame has been sent.
type conn struct {
	mux         *mux
	to          addr
	ownsMux     bool   // closing it closes the mux
	fault, data uint32 // stream IDs

	// The mux's mu guards everything below.
	in         bytes.Buffer // received but not read yet
	complaint  []byte
	faultEnded bool
	dataEnded  bool
	late       bool // complaintWithin has passed since the first stream ended
	wait       *time.Timer
	final      error // result of all reads once in is empty; nil while more may come
	closed     bool
	writing    bool
	reads      limit
	writes     limit
}

// Read reads data; after the last byte, it returns what the node's runtime reported as an error.
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
			n, _ := c.in.Read(p) // never fails: in is not empty
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

// end records that one of the two streams has ended. They may end in any order, so it waits a
// moment for the other one.
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

// verdict returns why there is no more data, io.EOF at the regular end; nil while more may come.
// A complaint explains more than a lost connection.
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

// Close ends the stream in both directions.
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
	case c.ownsMux:
		m.Close()
	case !gone:
		// A reset waits for the connection; the caller of Close need not.
		go func() { _ = m.reset(cancelled, c.fault, c.data) }() // no effect if that is gone
	}
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.mux.wire.LocalAddr() }
func (c *conn) RemoteAddr() net.Addr { return c.to }

func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t) // neither returns errors
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
			go c.mux.wire.Close() // may take a moment; unblocks the write
		}
	})
	return nil
}

// limit is a deadline. The mux's mu guards it.
type limit struct {
	over  bool
	timer *time.Timer // nil if none is running
}

// set changes the deadline; the zero time means never. At the deadline, then is called with mu
// held, and all waiters check again.
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

// stop stops the timer.
func (l *limit) stop() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}
