package rules

import (
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/iptables"
)

// kubeServices is kube-proxy's chain. It must come before our jump: our ranges must be
// compared with the address of the pod behind a Service, not with the Service's.
const kubeServices = "KUBE-SERVICES"

// DiffRuleset returns the input for `iptables-restore --noflush` that turns the current
// rules into the wanted ones, or "" if they are in place. It replaces our chains that
// differ and removes stale ones; other programs' rules stay where they are.
func DiffRuleset(current, want iptables.Ruleset) string {
	var b strings.Builder
	for _, t := range want.Tables {
		now, _ := current.Table(t.Name)
		d := tableDiff{now: now, want: t}
		d.ownChains()
		d.kernelChains()
		d.staleChains()
		d.print(&b)
	}
	return b.String()
}

// tableDiff collects the lines for one table, in the order in which they must appear.
type tableDiff struct {
	now, want iptables.Table

	declare []string // ":chain", which also empties it
	delete  []string // "-D"
	add     []string // "-A", "-I"
	drop    []string // "-X"

	egress bool // objects of the egress plugin's pods count as ours too
}

func (d *tableDiff) ownChain(name string) bool {
	return ownChain(d.want.Name, name) || d.egress && isEgressChain(d.want.Name, name)
}

func (d *tableDiff) ownRule(chain, spec string) bool {
	return ownRule(d.want.Name, chain, spec) || d.egress && isEgressJump(d.want.Name, chain, spec)
}

func (d *tableDiff) print(b *strings.Builder) {
	lines := slices.Concat(d.declare, d.delete, d.add, d.drop)
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "*%s\n%s\nCOMMIT\n", d.want.Name, strings.Join(lines, "\n"))
}

// ownChain reports whether a chain is ours, from any release.
func ownChain(table, name string) bool {
	if table != "nat" {
		return false
	}
	for _, active := range []string{netnames.SNATChain, netnames.ConnmarkChain} {
		number, ok := strings.CutPrefix(name, strings.TrimSuffix(active, "0"))
		if ok && number != "" && strings.Trim(number, "0123456789") == "" {
			return true
		}
	}
	return false
}

// ownRule reports whether a rule in one of the kernel's chains is ours, from any release.
func ownRule(table, chain, spec string) bool {
	if !strings.Contains(spec, "AWS") && !strings.Contains(spec, textGuard) { // most rules, without splitting them
		return false
	}
	switch table + "/" + chain {
	case "nat/PREROUTING":
		return slices.Contains([]string{commentOutbound, commentConnmark}, iptables.Comment(spec))
	case "nat/POSTROUTING":
		return slices.Contains([]string{commentSNATJump, commentSNAT}, iptables.Comment(spec))
	case "mangle/PREROUTING":
		return iptables.Comment(spec) == commentPrimaryENI
	case "filter/FORWARD":
		return isGuard(spec)
	}
	return false
}

// ownChains replaces our wanted chains whose content differs.
func (d *tableDiff) ownChains() {
	for _, c := range d.want.Chains {
		if !ownChain(d.want.Name, c.Name) {
			continue
		}
		now, ok := d.now.Chain(c.Name)
		if ok && sameChain(now.Rules, c.Rules) {
			continue
		}
		d.declare = append(d.declare, ":"+c.Name+" - [0:0]")
		for _, spec := range c.Rules {
			d.add = append(d.add, "-A "+c.Name+" "+spec)
		}
	}
}

// sameChain compares the content of one of our chains: the last rule must be last, the
// order of the RETURN rules before it does not matter.
func sameChain(now, want []string) bool {
	if len(now) != len(want) {
		return false
	}
	a, b := canonicals(now), canonicals(want)
	if last := len(a) - 1; last >= 0 {
		if a[last] != b[last] {
			return false
		}
		slices.Sort(a[:last])
		slices.Sort(b[:last])
	}
	return slices.Equal(a, b)
}

func canonicals(specs []string) []string {
	out := make([]string, len(specs))
	for i, s := range specs {
		out[i] = canonical(s)
	}
	return out
}

