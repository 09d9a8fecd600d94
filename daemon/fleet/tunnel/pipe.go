package tunnel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// pipe is the near end of a connection whose bytes others carry: neither client-go's
// streams nor requests have deadlines, and a net.Pipe has. A deadline ends a read or a
// write, not the stream.
type pipe struct {
	net.Conn
	to   addr
	stop func() // makes the carriers end

	far  net.Conn
	once sync.Once     // of stop
	said sync.Once     // of err
	gone chan struct{} // closed with err
	err  error         // why there is no more; nil: it is the end
}

func newPipe(to addr, stop func()) *pipe {
	near, far := net.Pipe()
	return &pipe{Conn: near, to: to, stop: stop, far: far, gone: make(chan struct{})}
}

// finish is for the carriers: there is no more, because of err.
func (p *pipe) finish(err error) {
	p.said.Do(func() {
		p.err = err
		close(p.gone)
		p.far.Close()
	})
}

func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	switch {
	case errors.Is(err, io.EOF):
		<-p.gone
		if p.err != nil {
			err = p.err
		}
	case errors.Is(err, io.ErrClosedPipe):
		err = net.ErrClosed
	}
	return n, err
}

func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
		select {
		case <-p.gone:
			if p.err != nil {
				err = p.err
			}
		default:
		}
	}
	return n, err
}

// Close ends the stream, in both directions.
func (p *pipe) Close() error {
	p.once.Do(func() {
		p.Conn.Close()
		p.stop()
	})
	return nil
}

func (p *pipe) RemoteAddr() net.Addr { return p.to }

// addr names the other end.
type addr struct {
	pod  Pod
	what string // a port, a program
}

func (addr) Network() string  { return "tunnel" }
func (a addr) String() string { return fmt.Sprintf("%s/%s:%s", a.pod.Namespace, a.pod.Name, a.what) }
