// Package tunnel opens streams into a pod's network namespace through the Kubernetes API
// server and the kubelet, like "kubectl port-forward" but without a local port; it needs no
// network rule either. It reaches servers on the node's loopback because aws-node's pod uses
// the host network.
//
// A tunnel is one upgraded connection, over WebSocket or, if that upgrade fails, SPDY/3.1. Each
// stream in it is a [net.Conn] with working deadlines. [Dialer.Exec] makes such a stream from
// the standard input and output of a program, [Dialer.Proxy] from the API server's proxy to a
// pod.
//
// A sweep opens thousands of tunnels, so WebSocket tunnels are cheap: gorilla/websocket does the
// upgrade, with pooled buffers, and a minimal mux (decision 023) speaks the part of SPDY that a
// forwarded port needs. It unpacks no headers, holds no tables and runs one goroutine. The
// fallback, SPDY without a WebSocket, uses moby/spdystream, and execs use client-go. This
// package adds only what those libraries lack:
//
//   - Neither dials nor streams have contexts or deadlines: shake limits an upgrade, and a
//     net.Pipe in front of each stream of a session provides deadlines. An expired deadline
//     ends a read or a write; the stream continues. (In a mux, a deadline that expires during
//     a write ends the tunnel.)
//   - net/http does the upgrade to SPDY, because client-go leaks a connection with each refusal
//     and cannot be interrupted while it waits for the response.
//   - A session uses spdystream directly, because apimachinery's wrapper limits neither the
//     size of unpacked headers nor how much a peer sends before it is read.
//
// A WebSocket tunnel costs the client about 30 KiB and one goroutine, a SPDY tunnel about 1 MiB
// and a dozen (BenchmarkTunnel).
//
// The context limits a dial. When Close of a tunnel returns, its connection is closed. Its
// goroutines end soon after: within a second for a stream that the peer never answered, within
// [handshakeLimit] if they wait for a peer that accepts no data. Closing an exec ends its input,
// and one second later its connection; client-go's heartbeat checks for the connection every
// five seconds.
package tunnel
