package situation

import (
	"fmt"
	"net/netip"
	"strings"

	"cnictl/daemon/api/netnames"
	hostrules "cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
	"cnictl/doctor/evidence"
)

// expectKernel sets the kernel state that the daemon and the plugin create in the world, computed
// with the daemon's own functions.
func (p *population) expectKernel(r *evidence.Reading) {
	node := p.nodeState()
	r.Links = evidence.Read(p.links())
	r.Rules = evidence.Read(p.rules(node))
	r.Routes = evidence.Read(p.routes())
	r.IPTables = evidence.Read(p.iptables(node))
	sysctls := map[string]string{}
	for _, s := range node.Sysctls {
		sysctls[s.Name()] = s.Value
	}
	sysctls["net.ipv4.ip_forward"] = "1"
	r.Sysctls = evidence.Read(sysctls)
	gateway := netnames.GatewayIPv4(0)
	if p.IPFamily == "ipv6" {
		gateway = netnames.GatewayIPv6(0)
	}
	neighbours := []evidence.Neighbour{}
	for _, l := range r.Links.Content {
		if l.Kind == "veth" {
			neighbours = append(neighbours, evidence.Neighbour{Pod: l.Pod, Address: gateway, MAC: l.MAC, State: "permanent"})
		}
	}
	r.Neighbours = evidence.Read(neighbours)
	r.Conntrack = evidence.Read(evidence.Conntrack{
		Count: ref(1000), Max: ref(262144),
		Allowance: evidence.Allowance{Conntrack: ref(0), LinkLocal: ref(0), PPS: ref(0), BWIn: ref(0), BWOut: ref(0)},
		Neighbours: evidence.NeighbourTables{
			IPv4: evidence.NeighbourTable{Entries: ref(60), Max: ref(1024), Full: ref(0)},
			IPv6: evidence.NeighbourTable{Entries: ref(20), Max: ref(1024), Full: ref(0)},
		},
	})
}

func (p *population) nodeState() hostrules.NodeState {
	c := p.settings()
	return hostrules.Node(hostrules.NodeInput{
		IPv6: p.IPFamily == "ipv6", PrimaryMAC: p.macs[p.ENIs[0].ID], PrimaryIP: p.nodeIP(), PrimaryLink: device(0, 0), MTU: c.ENIMTU,
		VPCCIDRs: p.VPCCIDRs, ExcludeSNATCIDRs: c.ExcludeSNATCIDRs, ExternalServiceCIDRs: c.ExternalServiceCIDRs,
		ExternalSNAT: c.ExternalSNAT, NodePortSupport: c.NodePortSupport, RandomizeSNAT: string(c.RandomizeSNAT), ConnMark: c.Connmark,
		VethPrefix: c.VethPrefix, V6Egress: c.V6Egress, StrictPodENI: c.PodENI && c.PodSecurityMode == "strict",
		Backend: p.backend(), RandomFully: true,
	})
}

// backend returns where marks are set: upstream before v1.23 only supports iptables.
func (p *population) backend() hostrules.Backend {
	if p.Daemon == "original" && p.release.Before(evidence.Version{1, 23}) {
		return hostrules.IPTables
	}
	return hostrules.NFTables
}

// device returns the name of an interface's link.
func device(card, device int) string {
	if card == 0 {
		return fmt.Sprintf("ens%d", 5+device)
	}
	return fmt.Sprintf("ens%d", 100*card+5+device)
}

