package rules

import (
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/iptables"
)

// canonical unifies different spellings of a rule: releases of iptables print options in
// different orders and under different names. Two rules with the same canonical form are
// the same rule.
func canonical(spec string) string {
	var groups []string
	target := ""
	ts := iptables.Words(spec)
	for i := 0; i < len(ts); {
		var g group
		g, i = nextGroup(ts, i)
		switch g.option {
		case "-m": // the options imply their module
			continue
		case "-j", "-g":
			target = g.option + strings.Join(g.values, " ") + " "
		}
		for _, g := range g.normal() {
			groups = append(groups, g.text(target))
		}
	}
	slices.Sort(groups)
	return strings.Join(groups, "\x00")
}

// group is an option with its values.
type group struct {
	not    bool
	option string
	values []string
}

func nextGroup(ts []iptables.Word, i int) (group, int) {
	var g group
	if ts[i].Text == "!" && !ts[i].Quoted && i+1 < len(ts) {
		g.not = true
		i++
	}
	g.option = ts[i].Text
	for i++; i < len(ts); i++ {
		if !ts[i].Quoted && (strings.HasPrefix(ts[i].Text, "-") || ts[i].Text == "!") {
			break
		}
		g.values = append(g.values, ts[i].Text)
	}
	return g, i
}

func (g group) text(target string) string {
	not := ""
	if g.not {
		not = "! "
	}
	return target + not + g.option + " " + strings.Join(g.values, " ")
}

// normal replaces old spellings.
func (g group) normal() []group {
	if len(g.values) != 1 {
		return []group{g}
	}
	value := g.values[0]
	switch g.option {
	case "-s", "-d":
		return normalRange(g, value)
	case "--set-mark": // of CONNMARK: value, or value/mask
		if !strings.Contains(value, "/") {
			value += "/0xffffffff"
		}
		return []group{{option: "--set-xmark", values: []string{value}}}
	case "--mask":
		return []group{{option: "--nfmask", values: g.values}, {option: "--ctmask", values: g.values}}
	}
	return []group{g}
}

func normalRange(g group, value string) []group {
	if !strings.Contains(value, "/") {
		value += "/32"
	}
	p, err := netip.ParsePrefix(value)
	switch {
	case err != nil:
		return []group{g}
	case p.Bits() == 0 && !g.not:
		return nil // matches all
	}
	g.values = []string{p.Masked().String()}
	return []group{g}
}
