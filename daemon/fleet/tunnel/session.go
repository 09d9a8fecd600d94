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
	// maxUnread limits the data that a peer has sent and nobody has read. A frame may have 16 MiB;
	// Kubernetes peers send 32 KiB.
	maxUnread = 32 << 20
	// maxControl limits a control frame, and each unpacked header in it.
	maxControl = 64 << 10
	maxHeaders = 64
	// linger is how often an unanswered stream checks whether its session has ended, and how
	// long a program has to end after its input.
	linger = time.Second
)

var errTooMuch = errors.New("the peer overran the receive buffer")

// counted is the connection under a session's streams.
type counted struct {
	net.Conn
	unread atomic.Int64 // bytes that no stream has delivered yet
	once   sync.Once
	ended  chan struct{} // closed when either side closes the connection
}

func newCounted(c net.Conn) *counted { return &counted{Conn: c, ended: make(chan struct{})} }

func (w *counted) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if w.unread.Add(int64(n)) > maxUnread {
		return 0, errTooMuch
	}
	return n, err
}

// Close may be called repeatedly.
func (w *counted) Close() error {
	w.once.Do(func() {
		w.Conn.Close()
		close(w.ended)
	})
	return nil
}

// session is one connection with streams, implemented by spdystream, in the form that client-go
// accepts. apimachinery's version does not limit the size of headers, and waits for the peer's
// reply to each stream without a context.
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
	go s.spdy.Serve(func(theirs *spdystream.Stream) { _ = theirs.Reset() }) // we accept no streams
	go func() {
		<-s.spdy.CloseChan() // reading has ended for any reason
		s.counted.Close()
	}()
	return s, nil
}

// CreateStream opens a stream without waiting for the reply: data may be written at once.
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

// Close ends the connection and all its streams.
func (s *session) Close() error {
	s.mu.Lock()
	s.shut = true
	open := s.open
	s.open = map[*stream]struct{}{}
	s.mu.Unlock()
	s.counted.Close()
	for st := range open {
		_ = st.Stream.Reset() // unblocks whoever waits for its reader
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
		s.unread.Store(0) // data of closed streams is never read
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

// stream is a stream of a session; reading from it frees room for more data.
type stream struct {
	*spdystream.Stream
	session *session
}

func (st *stream) Read(p []byte) (int, error) {
	n, err := st.Stream.Read(p)
	st.session.unread.Add(-int64(n))
	return n, err
}

// Reset ends both directions. If that cannot be sent, the connection is stuck and is closed.
func (st *stream) Reset() error {
	st.session.RemoveStreams(st)
	stuck := time.AfterFunc(handshakeLimit, func() { st.session.counted.Close() })
	defer stuck.Stop()
	return st.Stream.Reset()
}

// await consumes the peer's reply, for which spdystream would wait forever.
func (st *stream) await() {
	for errors.Is(st.WaitTimeout(linger), spdystream.ErrTimeout) {
		select {
		case <-st.session.ended:
			return
		default:
		}
	}
}
