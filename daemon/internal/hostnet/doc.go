// Package hostnet applies the wanted state of daemon/hostnet/rules to a node's kernel and
// reads back the state of pods.
//
// A pass of [Host.SetupNode] reads everything first (iptables-save and nft concurrently,
// and rtnetlink meanwhile) and writes only what differs: at most one iptables-restore and
// one nft transaction, and one for each of ip6tables and the iptables backend not in use,
// if those have unwanted objects of ours. On a node in the wanted state it writes nothing,
// and reads backends that need no rules only once per process. Every method may be
// repeated with the same arguments.
//
// [FindLeftovers] does the reverse: it finds and removes everything of ours in the kernel.
//
// Every method works in the network namespace of the calling thread, whatever it
// starts or waits for. Methods may run concurrently; node passes queue.
//
// The package decides nothing: daemon/hostnet/rules defines what is wanted, what is stale
// and what belongs to others. Rules, chains, routes and addresses that are not defined
// there are never touched.
package hostnet
