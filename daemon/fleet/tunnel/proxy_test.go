package tunnel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
)

// proxied answers like a node behind the API server's proxy.
func (p *peer) proxied(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/refused"):
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, statusBody(503, "ServiceUnavailable", "error trying to reach service: dial tcp 10.0.0.1:61679: connect: connection refused"))
	case strings.HasSuffix(r.URL.Path, "/absent"):
		http.Error(w, "the node's own words", http.StatusNotFound)
	case r.Header.Get("If-None-Match") == `"1"`:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("ETag", `"1"`)
		fmt.Fprintf(w, "%s?%s", r.URL.Path, r.URL.RawQuery)
	}
}

// TestProxy carries the requests of one connection, and returns the API server's refusal as
// the connection's error.
func TestProxy(t *testing.T) {
	t.Parallel()
	d := newPeer(t, nil).dialer(t, Options{})
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.Proxy(ctx, aPod, 61679) },
	}}
	defer client.CloseIdleConnections()
	get := func(path, etag string) (int, string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://node"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if etag != "" {
			req.Header.Set("If-None-Match", etag)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}
	want := "/api/v1/namespaces/kube-system/pods/aws-node-x:61679/proxy/v1/enis?a=b"
	if code, body, err := get("/v1/enis?a=b", ""); code != 200 || body != want || err != nil {
		t.Errorf("%d %q, %v", code, body, err)
	}
	if code, _, err := get("/v1/enis", `"1"`); code != http.StatusNotModified || err != nil {
		t.Errorf("%d, %v", code, err)
	}
	if code, body, err := get("/absent", ""); code != 404 || !strings.Contains(body, "own words") || err != nil {
		t.Errorf("%d %q, %v", code, body, err)
	}
	_, _, err := get("/refused", "")
	wantReason(t, err, introspect.ReasonRefused)
}

// TestProxy_Get: other methods are not forwarded.
func TestProxy_Get(t *testing.T) {
	t.Parallel()
	c, err := newPeer(t, nil).dialer(t, Options{}).Proxy(t.Context(), aPod, 1)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := bufio.NewReader(c).ReadByte(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("error %v", err)
	}
	c.Close()
}
