// Package rpcclient makes one gRPC call for the plugin: of upstream's daemon, while a
// node is being updated and no daemon of ours listens, or of the network policy agent
// next to such a daemon. It is the program aws-cni-grpc, which the plugin runs only for
// that call: linked into the plugin, grpc would cost every pod more than its ADD.
//
// Request and reply are messages of daemon/api/cniwire. Errors have the texts of grpc-go,
// because what the plugin reports ends up in events that people and programs search.
package rpcclient
