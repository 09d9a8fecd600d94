package tunnel

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"cnictl/daemon/api/introspect"
)

// Proxy returns a connection that speaks HTTP/1.1 and forwards its requests through the API
// server's proxy to a port of the pod's address. Only GET is forwarded. It works if the daemon
// listens on the node's address and the control plane can reach that.
func (d *Dialer) Proxy(ctx context.Context, pod Pod, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // ends with the connection
	p := newPipe(addr{pod, "proxy " + strconv.Itoa(int(port))}, cancel)
	go func() { p.finish(d.proxy(ctx, pod, port, p.far)) }()
	return p, nil
}

// proxy serves requests until the other end closes; it returns an error if the API server
// refuses.
func (d *Dialer) proxy(ctx context.Context, pod Pod, port uint16, c net.Conn) error {
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return nil // closed
		}
		if req.Method != http.MethodGet {
			return fmt.Errorf("the proxy supports only GET, not %s", req.Method)
		}
		if err := d.proxyOne(ctx, pod, port, req, c); err != nil {
			return err
		}
	}
}

func (d *Dialer) proxyOne(ctx context.Context, pod Pod, port uint16, req *http.Request, to io.Writer) error {
	u := d.front.url(fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy", url.PathEscape(pod.Namespace), url.PathEscape(pod.Name), port), nil)
	u = u.JoinPath(req.URL.EscapedPath())
	u.RawQuery = req.URL.RawQuery
	header := http.Header{}
	for _, name := range []string{"User-Agent", "If-None-Match", "Accept", "Accept-Encoding"} {
		if v := req.Header.Get(name); v != "" {
			header.Set(name, v)
		}
	}
	d.requests.Add(1)
	resp, err := d.front.get(ctx, u, header)
	if err != nil {
		return Failed(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // use whatever arrived
		if said, own := readStatus(body); own {
			return proxyRefused(pod, resp.StatusCode, body, said)
		}
		resp.Body = io.NopCloser(bytes.NewReader(body)) // the node's own response
		resp.ContentLength = int64(len(body))
	}
	return resp.Write(to)
}

// proxyRefused returns the error for a proxy request that the API server itself rejected.
func proxyRefused(pod Pod, code int, body []byte, said status) error {
	e := Refused(Request{Verb: "get", Resource: "pods/proxy", Namespace: pod.Namespace, Name: pod.Name}, code, body)
	if containsAny(said.Message, "connection refused") {
		e.Reason, e.Err = introspect.ReasonRefused, fmt.Errorf("the control plane's connection to the node's address was refused; --via port-forward reaches its loopback")
	}
	return e
}
