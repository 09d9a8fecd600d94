// Package rpcclient makes one gRPC call for the plugin: to upstream's daemon, while a node
// is being updated and our daemon is not listening, or to the network policy agent next to
// such a daemon. It is the program aws-cni-grpc, which the plugin runs only for that call:
// linked into the plugin, grpc would cost every pod more than its ADD.
//
// Request and reply are messages of daemon/api/cniwire. Errors have grpc-go's texts,
// because the plugin's errors end up in events that people and programs search.
package rpcclient
