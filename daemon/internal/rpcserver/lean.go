package rpcserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/crashpoint"
)

// lean serves daemon/api/cniwire: one request and one reply per connection.
type lean struct {
	*Server
	socket *socket
	slots  slots

	served   chan struct{} // closed when serve returns
	mu       sync.Mutex
	draining bool
	conns    map[net.Conn]struct{} // guarded by mu
	running  sync.WaitGroup        // one per connection
}

// past is a deadline that ends a read immediately.
var past = time.Unix(1, 0)

func newLean(s *Server, l *socket) *lean {
	return &lean{Server: s, socket: l, slots: make(slots, s.opts.MaxRequests), served: make(chan struct{}), conns: map[net.Conn]struct{}{}}
}

// serve accepts connections until stopAccepting. ctx bounds the requests. A connection is
// accepted only once there is a slot for its request; the others wait in the kernel's queue,
// which costs no memory here.
func (l *lean) serve(ctx context.Context) error {
	defer close(l.served)
	for {
		if !l.slots.acquire(ctx) {
			return nil
		}
		conn, err := l.socket.AcceptUnix()
		if err != nil {
			l.slots.release()
			if l.isDraining() {
				return nil
			}
			if pause, ok := acceptRetryPause(err); ok {
				l.opts.Log.Warn("connection not accepted", slog.Any("error", err))
				if !wait(ctx, pause) {
					return nil
				}
				continue
			}
			return err
		}
		l.track(conn)
		go func() {
			defer l.slots.release()
			defer l.untrack(conn)
			l.handle(ctx, conn)
		}()
	}
}

// acceptRetryPause reports whether to accept again after a pause: a shortage of descriptors or
// memory is temporary.
func acceptRetryPause(err error) (time.Duration, bool) {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() || isExhausted(err) {
		return 50 * time.Millisecond, true
	}
	return 0, false
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *lean) track(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running.Add(1)
	l.conns[conn] = struct{}{}
	deadline := time.Now().Add(l.opts.RequestTimeout)
	if l.draining {
		deadline = past
	}
	conn.SetReadDeadline(deadline)
}

func (l *lean) untrack(conn net.Conn) {
	conn.Close()
	l.mu.Lock()
	delete(l.conns, conn)
	l.mu.Unlock()
	l.running.Done()
}

func (l *lean) isDraining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draining
}

// stopAccepting closes the socket and ends connections that have not sent a request yet.
func (l *lean) stopAccepting() {
	l.mu.Lock()
	l.draining = true
	for conn := range l.conns {
		conn.SetReadDeadline(past)
	}
	l.mu.Unlock()
	if err := l.socket.Close(); err != nil {
		l.opts.Log.Warn("socket not closed", slog.Any("error", err))
	}
}

// wait waits for the requests in progress, after stopAccepting. The last connection may have been
// accepted just before it.
func (l *lean) wait() {
	<-l.served
	l.running.Wait()
}

// handle serves one connection. An unreadable request gets no reply, as its sender would
// not understand one.
func (l *lean) handle(ctx context.Context, conn *net.UnixConn) {
	frame, err := cniwire.ReadFrame(conn, make([]byte, 1024))
	if err != nil {
		if !errors.Is(err, io.EOF) && !l.isDraining() {
			l.opts.Log.Warn("request not read", slog.Any("error", err))
		}
		return
	}
	req, err := cniwire.DecodeRequest(frame)
	if err != nil {
		l.opts.Log.Warn("malformed request", slog.Any("error", err))
		return
	}

	crashpoint.Here(crashpoint.LeanRequestRead)
	ctx, cancel := context.WithCancel(ctx)
	gone := watch(conn, cancel)
	reply := l.answer(ctx, req)
	conn.SetWriteDeadline(time.Now().Add(l.opts.RequestTimeout))
	crashpoint.Here(crashpoint.BeforeLeanReply)
	if _, err := conn.Write(reply); err != nil {
		l.opts.Log.Warn("reply not delivered", slog.Any("error", err))
	}
	crashpoint.Here(crashpoint.AfterLeanReply)
	conn.Close()
	<-gone
	cancel()
}

func (l *lean) answer(ctx context.Context, req cniwire.Request) []byte {
	switch {
	case req.Add != nil:
		l.noteVersion(req.Add.ClientVersion)
		return cniwire.AppendAddReply(make([]byte, 0, 512), l.opts.Backend.Add(ctx, req.Add))
	case req.Policy != nil:
		return cniwire.AppendPolicyReply(make([]byte, 0, 256), l.opts.Backend.Policy(ctx, req.Policy))
	}
	l.noteVersion(req.Del.ClientVersion)
	return cniwire.AppendDelReply(make([]byte, 0, 256), l.opts.Backend.Del(ctx, req.Del))
}

// watch calls cancel if the client closes the connection before the answer: its runtime has
// given up, so an address found later would be wasted. Closing conn ends the watch; then
// the returned channel is closed.
func watch(conn *net.UnixConn, cancel func()) <-chan struct{} {
	done := make(chan struct{})
	conn.SetReadDeadline(time.Time{})
	go func() {
		defer close(done)
		var b [1]byte
		_, err := conn.Read(b[:])
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) {
			cancel()
		}
	}()
	return done
}
