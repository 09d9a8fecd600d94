package netns

import (
	"bytes"
	"context"
	"io"
	"net/netip"
	"sync"
	"time"
)

// Flood attacks an HTTP server of the namespace as any of its clients can, until ctx ends: it holds many
// requests open whose headers, 900 kB each, do not end. What the server closes is opened again, at
// most once a second. Beside them, four connections scrape without a pause.
func (n *NS) Flood(ctx context.Context, to netip.AddrPort, connections int) {
	request := append([]byte("GET /metrics HTTP/1.1\r\nHost: x\r\nX-Long: "), bytes.Repeat([]byte{'x'}, 900<<10)...)
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			again := time.NewTicker(time.Second)
			defer again.Stop()
			for ctx.Err() == nil {
				if conn, err := n.Dial(ctx, "tcp", netip.Addr{}, to); err == nil {
					stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
					_, _ = conn.Write(request)
					_, _ = io.Copy(io.Discard, conn) // until one of the two closes it
					stop()
					_ = conn.Close()
				}
				select {
				case <-again.C:
				case <-ctx.Done():
				}
			}
		})
	}
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				if conn, err := n.Dial(ctx, "tcp", netip.Addr{}, to); err == nil {
					stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
					_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
					_, _ = io.Copy(io.Discard, conn)
					stop()
					_ = conn.Close()
				}
			}
		})
	}
	all.Wait()
}
