package tunnel

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// played is a connection whose other side has said all that it will, and hears nothing.
type played struct{ io.Reader }

func (played) Write(p []byte) (int, error)      { return len(p), nil }
func (played) Close() error                     { return nil }
func (played) LocalAddr() net.Addr              { return addr{} }
func (played) RemoteAddr() net.Addr             { return addr{} }
func (played) SetDeadline(time.Time) error      { return nil }
func (played) SetReadDeadline(time.Time) error  { return nil }
func (played) SetWriteDeadline(time.Time) error { return nil }

// FuzzSession: whatever the other side says, a session ends with it, hands no stream more
// than was sent for it, and every read ends.
func FuzzSession(f *testing.F) {
	f.Add(appendData(appendData(nil, 1, spdyFin, []byte("why")), 3, spdyFin, []byte("data")))
	f.Add(appendReset(appendPing(nil, 2), 3))
	f.Add(appendControl(nil, spdyGoAway, 0, 0))
	f.Add(appendOpen(nil, 2, true, headers{"a", "b"}))
	f.Fuzz(func(t *testing.T, said []byte) {
		if len(said) > maxUnread/2 {
			t.Skip("more than a stream takes without a reader")
		}
		start := make(chan struct{})
		in := &gated{Reader: bytes.NewReader(said), start: start}
		s := newSession(played{in}, played{in})
		halves, err := s.open(nil, headers{"streamtype", "error"}, headers{"streamtype", "data"})
		if err != nil {
			t.Fatal(err)
		}
		close(start)
		c := newConn(s, halves[1].id, halves[1], halves[0], addr{}, streamError, s.close)
		got, _ := io.ReadAll(c)
		<-s.ended
		if want := dataOf(said, halves[1].id); !bytes.HasPrefix(want, got) {
			t.Errorf("read %q of %q", got, want)
		}
		c.Close()
		<-s.gone
	})
}

// gated holds its reader back until the streams are there.
type gated struct {
	io.Reader
	start chan struct{}
}

func (g *gated) Read(p []byte) (int, error) {
	<-g.start
	return g.Reader.Read(p)
}

// dataOf is what a sequence of frames has for a stream, by a reading of its own.
func dataOf(said []byte, id uint32) (out []byte) {
	for len(said) >= 8 {
		first, length := binary.BigEndian.Uint32(said), int(binary.BigEndian.Uint32(said[4:])&0xffffff)
		body := said[8:]
		if length < len(body) {
			body = body[:length]
		}
		if first == id {
			out = append(out, body...)
		}
		said = said[8+len(body):]
	}
	return out
}

// FuzzWebSocket: what frames carry is what is read, however it is cut, and reading ends.
func FuzzWebSocket(f *testing.F) {
	f.Add([]byte{0x82, 3, 'a', 'b', 'c', 0x88, 2, 3, 0xe8}, uint8(1))
	f.Add([]byte{0x02, 1, 'a', 0x89, 1, 'p', 0x80, 1, 'b'}, uint8(7))
	f.Add([]byte{0x82, 126, 0, 2, 'x', 'y', 0x82, 127, 0, 0, 0, 0, 0, 0, 0, 1, 'z'}, uint8(3))
	f.Fuzz(func(t *testing.T, said []byte, step uint8) {
		read := func(size int) (out []byte, pongs int, err error) {
			w := &wsReader{r: bufio.NewReader(bytes.NewReader(said)), answer: func(byte, []byte) error { pongs++; return nil }}
			chunk := make([]byte, size)
			for {
				n, err := w.Read(chunk)
				out = append(out, chunk[:n]...)
				if err != nil {
					return out, pongs, err
				}
			}
		}
		a, pongs, err := read(int(step) + 1)
		b, again, otherErr := read(4096)
		if !bytes.Equal(a, b) || pongs != again || (err == nil) != (otherErr == nil) || len(a) > len(said) {
			t.Errorf("%q and %q, %d and %d pongs, %v and %v", a, b, pongs, again, err, otherErr)
		}
		w := &wsReader{r: bufio.NewReader(bytes.NewReader(said)), answer: func(byte, []byte) error { return nil }}
		var messages []byte
		for {
			m, err := w.message(1 << 16)
			if err != nil {
				break
			}
			messages = append(messages, m...)
		}
		if !bytes.HasPrefix(a, messages) {
			t.Errorf("as messages %q, as a stream %q", messages, a)
		}
	})
}

// TestWS_RoundTrip: frames of every form of length are read by the peer's implementation;
// here by undoing the mask.
func TestWS_RoundTrip(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 125, 126, 0xffff, 0x10000} {
		payload := bytes.Repeat([]byte{0xa5}, size)
		frame := appendWS(nil, wsBinary, payload)
		head := 2
		switch {
		case size > 0xffff:
			head = 10
		case size > 125:
			head = 4
		}
		mask, body := frame[head:head+4], bytes.Clone(frame[head+4:])
		for i := range body {
			body[i] ^= mask[i&3]
		}
		if frame[0] != 0x82 || frame[1]&wsMasked == 0 || cmp.Diff(payload, body) != "" {
			t.Errorf("%d bytes: head %x", size, frame[:head])
		}
	}
}
