// Package npa is a stand-in for the network policy agent of a node: a gRPC server of
// rpc.NPBackend on a Unix socket that looks for a pod's host links as the agent does,
// records its calls and does nothing to packets.
//
// It is strict where the agent is: a mode that is none of its own and a link that is not
// there are errors. Agent.SetFault lets calls be refused, fail, wait or hang; closing it
// simulates an agent that is away.
package npa
