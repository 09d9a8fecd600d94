package tunnel

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"

	"cnictl/daemon/api/introspect"
)

// Stream headers, as Kubernetes names them.
const (
	headerType    = "streamType"
	headerPort    = "port"
	headerRequest = "requestID"
)

// maxComplaint limits how much of an error stream is read, in bytes.
const maxComplaint = 8 << 10

// complaintWithin is how much later than the data stream the error stream may end, or the data
// stream after a complaint. Usually they end together; a busy node or control plane delays one, and
// without the complaint a refused connection looks like a lost one.
const complaintWithin = 2 * time.Second

// forward is one forwarded connection: a data stream, and an error stream on which the node's
// runtime reports problems.
type forward struct {
	session     *session
	data, fault httpstream.Stream
}

// openForward opens the two streams of a connection to a port.
func openForward(s *session, number uint64, port string) (f forward, err error) {
	h := http.Header{}
	h.Set(headerPort, port)
	h.Set(headerRequest, strconv.FormatUint(number, 10))
	f.session = s
	h.Set(headerType, "error")
	if f.fault, err = s.CreateStream(h.Clone()); err != nil {
		return f, err
	}
	h.Set(headerType, "data")
	if f.data, err = s.CreateStream(h); err != nil {
		f.reset()
	}
	return f, err
}

// connect combines the two streams into one connection; two goroutines copy the bytes.
func (s *session) connect(to addr, port string, number uint64, alone bool) (net.Conn, error) {
	f, err := openForward(s, number, port)
	if err != nil {
		return nil, err
	}
	end := func() { go f.reset() } // waits for the connection; the caller of Close need not
	if alone {
		end = func() { s.Close() }
	}
	p := newPipe(to, end)
	go f.carry(p)
	return p, nil
}

func (f forward) reset() {
	for _, st := range []httpstream.Stream{f.data, f.fault} {
		if st != nil {
			_ = st.Reset() // no effect if the connection is gone
		}
	}
}

// carry copies bytes until there are no more.
func (f forward) carry(p *pipe) {
	said, in, out := make(chan string, 1), make(chan struct{}), make(chan struct{})
	go func() {
		text, _ := io.ReadAll(io.LimitReader(f.fault, maxComplaint)) // a stream ends without an error
		said <- string(text)
	}()
	go func() {
		defer close(in)
		_, _ = io.Copy(p.far, f.data) // verdict explains the end
	}()
	go func() {
		if _, err := io.Copy(f.data, p.far); err != nil {
			close(out)
		}
	}()
	p.finish(f.verdict(said, in, out))
}

// verdict waits for the end and returns its cause; nil for a regular end. The two streams may
// end in any order.
func (f forward) verdict(said <-chan string, in, out <-chan struct{}) error {
	var text string
	heard := false
	select {
	case text = <-said:
		heard = true
	case <-in:
	case <-out:
	}
	if heard && text == "" {
		select {
		case <-in:
		case <-out:
		}
	}
	late := time.NewTimer(complaintWithin)
	defer late.Stop()
	select {
	case <-in:
	case <-late.C:
	}
	if !heard {
		select {
		case text = <-said:
		case <-late.C:
		}
	}
	switch {
	case text != "":
		return streamError(text)
	case f.session.lost():
		return &Error{Reason: introspect.ReasonTransport, Err: errLost}
	}
	return nil
}
