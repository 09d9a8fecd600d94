package kube

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/tunnel"
)

// maxMetrics limits the size of a node's metrics in bytes.
const maxMetrics = 4 << 20

// metrics reads a node's metrics over a separate connection.
func metrics(ctx context.Context, dial func(context.Context, uint16) (net.Conn, error)) ([]byte, error) {
	c, err := dial(ctx, MetricsPort)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://node/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	if err := req.Write(c); err != nil {
		return nil, tunnel.Failed(ctx, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		return nil, tunnel.Failed(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, &Error{Reason: introspect.ReasonStatus, Err: fmt.Errorf("answered HTTP status %d to /metrics", resp.StatusCode)}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMetrics+1))
	switch {
	case err != nil:
		return nil, tunnel.Failed(ctx, err)
	case len(text) > maxMetrics:
		return nil, &Error{Reason: introspect.ReasonTooLarge, Err: fmt.Errorf("the metrics are larger than %d MiB", maxMetrics>>20)}
	}
	return text, nil
}
