// Package rpcserver serves the CNI plugin: the gRPC services of daemon/api/cnirpc
// on one Unix socket, as the Amazon VPC CNI's plugin and policy agent call them, and
// the lean protocol of daemon/api/cniwire on another, as our plugin does. Both ends
// lead to the same [Backend].
//
// A socket appears under its name only when its mode is set, and a socket on which
// another process still answers is left alone. Requests, frames, time and concurrency
// are bounded. When the context of Serve ends, nothing new is accepted and the
// requests in progress get their answer, for [Options.DrainLimit] at most.
//
// It decides nothing: it must not look into requests beyond translating them, and
// never rejects a client for its version, since during an update both versions call.
package rpcserver
