package e2e_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnictl/testenv/node"
)

// picture is a node's kernel state, as lines that can be compared, without indexes, counters
// or times.
type picture struct {
	rules    []string // ip rule, in order
	routes   []string // of all tables, IPv4
	links    []string // name, MAC, MTU, addresses
	iptables []string // iptables-save, "table: line"
	native   []string // the table that upstream writes with nft
	sysctls  []string
	inside   []string // "pod: line" of addresses, routes and neighbours in pods
}

// parts returns the parts of a picture by name.
func (p picture) parts() map[string][]string {
	return map[string][]string{
		"rule": p.rules, "route": p.routes, "link": p.links, "iptables": p.iptables,
		"nft": p.native, "sysctl": p.sysctls, "pod": p.inside,
	}
}

// take takes a picture of a node and of the given pods.
func (l *lab) take(n *node.Node, sysctls []string, pods []*node.Pod) picture {
	l.t.Helper()
	p := picture{
		rules:    lines(l.sh(n, "ip rule")),
		routes:   l.routes(n),
		links:    linkLines(l.sh(n, "ip -d addr")),
		iptables: savedLines(l.sh(n, "iptables-save")),
		native:   nativeLines(l.sh(n, "nft list ruleset")),
	}
	for i, value := range readSysctls(l.t, n, sysctls) {
		p.sysctls = append(p.sysctls, sysctls[i]+" "+value)
	}
	for _, pod := range pods {
		if pod.Netns == nil {
			continue
		}
		ip := "ip -n " + pod.Netns.Name + " "
		for _, line := range insideLines(l.sh(n, ip+"addr"), l.sh(n, ip+"route"), l.sh(n, ip+"neigh")) {
			p.inside = append(p.inside, pod.Name+": "+line)
		}
	}
	return p
}

func linkLines(text string) (out []string) {
	links := parseLinks(text)
	for _, name := range slices.Sorted(maps.Keys(links)) {
		l := links[name]
		out = append(out, fmt.Sprintf("%s %s mtu %s %v", name, l.mac, l.mtu, l.addrs))
	}
	return out
}

func insideLines(addr, route, neigh string) (out []string) {
	out = append(linkLines(addr), onlyIPv4(route)...)
	for _, line := range lines(neigh) { // learnt entries come and go on their own
		if strings.HasSuffix(line, "PERMANENT") {
			out = append(out, line)
		}
	}
	return out
}

var chainCounters = regexp.MustCompile(`\[\d+:\d+\]`)

func savedLines(text string) (out []string) {
	table := ""
	for _, line := range lines(text) {
		switch {
		case strings.HasPrefix(line, "#"), line == "COMMIT":
		case strings.HasPrefix(line, "*"):
			table = line[1:]
		default:
			out = append(out, table+": "+chainCounters.ReplaceAllString(line, "[0:0]"))
		}
	}
	return out
}

var ruleCounters = regexp.MustCompile(`counter packets \d+ bytes \d+`)

// nativeLines returns the lines of upstream's own nft table.
func nativeLines(ruleset string) []string {
	_, own, _ := strings.Cut(ruleset, "table ip aws-cni {")
	own, _, _ = strings.Cut(own, "\n}")
	return lines(ruleCounters.ReplaceAllString(own, "counter"))
}

// difference is a kind of line that may be added or removed, and why. The pattern matches
// "+part: line" or "-part: line".
type difference struct{ pattern, why string }

// compare fails for every line that was added or removed without being allowed, and for every
// allowed difference that was not found.
func compare(t *testing.T, before, after picture, allowed ...difference) {
	t.Helper()
	var seen []string
	was, is := before.parts(), after.parts()
	for _, part := range slices.Sorted(maps.Keys(was)) {
		for _, line := range without(was[part], is[part]) {
			seen = append(seen, "-"+part+": "+line)
		}
		for _, line := range without(is[part], was[part]) {
			seen = append(seen, "+"+part+": "+line)
		}
	}
	for _, line := range seen {
		if !slices.ContainsFunc(allowed, func(d difference) bool { return regexp.MustCompile(`^` + d.pattern + `$`).MatchString(line) }) {
			t.Errorf("not expected: %s", line)
		}
	}
	for _, d := range allowed {
		if !slices.ContainsFunc(seen, regexp.MustCompile(`^`+d.pattern+`$`).MatchString) {
			t.Errorf("listed difference not seen, remove it from the list: %s (%s)", d.pattern, d.why)
		}
	}
}

// once fails if an iptables rule exists twice.
func once(t *testing.T, p picture) {
	t.Helper()
	seen := map[string]bool{}
	for _, line := range p.iptables {
		if seen[line] {
			t.Errorf("twice in iptables: %s", line)
		}
		seen[line] = true
	}
}
