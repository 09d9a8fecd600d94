// Package schedule plans which node of a fleet to read next. It is pure: time is an
// argument, and the caller reports the outcome of each read.
//
// Nodes on the screen come first, but nothing starves: every second pick of a node on the
// screen, and every pick of another node, takes the one that has been due longest; and after
// a few nodes on the screen, another node gets a turn.
//
// An upstream node is never read more often than every [UpstreamMin], whoever asks, as
// upstream logs every request. A node that fails [BrokenAfter] times in a row is read only
// every [BrokenEvery]. The other nodes are read at the interval that the size of the fleet
// allows: [Plan.Background] widens with the cost of reading.
//
// The user waits for the first read of each node. Until every node has had it
// ([Plan.Swept]), reading may use as much processor time as it takes to finish within
// [FirstWithin], if nodes answer that fast; afterwards it is limited to [MaxShare] of one
// processor.
package schedule
