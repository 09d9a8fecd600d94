package vpcapi

import (
	"fmt"
	"net/netip"
	"strings"

	"cnictl/daemon/ipam"
)

// AnswerError means that EC2's answer is not what EC2 documents.
type AnswerError struct {
	Field string // EC2's name for it
	Value string
	Want  string
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("EC2 answer: %s is %.100q: want %s", e.Field, e.Value, e.Want)
}

const (
	maxIDLength      = 64
	maxAddresses     = 1024 // per ENI and list, far above every instance type's limit
	wantIPv4         = "an IPv4 address"
	wantIPv6         = "an IPv6 address"
	wantSubnetIPv4   = "an IPv4 address of the subnet "
	wantPrefix4      = "an aligned IPv4 /28"
	wantPrefix6      = "an aligned IPv6 /80"
	wantSubnetIPv6   = "an IPv6 address of the subnet "
	wantSubnetRange  = "an IPv4 block of /16 to /28"
	wantSubnetRange6 = "an IPv6 block of /44 to /64"
)

// checkID checks an id such as eni-0123456789abcdef0.
func checkID(field, prefix, id string) error {
	hex, ok := strings.CutPrefix(id, prefix)
	if !ok || hex == "" || len(id) > maxIDLength || strings.Trim(hex, "0123456789abcdef") != "" {
		return &AnswerError{field, id, "an id like " + prefix + "0123456789abcdef0"}
	}
	return nil
}

// parseIPv4 reads an address of the subnet within, which is zero if unknown.
func parseIPv4(field, s string, within netip.Prefix) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return netip.Addr{}, &AnswerError{field, s, wantIPv4}
	}
	if within.IsValid() && !within.Contains(a) {
		return netip.Addr{}, &AnswerError{field, s, wantSubnetIPv4 + within.String()}
	}
	if !ipam.IsHostAddr(a) {
		return netip.Addr{}, &AnswerError{field, s, ipam.WantHostAddr}
	}
	return a, nil
}

// parseIPv6 reads an address of the subnet within, which is zero if unknown.
func parseIPv6(field, s string, within netip.Prefix) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Is4In6() || a.Zone() != "" {
		return netip.Addr{}, &AnswerError{field, s, wantIPv6}
	}
	if within.IsValid() && !within.Contains(a) {
		return netip.Addr{}, &AnswerError{field, s, wantSubnetIPv6 + within.String()}
	}
	if !ipam.IsHostAddr(a) {
		return netip.Addr{}, &AnswerError{field, s, ipam.WantHostAddr}
	}
	return a, nil
}

func parsePrefix4(field, s string, within netip.Prefix) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || !p.Addr().Is4() || p.Bits() != 28 || p.Masked() != p {
		return netip.Prefix{}, &AnswerError{field, s, wantPrefix4}
	}
	if within.IsValid() && !within.Contains(p.Addr()) {
		return netip.Prefix{}, &AnswerError{field, s, "a /28 of the subnet " + within.String()}
	}
	if !ipam.IsHostAddr(p.Addr()) {
		return netip.Prefix{}, &AnswerError{field, s, ipam.WantHostAddr}
	}
	return p, nil
}

func parsePrefix6(field, s string, within netip.Prefix) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || !p.Addr().Is6() || p.Bits() != 80 || p.Masked() != p {
		return netip.Prefix{}, &AnswerError{field, s, wantPrefix6}
	}
	if within.IsValid() && !within.Contains(p.Addr()) {
		return netip.Prefix{}, &AnswerError{field, s, "a /80 of the subnet " + within.String()}
	}
	if !ipam.IsHostAddr(p.Addr()) {
		return netip.Prefix{}, &AnswerError{field, s, ipam.WantHostAddr}
	}
	return p, nil
}

// parseAll parses a list. Duplicates, or more than max members, make the answer invalid.
func parseAll[T comparable](field string, in []string, max int, parse func(s string) (T, error)) ([]T, error) {
	if len(in) > max {
		return nil, &AnswerError{field, fmt.Sprintf("%d members", len(in)), fmt.Sprintf("at most %d", max)}
	}
	var out []T
	seen := make(map[T]bool, len(in))
	for _, s := range in {
		v, err := parse(s)
		if err != nil {
			return nil, err
		}
		if seen[v] {
			return nil, &AnswerError{field, s, "each member once"}
		}
		seen[v] = true
		out = append(out, v)
	}
	return out, nil
}
