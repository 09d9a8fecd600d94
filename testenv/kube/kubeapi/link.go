package kubeapi

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// These bound the data held back in one direction while the server is silent or slow.
const (
	chunkSize   = 32 << 10
	chunksAhead = 32
)

// link is one connection through a proxy: a client half and a server half.
type link struct {
	client *net.TCPConn
	cancel context.CancelFunc

	mu     sync.Mutex // guards server and ended
	server *net.TCPConn
	ended  bool
}

// join adds the server half. It returns false if the link was reset meanwhile.
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

// reset ends the link so that both sides see it at once, even with bytes in flight.
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
			_ = c.SetLinger(0) // a reset instead of an orderly close; harmless on a closed socket
			c.Close()
		}
	}
}

// carry copies both directions until both have ended or the link is reset.
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

// chunk is the result of one read, and the time at which it may be forwarded.
type chunk struct {
	data []byte
	due  time.Time
	err  error // of the last chunk: io.EOF or the failure
}

// read receives bytes. Each chunk is delayed separately, so a delay adds latency without
// limiting the throughput.
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

// write forwards bytes. The end of one direction is forwarded as such.
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
