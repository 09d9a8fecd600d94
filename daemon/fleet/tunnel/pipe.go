package tunnel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// pipe is the near end of a connection whose bytes other goroutines copy: unlike client-go's
// streams and requests, a net.Pipe has deadlines. An expired deadline ends a read or a write,
// not the stream.
type pipe struct {
	net.Conn
	to   addr
	stop func() // stops the copying goroutines

	far  net.Conn
	once sync.Once     // of stop
	said sync.Once     // of err
	gone chan struct{} // closed with err
	err  error         // why it ended; nil at the regular end
}

func newPipe(to addr, stop func()) *pipe {
	near, far := net.Pipe()
	return &pipe{Conn: near, to: to, stop: stop, far: far, gone: make(chan struct{})}
}

// finish is called by the copying goroutines when there is no more data, because of err.
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

// Close ends the stream in both directions.
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
	what string // a port or a program
}

func (addr) Network() string  { return "tunnel" }
func (a addr) String() string { return fmt.Sprintf("%s/%s:%s", a.pod.Namespace, a.pod.Name, a.what) }
