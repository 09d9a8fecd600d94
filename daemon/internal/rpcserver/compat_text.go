package rpcserver

// textUnknownPod is the gRPC error of a DEL for a sandbox that nothing is held for.
// Upstream's plugin looks for "datastore: unknown pod" in it and then reports
// success (spec/plugin.md §4.3).
const textUnknownPod = "1 error occurred:\n\t* datastore: unknown pod\n\n"

// HealthService is the health service name of ipamd beside "".
const HealthService = "grpc.health.v1.aws-node"
