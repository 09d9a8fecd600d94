// Package rpcclient calls the gRPC servers of upstream from a plugin that does not
// link grpc: its daemon, while a node is being updated and no daemon of ours listens,
// and its network policy agent, for such a daemon. A call has a connection of its own.
//
// Errors have the texts of grpc-go, because what the plugin reports ends up in events
// that people and programs search. It must not link more than plugin/vpc does.
package rpcclient
