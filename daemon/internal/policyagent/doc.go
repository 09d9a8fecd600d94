// Package policyagent calls the network policy agent of the node: a gRPC server of
// rpc.NPBackend that attaches its programs to a pod's host links, and forgets them.
//
// Every call ends: it waits for a connection for two seconds, as upstream's plugin
// does, and takes five in all. One connection is kept. It decides nothing about pods: who
// is sent and when is its caller's.
package policyagent
