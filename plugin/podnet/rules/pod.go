package rules

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"cnictl/daemon/api/netnames"
)

// Pod is the wanted state of one ordinary IPv4 pod beyond its veth pair.
type Pod struct {
	Pair    Pair
	Address netip.Prefix // /32, on the pod end

	// In the pod, in this order: the gateway is reached on the link, everything
	// else through it, and its MAC is the host end's.
	Gateway   Route
	Default   Route
	Neighbour Neighbour

	// On the host.
	ToPod     Route
	StaleRule Rule   // deleted if there: it would send the pod's traffic out of another ENI
	Rules     []Rule // added
}

// Route is a route through one end of the pair. The zero Dst is the default route.
type Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr // zero: on the link
	Link    string
}

// Neighbour is a permanent neighbour entry on the pod end.
type Neighbour struct {
	IP   netip.Addr
	MAC  MAC
	Link string
}

// Rule is a policy rule. Table 0 means any, for deletion only.
type Rule struct {
	Priority int
	From, To netip.Prefix
	Table    int
	IPv6     bool // family of a rule without From and To
}

// NewPod is the state of a pod that owns an address whose ENI has a route table.
// Table 0 and 1 mean main, as in replies of older daemons.
func NewPod(pair Pair, address netip.Addr, table int) (Pod, error) {
	address = address.Unmap()
	if !address.Is4() {
		return Pod{}, errors.New("lay out pod: " + strconv.Quote(address.String()) + " is not an IPv4 address")
	}
	if table < 0 {
		return Pod{}, errors.New("lay out pod: route table " + strconv.Itoa(table) + " is negative")
	}
	if table == 0 || netnames.IsMain(table) {
		table = netnames.MainTable
	}
	own := netip.PrefixFrom(address, 32)
	gateway := netnames.GatewayIPv4(0)
	p := Pod{
		Pair:      pair,
		Address:   own,
		Gateway:   Route{Dst: netip.PrefixFrom(gateway, 32), Link: pair.Pod.Name},
		Default:   Route{Gateway: gateway, Link: pair.Pod.Name},
		Neighbour: Neighbour{IP: gateway, MAC: pair.Host.MAC, Link: pair.Pod.Name},
		ToPod:     Route{Dst: own, Link: pair.Host.Name},
		StaleRule: Rule{Priority: netnames.RuleFromPod, From: own},
		Rules:     []Rule{{Priority: netnames.RuleToPod, To: own, Table: netnames.MainTable}},
	}
	if table != netnames.MainTable {
		p.Rules = append(p.Rules, Rule{Priority: netnames.RuleFromPod, From: own, Table: table})
	}
	return p, nil
}

func (p Pod) String() string {
	var b strings.Builder
	b.WriteString(p.Pair.String())
	b.WriteString("pod link set " + p.Pair.Pod.Name + " up\n")
	b.WriteString("pod route replace " + p.Gateway.String() + "\n")
	b.WriteString("pod route add " + p.Default.String() + "\n")
	b.WriteString("pod addr add " + p.Address.String() + " dev " + p.Pair.Pod.Name + "\n")
	b.WriteString("pod neigh add " + p.Neighbour.String() + "\n")
	b.WriteString("host route replace " + p.ToPod.String() + "\n")
	b.WriteString("host rule del " + p.StaleRule.String() + "\n")
	for _, r := range p.Rules {
		b.WriteString("host rule add " + r.String() + "\n")
	}
	return b.String()
}

func (r Route) String() string {
	to := "default"
	if r.Dst.IsValid() {
		to = single(r.Dst)
	}
	if r.Gateway.IsValid() {
		return to + " via " + r.Gateway.String() + " dev " + r.Link
	}
	return to + " dev " + r.Link + " scope link"
}

func (n Neighbour) String() string {
	return n.IP.String() + " dev " + n.Link + " lladdr " + n.MAC.String() + " nud permanent"
}

func (r Rule) String() string {
	var b strings.Builder
	b.WriteString("pref " + strconv.Itoa(r.Priority))
	if r.IPv6 {
		b.WriteString(" family inet6")
	}
	if r.From.IsValid() {
		b.WriteString(" from " + single(r.From))
	}
	if r.To.IsValid() {
		b.WriteString(" to " + single(r.To))
	}
	switch r.Table {
	case 0:
	case netnames.MainTable:
		b.WriteString(" lookup main")
	default:
		b.WriteString(" lookup " + strconv.Itoa(r.Table))
	}
	return b.String()
}

// single prints a host prefix as iproute2 does, without its length.
func single(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
