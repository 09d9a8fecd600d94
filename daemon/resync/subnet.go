package resync

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// Tags that decide whether pods may use a subnet (amazon-vpc-cni-k8s: README.md,
// ENABLE_SUBNET_DISCOVERY).
const (
	TagSubnetRole    = "kubernetes.io/role/cni"
	TagSubnetCluster = "cni.networking.k8s.aws/cluster/" // + cluster name; the value is ignored
)

// Subnet is a subnet of the node's VPC and availability zone.
type Subnet struct {
	ID           string
	AZ           string
	CIDR         netip.Prefix // IPv4
	IPv6CIDR     netip.Prefix // zero if none
	AvailableIPs int          // Unknown if EC2 does not say
	Tags         map[string]string
}

// Unknown is the number of free addresses of a subnet that EC2 does not describe.
const Unknown = -1

// SubnetPolicy decides which subnets may be used.
type SubnetPolicy struct {
	NodeSubnet  string
	ClusterName string
	Discovery   bool // ENABLE_SUBNET_DISCOVERY
	// Custom: an ENIConfig names the subnet of new ENIs. Its tags are ignored.
	Custom       bool
	CustomSubnet string // "" if no ENIConfig is known, so no ENI can be created
}

// Fallback is the subnet of new ENIs while the list of subnets is unknown.
func (p SubnetPolicy) Fallback() string {
	if p.Custom {
		return p.CustomSubnet
	}
	return p.NodeSubnet
}

// Usable reports whether new ENIs may be created in the subnet. Without discovery only the
// node's own subnet is usable; an exclusion tag applies in either case.
func (p SubnetPolicy) Usable(s Subnet) bool {
	if p.Custom {
		return s.ID == p.CustomSubnet
	}
	own := s.ID == p.NodeSubnet
	switch role := s.Tags[TagSubnetRole]; role {
	case "":
		return own
	case "0":
		return false
	default:
		return (own || p.Discovery) && p.clusterAllowed(s)
	}
}

// Excluded reports whether an ENI already attached in the subnet must no longer give
// addresses to new pods.
func (p SubnetPolicy) Excluded(s Subnet) bool {
	switch s.Tags[TagSubnetRole] {
	case "":
		return false
	case "0":
		return true
	default:
		return !p.clusterAllowed(s)
	}
}

// Excludes is Excluded for an ENI: under custom networking the primary ENI serves no new
// pods, whatever its subnet (upstream gives its addresses to pods).
func (p SubnetPolicy) Excludes(primary bool, s Subnet) bool {
	return p.Custom && primary || p.Excluded(s)
}

func (p SubnetPolicy) clusterAllowed(s Subnet) bool {
	if p.ClusterName == "" {
		return true
	}
	restricted := false
	for key := range s.Tags {
		if name, ok := strings.CutPrefix(key, TagSubnetCluster); ok {
			if name == p.ClusterName {
				return true
			}
			restricted = true
		}
	}
	return !restricted
}

// Candidates returns the usable subnets, the one with the most free addresses first. If EC2's list
// lacks the node's own subnet, the fallback comes last: an account sees a subnet that another one
// shares with it, or that belongs to the service which runs its nodes, only if it may describe
// it; nothing says that ENIs cannot be created there. But what a list with the node's own subnet
// lacks is in another zone, as the subnet of an ENIConfig may be.
func (p SubnetPolicy) Candidates(all []Subnet) []Subnet {
	var usable []Subnet
	for _, s := range all {
		if p.Usable(s) {
			usable = append(usable, s)
		}
	}
	slices.SortFunc(usable, func(a, b Subnet) int {
		return cmp.Or(cmp.Compare(b.AvailableIPs, a.AvailableIPs), cmp.Compare(a.ID, b.ID))
	})
	listed := func(id string) bool { return slices.ContainsFunc(all, func(s Subnet) bool { return s.ID == id }) }
	if f := p.Fallback(); f != "" && !listed(p.NodeSubnet) && !listed(f) {
		usable = append(usable, Subnet{ID: f, AvailableIPs: Unknown})
	}
	return usable
}
