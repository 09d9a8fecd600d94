// Package tunnel makes streams into a pod's network namespace through the Kubernetes API
// server and the kubelet, without a local port and without a rule for the network: the
// way of "kubectl port-forward". What runs on the node's loopback is reached because
// aws-node's pod has the node's network.
//
// A tunnel is one upgraded connection, by WebSocket or, where the upgrade fails, by
// SPDY/3.1; a stream in it is a [net.Conn] whose deadlines work. An [Dialer.Exec] is a
// program's standard input and output as such a stream, an [Dialer.Proxy] the API server's
// proxy to a pod.
//
// A sweep makes thousands of tunnels, so those in WebSockets are made to be cheap: the
// upgrade is gorilla/websocket's with its buffers pooled, and what a forwarded port takes
// of SPDY in it is a mux of ours (decision 023), which unpacks no headers, holds no tables
// and has one goroutine. SPDY without a WebSocket, to which a dial falls back, is
// moby/spdystream's, and execs are client-go's. What those do not give is made around them,
// and no more:
//
//   - Neither dials nor streams have contexts or deadlines: shake bounds an upgrade, and a
//     net.Pipe before each stream of a session has the deadlines. One that passes ends a
//     read or a write; the stream goes on. (In a mux a deadline that passes while a write
//     is under way ends the tunnel.)
//   - The upgrade to SPDY is net/http's, because client-go's leaves a connection behind
//     with each refusal and does not stop waiting for an answer.
//   - A session holds spdystream directly, because apimachinery's form of it bounds neither
//     what headers unpack to nor what a peer sends before it is read.
//
// A tunnel in a WebSocket costs its client some 30 KiB and a goroutine, one without about a
// MiB and a dozen (BenchmarkTunnel).
//
// A dial is bounded by its context. A closed tunnel's connection is closed when Close
// returns; its goroutines end soon after, those of a stream that the peer never answered
// within a second, those that wait for a peer which takes nothing within [handshakeLimit].
// A closed exec has its input ended, and a second later its connection; client-go's
// heartbeat of it looks every five seconds whether there is one.
package tunnel
