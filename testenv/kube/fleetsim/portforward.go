package fleetsim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/spdystream"
	"golang.org/x/net/websocket"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/apimachinery/pkg/util/portforward"
)

// podOf returns the node of the pod whose subresource is requested, or nil if the pod has no
// open ports, as all pods but aws-node.
func (s *Sim) podOf(q request) (*node, error) {
	if n := s.byPod[q.name]; n != nil && q.namespace == systemNamespace && n.hasPod() && s.present(n) {
		return n, nil
	}
	if s.lookup(request{resource: q.resource, namespace: q.namespace, name: q.name}) != nil {
		return nil, nil
	}
	return nil, apierrors.NewNotFound(q.resource.groupResource(), q.name)
}

// portForward serves pods/portforward: SPDY, bare or inside a WebSocket.
func (s *Sim) portForward(w http.ResponseWriter, r *http.Request, q request) error {
	n, err := s.podOf(q)
	if err != nil {
		return err
	}
	if !wait(r.Context(), s.opts.Latency) {
		return nil
	}
	f := &forwarder{sim: s, node: n, pod: q.name, pairs: map[string]pair{}}
	f.ctx, f.cancel = context.WithCancel(s.ctx)
	defer f.cancel()
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return f.serveWebSocket(w, r)
	}
	if r.Header.Get("Upgrade") == "" {
		return apierrors.NewBadRequest("Upgrade request required")
	}
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardV1Name}); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, f.accept)
	if conn == nil {
		return nil // it has answered
	}
	f.serve(conn)
	return nil
}

func (f *forwarder) serveWebSocket(w http.ResponseWriter, r *http.Request) error {
	if !offers(r, portforward.WebsocketsSPDYTunnelingPortForwardV1) {
		return apierrors.NewBadRequest("unable to upgrade: no tunneling spdy protocols provided")
	}
	websocket.Server{
		Handshake: func(c *websocket.Config, _ *http.Request) error {
			c.Protocol = []string{portforward.WebsocketsSPDYTunnelingPortForwardV1}
			return nil
		},
		Handler: func(ws *websocket.Conn) {
			ws.PayloadType = websocket.BinaryFrame
			conn, err := spdy.NewServerConnection(ws, f.accept)
			if err != nil {
				return
			}
			f.serve(conn)
		},
	}.ServeHTTP(w, r)
	return nil
}

// offers reports whether a client speaks a WebSocket subprotocol.
func offers(r *http.Request, protocol string) bool {
	for _, line := range r.Header.Values("Sec-Websocket-Protocol") {
		for p := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(p) == protocol {
				return true
			}
		}
	}
	return false
}

// forwarder serves the streams of one connection.
type forwarder struct {
	sim    *Sim
	node   *node // nil if nothing listens there
	pod    string
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	mu      sync.Mutex // guards pairs and ended
	pairs   map[string]pair
	ended   bool // no new streams start: serve waits for the running ones
	streams sync.WaitGroup
}

// pair holds the streams of one request that have arrived so far.
type pair struct{ data, failure httpstream.Stream }

// serve returns when the connection has ended.
func (f *forwarder) serve(conn httpstream.Connection) {
	select {
	case <-conn.CloseChan():
	case <-f.sim.ctx.Done():
	}
	f.cancel()
	_ = conn.Close() // it may be closed already
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.streams.Wait()
}

// accept is called for every new stream: one for errors and one for data, per request.
func (f *forwarder) accept(s httpstream.Stream, _ <-chan struct{}) error {
	port, err := strconv.Atoi(s.Headers().Get(corev1.PortHeader))
	if err != nil || port < 1 || port > 65535 {
		return fmt.Errorf("%q header required", corev1.PortHeader)
	}
	id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return errors.New("the connection has ended")
	}
	p := f.pairs[id]
	switch kind := s.Headers().Get(corev1.StreamType); {
	case kind == corev1.StreamTypeError && p.failure == nil:
		p.failure = s
	case kind == corev1.StreamTypeData && p.data == nil:
		p.data = s
	default:
		return fmt.Errorf("invalid stream type %q", kind)
	}
	// Reply before anything else uses the stream: if the reply cannot be sent, spdystream
	// records that without a lock when the peer's reset arrives.
	if err := s.(*spdystream.Stream).SendReply(http.Header{}, false); err != nil {
		return err
	}
	if p.failure == nil || p.data == nil {
		f.pairs[id] = p // either can come first: each has a goroutine
		return nil
	}
	delete(f.pairs, id)
	f.streams.Go(func() { f.forward(port, p.data, p.failure) })
	return nil
}

// forward connects a data stream to a port of the node.
func (f *forwarder) forward(port int, data, failure httpstream.Stream) {
	defer func() {
		_ = data.Close() // both may be closed already
		_ = failure.Close()
	}()
	if f.node == nil || f.node.refuses(port) != "" {
		_, _ = fmt.Fprintf(failure, "an error occurred forwarding %d -> %d: error forwarding port %d to pod %s, uid : failed to execute portforward in network namespace \"host\": failed to connect to localhost:%d inside namespace \"host\", IPv4: dial tcp4 127.0.0.1:%d: connect: connection refused IPv6 dial tcp6: address localhost: no suitable address found ", port, port, port, f.pod, port, port)
		return
	}
	if f.node.has(Dead) {
		_, _ = io.Copy(io.Discard, data) // until the client gives up
		return
	}
	conn, err := f.sim.streams.open(f.ctx, f.node, port)
	if err != nil {
		return
	}
	defer context.AfterFunc(f.ctx, func() { _ = conn.Close() })()
	join(conn, data)
}
