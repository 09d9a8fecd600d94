package rules

import (
	"strconv"
	"strings"

	"cnictl/daemon/netstate"
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
	writeSysctls(b, "host", f.HostSysctls)
	writeSysctls(b, "pod", f.PodSysctls)
	if f.HostAddress.IsValid() {
		b.WriteString("host addr add " + f.HostAddress.String() + " dev " + f.Pair.Host.Name + " scope link nodad\n")
	}
}

func (f *Interface) inPod(b *strings.Builder) {
	b.WriteString("pod link set " + f.Pair.Pod.Name + " up\n")
	b.WriteString("pod route replace " + f.Gateway.Over(f.Pair.Pod.Name) + "\n")
	if f.Rule.Priority != 0 {
		b.WriteString("pod rule add " + ruleText(f.Rule) + "\n")
	}
	b.WriteString("pod route add " + f.Default.Over(f.Pair.Pod.Name) + "\n")
	b.WriteString("pod addr add " + f.Address.String() + " dev " + f.Pair.Pod.Name)
	if f.Address.Addr().Is6() {
		b.WriteString(" nodad")
	}
	b.WriteString("\npod neigh add " + f.Neighbour.IP.String() + " dev " + f.Pair.Pod.Name + " lladdr " + f.Neighbour.MAC.String() + " nud permanent\n")
}

func (f *Interface) onHost(b *strings.Builder) {
	b.WriteString("host route replace " + f.ToPod.Over(f.Pair.Host.Name) + "\n")
	b.WriteString("host rule del " + ruleText(f.StaleRule) + "\n")
	for _, r := range f.Rules {
		b.WriteString("host rule add " + ruleText(r) + "\n")
	}
}

func (v *VLAN) String() string {
	var b strings.Builder
	for _, r := range v.Stale {
		b.WriteString("host rule del " + ruleText(r) + "\n")
	}
	b.WriteString("host link del " + v.Name + "\n")
	b.WriteString("host link add link " + strconv.Itoa(int(v.Parent)) + " name " + v.Name + " address " + v.MAC.String() +
		" type vlan id " + strconv.Itoa(v.ID) + "\n")
	writeSysctls(&b, "host", v.Sysctls)
	b.WriteString("host link set " + v.Name + " up\n")
	if v.Address.IsValid() {
		b.WriteString("host addr add " + v.Address.String() + " dev " + v.Name + " scope link nodad\n")
	}
	b.WriteString("host route replace " + v.Gateway.Over(v.Name) + "\n")
	b.WriteString("host route replace " + v.Default.Over(v.Name) + "\n")
	return b.String()
}

func writeSysctls(b *strings.Builder, where string, list []netstate.Sysctl) {
	for _, s := range list {
		b.WriteString(where + " sysctl " + s.String() + "\n")
	}
}

// ruleText is a rule, with its family if no address shows it.
func ruleText(r netstate.Rule) string {
	if r.IPv6 && !r.From.IsValid() && !r.To.IsValid() {
		return "-6 " + r.String()
	}
	return r.String()
}
