package tunnel

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// handshakeLimit bounds each of connecting, TLS and the answer to an upgrade, also where
// nobody waits for them any more.
const handshakeLimit = 5 * time.Second

// maxRefusal bounds what is read of an answer that is no upgrade.
const maxRefusal = 16 << 10

// front is the way to the API server that all tunnels of a Dialer share: credentials, TLS
// with its sessions, and the proxy.
type front struct {
	base *url.URL
	pool *http.Transport
	trip http.RoundTripper // pool with the credentials
}

func newFront(cfg *rest.Config) (*front, error) {
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	options, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	secure, err := transport.TLSConfigFor(options)
	if err != nil {
		return nil, err
	}
	if secure == nil {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	secure = secure.Clone()
	secure.NextProtos = []string{"http/1.1"} // there is no upgrade in HTTP/2
	// Each tunnel is a connection of its own. With a session of an earlier one no
	// certificate is sent and checked again.
	secure.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	dial := cfg.Dial
	if options.DialHolder != nil && options.DialHolder.Dial != nil {
		dial = options.DialHolder.Dial
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: handshakeLimit, KeepAlive: 30 * time.Second}).DialContext
	}
	proxy := http.ProxyFromEnvironment
	if cfg.Proxy != nil {
		proxy = cfg.Proxy
	}
	pool := &http.Transport{
		Proxy: proxy, DialContext: dial, TLSClientConfig: secure, DisableCompression: true,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
		TLSHandshakeTimeout: handshakeLimit, MaxResponseHeaderBytes: 64 << 10,
		ReadBufferSize: 4 << 10, WriteBufferSize: 2 << 10,
		// Connections stay after a refusal, or a dial that nobody waited for in the end.
		MaxIdleConnsPerHost: 8, IdleConnTimeout: 2 * handshakeLimit,
	}
	trip, err := transport.HTTPWrappersForConfig(options, pool)
	if err != nil {
		return nil, err
	}
	return &front{base: base, pool: pool, trip: trip}, nil
}

func (f *front) url(path string, query url.Values) *url.URL {
	u := f.base.JoinPath(path)
	u.RawQuery = query.Encode()
	return u
}

// wire is an upgraded connection: what is read of it begins with what came behind the
// answer's head.
type wire struct {
	io.ReadWriteCloser
	conn net.Conn // the same connection, for its deadlines
}

// refusal is an answer that is no upgrade.
type refusal struct {
	status int
	body   []byte
}

func (r *refusal) Error() string { return fmt.Sprintf("answered HTTP status %d", r.status) }

// upgrade sends a request that asks for another protocol. The answer's head is for the
// caller to look at; a *refusal is any answer but 101.
func (f *front) upgrade(ctx context.Context, method string, u *url.URL, header http.Header) (wire, http.Header, error) {
	var used connUsed
	ctx, cancel := context.WithTimeout(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: used.got}), 3*handshakeLimit)
	defer cancel() // an upgraded connection outlives its request
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return wire{}, nil, err
	}
	req.Header = header
	resp, err := f.trip.RoundTrip(req)
	if err != nil {
		used.close() // an answer that came too late leaves its connection to nobody
		if cause := ctx.Err(); cause != nil {
			err = cause
		}
		return wire{}, nil, err
	}
	rw, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what came is all there is to say
		return wire{}, nil, &refusal{resp.StatusCode, body}
	}
	return wire{rw, used.conn}, resp.Header, nil
}

// connUsed is the connection that a request got last.
type connUsed struct {
	mu   sync.Mutex // guards conn
	conn net.Conn
}

func (c *connUsed) got(info httptrace.GotConnInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = info.Conn
}

func (c *connUsed) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
	}
}

// get makes an ordinary request; the caller closes the answer's body.
func (f *front) get(ctx context.Context, u *url.URL, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	return f.trip.RoundTrip(req)
}

// webSocket upgrades to a WebSocket with one of the protocols, in the order of liking.
func (f *front) webSocket(ctx context.Context, u *url.URL, protocols ...string) (*wsWire, error) {
	key := wsKey()
	w, head, err := f.upgrade(ctx, http.MethodGet, u, http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
		"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {key}, "Sec-Websocket-Protocol": protocols,
	})
	if err != nil {
		return nil, err
	}
	chosen := head.Get("Sec-Websocket-Protocol")
	for _, p := range protocols {
		if p == chosen && wsAccepts(head, key) {
			return newWSWire(w), nil
		}
	}
	w.Close()
	return nil, &refusal{status: http.StatusSwitchingProtocols, body: []byte("the upgrade is to another protocol")}
}

// wsWire is a wire whose bytes travel in binary messages. Writing is for one goroutine at
// a time, beside the one that reads.
type wsWire struct {
	wire
	in wsReader

	mu  sync.Mutex // guards out and each write
	out []byte
}

func newWSWire(w wire) *wsWire {
	ws := &wsWire{wire: w}
	ws.in = wsReader{r: bufio.NewReader(w), answer: ws.send}
	return ws
}

func (w *wsWire) Read(p []byte) (int, error) { return w.in.Read(p) }

// Write sends one message.
func (w *wsWire) Write(p []byte) (int, error) {
	if err := w.send(wsBinary, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *wsWire) send(opcode byte, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out = appendWS(w.out[:0], opcode, payload)
	_, err := w.wire.Write(w.out)
	return err
}

// farewell is how long a peer may keep us from saying that we go.
const farewell = 100 * time.Millisecond

// Close says that it was no accident, if that is possible at once, and ends the connection.
func (w *wsWire) Close() error {
	_ = w.conn.SetWriteDeadline(time.Now().Add(farewell)) // also ends a write that is stuck
	if w.mu.TryLock() {
		_, _ = w.wire.Write(appendWS(nil, wsClose, []byte{wsNormal >> 8, wsNormal & 0xff})) // who does not get it sees the end
		w.mu.Unlock()
	}
	return w.wire.Close()
}
