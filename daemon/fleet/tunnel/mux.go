package tunnel

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
)

// wire carries the frames of a mux. Close may be called repeatedly and concurrently with
// anything else.
type wire interface {
	io.ReadWriteCloser
	LocalAddr() net.Addr
}

// mux is the client side of a connection with SPDY streams, only for forwarded ports. One
// goroutine reads it; any goroutine may write, one at a time.
type mux struct {
	wire  wire
	ended chan struct{} // closed with err

	mu      sync.Mutex       // guards all below, and fields of conn as noted there
	changed sync.Cond        // on mu, for every state that anybody waits for
	conns   map[uint32]*conn // by both stream IDs
	next    uint32           // ID of the next stream
	unread  int              // bytes in all conns
	writing bool
	err     *Error // why it ended; nil if it has not
}

func newMux(w wire) *mux {
	m := &mux{wire: w, ended: make(chan struct{}), conns: map[uint32]*conn{}, next: 1}
	m.changed.L = &m.mu
	go func() {
		m.fail(m.read())
		m.wire.Close()
	}()
	return m
}

func (m *mux) done() <-chan struct{} { return m.ended }

// Close ends the connection and all its streams.
func (m *mux) Close() error {
	m.fail(errLost)
	return m.wire.Close()
}

// connect opens the two streams of a connection to a port with one write. It does not wait for
// the replies: data may be written to a stream at once.
func (m *mux) connect(to addr, port string, number uint64, alone bool) (net.Conn, error) {
	c := &conn{mux: m, to: to, ownsMux: alone}
	id := strconv.FormatUint(number, 10)
	err := m.write(nil, func(b []byte) []byte {
		c.fault, c.data = m.next, m.next+2
		b = appendOpen(b, c.fault, m.next == 1, "port", port, "requestid", id, "streamtype", "error")
		b = appendOpen(b, c.data, false, "port", port, "requestid", id, "streamtype", "data")
		m.conns[c.fault], m.conns[c.data] = c, c
		m.next += 4
		return b
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// room pools buffers for frames in either direction.
var room = sync.Pool{New: func() any { b := make([]byte, 0, 2*webSocketBuffer); return &b }}

// write sends the frames that build appends; if of is not nil, within its deadline. build is
// called with mu held.
func (m *mux) write(of *conn, build func([]byte) []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		if err := m.refuse(of); err != nil {
			return err
		}
		if !m.writing {
			break
		}
		m.changed.Wait()
	}
	m.setWriting(of, true)
	b := room.Get().(*[]byte)
	*b = build((*b)[:0])
	m.mu.Unlock()
	_, err := m.wire.Write(*b)
	room.Put(b)
	m.mu.Lock()
	m.setWriting(of, false)
	m.changed.Broadcast()
	if err == nil {
		return nil
	}
	m.failLocked(err) // half a frame may have been sent
	return m.refuse(of)
}

func (m *mux) setWriting(of *conn, on bool) {
	m.writing = on
	if of != nil {
		of.writing = on
	}
}

// refuse returns why nothing can be written, nil if it can.
func (m *mux) refuse(of *conn) error {
	switch {
	case of != nil && of.closed:
		return net.ErrClosed
	case of != nil && of.writes.over:
		return errDeadline
	case of != nil:
		if err := of.verdict(); errors.Is(err, io.EOF) {
			return net.ErrClosed
		} else if err != nil {
			return err
		}
	case m.err != nil:
		return m.err
	case m.next > maxStreamID-4:
		return errLost // after 500 million connections
	}
	return nil
}

// reset resets streams. If that cannot be sent, the connection is stuck and is closed.
func (m *mux) reset(status uint32, streams ...uint32) error {
	stuck := time.AfterFunc(handshakeLimit, func() { m.Close() })
	defer stuck.Stop()
	return m.write(nil, func(b []byte) []byte {
		for _, id := range streams {
			b = appendReset(b, id, status)
		}
		return b
	})
}

// fail ends the connection for all users; the caller closes the wire.
func (m *mux) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failLocked(err)
}

func (m *mux) failLocked(err error) {
	if m.err != nil {
		return
	}
	if !errors.Is(err, errProtocol) && !errors.Is(err, errTooMuch) {
		err = errLost
	}
	m.err = &Error{Reason: introspect.ReasonTransport, Err: err}
	close(m.ended)
	m.changed.Broadcast()
}

// read processes frames until there are no more.
func (m *mux) read() error {
	var head [8]byte
	for {
		h, err := readHead(m.wire, head[:])
		switch {
		case err != nil:
			return err
		case h.control:
			err = m.control(h, head[:4])
		default:
			err = m.payload(h)
		}
		if err != nil {
			return err
		}
	}
}

// payload passes the data of a frame to its stream as it arrives.
func (m *mux) payload(h frameHead) error {
	b := room.Get().(*[]byte)
	defer room.Put(b)
	for left := h.length; left > 0; {
		n, err := m.wire.Read((*b)[:min(left, cap(*b))])
		left -= n
		if took := m.take(h.stream, (*b)[:n]); took != nil {
			return took
		}
		if err != nil {
			return err
		}
	}
	if h.flags&flagFin != 0 {
		m.end(h.stream)
	}
	return nil
}

// take buffers data for a stream and drops data for unknown streams.
func (m *mux) take(stream uint32, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.conns[stream]
	switch {
	case c == nil || len(data) == 0:
		return nil
	case stream == c.fault:
		c.complaint = append(c.complaint, data[:min(len(data), maxComplaint-len(c.complaint))]...)
		return nil
	case c.dataEnded:
		return nil
	}
	c.in.Write(data)
	if m.unread += len(data); m.unread > maxUnread {
		return errTooMuch
	}
	m.changed.Broadcast()
	return nil
}

// end records that a stream has no more data.
func (m *mux) end(stream uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.conns[stream]; c != nil {
		c.end(stream)
		m.changed.Broadcast()
	}
}

// control reads only the ID at the start of a control frame. It skips headers: a peer could send
// any number of them.
func (m *mux) control(h frameHead, number []byte) error {
	rest := int64(h.length)
	if h.about() {
		if _, err := io.ReadFull(m.wire, number); err != nil {
			return err
		}
		rest -= 4
	}
	if _, err := io.CopyN(io.Discard, m.wire, rest); err != nil {
		return err
	}
	id := binary.BigEndian.Uint32(number)
	switch {
	case h.kind == frameGoAway:
		return io.EOF // Kubernetes peers close the connection then
	case h.kind == framePing && id&1 == 0: // else a reply, which we never request
		return m.write(nil, func(b []byte) []byte { return appendPing(b, id) })
	case h.kind == frameOpen:
		return m.reset(protocolErr, id&maxStreamID) // we accept no streams
	case h.kind == frameReset, (h.kind == frameReply || h.kind == frameHeaders) && h.flags&flagFin != 0:
		m.end(id & maxStreamID)
	}
	return nil
}
