// Package live samples a fleet for as long as somebody is watching it: it follows the list
// of nodes, reads them as a [Plan] says, and puts the results into a store. Screens and
// watching commands get their data from it.
//
// Everything runs under one [Live.Run]; when that returns, no goroutine and no connection
// is left. The other methods may be called at any time from any goroutine, and only
// [Live.Detail] waits for a node.
//
// The plan is pure: time is an argument, and the outcome of each read is reported to it. Nodes
// on the screen come first, but nothing starves: every second pick of a node on the screen, and
// every pick of another node, takes the one that has been due longest; and after a few nodes on
// the screen, another node gets a turn.
//
// An upstream node is never read more often than every [UpstreamMin]. A node that fails
// [BrokenAfter] times in a row is read only every [BrokenEvery]. The other nodes are read at the
// interval that the size of the fleet allows: [Plan.Background] widens with the cost of reading.
//
// The user waits for the first read of each node. Until every node has had it ([Plan.Swept]),
// reading may use as much processor time as it takes to finish within [FirstWithin], if nodes
// answer that fast; afterwards it is limited to [MaxShare] of one processor. While the list of nodes
// is still being read, only those on the screen are ([Plan.Listed]).
package live
