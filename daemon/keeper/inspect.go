package keeper

import (
	"fmt"
	"net/netip"

	"cnictl/daemon/ipam"
)

// AtAddress returns the assignment of an address.
func (k *Keeper) AtAddress(a netip.Addr) (ipam.Assignment, bool) { return k.book.AtAddress(a) }

// Cards returns the number of network cards that pods with several interfaces use.
func (k *Keeper) Cards() int { return len(k.cards()) }

// Check verifies the invariants that hold between two messages: those of the address book,
// and that the ledger has exactly the book's allocations. It walks everything and is meant
// for tests and simulations.
func (k *Keeper) Check() error {
	if err := k.book.Check(); err != nil {
		return err
	}
	n := 0
	for a := range k.book.Assignments() {
		n++
		if _, there := k.ledger.home[a.Sandbox]; !there {
			return fmt.Errorf("ledger: lacks %v of sandbox %s", a.Address, a.Sandbox.ContainerID)
		}
		if named, links := k.ledger.links.of[a.Sandbox], a.Pod.Name != ""; links && named != a.Pod {
			return fmt.Errorf("ledger: links of sandbox %s are those of %v, not of %v", a.Sandbox.ContainerID, named, a.Pod)
		}
	}
	if n != k.ledger.len() {
		return fmt.Errorf("ledger: %d entries for %d allocations", k.ledger.len(), n)
	}
	return nil
}
