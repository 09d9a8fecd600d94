package inventory

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/fleet/store"
	"cnictl/doctor/evidence"
)

// WithInterfaces returns the map with all interfaces that EC2 lists in the subnet: what EC2 lists counts, and the
// nodes' pools only say which addresses pods use. An interface of a node's instance goes with the node,
// unless EC2 keeps it when the instance is terminated.
func (m SubnetMap) WithInterfaces(all []evidence.Interface, nodes []*store.Node) SubnetMap {
	by := map[string]*store.Node{}
	for _, n := range nodes { // without Kubernetes, a node says itself which instance it is
		switch {
		case n.Object != nil && n.Object.InstanceID != "":
			by[n.Object.InstanceID] = n
		case n.Object == nil && n.Summary != nil && n.Summary.InstanceID != "":
			by[n.Summary.InstanceID] = n
		}
	}
	reported := m
	m.Seen, m.Cells, m.Holdings = true, SubnetCells(store.SubnetUse{Subnet: m.Use.Subnet, Range: m.Use.Range}), nil
	for _, e := range all {
		node := by[e.Instance]
		take := func(p netip.Prefix, use store.BlockUse, count int) {
			i, ok := indexOf(m.Use.Range, p)
			if !ok || i >= len(m.Cells) {
				return
			}
			if node != nil && e.DeleteOnTermination {
				m.Holdings = append(m.Holdings, store.Holding{Prefix: PrefixAt(m.Use.Range, i), Node: node, Use: use, Held: count})
				return
			}
			m.Cells[i].Others = append(m.Cells[i].Others, BlockOwner{Name: ownerOf(e, node), Interface: e.ID, Addresses: count})
		}
		if e.Primary.IsValid() {
			take(netip.PrefixFrom(e.Primary, smallest), store.BlockPrimary, 1)
		}
		for _, a := range e.IPs {
			take(netip.PrefixFrom(a, smallest), store.BlockMixed, 1)
		}
		for _, p := range e.Prefixes {
			take(p, store.BlockPrefix, blockSize)
		}
	}
	m.Holdings = store.Join(m.Holdings)
	for i := range m.Holdings {
		h := &m.Holdings[i]
		for _, was := range reported.In(h.Prefix) {
			if was.Node == h.Node {
				h.Used = min(was.Used, h.Held)
			}
		}
		at, _ := indexOf(m.Use.Range, h.Prefix)
		c := &m.Cells[at]
		if c.Use == 0 || c.Use == ReservedBlock || h.Use < c.Use {
			c.Use = h.Use
		}
		if c.Held, c.Used = c.Held+h.Held, c.Used+h.Used; c.Node == "" {
			c.Node = h.Node.Metadata.Name
		}
	}
	for i := range m.Cells {
		switch c := &m.Cells[i]; {
		case len(c.Others) > 0 && c.Held == 0:
			c.Use = OthersBlock
		case c.Use == 0:
			c.Use = FreeBlock
		}
	}
	return m
}

// Owners returns who else has addresses in the subnet, most addresses first, with the number of
// interfaces.
func (m SubnetMap) Owners() []SubnetOwner {
	sums, interfaces := map[string]*SubnetOwner{}, map[string]bool{}
	for _, c := range m.Cells {
		last := ""
		for _, o := range c.Others {
			s := sums[o.Name]
			if s == nil {
				s = &SubnetOwner{Name: o.Name}
				sums[o.Name] = s
			}
			if s.Addresses += o.Addresses; last != o.Name {
				s.Blocks++
			}
			if !interfaces[o.Interface] {
				interfaces[o.Interface] = true
				s.Interfaces++
			}
			last = o.Name
		}
	}
	out := make([]SubnetOwner, 0, len(sums))
	for _, s := range sums {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b SubnetOwner) int {
		return cmp.Or(cmp.Compare(b.Addresses, a.Addresses), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// SubnetOwner is what an owner has in a subnet.
type SubnetOwner struct {
	Name                          string
	Interfaces, Addresses, Blocks int
}

// services are the descriptions that AWS services give their interfaces, and what they are of.
var services = []struct {
	begin, name string
	rest        func(string) string
}{
	{"ELB ", "load balancer ", balancer},
	{"Interface for NAT Gateway ", "NAT gateway ", nil},
	{"VPC Endpoint Interface ", "VPC endpoint ", nil},
	{"AWS Lambda VPC ENI-", "Lambda function ", function},
	{"EFS mount target for ", "EFS ", nil},
	{"RDSNetworkInterface", "RDS", nil},
	{"ElastiCache ", "ElastiCache ", nil},
	{"Amazon EKS ", "EKS control plane of ", nil},
	{"Network Interface for Transit Gateway Attachment ", "transit gateway attachment ", nil},
	{"aws-k8s-branch-eni", "branch ENIs of pods", func(string) string { return "" }},
}

// ownerOf names who an interface belongs to. The name is not safe to print.
func ownerOf(e evidence.Interface, node *store.Node) string {
	switch {
	case node != nil:
		return e.ID + " of " + node.Metadata.Name + ", kept when that is terminated"
	case e.Instance != "":
		return "instance " + e.Instance
	}
	for _, s := range services {
		if rest, ok := strings.CutPrefix(e.Description, s.begin); ok {
			if s.rest != nil {
				rest = s.rest(rest)
			}
			return strings.TrimSpace(s.name + rest)
		}
	}
	unused := ""
	if e.Status == "available" {
		unused = ", attached to nothing"
	}
	switch {
	case e.Type == "branch":
		return "branch ENIs of pods"
	case e.Description != "":
		return e.Description + unused
	case e.Type != "" && e.Type != "interface":
		return strings.ReplaceAll(e.Type, "_", " ") + unused
	}
	return e.ID + unused
}

// balancer leaves out the id of a load balancer: app/NAME/ID.
func balancer(s string) string {
	if parts := strings.Split(s, "/"); len(parts) == 3 {
		return parts[0] + "/" + parts[1]
	}
	return s
}

// function leaves out the id of a function's interface: NAME-UUID.
func function(s string) string {
	const uuid = len("-01234567-89ab-cdef-0123-456789abcdef")
	if len(s) > uuid {
		return s[:len(s)-uuid]
	}
	return s
}
