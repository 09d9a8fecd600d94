package imds

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"cnictl/daemon/ipam"
)

// AnswerError means that the metadata service's answer is not what EC2 documents.
type AnswerError struct {
	Path  string // below /latest
	Value string
	Want  string
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("metadata %s is %.100q: want %s", e.Path, e.Value, e.Want)
}

const (
	maxLines    = 1024 // of one answer, far above every instance type's limits
	maxIDLength = 64
	maxIndex    = 1000 // of devices and network cards
)

// parseLines splits a list into lines and skips blank ones.
func parseLines(path, body string) ([]string, error) {
	var out []string
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		if strings.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return nil, &AnswerError{path, line, "one word per line"}
		}
		out = append(out, line)
		if len(out) > maxLines {
			return nil, &AnswerError{path, fmt.Sprintf("more than %d lines", maxLines), "a shorter list"}
		}
	}
	return out, nil
}

// parseMACs reads the listing of interfaces: "02:00:00:00:00:01/" per line. MACs are
// returned as the service spells them, for use in paths.
func parseMACs(path, body string) ([]string, error) {
	lines, err := parseLines(path, body)
	if err != nil {
		return nil, err
	}
	var out []string
	seen := make(map[string]bool)
	for _, line := range lines {
		mac := strings.TrimSuffix(line, "/")
		canonical, err := parseMAC(path, mac)
		if err != nil {
			return nil, err
		}
		if seen[canonical] {
			return nil, &AnswerError{path, mac, "each MAC once"}
		}
		seen[canonical] = true
		out = append(out, mac)
	}
	return out, nil
}

// parseMAC returns the lower-case colon form.
func parseMAC(path, s string) (string, error) {
	mac, err := net.ParseMAC(s)
	if err != nil || len(mac) != 6 || strings.Count(s, ":") != 5 {
		return "", &AnswerError{path, s, "a MAC address like 02:00:00:00:00:01"}
	}
	return mac.String(), nil
}

// parseNames reads the listing of one interface: the names below it, directories
// without their slash.
func parseNames(path, body string) (map[string]bool, error) {
	lines, err := parseLines(path, body)
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, &AnswerError{path, body, "the names of an interface's values"}
	}
	out := make(map[string]bool, len(lines))
	for _, line := range lines {
		out[strings.TrimSuffix(line, "/")] = true
	}
	return out, nil
}

func parseAddrs(path, body string, ipv6 bool) ([]netip.Addr, error) {
	lines, err := parseLines(path, body)
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	seen := make(map[netip.Addr]bool)
	for _, line := range lines {
		a, err := parseAddr(path, line, ipv6)
		if err != nil {
			return nil, err
		}
		if seen[a] {
			return nil, &AnswerError{path, line, "each address once"}
		}
		seen[a] = true
		out = append(out, a)
	}
	return out, nil
}

func parseAddr(path, s string, ipv6 bool) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	switch {
	case ipv6 && (err != nil || !a.Is6() || a.Is4In6() || a.Zone() != ""):
		return netip.Addr{}, &AnswerError{path, s, "an IPv6 address"}
	case !ipv6 && (err != nil || !a.Is4()):
		return netip.Addr{}, &AnswerError{path, s, "an IPv4 address"}
	case !ipam.IsHostAddr(a):
		return netip.Addr{}, &AnswerError{path, s, ipam.WantHostAddr}
	}
	return a, nil
}

// cidrKind is a kind of CIDR list.
type cidrKind struct {
	ipv6 bool
	bits int // prefix length of every CIDR; 0: any
	want string
}

var (
	ipv4Blocks   = cidrKind{want: "an IPv4 block like 10.0.0.0/16"}
	ipv4Prefixes = cidrKind{bits: 28, want: "an aligned IPv4 /28"}
	ipv6Blocks   = cidrKind{ipv6: true, want: "an IPv6 block like 2001:db8::/56"}
	ipv6Prefixes = cidrKind{ipv6: true, bits: 80, want: "an aligned IPv6 /80"}
)

func parseCIDRs(path, body string, kind cidrKind) ([]netip.Prefix, error) {
	lines, err := parseLines(path, body)
	if err != nil {
		return nil, err
	}
	var out []netip.Prefix
	seen := make(map[netip.Prefix]bool)
	for _, line := range lines {
		p, err := netip.ParsePrefix(line)
		if err != nil || p.Addr().Is4() == kind.ipv6 || p.Addr().Is4In6() || p.Masked() != p || (kind.bits != 0 && p.Bits() != kind.bits) {
			return nil, &AnswerError{path, line, kind.want}
		}
		if seen[p] {
			return nil, &AnswerError{path, line, "each block once"}
		}
		seen[p] = true
		out = append(out, p)
	}
	return out, nil
}

func parseIndex(path, s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 || n > maxIndex {
		return 0, &AnswerError{path, s, fmt.Sprintf("a number, 0 to %d", maxIndex)}
	}
	return n, nil
}

// parseID checks an id such as eni-0123456789abcdef0.
func parseID(path, prefix, s string) (string, error) {
	s = strings.TrimSpace(s)
	hex, ok := strings.CutPrefix(s, prefix)
	if !ok || hex == "" || len(s) > maxIDLength || strings.Trim(hex, "0123456789abcdef") != "" {
		return "", &AnswerError{path, s, "an id like " + prefix + "0123456789abcdef0"}
	}
	return s, nil
}

func parseENIID(path, s string) (ipam.ENIID, error) {
	id, err := parseID(path, "eni-", s)
	return ipam.ENIID(id), err
}

// parseWord checks a value used in requests and names, such as a region.
func parseWord(path, s string) (string, error) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > maxIDLength || strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.'
	}) {
		return "", &AnswerError{path, s, "letters, digits, '-' and '.'"}
	}
	return s, nil
}
