package situation

import (
	"net/netip"
	"slices"
	"strconv"

	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

func (p *population) expectAWS(r *evidence.Reading) {
	imds := evidence.IMDS{Token: "ok", Instance: p.Instance, InstanceType: p.InstanceType, Zone: p.Zone, VPCCIDRs: p.VPCCIDRs, ENIs: []evidence.IMDSInterface{}}
	interfaces := []evidence.Interface{}
	for i := range p.ENIs {
		e := &p.ENIs[i]
		ips, cidrs := slices.Clone(p.ips[e.ID]), slices.Clone(p.cidrs[e.ID])
		imds.ENIs = append(imds.ENIs, evidence.IMDSInterface{
			ID: e.ID, MAC: p.macs[e.ID], Device: e.device(), Card: e.Card, Subnet: e.Subnet,
			IPs: slices.Concat([]netip.Addr{p.primary[e.ID]}, ips), Prefixes: cidrs,
		})
		interfaces = append(interfaces, p.described(e, ips, cidrs))
	}
	for _, b := range p.branches() {
		if !slices.ContainsFunc(interfaces, func(e evidence.Interface) bool { return e.ID == b.eni }) { // two pods may name one
			interfaces = append(interfaces, p.describedBranch(b))
		}
	}
	r.IMDS, r.Interfaces = evidence.Read(imds), evidence.Read(interfaces)
	subnets := []evidence.Subnet{}
	for _, s := range p.Subnets {
		subnets = append(subnets, evidence.Subnet(s))
	}
	r.Subnets = evidence.Read(subnets)
	r.Reservations = evidence.Read([]evidence.Reservation{})
	r.InstanceType = evidence.Read(reading.InstanceType(p.InstanceType))
	r.Instances = evidence.Read([]evidence.Instance{{
		ID: p.Instance, InstanceType: p.InstanceType, State: "running", StateAt: p.UpSince, HTTPEndpoint: "enabled", HTTPTokens: "required", HopLimit: ref(2), Profile: "arn:aws:iam::" + evidence.HiddenAccount + ":instance-profile/node",
	}})
	r.Quota = evidence.Read(evidence.Quota{Limit: ref(5000), Used: ref(300)})
	any4 := []evidence.GroupRule{{Protocol: "-1", Peer: "0.0.0.0/0"}}
	r.Groups = evidence.Read([]evidence.SecurityGroup{{ID: defaultGroup, VPC: p.VPC, Ingress: any4, Egress: any4}})
	tables := []evidence.RouteTable{}
	for _, s := range p.Subnets {
		tables = append(tables, evidence.RouteTable{Subnet: s.ID, Routes: []evidence.VPCRoute{{To: "0.0.0.0/0", Target: "nat-a"}}})
	}
	r.RouteTables = evidence.Read(tables)
	r.IAM = evidence.Read(evidence.IAM{Role: "node", Actions: p.allowed()})
}

// defaultGroup is the security group of everything unless the file specifies another.
const defaultGroup = "sg-a"

// described returns the interface as EC2 describes it.
func (p *population) described(e *worldENI, ips []netip.Addr, cidrs []netip.Prefix) evidence.Interface {
	out := evidence.Interface{
		ID: e.ID, Status: "in-use", Instance: p.Instance, Card: e.Card, Device: e.Device, Type: "interface", Subnet: e.Subnet, Primary: p.primary[e.ID], IPs: ips, Prefixes: cidrs,
		Tags: e.Tags, Groups: []string{defaultGroup}, CreatedAt: p.UpSince, DeleteOnTermination: true,
	}
	if e.Trunk {
		out.Type = "trunk"
	} else if e.EFA {
		out.Type = "efa"
	}
	if e.Description != nil {
		out.Description = *e.Description
	} else if !*e.Primary {
		out.Description = "aws-K8S-" + p.Instance
	}
	if out.Tags == nil {
		out.Tags = map[string]string{}
		if !*e.Primary && e.Managed {
			out.Tags["node.k8s.amazonaws.com/instance_id"] = p.Instance
			out.Tags["node.k8s.amazonaws.com/createdAt"] = p.UpSince.Format("2006-01-02T15:04:05Z07:00")
		}
	}
	return out
}

// describedBranch returns a pod's branch ENI as EC2 describes it.
func (p *population) describedBranch(b branch) evidence.Interface {
	out := evidence.Interface{
		ID: b.eni, Status: "in-use", Type: "branch", Subnet: p.Subnets[0].ID, Primary: b.address, IPs: []netip.Addr{}, Prefixes: []netip.Prefix{},
		Description: "aws-k8s-branch-eni", CreatedAt: p.UpSince, DeleteOnTermination: true, // its groups are those of a policy
		Tags: map[string]string{"eks:eni:owner": "eks-vpc-resource-controller", "vpcresources.k8s.aws/vlan-id": strconv.Itoa(b.vlan)},
	}
	if t := p.trunk(); t != nil {
		out.Tags["vpcresources.k8s.aws/trunk-eni-id"] = t.ID
	}
	return out
}

// allowed returns the EC2 actions that the daemon needs.
func (p *population) allowed() map[string]string {
	actions := []string{"AssignIpv6Addresses", "CreateTags", "DescribeInstanceTypes", "DescribeInstances", "DescribeNetworkInterfaces", "DescribeSecurityGroups", "DescribeSubnets", "DescribeTags"}
	if p.IPFamily == "ipv4" {
		actions = []string{
			"AssignPrivateIpAddresses", "AttachNetworkInterface", "CreateNetworkInterface", "CreateTags", "DeleteNetworkInterface", "DescribeInstanceTypes", "DescribeInstances",
			"DescribeNetworkInterfaces", "DescribeSecurityGroups", "DescribeSubnets", "DescribeTags", "DetachNetworkInterface", "ModifyNetworkInterfaceAttribute", "UnassignPrivateIpAddresses",
		}
	}
	out := map[string]string{}
	for _, a := range actions {
		out["ec2:"+a] = "allowed"
	}
	return out
}
