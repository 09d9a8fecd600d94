package situation

import (
	"net/netip"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/cluster"
	"cnictl/doctor/evidence"
)

// branch is a pod with a branch ENI.
type branch struct {
	pod     evidence.Pod
	eni     string
	vlan    int
	table   int
	address netip.Addr
	gateway netip.Addr
}

// Names in the objects of branch pods.
const (
	branchAnnotation = "vpc.amazonaws.com/pod-eni"
	branchResource   = "vpc.amazonaws.com/pod-eni"
)

// branches returns the running pods of the node that have the annotation and whose first
// container has the limit.
func (p *population) branches() (out []branch) {
	for _, pod := range p.pods {
		if pod.Phase != "Running" || pod.Node == nil || *pod.Node != p.Node || len(pod.Containers) == 0 || pod.Containers[0].Limits[branchResource] == "" {
			continue
		}
		b, err := cluster.ParseBranch(pod.Annotations[branchAnnotation], p.IPFamily == "ipv6")
		if err != nil {
			continue
		}
		table, _ := netnames.BranchTable(b.VLAN)
		ids := cluster.BranchENIs(pod.Annotations[branchAnnotation])
		if len(ids) == 0 {
			continue
		}
		out = append(out, branch{pod: pod.Pod, eni: ids[0], vlan: b.VLAN, table: table, address: b.Address, gateway: b.Gateway})
	}
	return out
}

func (p *population) trunkLink() string {
	if t := p.trunk(); t != nil {
		return device(t.Card, t.device())
	}
	return ""
}

func (p *population) vlanVeth(pod evidence.Pod) string {
	prefix := "vlan"
	if p.settings().PodSecurityMode != "strict" {
		prefix = p.settings().VethPrefix
	}
	namespace, name, _ := strings.Cut(string(pod), "/")
	return netnames.HostVeth(prefix, namespace, name, 0)
}
