package rules

import (
	"strings"

	"cnictl/daemon/netstate"
)

// Table is what iptables-save printed of the nat table.
type Table struct {
	order []string            // chains in order
	rules map[string][]string // lines by chain
}

// Parse reads the nat table of an output of iptables-save. Lines that it does not
// understand count as nothing.
func Parse(saved string) Table {
	t := Table{rules: map[string][]string{}}
	nat := true // also without a header
	for line := range strings.SplitSeq(saved, "\n") {
		switch {
		case strings.HasPrefix(line, "*"):
			nat = line == "*nat"
		case !nat:
		case strings.HasPrefix(line, ":"):
			chain, _, _ := strings.Cut(line[1:], " ")
			t.note(chain)
		case strings.HasPrefix(line, "-A "):
			chain, _, _ := strings.Cut(line[len("-A "):], " ")
			t.note(chain)
			t.rules[chain] = append(t.rules[chain], line)
		}
	}
	return t
}

func (t *Table) note(chain string) {
	if _, ok := t.rules[chain]; !ok {
		t.order = append(t.order, chain)
		t.rules[chain] = nil
	}
}

// Has reports whether chain and jump are as wanted, with nothing else in the chain and
// no further jump to it.
func (t Table) Has(s SNAT) bool { return len(t.Missing(s)) == 0 }

// Missing says what is not as wanted, each difference in words.
func (t Table) Missing(s SNAT) (out []string) {
	have, ok := t.rules[s.Chain]
	want := s.Rules()
	switch {
	case !ok:
		return []string{"chain " + s.Chain + " of table nat is missing"}
	case strings.Join(have, "\n") != strings.Join(want, "\n"):
		out = append(out, "chain "+s.Chain+" of table nat has other rules than "+strings.Join(want, ", "))
	}
	if jumps := t.unlink(s.Chain); len(jumps) != 1 || jumps[0] != "-D"+strings.TrimPrefix(s.Jump(), "-A") {
		out = append(out, "the one jump to the chain is not "+s.Jump())
	}
	return out
}

// unlink deletes all that jumps to a chain.
func (t Table) unlink(target string) (out []string) {
	for _, chain := range t.order {
		for _, rule := range t.rules[chain] {
			if netstate.Target(rule) == target {
				out = append(out, "-D"+strings.TrimPrefix(rule, "-A"))
			}
		}
	}
	return out
}

// Stale lists the chains of a network's sandboxes other than those that keep names. The
// comments tell whose a chain is; one without is left alone.
func (t Table) Stale(network string, keep func(containerID string) bool) (out []string) {
	for _, chain := range t.order {
		v6 := strings.HasPrefix(chain, ChainPrefix6)
		if !v6 && !strings.HasPrefix(chain, ChainPrefix4) {
			continue
		}
		for _, rule := range t.rules[chain] {
			id, ok := owner(rule, network)
			if ok && chain == Chain(v6, network, id) {
				if !keep(id) {
					out = append(out, chain)
				}
				break
			}
		}
	}
	return out
}

// owner is the container id in the comment of a rule.
func owner(rule, network string) (id string, ok bool) {
	id, ok = strings.CutPrefix(netstate.Comment(rule), strings.TrimSuffix(Comment(network, ""), `"`))
	if !ok {
		return "", false
	}
	return strings.CutSuffix(id, `"`)
}
