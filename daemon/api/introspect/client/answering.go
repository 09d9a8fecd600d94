package client

import (
	"errors"
	"net"
)

// errNotHTTP: the answer does not begin like an HTTP response. Another kind of server
// listens there, or one that speaks TLS.
var errNotHTTP = errors.New("the server does not speak HTTP")

// statusLine is how every response begins; 0 matches any digit.
const statusLine = "HTTP/0.0 000"

// answering is a connection that checks the first bytes it receives: net/http reports an
// answer that is not HTTP only by its error text. Like any net/http connection, it is read
// by one goroutine.
type answering struct {
	net.Conn
	seen int // bytes of the first answer already checked
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