// kernelChains adds our rules to the kernel's chains and removes stale ones.
func (d *tableDiff) kernelChains() {
	for _, c := range d.want.Chains {
		if ownChain(d.want.Name, c.Name) {
			continue
		}
		now, _ := d.now.Chain(c.Name)
		keep := len(c.Rules)
		if d.want.Name == "nat" {
			keep = placed(now.Rules, c.Rules)
		}
		d.place(now, c, keep)
	}
}

// place keeps the first keep wanted rules where they are, removes all our other rules and
// appends the rest of the wanted rules.
func (d *tableDiff) place(now, want iptables.Chain, keep int) {
	missing := map[string]bool{}
	for _, spec := range want.Rules[:keep] {
		missing[canonical(spec)] = true
	}
	for _, spec := range now.Rules {
		if !d.ownRule(want.Name, spec) {
			continue
		}
		if form := canonical(spec); missing[form] {
			missing[form] = false
			continue
		}
		d.delete = append(d.delete, "-D "+want.Name+" "+spec)
	}
	for i, spec := range want.Rules {
		if i >= keep || missing[canonical(spec)] {
			d.add = append(d.add, d.placing()+" "+want.Name+" "+spec)
		}
	}
}

// placing returns how a missing rule is added: in filter before any rule that accepts
// forwarded traffic, elsewhere after the existing rules.
func (d *tableDiff) placing() string {
	if d.want.Name == "filter" {
		return "-I"
	}
	return "-A"
}

// placed counts how many of the wanted rules, from the first, are present exactly once, in
// order and after kube-proxy's jump.
func placed(now, want []string) int {
	at := -1
	for i, spec := range now {
		if iptables.JumpsTo(spec, kubeServices) {
			at = i
		}
	}
	forms := make([]string, len(now))
	for i, spec := range now {
		if strings.Contains(spec, "AWS") {
			forms[i] = canonical(spec)
		}
	}
	for n, spec := range want {
		form := canonical(spec)
		first := slices.Index(forms, form)
		if first <= at || slices.Contains(forms[first+1:], form) {
			return n
		}
		at = first
	}
	return len(want)
}

// staleChains removes our chains that are not wanted. One that another program's rule jumps
// to can only be emptied.
func (d *tableDiff) staleChains() {
	for _, c := range d.now.Chains {
		if _, wanted := d.want.Chain(c.Name); wanted || !d.ownChain(c.Name) {
			continue
		}
		held := d.heldByOthers(c.Name)
		if !held || len(c.Rules) > 0 {
			d.declare = append(d.declare, ":"+c.Name+" - [0:0]")
		}
		if !held {
			d.drop = append(d.drop, "-X "+c.Name)
		}
	}
}

func (d *tableDiff) heldByOthers(name string) bool {
	for _, c := range d.now.Chains {
		if d.ownChain(c.Name) {
			continue
		}
		for _, spec := range c.Rules {
			if iptables.JumpsTo(spec, name) && !d.ownRule(c.Name, spec) {
				return true
			}
		}
	}
	return false
}

// Describe describes one line of a restore text the way upstream's messages do:
// "nat/POSTROUTING rule <name> shouldExist true rule [<rule>]". ok is false for lines that
// neither add nor delete.
func Describe(script string, line int) (verb, rule string, ok bool) {
	table := ""
	for i, text := range strings.Split(script, "\n") {
		if name, is := strings.CutPrefix(text, "*"); is {
			table = name
		}
		if i+1 != line {
			continue
		}
		op, rest, _ := strings.Cut(text, " ")
		chain, spec, _ := strings.Cut(rest, " ")
		switch op {
		case "-A", "-I":
			verb = "add"
		case "-D":
			verb = "delete"
		default:
			return "", "", false
		}
		return verb, fmt.Sprintf("%s/%s rule %s shouldExist %t rule [%s]",
			table, chain, ruleName(table, chain, spec), verb == "add", spec), true
	}
	return "", "", false
}

func ruleName(table, chain, spec string) string {
	switch {
	case table == "mangle" && strings.Contains(spec, "--restore-mark"):
		if strings.Contains(spec, "-i vlan+") {
			return nameRestoreVLAN
		}
		return nameRestore
	case table == "mangle":
		return nameSetMark
	case table == "filter":
		return iptables.Comment(spec)
	case chain == "POSTROUTING":
		return nameSNATJump
	case strings.Contains(spec, "-j SNAT"):
		return nameSNATLast
	default:
		return chain
	}
}
