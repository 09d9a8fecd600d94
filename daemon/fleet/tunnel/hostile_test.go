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

// frame builds a SPDY/3.1 frame by hand, because no library writes what a hostile peer
// sends.
func frame(first uint32, flags byte, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, first)
	b = binary.BigEndian.AppendUint32(b, uint32(flags)<<24|uint32(len(body)))
	return append(b, body...)
}

// carriers are the two implementations of a multiplexed connection, over the given net.Conn.
var carriers = map[string]func(*testing.T, net.Conn) carrier{
	"mux": func(_ *testing.T, c net.Conn) carrier { return newMux(c) },
	"session": func(t *testing.T, c net.Conn) carrier {
		s, err := newSession(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	},
}

func eachCarrier(t *testing.T, test func(t *testing.T, makeOne func(*testing.T, net.Conn) carrier)) {
	for name, makeOne := range carriers {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, makeOne) })
	}
}

// between returns a carrier and its peer's end, which discards all input.
func between(t *testing.T, makeOne func(*testing.T, net.Conn) carrier) (carrier, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	s := makeOne(t, near)
	t.Cleanup(func() { s.Close(); far.Close() })
	go func() { _, _ = io.Copy(io.Discard, far) }()
	return s, far
}

// TestHostile_Garbage: invalid protocol data ends a connection and its reads.
func TestHostile_Garbage(t *testing.T) {
	t.Parallel()
	const control = 0x8003 << 16
	said := map[string][]byte{
		"nothing":          {},
		"text":             []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"an unknown frame": frame(control|99, 0, nil),
		"a long frame":     frame(control|2, 0, make([]byte, maxControl+1)),
		"a short frame":    frame(control|3, 0, make([]byte, 2)),
		"another version":  frame(0x8002<<16|1, 0, make([]byte, 10)),
		"a stream of none": frame(0, 0, []byte("x")),
		"that it goes":     frame(control|7, 0, make([]byte, 8)),
		"half a frame":     frame(1, 0, make([]byte, 100))[:50],
		"streams of its":   bytes.Repeat(frame(control|1, 0, make([]byte, 10)), 100),
		"pings":            bytes.Repeat(frame(control|6, 0, []byte{0, 0, 0, 2}), 100),
	}
	eachCarrier(t, func(t *testing.T, makeOne func(*testing.T, net.Conn) carrier) {
		for name, said := range said {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, far := between(t, makeOne)
				tunnel := &Tunnel{pod: aPod, carrier: s}
				c, err := tunnel.Dial(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = far.Write(said); far.Close() }()
				_, err = io.ReadAll(c)
				wantReason(t, err, introspect.ReasonTransport)
				<-tunnel.Done()
			})
		}
	})
}

// TestHostile_Headers: a reply whose headers unpack beyond the limit ends a session. A mux
// unpacks none, see TestMux_Replies.
func TestHostile_Headers(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.Header{
		"long": {"A": {strings.Repeat("x", maxControl+1)}},
		"many": many(maxHeaders + 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, far := between(t, carriers["session"])
			if _, err := c.(*session).CreateStream(http.Header{}); err != nil {
				t.Fatal(err)
			}
			b := reply(t, 1, h)
			if len(b) > maxControl {
				t.Fatal("it is too long as it is packed")
			}
			_, _ = far.Write(b)
			<-c.done()
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

// reply is the frame with which a peer accepts a stream.
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

// TestHostile_Flood: a peer that sends more than is read ends its tunnel, but only at the
// limit.
func TestHostile_Flood(t *testing.T) {
	t.Parallel()
	eachCarrier(t, func(t *testing.T, makeOne func(*testing.T, net.Conn) carrier) {
		s, far := between(t, makeOne)
		c, err := (&Tunnel{pod: aPod, carrier: s}).Dial(t.Context(), 1)
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
		<-s.done()
		far.Close()
		<-wrote
		if sent < maxUnread/2 || sent > 2*maxUnread {
			t.Errorf("it took %d bytes", sent)
		}
		c.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read gives %v", err)
		}
	})
}
