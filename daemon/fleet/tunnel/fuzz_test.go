package tunnel

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
)

// played is a connection whose peer sends fixed bytes once may allows it, and ignores all
// input.
type played struct {
	io.Reader
	may chan struct{}
}

func (p played) Read(b []byte) (int, error) { <-p.may; return p.Reader.Read(b) }
func (played) Write(p []byte) (int, error)  { return len(p), nil }
func (played) Close() error                 { return nil }
func (played) LocalAddr() net.Addr          { return addr{} }

// FuzzMux: whatever the peer sends, the tunnel ends with it, no stream gets more than was
// sent for it, and every read ends.
func FuzzMux(f *testing.F) {
	f.Add(appendData(appendData(nil, 1, flagFin, []byte("why")), 3, flagFin, []byte("data")))
	f.Add(appendReset(appendPing(nil, 2), 3, cancelled))
	f.Add(appendControl(nil, frameGoAway, 0, 0))
	f.Add(appendOpen(nil, 2, true, "a", "b"))
	f.Add(appendData(append(appendControl(nil, frameReply, 0, 4), 0, 0, 0, 3), 3, 0, []byte("half"))[:18])
	f.Fuzz(func(t *testing.T, said []byte) {
		may := make(chan struct{})
		m := newMux(played{bytes.NewReader(said), may})
		c, err := m.connect(addr{}, "1", 0, true)
		if err != nil {
			t.Fatal(err)
		}
		close(may)
		got, _ := io.ReadAll(c)
		if want := dataOf(said, 3); !bytes.HasPrefix(want, got) {
			t.Errorf("read %q of %q", got, want)
		}
		<-m.ended
		c.Close()
		if m.unread != 0 || len(m.conns) != 0 {
			t.Errorf("it keeps %d bytes of %d streams", m.unread, len(m.conns))
		}
	})
}

// dataOf returns a stream's data in a sequence of frames, parsed independently.
func dataOf(said []byte, id uint32) (out []byte) {
	for len(said) >= 8 {
		first, length := binary.BigEndian.Uint32(said), int(binary.BigEndian.Uint32(said[4:])&0xffffff)
		body := said[8:]
		body = body[:min(length, len(body))]
		if first == id {
			out = append(out, body...)
		}
		said = said[8+len(body):]
	}
	return out
}
