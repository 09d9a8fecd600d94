// Package npa simulates a node's network policy agent: a gRPC server of rpc.NPBackend on a
// Unix socket that looks for a pod's host links as the agent does, records its calls and does
// nothing to packets.
//
// It is as strict as the agent: unknown modes and missing links are errors. Agent.SetFault
// makes the agent refuse, fail, delay or hang calls; closing it simulates an agent that is down.
package npa
