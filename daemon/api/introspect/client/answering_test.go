package client

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"cnictl/daemon/api/introspect"
)

// answer is a connection that delivers a text, in pieces as a network does.
type answer struct {
	net.Conn
	io.Reader
}

func (a answer) Read(b []byte) (int, error) { return a.Reader.Read(b) }

// TestAnswering_NotHTTP: a reply that is not HTTP has its own reason.
func TestAnswering_NotHTTP(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"HTTP/1.1 200 OK\r\n\r\n{}": true, "HTTP/1.0 404 Not Found\r\n\r\n": true, "HTTP/1.1 20": true, "": true,
		"this is not HTTP\n": false, "SSH-2.0-OpenSSH\r\n": false, "\x15\x03\x01\x00\x02": false, "HTTP/1.1 abc\r\n": false, "\x00": false,
	} {
		for name, reader := range map[string]io.Reader{"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text))} {
			got, err := io.ReadAll(&answering{Conn: answer{Reader: reader}})
			if ok && (err != nil || string(got) != text) {
				t.Errorf("%q, %s: %q, %v", text, name, got, err)
			}
			if reason, _ := classify(context.WithoutCancel(t.Context()), err); err != nil && (ok || reason != introspect.ReasonNotHTTP) || err == nil && !ok {
				t.Errorf("%q, %s: %v, %s", text, name, err, reason)
			}
		}
	}
}
