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
// The protocols are spoken here rather than by client-go's dialers: those take no context,
// give streams without deadlines, and cost ten goroutines and a MiB for each tunnel, which
// counts where five thousand nodes are read one after another. Configuration, credentials
// and TLS are client-go's.
//
// A dial is bounded by its context. When a tunnel is closed, its connection and its one
// goroutine are gone before Close returns, but for what a peer can delay: an upgrade under
// way is abandoned and ends within [handshakeLimit].
package tunnel
