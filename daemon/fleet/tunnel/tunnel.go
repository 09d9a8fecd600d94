package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"cnictl/daemon/api/introspect"
)

// Options of a Dialer.
type Options struct {
	// Protocol forces one of ProtocolWebSocket and ProtocolSPDY; "" tries the first and
	// then the second.
	Protocol string
}

// Protocols of the upgrade.
const (
	ProtocolWebSocket = "websocket"
	ProtocolSPDY      = "spdy"
)

// Protocols within, as Kubernetes names them.
const (
	portForward       = "portforward.k8s.io"
	portForwardTunnel = "SPDY/3.1+" + portForward // SPDY in a WebSocket
	spdyUpgrade       = "SPDY/3.1"
	streamVersion     = "X-Stream-Protocol-Version"
)

// Pod names a pod.
type Pod struct{ Namespace, Name string }

// Dialer makes tunnels through one API server. It is safe for concurrent use.
type Dialer struct {
	front    *front
	forced   string
	known    atomic.Pointer[string] // the protocol that this API server is known to speak
	requests atomic.Uint64
}

// New builds a dialer; it does not connect.
func New(cfg *rest.Config, opts Options) (*Dialer, error) {
	switch opts.Protocol {
	case "", ProtocolWebSocket, ProtocolSPDY:
	default:
		return nil, fmt.Errorf("build tunnels: protocol %q is not %s or %s", opts.Protocol, ProtocolWebSocket, ProtocolSPDY)
	}
	f, err := newFront(cfg)
	if err != nil {
		return nil, &Error{Reason: introspect.ReasonCredential, Err: fmt.Errorf("build tunnels: %w", err)}
	}
	return &Dialer{front: f, forced: opts.Protocol}, nil
}

// Close ends idle connections; tunnels are their owners'.
func (d *Dialer) Close() { d.front.pool.CloseIdleConnections() }

// Requests counts those made to the API server.
func (d *Dialer) Requests() uint64 { return d.requests.Load() }

// Dial opens a tunnel with one stream to a port of the pod's network namespace. Closing
// the stream closes both.
func (d *Dialer) Dial(ctx context.Context, pod Pod, port uint16) (net.Conn, error) {
	t, err := d.Open(ctx, pod)
	if err != nil {
		return nil, err
	}
	c, err := t.dial(ctx, port, t.session.close)
	if err != nil {
		t.session.close()
		return nil, err
	}
	return c, nil
}

// Open makes a tunnel for many streams.
func (d *Dialer) Open(ctx context.Context, pod Pod) (*Tunnel, error) {
	up, err := d.negotiate(ctx, pod, upgradePlan{resource: "portforward", inWebSocket: []string{portForwardTunnel}, inSPDY: []string{portForward}})
	if err != nil {
		return nil, err
	}
	if up.web != nil {
		return &Tunnel{pod: pod, session: newSession(up.web, up.web.conn)}, nil
	}
	return &Tunnel{pod: pod, session: newSession(up.plain, up.plain.conn)}, nil
}

// Tunnel is an upgraded connection to one pod.
type Tunnel struct {
	pod     Pod
	session *session
	number  atomic.Uint64 // of the last stream
}

// Dial opens a stream.
func (t *Tunnel) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	return t.dial(ctx, port, nil)
}

// dial opens the two streams of one connection. The node connects to its port meanwhile:
// that it could not is an error of the first read.
func (t *Tunnel) dial(ctx context.Context, port uint16, finish func()) (net.Conn, error) {
	limit, stop := limitOf(ctx)
	defer stop()
	number, to := strconv.FormatUint(t.number.Add(1)-1, 10), strconv.Itoa(int(port))
	halves, err := t.session.open(limit,
		headers{"port", to, "requestid", number, "streamtype", "error"},
		headers{"port", to, "requestid", number, "streamtype", "data"})
	if err != nil {
		return nil, Failed(ctx, err)
	}
	if finish == nil {
		finish = func() { t.session.abandon(halves...) }
	}
	return newConn(t.session, halves[1].id, halves[1], halves[0], addr{t.pod, to}, streamError, finish), nil
}

