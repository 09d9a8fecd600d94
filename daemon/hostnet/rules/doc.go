// Package rules says what the daemon wants in the kernel of a node, as values: the
// iptables rules that translate and mark traffic of pods, the native nftables table
// that marks it, the policy rules and routes of the node and of each ENI.
//
// [Node] and [ENI] compute the wanted state. [ParseSave] and [ParseNFT] read the
// current one from what `iptables-save` and `nft list table` print. The Diff
// functions turn both into the smallest text for `iptables-restore --noflush` and
// `nft -f -`; an empty text means that nothing is to be done.
//
// Invariants:
//   - Rules, chains and tables of others are never changed. Ours are the chains
//     AWS-SNAT-CHAIN-<n> and AWS-CONNMARK-CHAIN-<n>, the nft table `ip aws-cni`,
//     and in the kernel's own chains the rules that carry one of our comments.
//   - A chain of ours changes as a whole, in one transaction: traffic never meets
//     it half built, and the SNAT rule is never missing meanwhile.
//   - Texts are those of upstream (recorded from it), so that an upgrade in
//     place finds its rules and changes nothing. The one exception is the restore
//     rule of the nft table, which overwrote marks of others.
//
// A node's cluster has one family. On IPv6 nodes nothing is translated or marked; what
// an earlier life with IPv4 left of that goes, as do policy rules of the other family.
// Two things outlive the setting that brought them as long as pods do so too: the guard
// of egress addresses, and the place of the local rule with branch pods.
//
// [Leftovers] and [RemoveRuleset] say what of a node's kernel is ours at all, for
// uninstalling.
//
// The package is pure: no I/O, no clock, no logging.
package rules
