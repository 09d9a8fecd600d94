// Package rpcserver serves the CNI plugin: the gRPC services of daemon/api/cnirpc on one
// Unix socket, for upstream's plugin and policy agent, and the lean protocol of
// daemon/api/cniwire on another, for our plugin. Both call the same [Backend].
//
// A socket gets its name only once its mode is set, and a socket on which another process
// still answers is left alone. Requests, frames, time and concurrency are bounded. When
// Serve's context ends, nothing new is accepted, and requests in progress are answered
// within at most [Options.DrainLimit].
//
// The package decides nothing: it only translates requests, and never rejects a client for
// its version, since both versions call during an update.
package rpcserver
