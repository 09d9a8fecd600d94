package tunnel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/spdystream/spdy"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
)

// TestFraming_Read: the SPDY implementation of Kubernetes' peers can read what we send,
// including headers after the first stream's and headers of more than one block.
func TestFraming_Read(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70_000)
	var said []byte
	said = appendOpen(said, 1, true, "port", "61679", "requestid", "0", "streamtype", "error")
	said = appendOpen(said, 3, false, "port", "61679", "requestid", "0", "streamtype", "data")
	said = appendData(said, 3, flagFin, []byte("data"))
	said = appendOpen(said, 5, false, "long", long)
	said = appendReset(said, 3, cancelled)
	said = appendPing(said, 2)
	framer, err := spdy.NewFramer(io.Discard, bytes.NewReader(said))
	if err != nil {
		t.Fatal(err)
	}
	head := func(id spdy.StreamId, kind string) http.Header {
		t.Helper()
		f, err := framer.ReadFrame()
		open, ok := f.(*spdy.SynStreamFrame)
		if err != nil || !ok || open.StreamId != id || open.Headers.Get("streamType") != kind {
			t.Fatalf("read %#v, %v", f, err)
		}
		return open.Headers
	}
	head(1, "error")
	want := http.Header{"Port": {"61679"}, "Requestid": {"0"}, "Streamtype": {"data"}}
	if diff := cmp.Diff(want, head(3, "data")); diff != "" {
		t.Error(diff)
	}
	if f, _ := framer.ReadFrame(); string(f.(*spdy.DataFrame).Data) != "data" || f.(*spdy.DataFrame).Flags != spdy.DataFlagFin {
		t.Errorf("read %#v", f)
	}
	if head(5, "").Get("long") != long {
		t.Error("the long header is another")
	}
	if f, _ := framer.ReadFrame(); f.(*spdy.RstStreamFrame).StreamId != 3 || f.(*spdy.RstStreamFrame).Status != spdy.Cancel {
		t.Errorf("read %#v", f)
	}
	if f, _ := framer.ReadFrame(); f.(*spdy.PingFrame).Id != 2 {
		t.Errorf("read %#v", f)
	}
}

