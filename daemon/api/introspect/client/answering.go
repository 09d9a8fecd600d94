package client

import (
	"errors"
	"net"
)

// errNotHTTP is an answer that does not begin as one of HTTP does: another server listens
// there, or one that speaks TLS.
var errNotHTTP = errors.New("the server does not speak HTTP")

// statusLine is how every answer begins; 0 is any digit.
const statusLine = "HTTP/0.0 000"

// answering is a connection whose first bytes are checked: net/http reports an answer that is
// not HTTP only by its error text. It is read by one goroutine, as connections of net/http are.
type answering struct {
	net.Conn
	seen int // bytes of the first answer that were checked
}

func (c *answering) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for i := 0; i < n && c.seen < len(statusLine); i++ {
		want := statusLine[c.seen]
		if digit := '0' <= b[i] && b[i] <= '9'; b[i] != want && (want != '0' || !digit) {
			return 0, errNotHTTP
		}
		c.seen++
	}
	return n, err
}