func (p *population) links() []evidence.Link {
	mtu := p.settings().ENIMTU
	podMTU := p.settings().PodMTU
	links := []evidence.Link{{Name: "lo", Kind: "device", MTU: ref(65536), Up: ref(true)}}
	for i := range p.ENIs {
		e := &p.ENIs[i]
		link := evidence.Link{Name: device(e.Card, e.device()), Kind: "device", ENI: e.ID, MAC: p.macs[e.ID], MTU: &mtu, Up: ref(true)}
		for _, s := range p.Subnets {
			if a := p.primary[e.ID]; s.ID == e.Subnet && s.CIDR.IsValid() && a.IsValid() {
				link.Addresses = []netip.Prefix{netip.PrefixFrom(a, s.CIDR.Bits())}
			}
		}
		links = append(links, link)
	}
	for n, r := range p.living() {
		links = append(links, evidence.Link{
			Pod: r.pod, Name: p.veth(r.pod), Kind: "veth", MAC: fmt.Sprintf("06:00:00:00:%02x:%02x", n>>8, n&0xff), MTU: &podMTU, Up: ref(true),
		})
	}
	for n, b := range p.branches() {
		links = append(links, evidence.Link{Name: netnames.VLANDevice(b.vlan), Kind: "vlan", VLAN: &b.vlan, Parent: p.trunkLink(), MTU: &mtu, Up: ref(true)},
			evidence.Link{Pod: b.pod, Name: p.vlanVeth(b.pod), Kind: "veth", MAC: fmt.Sprintf("06:00:00:01:%02x:%02x", n>>8, n&0xff), MTU: &podMTU, Up: ref(true)})
	}
	return links
}

// living returns the assignments whose pod still exists.
func (p *population) living() (out []record) {
	for _, r := range p.records {
		if r.pod != "" && !r.gone {
			out = append(out, r)
		}
	}
	return out
}

func (p *population) veth(pod evidence.Pod) string {
	namespace, name, _ := strings.Cut(string(pod), "/")
	return netnames.HostVeth(p.settings().VethPrefix, namespace, name, 0)
}

func (p *population) rules(node hostrules.NodeState) []evidence.Rule {
	family := 4
	if p.IPFamily == "ipv6" {
		family = 6
	}
	out := []evidence.Rule{}
	add := func(rules ...netstate.Rule) {
		for _, r := range rules {
			out = append(out, ruleOf(r, family))
		}
	}
	add(node.IPRules...)
	if !p.settings().PodENI || p.settings().PodSecurityMode != "strict" {
		out = append(out, evidence.Rule{Family: family, Priority: netnames.RuleLocal, Table: "local"})
	}
	for i := range p.ENIs {
		if e := &p.ENIs[i]; e.Managed && !*e.Primary {
			if s := hostrules.ENI(p.eniInput(e), 0); s.Rule != nil {
				add(*s.Rule)
			}
		}
	}
	for _, r := range p.living() {
		add(hostrules.PodRules(r.address, p.table(r.eni))...)
	}
	for _, b := range p.branches() {
		table := evidence.Table(text(b.table))
		if p.settings().PodSecurityMode == "strict" {
			out = append(out,
				evidence.Rule{Family: family, Priority: 10, IIF: netnames.VLANDevice(b.vlan), Table: table},
				evidence.Rule{Family: family, Priority: 10, IIF: p.vlanVeth(b.pod), Table: table})
			continue
		}
		add(hostrules.PodRules(b.address, b.table)...)
	}
	out = append(out, evidence.Rule{Family: family, Priority: 32766, Table: "main"})
	if family == 4 { // the kernel has no such table for IPv6
		out = append(out, evidence.Rule{Family: family, Priority: 32767, Table: "default"})
	}
	return out
}

func ruleOf(r netstate.Rule, family int) evidence.Rule {
	out := evidence.Rule{Family: family, Priority: r.Priority, From: r.From, To: r.To, IIF: r.InLink, Table: tableName(r.Table)}
	if r.Mark != 0 || r.Mask != 0 {
		out.FWMark = fmt.Sprintf("%#x/%#x", r.Mark, r.Mask)
	}
	return out
}

func tableName(n int) evidence.Table {
	switch n {
	case netnames.MainTable:
		return "main"
	case netnames.LocalTable:
		return "local"
	}
	return evidence.Table(text(n))
}

func (p *population) table(e *worldENI) int { return netnames.RouteTable(e.Card, e.device()) }

