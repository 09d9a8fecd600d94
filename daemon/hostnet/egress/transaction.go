package egress

import (
	"strings"

	"cnictl/daemon/iptables"
)

// Transactions are input for iptables-restore --noflush. The kernel applies all of one or
// nothing, so a chain exists exactly while something jumps to it.

func transaction(lines ...string) string {
	if len(lines) == 0 {
		return ""
	}
	return "*nat\n" + strings.Join(lines, "\n") + "\nCOMMIT\n"
}

// Add creates the chain and the jump. iptables-restore refuses it if the chain exists; then
// Repair is needed.
func (s SNAT) Add() string {
	lines := append([]string{"-N " + s.Chain}, s.Rules()...)
	return transaction(append(lines, s.Jump())...)
}

// Delete removes the chain and the jump. iptables-restore refuses it if they are not as Add
// made them; then Remove is needed.
func (s SNAT) Delete() string {
	return transaction(deletion(s.Jump()), "-F "+s.Chain, "-X "+s.Chain)
}

// Repair makes the chains and jumps as wanted, whatever the nat table has of them. It
// returns "" if all are as wanted.
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

// Remove deletes the chains in the nat table and all rules that jump to them. It returns ""
// if none exist.
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
