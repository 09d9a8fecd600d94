package tunnel

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/spdystream"
	"github.com/moby/spdystream/spdy"
	"k8s.io/apimachinery/pkg/util/httpstream"
)

const (
	// maxUnread bounds what the peer sent and was not read yet. A frame has up to 16 MiB,
	// those of Kubernetes' peers have 32 KiB.
	maxUnread = 32 << 20
	// maxControl bounds a control frame, and a header in it after it is unpacked.
	maxControl = 64 << 10
	maxHeaders = 64
	// linger is how often a stream that was not answered looks whether anybody still waits,
	// and how long a program has to end with its input.
	linger = time.Second
)

var errTooMuch = errors.New("the other side sends more than is read")

// counted is the connection below a session's streams.
type counted struct {
	net.Conn
	unread atomic.Int64 // bytes that no stream has handed out yet
	once   sync.Once
	ended  chan struct{} // closed when it was closed, by whichever side
}

func newCounted(c net.Conn) *counted { return &counted{Conn: c, ended: make(chan struct{})} }

func (w *counted) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if w.unread.Add(int64(n)) > maxUnread {
		return 0, errTooMuch
	}
	return n, err
}

// Close may be called again.
func (w *counted) Close() error {
	w.once.Do(func() {
		w.Conn.Close()
		close(w.ended)
	})
	return nil
}

// session is one connection with streams, spoken by spdystream, in the form in which
// client-go takes one. apimachinery's does not bound what a peer makes of headers, and
// waits for a peer's reply to each stream without a context.
type session struct {
	*counted
	spdy *spdystream.Connection

	mu   sync.Mutex // guards all below
	open map[*stream]struct{}
	shut bool
}

var _ httpstream.Connection = (*session)(nil)

func newSession(c net.Conn) (*session, error) {
	s := &session{counted: newCounted(c), open: map[*stream]struct{}{}}
	var err error
	s.spdy, err = spdystream.NewConnectionWithOptions(s.counted, false,
		spdy.WithMaxControlFramePayloadSize(maxControl), spdy.WithMaxHeaderFieldSize(maxControl), spdy.WithMaxHeaderCount(maxHeaders))
	if err != nil {
		s.counted.Close()
		return nil, err
	}
	go s.spdy.Serve(func(theirs *spdystream.Stream) { _ = theirs.Reset() }) // we serve none
	go func() {
		<-s.spdy.CloseChan() // reading has ended, whatever for
		s.counted.Close()
	}()
	return s, nil
}

// CreateStream does not wait for the reply: what is written to the stream may follow at
// once.
func (s *session) CreateStream(h http.Header) (httpstream.Stream, error) {
	under, err := s.spdy.CreateStream(h, nil, false)
	if err != nil {
		return nil, err
	}
	out := &stream{Stream: under, session: s}
	s.mu.Lock()
	shut := s.shut
	if !shut {
		s.open[out] = struct{}{}
	}
	s.mu.Unlock()
	go out.await()
	if shut {
		_ = under.Reset()
		return nil, errLost
	}
	return out, nil
}

// Close ends the connection with all its streams.
func (s *session) Close() error {
	s.mu.Lock()
	s.shut = true
	open := s.open
	s.open = map[*stream]struct{}{}
	s.mu.Unlock()
	s.counted.Close()
	for st := range open {
		_ = st.Stream.Reset() // lets go of who waits for its reader
	}
	return nil
}

func (s *session) done() <-chan struct{} { return s.ended }

func (s *session) CloseChan() <-chan bool { return s.spdy.CloseChan() }

func (s *session) SetIdleTimeout(d time.Duration) { s.spdy.SetIdleTimeout(d) }

func (s *session) RemoveStreams(of ...httpstream.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range of {
		if st, ok := one.(*stream); ok {
			delete(s.open, st)
		}
	}
	if len(s.open) == 0 {
		s.unread.Store(0) // what came for streams that are gone will never be read
	}
}

// lost reports whether the connection has ended.
func (s *session) lost() bool {
	select {
	case <-s.spdy.CloseChan():
		return true
	default:
		return false
	}
}

var errLost = errors.New("the tunnel was closed by the other side")

// stream is one of a session's, whose reader makes room.
type stream struct {
	*spdystream.Stream
	session *session
}

func (st *stream) Read(p []byte) (int, error) {
	n, err := st.Stream.Read(p)
	st.session.unread.Add(-int64(n))
	return n, err
}

// Reset ends both directions. Where that cannot be sent, the connection is stuck and ends.
func (st *stream) Reset() error {
	st.session.RemoveStreams(st)
	stuck := time.AfterFunc(handshakeLimit, func() { st.session.counted.Close() })
	defer stuck.Stop()
	return st.Stream.Reset()
}

// await takes the peer's reply, for which spdystream would wait forever.
func (st *stream) await() {
	for errors.Is(st.WaitTimeout(linger), spdystream.ErrTimeout) {
		select {
		case <-st.session.ended:
			return
		default:
		}
	}
}
