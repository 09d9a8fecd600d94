// Package hostnet brings the wanted state of daemon/hostnet/rules into the kernel of
// a node and reads back what pods have there.
//
// A pass of [Host.SetupNode] reads everything first (iptables-save and nft side by
// side, rtnetlink meanwhile), and writes only what differs: at most one
// iptables-restore and one nft transaction, and one for each of ip6tables and the
// iptables back end that is not in use, where those have something of ours that is not
// wanted. On a node that is as wanted it writes nothing, and reads the latter once in
// the life of a process. Every method may be called again with the same arguments.
//
// [FindLeftovers] is the other way: what of the kernel is ours, and its removal.
//
// Every method works in the network namespace of the calling thread, whatever it
// starts or waits for. Several methods may run at once; node passes queue.
//
// The package decides nothing: what is wanted, what is stale and what belongs to
// others is in daemon/hostnet/rules. It never touches rules, chains, routes or
// addresses that are not in there.
package hostnet
