package kubeapi_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"cnictl/testenv"
	"cnictl/testenv/kubeapi"
)

// expiring returns a context that ends soon: to see that something does not happen. A slow
// machine cannot make that fail.
func expiring(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), testenv.Soon())
	t.Cleanup(cancel)
	return ctx
}

// get requests /version through a proxy. Calls may reuse earlier connections.
func get(ctx context.Context, c *http.Client, p *kubeapi.Proxy) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.Addr()+"/version", nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func proxied(t *testing.T, listener net.Listener) (*kubeapi.Proxy, *http.Client) {
	t.Helper()
	p := kubeapi.Shared(t).Proxy(t, listener)
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig(t, "aws-node"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := get(t.Context(), client, p); err != nil {
		t.Fatalf("through an honest proxy: %v", err)
	}
	return p, client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestProxy_Refuse(t *testing.T) {
	t.Run("any port", func(t *testing.T) { testRefuse(t, nil) })
	t.Run("a port", func(t *testing.T) { testRefuse(t, listenAgain(t, "127.0.0.1:0")) })
	t.Run("IPv6", func(t *testing.T) { testRefuse(t, listenAgain(t, "[::1]:0")) })
}

// listenAgain listens on an explicit port, one that was free a moment ago.
func listenAgain(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	must(t, err)
	address = l.Addr().String()
	must(t, l.Close())
	l, err = net.Listen("tcp", address)
	must(t, err)
	return l
}

func testRefuse(t *testing.T, listener net.Listener) {
	p, client := proxied(t, listener)
	for range 3 {
		must(t, p.Refuse())
		must(t, p.Refuse()) // repeating it is allowed
		if n := p.Connections(); n != 0 {
			t.Errorf("%d connections outlive a server that is gone", n)
		}
		// The client may first notice that its connection was cut.
		if err := get(t.Context(), client, p); err == nil {
			t.Error("a server that is gone answers")
		}
		if err := get(t.Context(), client, p); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("want the kernel to refuse, have %v", err)
		}
		must(t, p.Restore())
		if err := get(t.Context(), client, p); err != nil {
			t.Errorf("back again: %v", err)
		}
	}
}

func TestProxy_Hang(t *testing.T) {
	p, client := proxied(t, nil)
	must(t, p.Hang())
	if err := get(expiring(t), client, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("on a connection that there was: want silence, have %v", err)
	}
	if err := get(expiring(t), client, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("on a new connection: want silence, have %v", err)
	}
	answered := make(chan error, 1)
	go func() { answered <- get(t.Context(), client, p) }()
	must(t, p.Restore())
	if err := <-answered; err != nil {
		t.Errorf("what was held back is not passed on: %v", err)
	}
}

func TestProxy_Slow(t *testing.T) {
	p, client := proxied(t, nil)
	const delay = 150 * time.Millisecond
	must(t, p.Slow(delay))
	took := testenv.Took(func() {
		if err := get(t.Context(), client, p); err != nil {
			t.Fatal(err)
		}
	})
	if took < 2*delay {
		t.Errorf("took %v, want the delay of both directions, %v", took, 2*delay)
	}
}

func TestProxy_Cut(t *testing.T) {
	p, _ := proxied(t, nil)
	conn, err := net.Dial("tcp", p.Addr())
	must(t, err)
	defer conn.Close()
	testenv.Eventually(t, "the connections", func() bool { return p.Connections() >= 2 }) // this one and the client's
	p.Cut()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("want a reset, have %v", err)
	}
	again, err := net.Dial("tcp", p.Addr())
	must(t, err)
	again.Close()
}

// TestProxy_HangThenCut: connections made while the server is silent are cut like any other.
func TestProxy_HangThenCut(t *testing.T) {
	p, _ := proxied(t, nil)
	must(t, p.Hang())
	p.Cut()
	conn, err := net.Dial("tcp", p.Addr())
	must(t, err)
	defer conn.Close()
	testenv.Eventually(t, "the connection", func() bool { return p.Connections() >= 1 })
	p.Cut()
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) || err == nil {
		t.Errorf("want a reset, have %v", err)
	}
}
