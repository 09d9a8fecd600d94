package tunnel

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
)

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

var aPod = Pod{Namespace: "kube-system", Name: "aws-node-x"}

// echo serves a port that returns what it receives.
func echo(t testing.TB) uint16 {
	t.Helper()
	return serve(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
}

func serve(t testing.TB, each func(net.Conn)) uint16 {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); each(c) }()
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// free returns a port without a listener.
func free(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// wantReason checks an error's reason, also through wrapping.
func wantReason(t *testing.T, err error, want introspect.Reason) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Reason != want {
		t.Fatalf("error %v, want reason %s", err, want)
	}
	return e
}

var protocols = []string{ProtocolWebSocket, ProtocolSPDY}

func each(t *testing.T, test func(t *testing.T, protocol string)) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) { t.Parallel(); test(t, protocol) })
	}
}

// TestDial carries bytes both ways, more than fits into one frame.
func TestDial(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		p := newPeer(t, nil)
		c, err := p.dialer(t, Options{Protocol: protocol}).Dial(t.Context(), aPod, echo(t))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		sent := make([]byte, 3<<20)
		rand.Read(sent)
		go func() { _, _ = c.Write(sent) }()
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(c, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, sent) {
			t.Error("other bytes came back")
		}
		if c.RemoteAddr().String() == "" || c.LocalAddr() == nil || p.upgraded(protocol) != 1 {
			t.Errorf("%v, %v, %v", c.RemoteAddr(), c.LocalAddr(), p.upgrades)
		}
	})
}

// TestDial_Refused: the node's port has no listener.
func TestDial_Refused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		c, err := newPeer(t, nil).dialer(t, Options{Protocol: protocol}).Dial(t.Context(), aPod, free(t))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
		if e := wantReason(t, err, introspect.ReasonRefused); e.Error() != "connection refused" {
			t.Errorf("says %q", e)
		}
		if _, again := c.Read(make([]byte, 1)); !errors.Is(again, err) {
			t.Errorf("and then %v", again)
		}
	})
}

// TestTunnel_ManyStreams: streams of one tunnel are independent, and end separately.
func TestTunnel_ManyStreams(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		p := newPeer(t, nil)
		tunnel, err := p.dialer(t, Options{Protocol: protocol}).Open(t.Context(), aPod)
		if err != nil {
			t.Fatal(err)
		}
		defer tunnel.Close()
		port := echo(t)
		var conns []net.Conn
		for i := range 10 {
			c, err := tunnel.Dial(t.Context(), port)
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			if _, err := c.Write([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		conns[3].Close()
		for i, c := range conns {
			var b [1]byte
			_, err := io.ReadFull(c, b[:])
			switch {
			case i == 3 && !errors.Is(err, net.ErrClosed):
				t.Errorf("a closed stream reads %v", err)
			case i != 3 && (err != nil || b[0] != byte(i)):
				t.Errorf("stream %d has %d, %v", i, b[0], err)
			}
		}
		for _, c := range conns {
			c.Close()
		}
		testenv.Eventually(t, "all streams to end on the other side", func() bool { return p.streams() == 0 })
		select {
		case <-tunnel.Done():
			t.Error("the tunnel ended with its streams")
		default:
		}
		tunnel.Close()
		<-tunnel.Done()
		if _, err := tunnel.Dial(t.Context(), port); err == nil {
			t.Error("a closed tunnel gives a stream")
		}
		if p.upgraded(protocol) != 1 {
			t.Errorf("%v", p.upgrades)
		}
	})
}

// TestDeadlines: blocked reads and writes end at their deadline, which can be moved.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		stuck := make(chan struct{})
		t.Cleanup(func() { close(stuck) })
		port := serve(t, func(c net.Conn) { <-stuck })
		c, err := newPeer(t, nil).dialer(t, Options{Protocol: protocol}).Dial(t.Context(), aPod, port)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		check := func(what string, err error) {
			t.Helper()
			var timeout net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("%s: %v", what, err)
			}
		}
		_ = c.SetReadDeadline(time.Unix(1, 0))
		_, err = c.Read(make([]byte, 1))
		check("read after the deadline", err)
		_ = c.SetReadDeadline(testenv.Soon())
		_, err = c.Read(make([]byte, 1))
		check("read", err)
		_ = c.SetDeadline(time.Time{})
		done := make(chan error, 1)
		go func() { _, err := c.Read(make([]byte, 1)); done <- err }()
		_ = c.SetReadDeadline(testenv.Soon()) // during the read
		check("read under way", <-done)
		_ = c.SetWriteDeadline(testenv.Soon())
		for err = nil; err == nil; { // until all buffers on the way are full
			_, err = c.Write(make([]byte, 1<<20))
		}
		check("write", err)
	})
}