// dialled returns a mux with one connection (stream 1 for errors, 3 for data), and its
// peer's end.
func dialled(t *testing.T) (*mux, net.Conn, net.Conn) {
	t.Helper()
	m, far := between(t, carriers["mux"])
	c, err := (&Tunnel{pod: aPod, carrier: m}).Dial(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return m.(*mux), far, c
}

const controlBits = frameVersion << 16

// number encodes a stream or ping ID as a frame does.
func number(id uint32) []byte { return binary.BigEndian.AppendUint32(nil, id) }

// TestMux_Replies: headers are not unpacked, whatever they hold, and unknown frames are
// skipped.
func TestMux_Replies(t *testing.T) {
	t.Parallel()
	_, far, c := dialled(t)
	go func() {
		for _, f := range [][]byte{
			frame(controlBits|frameReply, 0, append(number(3), make([]byte, maxControl-4)...)),
			reply(t, 1, many(maxHeaders+1)),
			frame(controlBits|frameHeaders, 0, append(number(3), "no zlib"...)),
			frame(controlBits|4, 0, make([]byte, 12)), // settings
			frame(controlBits|9, 0, make([]byte, 8)),  // a window
			frame(controlBits|framePing, 0, number(1)),
			frame(7, 0, []byte("of a stream that is none")),
			frame(3, 0, nil),
			frame(3, 0, []byte("data")),
			frame(1, flagFin, nil),
			frame(controlBits|frameHeaders, flagFin, number(3)), // the end of the stream
			frame(3, 0, []byte("late")),
		} {
			_, _ = far.Write(f)
		}
	}()
	if got, err := io.ReadAll(c); string(got) != "data" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestMux_Ends: it does not matter which stream ends first, or how.
func TestMux_Ends(t *testing.T) {
	t.Parallel()
	reset := func(id uint32) []byte { return appendReset(nil, id, cancelled) }
	refused := appendData(nil, 1, flagFin, []byte("connection refused"))
	for name, c := range map[string]struct {
		said   [][]byte
		data   string
		reason introspect.Reason // "" for a regular end
	}{
		"data first":             {[][]byte{frame(3, flagFin, []byte("x")), frame(1, flagFin, nil)}, "x", ""},
		"data last":              {[][]byte{frame(1, flagFin, nil), frame(3, flagFin, []byte("x"))}, "x", ""},
		"data alone":             {[][]byte{frame(3, flagFin, []byte("x"))}, "x", ""},
		"by resets":              {[][]byte{reset(1), reset(3)}, "", ""},
		"a complaint first":      {[][]byte{refused, frame(3, flagFin, nil)}, "", introspect.ReasonRefused},
		"a complaint last":       {[][]byte{frame(3, flagFin, nil), refused}, "", introspect.ReasonRefused},
		"a complaint alone":      {[][]byte{refused}, "", introspect.ReasonRefused},
		"a complaint after data": {[][]byte{frame(3, 0, []byte("x")), refused}, "x", introspect.ReasonRefused},
		"an end with the tunnel": {[][]byte{frame(3, 0, []byte("x")), frame(controlBits|frameGoAway, 0, make([]byte, 8))}, "x", introspect.ReasonTransport},
		"a complaint, and that":  {[][]byte{frame(1, 0, []byte("connection refused")), frame(controlBits|frameGoAway, 0, make([]byte, 8))}, "", introspect.ReasonRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, far, conn := dialled(t)
			go func() {
				for _, f := range c.said {
					_, _ = far.Write(f)
				}
			}()
			got, err := io.ReadAll(conn)
			if string(got) != c.data {
				t.Errorf("read %q", got)
			}
			if c.reason == "" && err != nil {
				t.Errorf("the end is %v", err)
			} else if c.reason != "" {
				wantReason(t, err, c.reason)
			}
		})
	}
}

// TestMux_Serves: pings are answered, the peer's streams are refused.
func TestMux_Serves(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	m := newMux(near)
	t.Cleanup(func() { m.Close(); far.Close() })
	go func() {
		_, _ = far.Write(frame(controlBits|framePing, 0, number(2)))
		_, _ = far.Write(frame(controlBits|frameOpen, 0, append(number(2), make([]byte, 6)...)))
	}()
	want := appendReset(appendPing(nil, 2), 2, protocolErr)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("answers %x, %v", got, err)
	}
}

// TestMux_StuckWrite: a write that the peer does not accept ends at its deadline. That ends
// the tunnel, because half a frame may have been sent, and all waiting writes.
func TestMux_StuckWrite(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	m := newMux(near)
	t.Cleanup(func() { m.Close(); far.Close() })
	streams := appendOpen(nil, 1, true, "port", "1", "requestid", "0", "streamtype", "error")
	streams = appendOpen(streams, 3, false, "port", "1", "requestid", "0", "streamtype", "data")
	go func() { _, _ = io.ReadFull(far, make([]byte, len(streams))) }() // and nothing more
	tunnel := &Tunnel{pod: aPod, carrier: m}
	c, err := tunnel.Dial(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	writes, waits := make(chan error, 1), make(chan error, 1)
	go func() { _, err := c.Write(make([]byte, 1<<10)); writes <- err }()
	testenv.Eventually(t, "the write", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.writing // the peer read the streams before the dial ended
	})
	go func() { _, err := tunnel.Dial(t.Context(), 1); waits <- err }()
	_ = c.SetWriteDeadline(testenv.Soon())
	if err := <-writes; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the write ends by %v", err)
	}
	<-tunnel.Done()
	wantReason(t, <-waits, introspect.ReasonTransport)
}
