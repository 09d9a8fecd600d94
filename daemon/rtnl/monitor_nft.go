package rtnl

import "golang.org/x/sys/unix"

// FilterNotice is a change of a packet filter, by table and chain. Programs in the nftables
// mode of iptables change the same tables; the kernel sends no notices for its legacy mode.
type FilterNotice struct {
	IPv6         bool   // of the family ip6; all other families count as ip
	Table, Chain []byte // valid until fn returns; without Chain, the table itself was added or deleted
	// Gone: the object was deleted. It is a rule if Rule is set, otherwise the chain or the
	// table.
	Gone, Rule bool
}

// WatchFilters opens a socket that receives changes of nftables in the namespace of the
// calling thread; see [Watch] and [FilterNotices].
func WatchFilters() (fd int, err error) {
	return watch(unix.NETLINK_NETFILTER, []int{unix.NFNLGRP_NFTABLES}, nil)
}

// Attributes of include/uapi/linux/netfilter/nf_tables.h, the same in messages about rules;
// tables have only the first, chains have their name in the third.
const (
	nftTable     = 1 // NFTA_RULE_TABLE, NFTA_CHAIN_TABLE, NFTA_TABLE_NAME
	nftRuleChain = 2
	nftChainName = 3

	sizeofNFGen = 4
)

// FilterNotices calls fn for each change of a table, a chain or a rule in a datagram that
// was read from a socket of [WatchFilters]. It reads only names: a node with many Services
// changes some ten thousand rules at once.
func FilterNotices(datagram []byte, fn func(FilterNotice)) error {
	for len(datagram) > 0 {
		msg, rest, err := cutMessage(datagram)
		if err != nil {
			return err
		}
		datagram = rest
		if msg.kind>>8 != unix.NFNL_SUBSYS_NFTABLES {
			continue
		}
		if len(msg.body) < sizeofNFGen {
			return errShort
		}
		n := FilterNotice{IPv6: msg.body[0] == unix.NFPROTO_IPV6}
		named := uint16(0)
		switch msg.kind & 0xff {
		case unix.NFT_MSG_NEWTABLE:
		case unix.NFT_MSG_DELTABLE:
			n.Gone = true
		case unix.NFT_MSG_NEWCHAIN:
			named = nftChainName
		case unix.NFT_MSG_DELCHAIN:
			named, n.Gone = nftChainName, true
		case unix.NFT_MSG_NEWRULE:
			named, n.Rule = nftRuleChain, true
		case unix.NFT_MSG_DELRULE:
			named, n.Rule, n.Gone = nftRuleChain, true, true
		default:
			continue // generations, sets and their elements
		}
		if n.Table, n.Chain, err = filterNames(msg.body[sizeofNFGen:], named); err != nil {
			return err
		}
		fn(n)
	}
	return nil
}

func filterNames(attrs []byte, named uint16) (table, chain []byte, _ error) {
	err := eachAttr(attrs, func(kind uint16, value []byte) {
		switch {
		case kind == nftTable:
			table = untilNUL(value)
		case kind == named && named != 0:
			chain = untilNUL(value)
		}
	})
	return table, chain, err
}

func untilNUL(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}