// TestDial_Context: a dial ends with its context, and the error says whether it was
// cancelled or timed out.
func TestDial_Context(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		hang := make(chan struct{})
		asked := make(chan struct{}, 8)
		p := newPeer(t, func(r *http.Request) (int, string) { asked <- struct{}{}; <-hang; return 0, "" })
		t.Cleanup(func() { close(hang) })
		d := p.dialer(t, Options{Protocol: protocol})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		_, err := d.Dial(ctx, aPod, 1)
		wantReason(t, err, introspect.ReasonCancelled)
		ctx, cancel = context.WithDeadline(t.Context(), testenv.Soon())
		defer cancel()
		_, err = d.Dial(ctx, aPod, 1)
		wantReason(t, err, introspect.ReasonTimeout)
	})
}

// TestProtocol_Fallback: if only the WebSocket is refused, SPDY is tried and remembered; a
// refusal that applies to both prevents that.
func TestProtocol_Fallback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code     int
		body     string
		fallback bool
		reason   introspect.Reason
	}{
		"an API server before 1.30": {http.StatusBadRequest, "query parameter \"port\" is required", true, ""},
		"the verb create alone":     {http.StatusForbidden, statusBody(403, "Forbidden", `pods "x" is forbidden`), true, ""},
		"a proxy":                   {http.StatusBadGateway, "<html>", true, ""},
		"no pod":                    {http.StatusNotFound, statusBody(404, "NotFound", `pods "x" not found`), false, introspect.ReasonNoPod},
		"no kubelet":                {http.StatusInternalServerError, statusBody(500, "InternalError", "error dialing backend: dial tcp 10.0.0.1:10250: connect: no route to host"), false, introspect.ReasonTimeout},
		"expired":                   {http.StatusUnauthorized, statusBody(401, "Unauthorized", "Unauthorized"), false, introspect.ReasonCredential},
		"too much":                  {http.StatusTooManyRequests, "", false, introspect.ReasonBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan string, 9)
			p := newPeer(t, func(r *http.Request) (int, string) {
				asked <- r.Method
				if r.Method == http.MethodGet {
					return c.code, c.body
				}
				return 0, ""
			})
			d, port := p.dialer(t, Options{}), echo(t)
			for range 2 {
				conn, err := d.Dial(t.Context(), aPod, port)
				if c.fallback != (err == nil) {
					t.Fatalf("fallback %v, error %v", c.fallback, err)
				}
				if err != nil {
					wantReason(t, err, c.reason)
					continue
				}
				conn.Close()
			}
			close(asked)
			var methods []string
			for m := range asked {
				methods = append(methods, m)
			}
			want := "GET GET"
			if c.fallback {
				want = "GET POST POST"
			}
			if got := strings.Join(methods, " "); got != want {
				t.Errorf("asked by %s, want %s", got, want)
			}
		})
	}
}

// TestForbidden: the error names the missing rule.
func TestForbidden(t *testing.T) {
	t.Parallel()
	p := newPeer(t, func(*http.Request) (int, string) { return 403, statusBody(403, "Forbidden", "no") })
	_, err := p.dialer(t, Options{}).Dial(t.Context(), aPod, 1)
	e := wantReason(t, err, introspect.ReasonForbidden)
	if e.Verb != "create" || e.Resource != "pods/portforward" || e.Namespace != "kube-system" || !e.Hopeless() {
		t.Errorf("%+v", e)
	}
	if want := `not allowed: the user lacks the verb "create" on pods/portforward in namespace kube-system`; e.Error() != want {
		t.Errorf("says %q", e)
	}
}

// TestDial_NoServer: each failure on the way to the API server has its own reason.
func TestDial_NoServer(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil)
	for name, c := range map[string]struct {
		change func(host *string, ca *[]byte)
		reason introspect.Reason
	}{
		"no listener":       {func(host *string, _ *[]byte) { *host = "https://127.0.0.1:1" }, introspect.ReasonTransport},
		"another authority": {func(_ *string, ca *[]byte) { *ca = nil }, introspect.ReasonCredential},
		"no TLS":            {func(host *string, _ *[]byte) { *host = strings.Replace(*host, "https", "http", 1) }, introspect.ReasonStatus},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := p.config()
			c.change(&cfg.Host, &cfg.CAData)
			d, err := New(cfg, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			_, err = d.Dial(t.Context(), aPod, 1)
			wantReason(t, err, c.reason)
		})
	}
}

// TestDial_PeerGone: the API server disappears during a read.
func TestDial_PeerGone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		p := newPeer(t, nil)
		c, err := p.dialer(t, Options{Protocol: protocol}).Dial(t.Context(), aPod, echo(t))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		p.cut()
		_, err = c.Read(make([]byte, 1))
		wantReason(t, err, introspect.ReasonTransport)
	})
}

func indexOf(b []byte, s string) int { return bytes.Index(b, []byte(s)) }
