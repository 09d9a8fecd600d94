package egress

import (
	"strings"

	"cnictl/daemon/iptables"
)

// Transactions are the input of iptables-restore --noflush. The kernel takes all of one
// or nothing, so a chain is there exactly while something jumps to it.

func transaction(lines ...string) string {
	if len(lines) == 0 {
		return ""
	}
	return "*nat\n" + strings.Join(lines, "\n") + "\nCOMMIT\n"
}

// Add makes chain and jump. It is refused when the chain is there; then Repair is for
// it.
func (s SNAT) Add() string {
	lines := append([]string{"-N " + s.Chain}, s.Rules()...)
	return transaction(append(lines, s.Jump())...)
}

// Delete removes chain and jump. It is refused when they are not as Add made them; then
// Remove is for it.
func (s SNAT) Delete() string {
	return transaction(deletion(s.Jump()), "-F "+s.Chain, "-X "+s.Chain)
}

// Repair makes chains and jumps whatever the nat table has of them; empty when all is as
// wanted.
func Repair(nat iptables.Table, list ...SNAT) string {
	var lines []string
	for _, s := range list {
		if s.In(nat) {
			continue
		}
		lines = append(lines, unlink(nat, s.Chain)...)
		lines = append(lines, ":"+s.Chain+" - [0:0]") // made or emptied
		lines = append(lines, s.Rules()...)
		lines = append(lines, s.Jump())
	}
	return transaction(lines...)
}

// Remove deletes chains and all that jumps to them, as far as the nat table has them;
// empty when it has nothing of them.
func Remove(nat iptables.Table, chains ...string) string {
	var lines, last []string
	for _, chain := range chains {
		lines = append(lines, unlink(nat, chain)...)
		if _, ok := nat.Chain(chain); ok {
			lines = append(lines, "-F "+chain)
			last = append(last, "-X "+chain)
		}
	}
	return transaction(append(lines, last...)...)
}
