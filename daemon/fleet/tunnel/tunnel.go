package tunnel

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"

	"cnictl/daemon/api/introspect"
)

// Options of a Dialer.
type Options struct {
	// Protocol is ProtocolWebSocket or ProtocolSPDY; "" tries the first and then the second.
	Protocol string
	// HandshakeLimit limits each of connecting, TLS and the response to an upgrade, even if nobody
	// waits for them any more; 0 means 5 s.
	HandshakeLimit time.Duration
}

// Protocols of the upgrade.
const (
	ProtocolWebSocket = "websocket"
	ProtocolSPDY      = "spdy"
)

// Pod names a pod.
type Pod struct{ Namespace, Name string }

// Dialer opens tunnels through one API server. It is safe for concurrent use.
type Dialer struct {
	front    *front
	forced   string
	known    atomic.Pointer[string] // the protocol that this API server is known to support
	requests atomic.Uint64
}

// New builds a dialer; it does not connect.
func New(cfg *rest.Config, opts Options) (*Dialer, error) {
	switch opts.Protocol {
	case "", ProtocolWebSocket, ProtocolSPDY:
	default:
		return nil, fmt.Errorf("build tunnels: protocol %q is not %s or %s", opts.Protocol, ProtocolWebSocket, ProtocolSPDY)
	}
	f, err := newFront(cfg, cmp.Or(opts.HandshakeLimit, handshakeLimit))
	if err != nil {
		return nil, &Error{Reason: introspect.ReasonCredential, Err: fmt.Errorf("build tunnels: %w", err)}
	}
	return &Dialer{front: f, forced: opts.Protocol}, nil
}

// Close closes idle connections; tunnels are closed by their owners.
func (d *Dialer) Close() { d.front.pool.CloseIdleConnections() }

// Requests returns the number of requests made to the API server.
func (d *Dialer) Requests() uint64 { return d.requests.Load() }

// Dial opens a tunnel with one stream to a port of the pod's network namespace. Closing the
// stream closes both.
func (d *Dialer) Dial(ctx context.Context, pod Pod, port uint16) (net.Conn, error) {
	t, err := d.Open(ctx, pod)
	if err != nil {
		return nil, err
	}
	c, err := t.dial(ctx, port, true)
	if err != nil {
		t.Close()
		return nil, err
	}
	return c, nil
}

// Open opens a tunnel for many streams.
func (d *Dialer) Open(ctx context.Context, pod Pod) (*Tunnel, error) {
	t := &Tunnel{pod: pod}
	err := d.negotiate(ctx, pod, "portforward", nil, func(protocol string, u *url.URL) (err error) {
		if protocol == ProtocolSPDY {
			t.carrier, _, err = d.front.spdy(ctx, u, portforward.PortForwardV1Name)
		} else {
			t.carrier, err = d.front.webSocket(ctx, u)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// carrier is a connection with streams: a mux over WebSocket, or a session without one.
type carrier interface {
	// connect opens a connection to a port, with a number that is unique in this carrier; if
	// alone, closing the connection closes the carrier.
	connect(to addr, port string, number uint64, alone bool) (net.Conn, error)
	done() <-chan struct{} // closed when it has ended
	Close() error
}

// Tunnel is an upgraded connection to one pod.
type Tunnel struct {
	pod     Pod
	carrier carrier
	number  atomic.Uint64 // of the last stream
}

// Dial opens a stream to a port.
func (t *Tunnel) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	return t.dial(ctx, port, false)
}

// dial opens a stream while the node connects to its port. If that fails, the first read
// returns the error.
func (t *Tunnel) dial(ctx context.Context, port uint16, alone bool) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, Failed(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { t.carrier.Close() }) // nothing else limits the write
	to := strconv.Itoa(int(port))
	c, err := t.carrier.connect(addr{t.pod, to}, to, t.number.Add(1)-1, alone)
	if !stop() && err == nil {
		c.Close()
		err = ctx.Err()
	}
	if err != nil {
		return nil, Failed(ctx, err)
	}
	return c, nil
}

// Done is closed when the tunnel has been closed or is broken.
func (t *Tunnel) Done() <-chan struct{} { return t.carrier.done() }

// Close ends the tunnel and all its streams.
func (t *Tunnel) Close() error { return t.carrier.Close() }

// negotiate makes an upgrade in the protocol that the API server supports. WebSocket needs the
// verb get (since Kubernetes 1.35 also create), SPDY the verb create.
func (d *Dialer) negotiate(ctx context.Context, pod Pod, resource string, q url.Values, by func(protocol string, u *url.URL) error) error {
	u := d.front.url("/api/v1/namespaces/"+url.PathEscape(pod.Namespace)+"/pods/"+url.PathEscape(pod.Name)+"/"+resource, q)
	request := Request{Verb: "get", Resource: "pods/" + resource, Namespace: pod.Namespace, Name: pod.Name}
	speaks := d.forced
	if known := d.known.Load(); speaks == "" && known != nil {
		speaks = *known
	}
	if speaks != ProtocolSPDY {
		d.requests.Add(1)
		err := by(ProtocolWebSocket, u)
		if err == nil {
			d.learn(ProtocolWebSocket)
			return nil
		}
		if d.forced != "" || !spdyMaySucceed(err) {
			return explain(ctx, request, err)
		}
	}
	request.Verb = "create"
	d.requests.Add(1)
	if err := by(ProtocolSPDY, u); err != nil {
		return explain(ctx, request, err)
	}
	d.learn(ProtocolSPDY)
	return nil
}

func (d *Dialer) learn(protocol string) {
	if d.known.Load() == nil {
		d.known.CompareAndSwap(nil, &protocol)
	}
}

// spdyMaySucceed reports that SPDY might succeed: the API server, or a proxy in front of it, does
// not support WebSocket, or the user lacks only the verb for it. What the API server says about
// the pod applies to both.
func spdyMaySucceed(err error) bool {
	if httpstream.IsHTTPSProxyError(err) {
		return true // the other protocol's library reports more about it
	}
	r := refusalOf(err)
	if r == nil {
		return false // no response at all
	}
	switch _, own := readStatus(r.body); {
	case r.status == http.StatusForbidden:
		return true
	case own: // an API server that understood the request
		return r.status == http.StatusBadRequest || r.status == http.StatusMethodNotAllowed
	}
	return r.status != http.StatusUnauthorized && r.status != http.StatusTooManyRequests
}

// explain returns the error of an upgrade.
func explain(ctx context.Context, r Request, err error) error {
	no := refusalOf(err)
	if no == nil {
		return Failed(ctx, err)
	}
	if no.status == http.StatusSwitchingProtocols {
		return &Error{Reason: introspect.ReasonStatus, Err: fmt.Errorf("%s: %s", r.what(), no.body)}
	}
	return Refused(r, no.status, no.body)
}
