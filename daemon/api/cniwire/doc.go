// Package cniwire is the lean protocol between the CNI plugin and the daemon: one
// length-prefixed request and one length-prefixed reply per connection to the Unix socket
// [Socket]. It exists because linking grpc would cost every pod start more than the call
// itself. It uses only the standard library. Unknown fields are skipped, so either side may
// be newer.
package cniwire
