package tunnel

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// handshakeLimit is the default of [Options.HandshakeLimit]. Closing a tunnel waits as long for a
// peer that accepts no data.
const handshakeLimit = 5 * time.Second

// maxRefusal limits how much is read of a response that is not an upgrade.
const maxRefusal = 16 << 10

// front is the shared access of a Dialer's tunnels to the API server: credentials, TLS with
// session resumption, and the proxy.
type front struct {
	base *url.URL
	pool *http.Transport
	trip http.RoundTripper // pool plus credentials
	web  http.RoundTripper // upgrades to WebSocket, with credentials

	config *rest.Config // for client-go's own clients
	limit  time.Duration
}

func newFront(cfg *rest.Config, limit time.Duration) (*front, error) {
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
	secure.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrade
	// Each tunnel is a separate connection. Resuming a TLS session saves sending and checking
	// the certificate again.
	secure.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	dial := cfg.Dial
	if options.DialHolder != nil && options.DialHolder.Dial != nil {
		dial = options.DialHolder.Dial
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: limit, KeepAlive: 30 * time.Second}).DialContext
	}
	proxy := utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	if cfg.Proxy != nil {
		proxy = cfg.Proxy
	}
	pool := &http.Transport{
		Proxy: proxy, DialContext: dial, TLSClientConfig: secure, DisableCompression: true,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
		TLSHandshakeTimeout: limit, MaxResponseHeaderBytes: 64 << 10,
		ReadBufferSize: 4 << 10, WriteBufferSize: 2 << 10,
		// Connections remain after a refusal or an abandoned dial.
		MaxIdleConnsPerHost: 8, IdleConnTimeout: 2 * limit,
	}
	trip, err := transport.HTTPWrappersForConfig(options, pool)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(cfg)
	config.NextProtos = secure.NextProtos
	f := &front{base: base, pool: pool, trip: trip, config: config, limit: limit}
	f.web, err = transport.HTTPWrappersForConfig(options, upgradeToWebSocket(f.newWebSocketDialer()))
	return f, err
}

func (f *front) url(path string, query url.Values) *url.URL {
	u := f.base.JoinPath(path)
	u.RawQuery = query.Encode()
	return u
}

const otherProtocol = "the upgrade is to another protocol"

// refusal is a response that is not an upgrade.
type refusal struct {
	status int
	body   []byte
}

func (r *refusal) Error() string { return fmt.Sprintf("answered HTTP status %d", r.status) }

// refusalOf extracts the refusal from a library's error; nil if there was no response. client-go
// keeps only the status code that a Status or gorilla's text contains.
func refusalOf(err error) *refusal {
	var no *refusal
	var failed *httpstream.UpgradeFailureError
	var said *apierrors.StatusError
	switch {
	case errors.As(err, &no):
		return no
	case !errors.As(err, &failed):
		return nil
	case errors.As(failed.Cause, &said):
		body, _ := json.Marshal(status{Kind: "Status", Message: said.ErrStatus.Message, Reason: string(said.ErrStatus.Reason),
			Code: int(said.ErrStatus.Code)})
		return &refusal{int(said.ErrStatus.Code), body} // cannot fail: strings and a number
	}
	no = &refusal{status: http.StatusSwitchingProtocols, body: []byte(otherProtocol)}
	if _, text, ok := strings.Cut(failed.Cause.Error(), "websocket: bad handshake ("); ok {
		line, body, _ := strings.Cut(text, ")")
		code, _, _ := strings.Cut(line, " ")
		no.status, _ = strconv.Atoi(code) // 0 if unknown
		no.body = []byte(strings.TrimPrefix(body, ": "))
	}
	return no
}

// tripper is a function used as a transport.
type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

// shake makes an upgrade limited by ctx and by three times the limit of its parts; neither limits the
// upgraded connection. Once connected, gorilla's dialer respects only the deadline of a context.
func (f *front) shake(ctx context.Context, req *http.Request, by http.RoundTripper) (*http.Response, error) {
	var used connUsed
	ctx, cancel := context.WithTimeout(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: used.got}), 3*f.limit)
	defer cancel()
	stop := context.AfterFunc(ctx, used.close)
	resp, err := by.RoundTrip(req.WithContext(ctx))
	if !stop() {
		return nil, ctx.Err()
	}
	if err != nil {
		var no *httpstream.UpgradeFailureError
		if !errors.As(err, &no) {
			used.close() // a late response leaves its connection without a user
		}
		return nil, err
	}
	return resp, nil
}

// connUsed is the connection that a request used last.
type connUsed struct {
	mu    sync.Mutex // guards all below
	conn  net.Conn
	ended bool
}

func (c *connUsed) got(info httptrace.GotConnInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn = info.Conn; c.ended {
		c.conn.Close()
	}
}

func (c *connUsed) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.conn != nil {
		c.conn.Close()
	}
}

// webSocket opens a connection with streams over WebSocket.
func (f *front) webSocket(ctx context.Context, u *url.URL) (*mux, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := f.shake(ctx, req, f.web)
	if err != nil {
		return nil, err
	}
	w, ok := resp.Body.(*webSocket)
	switch {
	case !ok:
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // use whatever arrived
		if resp.StatusCode == http.StatusSwitchingProtocols {
			body = []byte(otherProtocol)
		}
		return nil, &refusal{resp.StatusCode, body}
	case w.Subprotocol() != constants.WebsocketsSPDYTunnelingPortForwardV1:
		w.Close()
		return nil, &refusal{http.StatusSwitchingProtocols, []byte(otherProtocol)}
	}
	return newMux(w), nil
}

// spdy opens a session without WebSocket, and returns the inner protocol that the API server
// chose. net/http does the upgrade: client-go's transport ignores its context while it waits for
// the response, reads it without a limit, and leaks the connection of a refusal.
func (f *front) spdy(ctx context.Context, u *url.URL, protocols ...string) (s *session, protocol string, err error) {
	var used net.Conn
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { used = i.Conn }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), nil)
	if err != nil {
		return nil, "", err
	}
	req.Header = http.Header{
		httpstream.HeaderConnection: {httpstream.HeaderUpgrade}, httpstream.HeaderUpgrade: {spdy.HeaderSpdy31},
		httpstream.HeaderProtocolVersion: protocols,
	}
	resp, err := f.shake(ctx, req, f.trip)
	if err != nil {
		return nil, "", err
	}
	rw, ok := resp.Body.(io.ReadWriteCloser)
	switch {
	case resp.StatusCode != http.StatusSwitchingProtocols || !ok:
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // use whatever arrived
		return nil, "", &refusal{resp.StatusCode, body}
	case !strings.EqualFold(resp.Header.Get(httpstream.HeaderUpgrade), spdy.HeaderSpdy31):
		rw.Close()
		return nil, "", &refusal{resp.StatusCode, []byte(otherProtocol)}
	}
	s, err = newSession(upgraded{used, rw})
	return s, resp.Header.Get(httpstream.HeaderProtocolVersion), err
}

// upgraded is a net/http connection after an upgrade: reads start with whatever followed the
// response header.
type upgraded struct {
	net.Conn
	rw io.ReadWriteCloser
}

func (u upgraded) Read(p []byte) (int, error)  { return u.rw.Read(p) }
func (u upgraded) Write(p []byte) (int, error) { return u.rw.Write(p) }

func (u upgraded) Close() error {
	u.rw.Close()
	return u.Conn.Close()
}

// get makes an ordinary request; the caller closes the response body.
func (f *front) get(ctx context.Context, u *url.URL, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	return f.trip.RoundTrip(req)
}
