// Package cnirpc is the gRPC contract between ipamd, the CNI plugin and the
// network policy agent: rpc.proto and the code generated from it.
//
// Binaries of the Amazon VPC CNI must be able to stand on either side, so package
// name, services, field names and numbers are fixed; what we add starts at 100.
// Field names are not lower case in the .proto because reflection and logs show
// them. The plugin must not import this package (it starts once per pod and links
// neither grpc nor protobuf): it speaks daemon/api/cniwire.
package cnirpc

//go:generate protogen rpc.proto
