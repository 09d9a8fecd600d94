package reading

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/doctor/evidence"
)

// Rules reads the output of ip rule for one family. It omits rules with conditions that evidence
// has no member for: none belongs to the CNI, and they would look as if they applied to all
// packets.
func Rules(printed string, family int) []evidence.Rule {
	out := []evidence.Rule{}
	for line := range strings.Lines(printed) {
		if rule, ok := ruleOf(line, family); ok {
			out = append(out, rule)
		}
	}
	return out
}

func ruleOf(line string, family int) (rule evidence.Rule, ok bool) {
	number, rest, _ := strings.Cut(line, ":")
	priority, err := strconv.Atoi(strings.TrimSpace(number))
	words := strings.Fields(rest)
	if err != nil || priority < 0 || len(words)%2 != 0 {
		return rule, false
	}
	rule = evidence.Rule{Family: family, Priority: priority}
	for i := 0; i < len(words); i += 2 {
		value := words[i+1]
		switch words[i] {
		case "from":
			rule.From, ok = selector(value)
		case "to":
			rule.To, ok = selector(value)
		case "iif":
			rule.IIF, ok = value, true
		case "fwmark":
			rule.FWMark, ok = markOf(value)
		case "lookup":
			ok = rule.Table.UnmarshalText([]byte(value)) == nil
		case "proto":
			ok = true
		default:
			ok = false
		}
		if !ok {
			return rule, false
		}
	}
	return rule, rule.Table != ""
}

// selector parses a range of addresses, zero for all.
func selector(text string) (netip.Prefix, bool) {
	if text == "all" {
		return netip.Prefix{}, true
	}
	return prefixOf(text)
}

// prefixOf parses a range, or a single address.
func prefixOf(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, true
	}
	a, err := introspect.ParseAddr(text)
	return netip.PrefixFrom(a, a.BitLen()), err == nil
}

// markOf returns a mark with its mask.
func markOf(text string) (string, bool) {
	mark, mask, masked := strings.Cut(text, "/")
	if !masked {
		mask = "0xffffffff"
	}
	_, err := strconv.ParseUint(mark, 0, 32)
	_, maskErr := strconv.ParseUint(mask, 0, 32)
	return mark + "/" + mask, err == nil && maskErr == nil
}

// Routes reads the routes of one family from the output of ip route, of all tables or one. It
// omits table local, and routes that lead neither to a next hop nor to a link.
func Routes(printed string, family int) []evidence.Route {
	out := []evidence.Route{}
	hops := false // the previous route's hops are on the following lines
	for line := range strings.Lines(printed) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "nexthop" {
			if last := len(out) - 1; hops && last >= 0 && !out[last].Via.IsValid() && out[last].Dev == "" {
				hop(&out[last], words[1:])
			}
			continue
		}
		route := evidence.Route{Family: family, Table: netnames.MainTable, To: "default"}
		hops = false
		ok := hop(&route, words[1:])
		if words[0] != "default" {
			to, isRange := prefixOf(words[0])
			ok = ok && isRange && to.Addr().Is4() == (family == 4)
			route.To = to.String()
		} else {
			six := route.Via.Is6() || !route.Via.IsValid() && slices.Contains(words, "pref")
			ok = ok && six == (family == 6)
		}
		if !ok || route.Table == netnames.LocalTable {
			continue
		}
		out = append(out, route)
		hops = true
	}
	return out
}

// hop reads the members after the destination. It returns false if the number of the route's
// table is unknown.
func hop(r *evidence.Route, words []string) bool {
	for i := 0; i+1 < len(words); i++ {
		switch value := words[i+1]; words[i] {
		case "via":
			if value == "inet6" && i+2 < len(words) {
				value = words[i+2]
			}
			r.Via, _ = introspect.ParseAddr(value)
		case "dev":
			r.Dev = value
		case "table":
			switch value {
			case "main":
			case "local":
				r.Table = netnames.LocalTable
			case "default":
				r.Table = 253
			default:
				n, err := strconv.ParseUint(value, 10, 32)
				if err != nil {
					return false
				}
				r.Table = int(n)
			}
		}
	}
	return true
}

// Links reads the output of ifconfig, together with that of ip addr. Neither shows the kind of a
// link; its name does.
func Links(printed string) []evidence.Link {
	out := []evidence.Link{}
	for line := range strings.Lines(printed) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if line[0] != ' ' && line[0] != '\t' {
			if _, err := strconv.Atoi(strings.TrimSuffix(words[0], ":")); err == nil { // ip's index
				words = words[1:]
			}
			if len(words) < 2 {
				continue
			}
			name, parent, _ := strings.Cut(strings.TrimSuffix(words[0], ":"), "@")
			if name == "" {
				continue
			}
			link := evidence.Link{Name: name, Kind: "device", Up: new(false)}
			vlan, isVLAN := netnames.VLANOfDevice(name)
			switch {
			case isVLAN:
				link.Kind, link.VLAN, link.Parent = "vlan", &vlan, parent
			case podHash(name) != "":
				link.Kind = "veth"
			}
			out = append(out, link)
		}
		if len(out) > 0 {
			readLink(&out[len(out)-1], words)
		}
	}
	return out
}

// IsLinkAddress reports whether evidence keeps an address of a link.
func IsLinkAddress(p netip.Prefix) bool {
	return p.Addr().Is4() && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast()
}

// addressOf parses an IPv4 address of a link: with its length, as ip prints it, or as ifconfig, which prints
// a netmask further on in the line.
func addressOf(text string, words []string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, true
	}
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is4() {
		return netip.Prefix{}, false
	}
	ones := a.BitLen()
	if at := slices.Index(words, "netmask"); at >= 0 && at+1 < len(words) {
		if mask, err := netip.ParseAddr(words[at+1]); err == nil && mask.Is4() {
			bytes := mask.As4()
			ones = bits.OnesCount32(binary.BigEndian.Uint32(bytes[:]))
		}
	}
	return netip.PrefixFrom(a, ones), true
}

// readLink reads what a line says about the link.
func readLink(l *evidence.Link, words []string) {
	for i, w := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch w {
		case "mtu":
			if n, err := strconv.Atoi(next); err == nil {
				l.MTU = &n
			}
		case "ether", "link/ether":
			l.MAC = strings.ToLower(next)
		case "inet":
			if p, ok := addressOf(next, words); ok && IsLinkAddress(p) {
				l.Addresses = append(l.Addresses, p)
			}
		default:
			_, flags, ok := strings.Cut(w, "<")
			if ok && i < 2 {
				*l.Up = slices.Contains(strings.Split(strings.TrimSuffix(flags, ">"), ","), "UP")
			}
		}
	}
}
