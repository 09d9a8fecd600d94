package rules

import (
	"net/netip"
	"strconv"
	"strings"

	"cnictl/daemon/api/netnames"
)

func (p Pod) String() string {
	var b strings.Builder
	for i := range p.Interfaces {
		p.Interfaces[i].pair(&b)
	}
	if p.VLAN != nil {
		b.WriteString(p.VLAN.String())
	}
	for i := range p.Interfaces {
		p.Interfaces[i].inPod(&b)
	}
	for i := range p.Interfaces {
		p.Interfaces[i].onHost(&b)
	}
	return b.String()
}

func (f *Interface) pair(b *strings.Builder) {
	b.WriteString(f.Pair.String())
	writeSysctls(b, "host", f.Pair.Host.Name, f.HostSysctls)
	writeSysctls(b, "pod", f.Pair.Pod.Name, f.PodSysctls)
	if f.HostAddress.IsValid() {
		b.WriteString("host addr add " + f.HostAddress.String() + " dev " + f.Pair.Host.Name + " scope link nodad\n")
	}
}

func (f *Interface) inPod(b *strings.Builder) {
	b.WriteString("pod link set " + f.Pair.Pod.Name + " up\n")
	b.WriteString("pod route replace " + f.Gateway.String() + "\n")
	if f.Rule.Priority != 0 {
		b.WriteString("pod rule add " + f.Rule.String() + "\n")
	}
	b.WriteString("pod route add " + f.Default.String() + "\n")
	b.WriteString("pod addr add " + f.Address.String() + " dev " + f.Pair.Pod.Name)
	if f.Address.Addr().Is6() {
		b.WriteString(" nodad")
	}
	b.WriteString("\npod neigh add " + f.Neighbour.String() + "\n")
}

func (f *Interface) onHost(b *strings.Builder) {
	b.WriteString("host route replace " + f.ToPod.String() + "\n")
	b.WriteString("host rule del " + f.StaleRule.String() + "\n")
	for _, r := range f.Rules {
		b.WriteString("host rule add " + r.String() + "\n")
	}
}

func (v *VLAN) String() string {
	var b strings.Builder
	for _, r := range v.Stale {
		b.WriteString("host rule del " + r.String() + "\n")
	}
	b.WriteString("host link del " + v.Name + "\n")
	b.WriteString("host link add link " + strconv.Itoa(int(v.Parent)) + " name " + v.Name + " address " + v.MAC.String() +
		" type vlan id " + strconv.Itoa(v.ID) + "\n")
	writeSysctls(&b, "host", v.Name, v.Sysctls)
	b.WriteString("host link set " + v.Name + " up\n")
	if v.Address.IsValid() {
		b.WriteString("host addr add " + v.Address.String() + " dev " + v.Name + " scope link nodad\n")
	}
	b.WriteString("host route replace " + v.Gateway.String() + "\n")
	b.WriteString("host route replace " + v.Default.String() + "\n")
	return b.String()
}

// writeSysctls prints sysctls, of a link unless they name another.
func writeSysctls(b *strings.Builder, where, link string, list []Sysctl) {
	for _, s := range list {
		of := link
		if s.Link != "" {
			of = s.Link
		}
		b.WriteString(where + " sysctl net.ipv6.conf." + of + "." + s.Key + " = " + s.Value + "\n")
	}
}

func (r Route) String() string {
	to := "default"
	if r.Dst.IsValid() {
		to = single(r.Dst)
	}
	if r.Gateway.IsValid() {
		to += " via " + r.Gateway.String() + " dev " + r.Link
	} else {
		to += " dev " + r.Link + " scope link"
	}
	if r.Table != 0 {
		to += " table " + strconv.Itoa(r.Table)
	}
	return to
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
	if r.InLink != "" {
		b.WriteString(" iif " + r.InLink)
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
