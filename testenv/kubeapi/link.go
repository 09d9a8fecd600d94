package kubeapi

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// What one direction holds back at most, when the server is silent or slow.
const (
	chunkSize   = 32 << 10
	chunksAhead = 32
)

// link is one connection through a proxy: a client's and the server's half.
type link struct {
	client *net.TCPConn
	cancel context.CancelFunc

	mu     sync.Mutex // guards server and ended
	server *net.TCPConn
	ended  bool
}

// join adds the server's half; false when the link was reset meanwhile.
func (l *link) join(server *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		server.Close()
		return false
	}
	l.server = server
	return true
}

// reset ends the link so that both sides see it at once, also with bytes on their way.
func (l *link) reset() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	for _, c := range []*net.TCPConn{l.client, l.server} {
		if c != nil {
			_ = c.SetLinger(0) // a reset instead of an end; a closed socket needs none
			c.Close()
		}
	}
}

// carry copies both directions until both ended or the link is reset.
func (l *link) carry(ctx context.Context, p *Proxy) {
	var directions sync.WaitGroup
	for _, d := range []struct{ from, to *net.TCPConn }{{l.client, l.server}, {l.server, l.client}} {
		chunks := make(chan chunk, chunksAhead)
		directions.Go(func() { read(ctx, p, d.from, chunks) })
		directions.Go(func() {
			if err := write(ctx, p, d.to, chunks); err != nil {
				l.reset()
			}
		})
	}
	directions.Wait()
	l.reset()
}

// chunk is what was read at once, and when it may go on.
type chunk struct {
	data []byte
	due  time.Time
	err  error // the last one's: io.EOF or why it failed
}

// read takes bytes in; each waits for its own time, so that a delay is a latency and
// no limit of the throughput.
func read(ctx context.Context, p *Proxy, from *net.TCPConn, chunks chan<- chunk) {
	defer close(chunks)
	for {
		data := make([]byte, chunkSize)
		n, err := from.Read(data)
		_, delay, _ := p.now()
		select {
		case chunks <- chunk{data: data[:n], due: time.Now().Add(delay), err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// write passes bytes on. An end of one direction is passed on as such.
func write(ctx context.Context, p *Proxy, to *net.TCPConn, chunks <-chan chunk) error {
	for c := range chunks {
		if err := waitUntil(ctx, c.due); err != nil {
			return err
		}
		if !p.pass(ctx) {
			return ctx.Err()
		}
		if _, err := to.Write(c.data); err != nil {
			return err
		}
		if errors.Is(c.err, io.EOF) {
			return to.CloseWrite()
		}
		if c.err != nil {
			return c.err
		}
	}
	return ctx.Err()
}

func waitUntil(ctx context.Context, due time.Time) error {
	wait := time.Until(due)
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
