// Package npa is a stand-in for the network policy agent of a node: a gRPC server of
// rpc.NPBackend on a Unix socket that looks for a pod's host links as the agent does,
// records its calls and does nothing to packets.
//
// It is as strict as the agent: an unknown mode and a missing link are errors. Agent.SetFault
// makes calls be refused, fail, wait or hang; closing it simulates an agent that is down.
package npa
