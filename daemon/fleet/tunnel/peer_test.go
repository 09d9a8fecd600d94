package tunnel

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/spdystream"
	"golang.org/x/net/websocket"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
)

// peer answers like an API server with a kubelet behind it, and uses their SPDY
// implementation. It connects streams to ports of the test's own host.
type peer struct {
	*httptest.Server
	refuse func(r *http.Request) (code int, body string) // before any upgrade; code 0 accepts

	mu       sync.Mutex // guards all fields below
	upgrades map[string]int
	open     int // streams
	conns    []net.Conn
}

func newPeer(t testing.TB, refuse func(*http.Request) (int, string)) *peer {
	t.Helper()
	p := &peer{refuse: refuse, upgrades: map[string]int{}}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.Config.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateNew {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.conns = append(p.conns, c)
		}
	}
	p.StartTLS()
	t.Cleanup(p.Close)
	t.Cleanup(p.cut)
	return p
}

// cut breaks all connections, like a machine that disappears.
func (p *peer) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.(*tls.Conn).NetConn().Close()
	}
}

// running counts a stream until done is called.
func (p *peer) running() (done func()) {
	add := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open += n
	}
	add(1)
	return func() { add(-1) }
}

func (p *peer) config() *rest.Config {
	return &rest.Config{Host: p.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{CAData: pemOf(p.Certificate())}}
}

func (p *peer) dialer(t testing.TB, o Options) *Dialer {
	t.Helper()
	// Without a limit of its own: the peer shares the CPU with whatever else runs.
	o.HandshakeLimit = cmp.Or(o.HandshakeLimit, time.Hour)
	d, err := New(p.config(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func (p *peer) count(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upgrades[what]++
}

func (p *peer) upgraded(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upgrades[what]
}

func (p *peer) streams() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

func (p *peer) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer token" {
		http.Error(w, "who?", http.StatusUnauthorized)
		return
	}
	if p.refuse != nil {
		if code, body := p.refuse(r); code != 0 {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
			return
		}
	}
	switch {
	case strings.Contains(r.URL.Path, "/proxy/"):
		p.proxied(w, r)
	case strings.HasSuffix(r.URL.Path, "/exec") && r.Method == http.MethodGet:
		p.count("exec " + ProtocolWebSocket)
		websocket.Server{
			Handshake: func(c *websocket.Config, _ *http.Request) error { c.Protocol = c.Protocol[:1]; return nil },
			Handler:   func(ws *websocket.Conn) { p.execChannels(ws, r.URL.Query()["command"]) },
		}.ServeHTTP(w, r)
	case strings.HasSuffix(r.URL.Path, "/exec"):
		p.count("exec " + ProtocolSPDY)
		w.Header().Set(httpstream.HeaderProtocolVersion, "v4.channel.k8s.io")
		p.execStreams(w, r)
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		p.count(ProtocolWebSocket)
		websocket.Server{
			Handshake: func(c *websocket.Config, _ *http.Request) error {
				c.Protocol = []string{portforward.WebsocketsSPDYTunnelingPortForwardV1}
				return nil
			},
			Handler: func(ws *websocket.Conn) {
				ws.PayloadType = websocket.BinaryFrame
				p.session(ws)
			},
		}.ServeHTTP(w, r)
	case r.Method == http.MethodPost:
		p.count(ProtocolSPDY)
		w.Header().Set(httpstream.HeaderProtocolVersion, portforward.PortForwardV1Name)
		s := &server{peer: p, pairs: map[string]*pair{}}
		c := spdy.NewResponseUpgrader().UpgradeResponse(w, r, s.accept)
		if c != nil {
			<-c.CloseChan()
			c.Close()
		}
	default:
		http.Error(w, "no such thing", http.StatusNotFound)
	}
}

func (p *peer) session(raw net.Conn) {
	s := &server{peer: p, pairs: map[string]*pair{}}
	c, err := spdy.NewServerConnection(raw, s.accept)
	if err != nil {
		return
	}
	<-c.CloseChan()
	c.Close()
}

// server is one SPDY connection.
type server struct {
	peer  *peer
	mu    sync.Mutex // guards pairs
	pairs map[string]*pair
}

type pair struct{ data, fault httpstream.Stream }

func (s *server) accept(stream httpstream.Stream, _ <-chan struct{}) error {
	if err := stream.(*spdystream.Stream).SendReply(http.Header{}, false); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := stream.Headers()
	id := h.Get("requestID")
	if s.pairs[id] == nil {
		s.pairs[id] = &pair{}
	}
	switch h.Get("streamType") {
	case "data":
		s.pairs[id].data = stream
	case "error":
		s.pairs[id].fault = stream
	default:
		return fmt.Errorf("stream of type %q", h.Get("streamType"))
	}
	if p := s.pairs[id]; p.data != nil && p.fault != nil {
		done := s.peer.running()
		go func() {
			defer done()
			s.forward(p, h.Get("port"))
		}()
	}
	return nil
}

// forward does what a container runtime does.
func (s *server) forward(p *pair, port string) {
	defer p.data.Close()
	defer p.fault.Close()
	c, err := net.Dial("tcp4", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintf(p.fault, "error forwarding port %s to pod x, uid : failed to connect to localhost:%s inside namespace: %v", port, port, err)
		return
	}
	defer c.Close()
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(c, p.data); done <- struct{}{} }()
	go func() { _, _ = io.Copy(p.data, c); done <- struct{}{} }()
	<-done
}

func statusBody(code int, reason, message string) string {
	b, _ := json.Marshal(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code})
	return string(b)
}
