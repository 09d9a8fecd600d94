package tunnel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/spdystream/spdy"

	"cnictl/daemon/api/introspect"
)

// frame is one of SPDY/3.1's, by hand: what a hostile peer says no library writes.
func frame(first uint32, flags byte, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, first)
	b = binary.BigEndian.AppendUint32(b, uint32(flags)<<24|uint32(len(body)))
	return append(b, body...)
}

// between is a session and the other end of its connection, whose reader takes all.
func between(t *testing.T) (*session, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	s, err := newSession(near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); far.Close() })
	go func() { _, _ = io.Copy(io.Discard, far) }()
	return s, far
}

// TestHostile_Garbage: a session ends with what is no protocol, and so do its readers.
func TestHostile_Garbage(t *testing.T) {
	t.Parallel()
	const control = 0x8003 << 16
	for name, said := range map[string][]byte{
		"nothing":          {},
		"text":             []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"an unknown frame": frame(control|99, 0, nil),
		"a long frame":     frame(control|2, 0, make([]byte, maxControl+1)),
		"a stream of none": frame(0, 0, []byte("x")),
		"that it goes":     frame(control|7, 0, make([]byte, 8)),
		"half a frame":     frame(1, 0, make([]byte, 100))[:50],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, far := between(t)
			tunnel := &Tunnel{pod: aPod, session: s}
			c, err := tunnel.Dial(within(t), 1)
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = far.Write(said); far.Close() }()
			_, err = io.ReadAll(c)
			wantReason(t, err, introspect.ReasonTransport)
			<-tunnel.Done()
		})
	}
}

// TestHostile_Headers: a reply that unpacks to more than it may ends the session.
func TestHostile_Headers(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.Header{
		"long": {"A": {strings.Repeat("x", maxControl+1)}},
		"many": many(maxHeaders + 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, far := between(t)
			if _, err := s.CreateStream(http.Header{}); err != nil {
				t.Fatal(err)
			}
			b := reply(t, 1, h)
			if len(b) > maxControl {
				t.Fatal("it is too long as it is packed")
			}
			_, _ = far.Write(b)
			<-s.ended
		})
	}
}

func many(n int) http.Header {
	h := http.Header{}
	for i := range n {
		h.Set("h"+strconv.Itoa(i), "x")
	}
	return h
}

// reply is the frame by which a peer takes a stream.
func reply(t *testing.T, id uint32, h http.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	f, err := spdy.NewFramer(&b, &b)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFrame(&spdy.SynReplyFrame{StreamId: spdy.StreamId(id), Headers: h}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestHostile_Flood: a peer that sends what nobody reads ends its tunnel, and no earlier
// than that.
func TestHostile_Flood(t *testing.T) {
	t.Parallel()
	s, far := between(t)
	c, err := (&Tunnel{pod: aPod, session: s}).Dial(within(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	chunk := frame(3, 0, make([]byte, 1<<20))
	_, _ = far.Write(reply(t, 3, http.Header{}))
	sent, wrote := 0, make(chan struct{})
	go func() {
		defer close(wrote)
		for {
			if _, err := far.Write(chunk); err != nil {
				return
			}
			sent += len(chunk)
		}
	}()
	<-s.ended
	far.Close()
	<-wrote
	if sent < maxUnread/2 || sent > 2*maxUnread {
		t.Errorf("it took %d bytes", sent)
	}
	c.Close()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read gives %v", err)
	}
}