// Done is closed when the tunnel has ended, by Close or because it broke.
func (t *Tunnel) Done() <-chan struct{} { return t.session.ended }

// Close ends the tunnel with all its streams.
func (t *Tunnel) Close() error {
	t.session.close()
	return nil
}

// upgradePlan is how a subresource of pods is upgraded.
type upgradePlan struct {
	resource    string // of pods: portforward, exec
	query       url.Values
	inWebSocket []string // protocols, in the order of liking
	inSPDY      []string
}

// upgraded is a connection in one of the two forms.
type upgraded struct {
	web   *wsWire // nil: SPDY in plain
	plain wire
}

// negotiate upgrades by the protocol that the API server speaks. A WebSocket takes the
// verb get (and since Kubernetes 1.35 also create), SPDY the verb create.
func (d *Dialer) negotiate(ctx context.Context, pod Pod, p upgradePlan) (upgraded, error) {
	u := d.front.url("/api/v1/namespaces/"+url.PathEscape(pod.Namespace)+"/pods/"+url.PathEscape(pod.Name)+"/"+p.resource, p.query)
	request := Request{Verb: "get", Resource: "pods/" + p.resource, Namespace: pod.Namespace, Name: pod.Name}
	speaks := d.forced
	if known := d.known.Load(); speaks == "" && known != nil {
		speaks = *known
	}
	if speaks != ProtocolSPDY {
		d.requests.Add(1)
		w, err := d.front.webSocket(ctx, u, p.inWebSocket...)
		if err == nil {
			d.learn(ProtocolWebSocket)
			return upgraded{web: w}, nil
		}
		if speaks == ProtocolWebSocket && d.forced != "" || !mayMendBySPDY(err) {
			return upgraded{}, explain(ctx, request, err)
		}
	}
	request.Verb = "create"
	d.requests.Add(1)
	w, head, err := d.front.upgrade(ctx, http.MethodPost, u, http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {spdyUpgrade}, streamVersion: p.inSPDY,
	})
	if err != nil {
		return upgraded{}, explain(ctx, request, err)
	}
	if head.Get("Upgrade") != spdyUpgrade {
		w.Close()
		return upgraded{}, &Error{Reason: introspect.ReasonStatus, Err: fmt.Errorf("the API server upgraded to %.20q where %s was asked for", head.Get("Upgrade"), spdyUpgrade)}
	}
	d.learn(ProtocolSPDY)
	return upgraded{plain: w}, nil
}

func (d *Dialer) learn(protocol string) {
	if d.known.Load() == nil {
		d.known.CompareAndSwap(nil, &protocol)
	}
}

// mayMendBySPDY: the API server, or a proxy before it, does not know the WebSocket form, or
// the user has the verb of the other form alone. What it says of the pod holds for both.
func mayMendBySPDY(err error) bool {
	var r *refusal
	if !errors.As(err, &r) {
		return false // no answer at all
	}
	switch _, own := readStatus(r.body); {
	case r.status == http.StatusForbidden:
		return true
	case own: // an API server that knew what it was asked for
		return r.status == http.StatusBadRequest || r.status == http.StatusMethodNotAllowed
	}
	return r.status != http.StatusUnauthorized && r.status != http.StatusTooManyRequests
}

// explain is the error of an upgrade.
func explain(ctx context.Context, r Request, err error) error {
	var no *refusal
	if !errors.As(err, &no) {
		return Failed(ctx, err)
	}
	if no.status == http.StatusSwitchingProtocols {
		return &Error{Reason: introspect.ReasonStatus, Err: fmt.Errorf("%s: %s", r.what(), no.body)}
	}
	return Refused(r, no.status, no.body)
}
