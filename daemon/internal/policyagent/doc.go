// Package policyagent calls the node's network policy agent: a gRPC server of
// rpc.NPBackend that attaches its programs to a pod's host links, and forgets pods.
//
// Every call is bounded: two seconds to connect, as in upstream's plugin, and five in all.
// One connection is kept open. The caller decides which pods to report, and when.
package policyagent