func (p *population) eniInput(e *worldENI) hostrules.ENIInput {
	return hostrules.ENIInput{
		IPv6: p.IPFamily == "ipv6", MAC: p.macs[e.ID], Card: e.Card, Device: e.device(), PrimaryIP: p.primary[e.ID],
		Subnet: p.subnet(e.Subnet).CIDR.Masked(), Trunk: e.Trunk,
	}
}

func (p *population) routes() []evidence.Route {
	family, out := 4, []evidence.Route{}
	if p.IPFamily == "ipv6" {
		family = 6
	}
	first := p.subnet(p.ENIs[0].Subnet).CIDR.Masked()
	out = append(out,
		evidence.Route{Family: 4, Table: netnames.MainTable, To: "default", Via: first.Addr().Next(), Dev: device(0, 0)},
		evidence.Route{Family: 4, Table: netnames.MainTable, To: first.String(), Dev: device(0, 0)})
	if family == 6 {
		out = append(out, evidence.Route{Family: 6, Table: netnames.MainTable, To: "default", Via: netnames.BranchGatewayIPv6(), Dev: device(0, 0)})
	}
	for i := range p.ENIs {
		e := &p.ENIs[i]
		if !e.Managed || *e.Primary {
			continue
		}
		for _, r := range hostrules.ENI(p.eniInput(e), 0).Routes {
			out = append(out, evidence.Route{Family: family, Table: r.Table, To: destination(r.Dst), Via: r.Gateway, Dev: device(e.Card, e.device())})
		}
	}
	for _, r := range p.living() {
		out = append(out, evidence.Route{Family: family, Table: netnames.MainTable, To: destination(netip.PrefixFrom(r.address, r.address.BitLen())), Pod: r.pod})
	}
	for _, b := range p.branches() {
		table := netnames.MainTable
		if p.settings().PodSecurityMode == "strict" {
			table = b.table
		}
		out = append(out, evidence.Route{Family: family, Table: b.table, To: "default", Via: b.gateway, Dev: netnames.VLANDevice(b.vlan)},
			evidence.Route{Family: family, Table: table, To: destination(netip.PrefixFrom(b.address, b.address.BitLen())), Pod: b.pod})
	}
	return out
}

func destination(p netip.Prefix) string {
	if p.Bits() == 0 {
		return "default"
	}
	return p.String()
}

func (p *population) iptables(node hostrules.NodeState) evidence.IPTables {
	out := evidence.IPTables{
		Mode: "nft", Forward: "ACCEPT", ForwardAccepts: ref(false), NFTTables: []string{},
		Legacy: evidence.Backend{Chains: []string{}, Rules: []string{}},
		NFT:    evidence.Backend{Chains: []string{"nat KUBE-SERVICES", "nat KUBE-POSTROUTING"}, Rules: []string{"nat -A PREROUTING -j KUBE-SERVICES", "nat -A POSTROUTING -j KUBE-POSTROUTING"}},
	}
	for _, t := range node.Ruleset.Tables {
		for _, c := range t.Chains {
			if c.Policy == "-" {
				out.NFT.Chains = append(out.NFT.Chains, t.Name+" "+c.Name)
			}
			for _, rule := range c.Rules {
				out.NFT.Rules = append(out.NFT.Rules, t.Name+" -A "+c.Name+" "+rule)
				if strings.Contains(rule, "-j SNAT") {
					out.SNATTo = ref(p.nodeIP())
				}
			}
		}
	}
	if node.NFT != nil {
		out.NFTTables = append(out.NFTTables, "ip aws-cni")
	}
	if p.Daemon == "original" && p.release.Before(evidence.Version{1, 13, 1}) && p.environment()["ENABLE_NFTABLES"] != "true" {
		out.Mode, out.NFT, out.Legacy = "legacy", out.Legacy, out.NFT // it only works on such hosts
	}
	return out
}
