// Package fleetsim simulates a cluster of up to 5,000 nodes for programs that read a
// whole fleet: an API server that works with stock kubectl and client-go and, behind
// pods/portforward, the introspection of each node.
//
//	sim, err := fleetsim.Start(fleetsim.Options{Nodes: 500, UpstreamShare: 0.3, Seed: 1})
//	defer sim.Close()
//	path, err := sim.WriteKubeconfig(dir) // 0600, as the cluster's administrator
//	cfg := sim.RESTConfig()               // the same for client-go
//	sim.Kubeconfig()                      // the file's content
//	sim.Nodes()                           // names and traits, by name
//	sim.KubeconfigOf("reader", "create pods/portforward") // a user without that permission
//	sim.DialNode(ctx, name, fleetsim.IntrospectionPort)   // past the API server
//	sim.ServeTargets(dir)                 // a Unix socket per node, for --targets
//
// In tests, use [New], which closes the fleet at the end. Everything runs in one process:
// nodes have no sockets, and all their streams end in one HTTP server.
//
// What is real: TLS, tokens, discovery, tables, paging, watches with bookmarks and
// 410, SelfSubjectAccessReviews, port-forward over WebSocket and SPDY, exec of
// `cnictl local dial`. What is left out: writes other than reviews, protobuf, and
// resources other than those in resource.go.
//
// A node is a real address book (daemon/ipam) that follows the real planner
// (daemon/warmpool) through EC2 operations that take time. Planning is cheap (some 10 µs
// for a common node), and the node carries out a target as a daemon would. A node's state
// depends only on the seed, its index and the time: it is created on its first request and
// brought up to date on each request, so nodes that are never read cost nothing.
//
// Nodes with our daemon answer with the documents of daemon/api/introspect; upstream's
// answers are written by hand (upstream.go), release by release, without our types.
package fleetsim
