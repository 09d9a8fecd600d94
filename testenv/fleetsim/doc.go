// Package fleetsim simulates a cluster of up to 5,000 nodes for programs that read a
// whole fleet: an API server's front that stock kubectl and client-go work with, and
// behind pods/portforward the introspection of each node.
//
//	sim, err := fleetsim.Start(fleetsim.Options{Nodes: 500, Original: 0.3, Seed: 1})
//	defer sim.Close()
//	path, err := sim.WriteKubeconfig(dir) // 0600, the simulator's administrator
//	cfg := sim.RESTConfig()               // the same for client-go
//	sim.Kubeconfig()                      // the file's content
//	sim.Nodes()                           // names and traits, by name
//	sim.KubeconfigOf("reader", "create pods/portforward") // a user who may not
//	sim.DialNode(ctx, name, fleetsim.IntrospectionPort)   // past the API server
//	sim.ServeTargets(dir)                 // a Unix socket per node, for --targets
//
// In tests [New] closes it at the end. All of it is in the process: a node has no
// socket, its streams end in one HTTP server.
//
// What is real: TLS, tokens, discovery, tables, paging, watches with bookmarks and
// 410, SelfSubjectAccessReviews, port-forward over WebSocket and SPDY, exec of
// `cnictl local dial`. What is left out: writing anything but a review, protobuf, and
// resources beside those of resources.go.
//
// A node is a real address book (daemon/ipam) that follows the real planner
// (daemon/warmpool) over EC2 operations that take their time: planning is cheap enough
// (some 10 µs for a common node), and what a node shows for a target is then what a
// daemon would do. It is a function of the seed, the node's index and the time: a node
// is made when somebody asks for it, and brought up to date when somebody asks again,
// so that one at which nobody looks costs nothing.
//
// Nodes of ours answer with the documents of daemon/api/introspect; upstream's
// answers are spelled by hand (original.go), release by release, and never go through
// our types.
package fleetsim
