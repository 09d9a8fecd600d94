// Package cnirpc is the gRPC contract between ipamd, the CNI plugin and the network policy
// agent: rpc.proto and the code generated from it.
//
// Binaries of the Amazon VPC CNI must work on either side, so the package name, services,
// field names and numbers are fixed; our additions start at 100. Field names in the .proto
// are not lower case because reflection and logs show them. The plugin must not import this
// package (it starts once per pod and links neither grpc nor protobuf): it speaks
// daemon/api/cniwire.
package cnirpc

//go:generate protogen rpc.proto
