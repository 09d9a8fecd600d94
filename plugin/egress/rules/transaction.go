package rules

import "strings"

// Transactions are the input of iptables-restore --noflush. The kernel takes all of one
// or nothing, so a chain is there exactly while something jumps to it.

func transaction(lines ...string) string {
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
	return transaction("-D"+strings.TrimPrefix(s.Jump(), "-A"), "-F "+s.Chain, "-X "+s.Chain)
}

// Repair makes chain and jump whatever the table, as iptables-save printed it, has of
// them; empty when all is as wanted.
func (s SNAT) Repair(saved string) string {
	t := Parse(saved)
	if t.Has(s) {
		return ""
	}
	lines := append(t.unlink(s.Chain), ":"+s.Chain+" - [0:0]") // made or emptied
	lines = append(lines, s.Rules()...)
	return transaction(append(lines, s.Jump())...)
}

// Remove deletes chains and all that jumps to them, as far as the table has them;
// empty when it has nothing of them.
func Remove(saved string, chains ...string) string {
	t := Parse(saved)
	var lines, last []string
	for _, chain := range chains {
		lines = append(lines, t.unlink(chain)...)
		if _, ok := t.rules[chain]; ok {
			lines = append(lines, "-F "+chain)
			last = append(last, "-X "+chain)
		}
	}
	if lines = append(lines, last...); len(lines) == 0 {
		return ""
	}
	return transaction(lines...)
}
