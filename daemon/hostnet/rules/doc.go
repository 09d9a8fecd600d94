// Package rules defines, as values, what the daemon wants in the kernel of a node: the
// iptables rules that translate and mark pod traffic, the native nftables table that marks
// it, and the policy rules and routes of the node and of each ENI.
//
// [Node] and [ENI] compute the wanted state. [iptables.ParseSave] and [ParseNFT] read the current
// one from the output of `iptables-save` and `nft list table`. The Diff functions turn both
// into the smallest text for `iptables-restore --noflush` and `nft -f -`; an empty text
// means that nothing needs to change.
//
// Invariants:
//   - Other programs' rules, chains and tables are never changed. Ours are the chains
//     AWS-SNAT-CHAIN-<n> and AWS-CONNMARK-CHAIN-<n>, the nft table `ip aws-cni`,
//     and in the kernel's own chains the rules that carry one of our comments.
//   - Our chains change as a whole, in one transaction: traffic never meets a
//     half-built chain, and the SNAT rule is never missing meanwhile.
//   - Texts are upstream's (recorded from it), so that an in-place upgrade finds its
//     rules and changes nothing. The one exception is the restore rule of the nft
//     table, which overwrote other programs' marks.
//
// A cluster has one address family. On IPv6 nodes nothing is translated or marked; remnants
// of an earlier IPv4 setup are removed, as are policy rules of the other family. Two things
// outlive their setting for as long as the pods that use them: the guard of egress
// addresses, and the position of the local rule with branch pods.
//
// [Leftovers] and [RemoveRuleset] identify everything in a node's kernel that is ours, for
// uninstalling.
//
// The package is pure: no I/O, no clock, no logging.
package rules
