// Package cniwire is the lean protocol between the CNI plugin and the daemon:
// one length-prefixed request and one length-prefixed reply per connection of the
// Unix socket [Socket]. It exists because linking grpc costs every pod start more
// than the call itself. Standard library only; unknown fields are skipped, so
// either side may be newer.
package cniwire
