// Package listen makes the sockets of the programs that run on nodes: Unix sockets that are
// never reachable with a wider mode than theirs and never displace a living process, and
// HTTP servers whose clients cannot make them hold much.
package listen
