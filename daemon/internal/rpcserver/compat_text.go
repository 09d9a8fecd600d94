package rpcserver

// textUnknownPod is the gRPC error of a DEL for a sandbox without allocations. If it contains
// "datastore: unknown pod", upstream's plugin reports success.
const textUnknownPod = "1 error occurred:\n\t* datastore: unknown pod\n\n"

// HealthService is ipamd's health service name besides "".
const HealthService = "grpc.health.v1.aws-node"
