package tunnel

import (
	"context"
	"errors"
	"net"

	"k8s.io/client-go/rest"
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

// Pod names a pod.
type Pod struct{ Namespace, Name string }

// Dialer makes tunnels through one API server. It is safe for concurrent use.
type Dialer struct{}

// New builds a dialer; it does not connect.
func New(cfg *rest.Config, opts Options) (*Dialer, error) { return &Dialer{}, nil }

// Close ends idle connections; tunnels are their owners'.
func (d *Dialer) Close() {}

var errUnbuilt = errors.New("not built")

// Dial opens a tunnel with one stream to a port of the pod's network namespace. Closing
// the stream closes both.
func (d *Dialer) Dial(ctx context.Context, pod Pod, port uint16) (net.Conn, error) {
	return nil, errUnbuilt
}

// Open makes a tunnel for many streams.
func (d *Dialer) Open(ctx context.Context, pod Pod) (*Tunnel, error) { return nil, errUnbuilt }

// Tunnel is an upgraded connection to one pod.
type Tunnel struct{}

// Dial opens a stream.
func (t *Tunnel) Dial(ctx context.Context, port uint16) (net.Conn, error) { return nil, errUnbuilt }

// Done is closed when the tunnel has ended, by Close or because it broke.
func (t *Tunnel) Done() <-chan struct{} { return nil }

// Close ends the tunnel with all its streams.
func (t *Tunnel) Close() error { return nil }

// Exec runs a program in a container, with its standard input and output as the stream.
func (d *Dialer) Exec(ctx context.Context, pod Pod, container string, argv []string) (net.Conn, error) {
	return nil, errUnbuilt
}

// Proxy gives a connection that speaks HTTP/1.1 and whose requests go through the API
// server's proxy to a port of the pod's address. GET alone is passed on.
func (d *Dialer) Proxy(ctx context.Context, pod Pod, port uint16) (net.Conn, error) {
	return nil, errUnbuilt
}
