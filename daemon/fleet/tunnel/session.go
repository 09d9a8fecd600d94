package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// session is the client's side of one connection with streams, mostly of SPDY. One goroutine reads it; its
// streams write, one at a time.
type session struct {
	pipe io.ReadWriteCloser // a wire, or one in WebSocket messages
	conn net.Conn           // below the pipe, for deadlines and addresses

	writing chan struct{} // holds a token while nobody writes; guards out, next and begun
	out     []byte
	next    uint32
	begun   bool // the zlib stream of headers

	mu      sync.Mutex // guards all below
	streams map[uint32]*half
	err     error // why it ended
	closing bool
	ended   chan struct{} // closed with err
	gone    chan struct{} // closed when the goroutine has ended
}

func newSession(p io.ReadWriteCloser, conn net.Conn) *session {
	s := makeSession(p, conn)
	go s.run(s.read)
	return s
}

func makeSession(p io.ReadWriteCloser, conn net.Conn) *session {
	s := &session{
		pipe: p, conn: conn, next: 1, writing: make(chan struct{}, 1),
		streams: map[uint32]*half{}, ended: make(chan struct{}), gone: make(chan struct{}),
	}
	s.writing <- struct{}{}
	return s
}

// run reads until the connection ends.
func (s *session) run(read func() error) {
	defer close(s.gone)
	s.fail(read())
	s.pipe.Close()
}

func (s *session) read() error {
	for {
		f, err := readFrame(s.pipe)
		if err != nil {
			return err
		}
		if f.control {
			err = s.control(f)
		} else {
			err = s.data(f)
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) data(f frame) error {
	h := s.stream(f.stream)
	for left := int(f.length); left > 0; {
		chunk := make([]byte, min(left, 32<<10))
		if _, err := io.ReadFull(s.pipe, chunk); err != nil {
			return err
		}
		left -= len(chunk)
		if h != nil { // else of a stream that was reset
			h.put(chunk)
		}
	}
	if h != nil && f.flags&spdyFin != 0 {
		h.end(io.EOF)
	}
	return nil
}

func (s *session) control(f frame) error {
	switch f.kind {
	case spdyPing, spdyReset, spdySynReply:
	case spdyGoAway:
		if _, err := io.CopyN(io.Discard, s.pipe, int64(f.length)); err != nil {
			return err
		}
		return io.EOF // the peers of Kubernetes close the connection then
	default: // settings, windows, headers, streams of the peer's: none that would matter
		_, err := io.CopyN(io.Discard, s.pipe, int64(f.length))
		return err
	}
	var id [4]byte
	if f.length < 4 {
		return fmt.Errorf("%w: a control frame of %d bytes", errProtocol, f.length)
	}
	if _, err := io.ReadFull(s.pipe, id[:]); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, s.pipe, int64(f.length)-4); err != nil {
		return err
	}
	number := binary.BigEndian.Uint32(id[:])
	if f.kind == spdyPing {
		return s.pong(number)
	}
	h := s.stream(number & maxStreamID)
	switch {
	case h == nil:
	case f.kind == spdyReset:
		h.end(errReset)
	case f.flags&spdyFin != 0: // a reply that is the end
		h.end(io.EOF)
	}
	return nil
}

// pong answers a ping of the peer's. We send none, so odd ones are nobody's.
func (s *session) pong(id uint32) error {
	if id&1 != 0 {
		return nil
	}
	return s.write(nil, func(b []byte) []byte { return appendPing(b, id) })
}

var errReset = errors.New("the stream was reset")

func (s *session) stream(id uint32) *half {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[id]
}

// write sends frames that build appends, before a deadline. A write that does not get
// through in time leaves a torn frame, so it ends the session.
func (s *session) write(limit *deadline, build func([]byte) []byte) error {
	var past <-chan struct{}
	var at time.Time
	if limit != nil {
		past, at = limit.wait(), limit.time()
		select {
		case <-past:
			return errDeadline
		default:
		}
	}
	select {
	case <-s.writing:
	case <-past:
		return errDeadline
	case <-s.ended:
		return s.why()
	}
	defer func() { s.writing <- struct{}{} }()
	select {
	case <-s.ended:
		return s.why()
	default:
	}
	s.out = build(s.out[:0])
	if err := s.conn.SetWriteDeadline(at); err != nil {
		return s.broke(err)
	}
	if _, err := s.pipe.Write(s.out); err != nil {
		return s.broke(err)
	}
	if cap(s.out) > 2*maxFrameData {
		s.out = nil
	}
	return nil
}

// broke ends the session because of a write.
func (s *session) broke(err error) error {
	s.fail(err)
	s.conn.Close()
	return err
}

// open opens streams, all in one write, and does not wait for the replies: what is written
// to a stream may follow at once.
func (s *session) open(limit *deadline, of ...headers) ([]*half, error) {
	halves := make([]*half, len(of))
	err := s.write(limit, func(b []byte) []byte {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, h := range of {
			halves[i] = newHalf(s.next)
			if s.err == nil {
				s.streams[s.next] = halves[i]
			} else {
				halves[i].end(s.err)
			}
			b = appendOpen(b, s.next, !s.begun, h)
			s.begun, s.next = true, s.next+2
		}
		return b
	})
	if err != nil {
		return nil, err
	}
	return halves, nil
}

// abandon forgets streams and tells the peer, if that is possible at once.
func (s *session) abandon(halves ...*half) {
	s.mu.Lock()
	for _, h := range halves {
		delete(s.streams, h.id)
	}
	s.mu.Unlock()
	for _, h := range halves {
		h.leave()
	}
	limit := newDeadline()
	defer limit.stop()
	limit.set(time.Now().Add(farewell))
	_ = s.write(limit, func(b []byte) []byte { // the session's end says it as well
		for _, h := range halves {
			b = appendReset(b, h.id)
		}
		return b
	})
}

// fail ends the session: all streams get the error.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	switch {
	case s.closing:
		err = net.ErrClosed
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		err = errLost
	}
	s.err = err
	for _, h := range s.streams {
		h.end(err)
	}
	close(s.ended)
}

