package rules_test

import (
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/iptables"
)

// kernel models the effect of iptables-restore --noflush on a rule set.
type kernel struct{ iptables.Ruleset }

// newKernel has the tables with only the kernel's own chains.
func newKernel() *kernel {
	k := &kernel{}
	for _, t := range []struct {
		name   string
		chains []string
	}{
		{"mangle", []string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}},
		{"nat", []string{"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"}},
	} {
		table := iptables.Table{Name: t.name}
		for _, c := range t.chains {
			table.Chains = append(table.Chains, iptables.Chain{Name: c, Policy: "ACCEPT"})
		}
		k.Tables = append(k.Tables, table)
	}
	return k
}

// parseKernel parses a test's rule set.
func parseKernel(text string) (*kernel, error) {
	r, err := iptables.ParseSave(text)
	return &kernel{r}, err
}

// restore applies a script; a table that fails stays unchanged, as in the kernel.
func (k *kernel) restore(script string) error {
	var table *iptables.Table
	var work iptables.Table
	for i, line := range strings.Split(script, "\n") {
		fail := func(why string) error { return fmt.Errorf("line %d %q: %s", i+1, line, why) }
		switch {
		case line == "":
		case line[0] == '*':
			table = nil
			for j := range k.Tables {
				if k.Tables[j].Name == line[1:] {
					table = &k.Tables[j]
				}
			}
			if table == nil {
				return fail("no such table")
			}
			work = cloneTable(*table)
		case table == nil:
			return fail("no table")
		case line == "COMMIT":
			*table, table = work, nil
		default:
			if why := change(&work, line); why != "" {
				return fail(why)
			}
		}
	}
	if table != nil {
		return fmt.Errorf("no COMMIT")
	}
	return nil
}

func change(t *iptables.Table, line string) (problem string) {
	op, rest, _ := strings.Cut(line, " ")
	if line[0] == ':' {
		name, _, _ := strings.Cut(line[1:], " ")
		if c := find(t, name); c != nil {
			if c.Policy != "-" {
				return "not a user chain"
			}
			c.Rules = nil
			return ""
		}
		t.Chains = append(t.Chains, iptables.Chain{Name: name, Policy: "-"})
		return ""
	}
	name, spec, _ := strings.Cut(rest, " ")
	c := find(t, name)
	if c == nil {
		return "no such chain"
	}
	switch op {
	case "-A":
		if target := target(spec); strings.HasPrefix(target, "AWS-") && find(t, target) == nil {
			return "no such target"
		}
		c.Rules = append(c.Rules, spec)
	case "-I":
		c.Rules = slices.Insert(c.Rules, 0, spec)
	case "-D":
		i := slices.Index(c.Rules, spec)
		if i < 0 {
			return "no such rule"
		}
		c.Rules = slices.Delete(c.Rules, i, i+1)
	case "-X":
		if len(c.Rules) > 0 {
			return "chain is not empty"
		}
		for _, other := range t.Chains {
			for _, s := range other.Rules {
				if target(s) == name {
					return "chain is in use by " + other.Name
				}
			}
		}
		t.Chains = slices.DeleteFunc(t.Chains, func(c iptables.Chain) bool { return c.Name == name })
	default:
		return "unknown command"
	}
	return ""
}

func find(t *iptables.Table, name string) *iptables.Chain {
	for i := range t.Chains {
		if t.Chains[i].Name == name {
			return &t.Chains[i]
		}
	}
	return nil
}

func target(spec string) string {
	f := strings.Fields(spec)
	for i := range f {
		if (f[i] == "-j" || f[i] == "-g") && i+1 < len(f) {
			return f[i+1]
		}
	}
	return ""
}

func cloneTable(t iptables.Table) iptables.Table {
	t.Chains = slices.Clone(t.Chains)
	for i := range t.Chains {
		t.Chains[i].Rules = slices.Clone(t.Chains[i].Rules)
	}
	return t
}
