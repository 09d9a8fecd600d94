// Package grpcwire is what one gRPC call over one connection needs of HTTP/2, HPACK and
// protobuf, for a client that must not link grpc: the plugin calls a daemon or a policy
// agent of upstream with it.
//
// [Call] is the client's half of a unary call without its socket: bytes of the server go
// in, bytes for the server come out. The Append and Decode functions are the messages
// of daemon/api/cnirpc. Servers are taken to be hostile: what one connection may make the
// client keep is bounded, and no input makes it panic.
//
// It must not do I/O, read the clock, or import more of the standard library than
// cniwire does: it is linked into a program that starts once per pod.
package grpcwire
