package rules

import (
	"net/netip"
	"slices"
	"strings"
)

// token is one word of a rule.
type token struct {
	text   string
	quoted bool
}

// tokens splits a rule as iptables-restore does: words, and strings in double
// quotes with backslash escapes. Unbalanced quotes end with the text.
func tokens(spec string) []token {
	var out []token
	for i := 0; i < len(spec); {
		switch c := spec[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == '"':
			var t string
			t, i = quoted(spec, i+1)
			out = append(out, token{text: t, quoted: true})
		default:
			end := i
			for end < len(spec) && spec[end] != ' ' && spec[end] != '\t' {
				end++
			}
			out = append(out, token{text: spec[i:end]})
			i = end
		}
	}
	return out
}

func quoted(spec string, i int) (text string, next int) {
	var b strings.Builder
	for ; i < len(spec) && spec[i] != '"'; i++ {
		if spec[i] == '\\' && i+1 < len(spec) {
			i++
		}
		b.WriteByte(spec[i])
	}
	return b.String(), min(i+1, len(spec))
}

// comment is the text of a rule's comment match.
func comment(spec string) string {
	ts := tokens(spec)
	for i, t := range ts {
		if t.text == "--comment" && !t.quoted && i+1 < len(ts) {
			return ts[i+1].text
		}
	}
	return ""
}

// jumpsTo reports whether a rule jumps or goes to a chain.
func jumpsTo(spec, chain string) bool {
	if !strings.Contains(spec, chain) { // most rules, without splitting them
		return false
	}
	ts := tokens(spec)
	for i, t := range ts[:max(0, len(ts)-1)] {
		if !t.quoted && (t.text == "-j" || t.text == "-g") && ts[i+1].text == chain {
			return true
		}
	}
	return false
}

// canonical brings different spellings of a rule together: releases of iptables
// print options in different orders and under different names. Two rules with the
// same canonical form are the same rule.
func canonical(spec string) string {
	var groups []string
	target := ""
	ts := tokens(spec)
	for i := 0; i < len(ts); {
		var g group
		g, i = nextGroup(ts, i)
		switch g.option {
		case "-m": // the options say which module they belong to
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

func nextGroup(ts []token, i int) (group, int) {
	var g group
	if ts[i].text == "!" && !ts[i].quoted && i+1 < len(ts) {
		g.not = true
		i++
	}
	g.option = ts[i].text
	for i++; i < len(ts); i++ {
		if !ts[i].quoted && (strings.HasPrefix(ts[i].text, "-") || ts[i].text == "!") {
			break
		}
		g.values = append(g.values, ts[i].text)
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