var errLost = errors.New("the tunnel was closed by the other side")

func (s *session) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// close ends the session and returns when its goroutine has.
func (s *session) close() {
	s.mu.Lock()
	s.closing = true
	streams := s.streams
	s.streams = map[uint32]*half{}
	s.mu.Unlock()
	for _, h := range streams {
		h.end(net.ErrClosed)
		h.leave()
	}
	s.pipe.Close()
	s.conn.Close()
	<-s.gone
}

// maxUnread bounds what the peer sent on one stream and nobody has read: then the whole
// tunnel waits for the reader.
const maxUnread = 1 << 20

// half is the incoming direction of a stream.
type half struct {
	id    uint32
	ready chan struct{} // a token when there may be something new
	room  chan struct{} // a token when something was taken
	left  chan struct{} // closed when nobody will read

	mu     sync.Mutex // guards all below
	unread [][]byte
	size   int
	err    error // after unread
	quit   bool
}

func newHalf(id uint32) *half {
	return &half{id: id, ready: make(chan struct{}, 1), room: make(chan struct{}, 1), left: make(chan struct{})}
}

// put appends data, and waits while there is too much.
func (h *half) put(data []byte) {
	for {
		h.mu.Lock()
		if h.quit || h.err != nil {
			h.mu.Unlock()
			return
		}
		if h.size < maxUnread {
			h.unread, h.size = append(h.unread, data), h.size+len(data)
			h.mu.Unlock()
			signal(h.ready)
			return
		}
		h.mu.Unlock()
		select {
		case <-h.room:
		case <-h.left:
		}
	}
}

// putWithin is put, or for what may be lost: what is too much is dropped.
func (h *half) putWithin(data []byte, lossy bool) {
	if lossy {
		h.mu.Lock()
		full := h.size+len(data) > maxComplaint
		h.mu.Unlock()
		if full {
			return
		}
	}
	h.put(data)
}

func (h *half) end(err error) {
	h.mu.Lock()
	if h.err == nil {
		h.err = err
	}
	h.mu.Unlock()
	signal(h.ready)
}

// leave lets put wait no more.
func (h *half) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.quit {
		h.quit, h.unread = true, nil
		close(h.left)
	}
}

// take reads what there is; ok is false when there is nothing yet.
func (h *half) take(p []byte) (n int, err error, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.unread) == 0 {
		return 0, h.err, h.err != nil
	}
	n = copy(p, h.unread[0])
	if h.unread[0] = h.unread[0][n:]; len(h.unread[0]) == 0 {
		h.unread = h.unread[1:]
	}
	h.size -= n
	signal(h.room)
	if len(h.unread) > 0 || h.err != nil {
		signal(h.ready) // for whoever else reads
	}
	return n, nil, true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
