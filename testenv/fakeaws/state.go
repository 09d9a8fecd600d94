package fakeaws

import (
	"net/http"
	"net/netip"
)

// The world as the control API shows it: EC2's names without EC2's nesting.

type stateDocument struct {
	Region    string          `json:"region"`
	AccountID string          `json:"accountId"`
	VPCs      []vpcState      `json:"vpcs"`
	Subnets   []subnetState   `json:"subnets"`
	Groups    []groupState    `json:"securityGroups"`
	Instances []instanceState `json:"instances"`
	ENIs      []eniState      `json:"enis"`
}

type vpcState struct {
	ID    string         `json:"id"`
	CIDRs []netip.Prefix `json:"cidrs"`
}

type subnetState struct {
	ID       string            `json:"id"`
	VPCID    string            `json:"vpcId"`
	AZ       string            `json:"az"`
	CIDR     netip.Prefix      `json:"cidr"`
	IPv6CIDR netip.Prefix      `json:"ipv6Cidr,omitzero"`
	Free     int               `json:"free"`
	Tags     map[string]string `json:"tags"`
}

type groupState struct {
	ID    string `json:"id"`
	VPCID string `json:"vpcId"`
	Name  string `json:"name"`
}

type instanceState struct {
	ID         string            `json:"id"`
	Type       string            `json:"type"`
	SubnetID   string            `json:"subnetId"`
	PrimaryENI string            `json:"primaryEni"`
	PrivateIP  netip.Addr        `json:"privateIp"`
	Tags       map[string]string `json:"tags"`
}

type eniState struct {
	ID           string            `json:"id"`
	MAC          string            `json:"mac"`
	Type         string            `json:"type"`
	SubnetID     string            `json:"subnetId"`
	Status       string            `json:"status"`
	Description  string            `json:"description"`
	PrimaryIP    netip.Addr        `json:"primaryIp,omitzero"`
	SecondaryIPs []netip.Addr      `json:"secondaryIps"`
	Prefixes     []netip.Prefix    `json:"prefixes"`
	IPv6s        []netip.Addr      `json:"ipv6s,omitempty"`
	IPv6Prefixes []netip.Prefix    `json:"ipv6Prefixes,omitempty"`
	Groups       []string          `json:"securityGroups"`
	Tags         map[string]string `json:"tags"`
	Attachment   *attachmentState  `json:"attachment,omitempty"`
}

type attachmentState struct {
	ID                  string `json:"id"`
	InstanceID          string `json:"instanceId"`
	Card                int    `json:"card"`
	Device              int    `json:"device"`
	Status              string `json:"status"`
	DeleteOnTermination bool   `json:"deleteOnTermination"`
}

func (c controlServer) state(*http.Request) (any, error) {
	s := c.world.Snapshot()
	d := stateDocument{Region: c.world.Region(), AccountID: c.world.opts.AccountID,
		VPCs: []vpcState{}, Subnets: []subnetState{}, Groups: []groupState{}, Instances: []instanceState{}, ENIs: []eniState{}}
	for _, v := range s.VPCs {
		d.VPCs = append(d.VPCs, vpcState{v.ID, append(listOf(v.CIDRs), v.IPv6CIDRs...)})
	}
	for _, n := range s.Subnets {
		d.Subnets = append(d.Subnets, subnetState{n.ID, n.VPCID, n.AZ, n.CIDR, n.IPv6CIDR, n.Free, n.Tags})
	}
	for _, g := range s.SecurityGroups {
		d.Groups = append(d.Groups, groupState(g))
	}
	for _, i := range s.Instances {
		d.Instances = append(d.Instances, instanceState{i.ID, i.Type, i.SubnetID, i.PrimaryENI, i.PrimaryIP, i.Tags})
	}
	for _, e := range s.ENIs {
		d.ENIs = append(d.ENIs, describeENI(e))
	}
	return d, nil
}

func describeENI(e ENI) eniState {
	out := eniState{ID: e.ID, MAC: e.MAC, Type: e.Type, SubnetID: e.SubnetID, Status: e.Status, Description: e.Description, PrimaryIP: e.PrimaryIP,
		SecondaryIPs: listOf(e.SecondaryIPs), Prefixes: listOf(e.Prefixes), IPv6s: e.IPv6s, IPv6Prefixes: e.IPv6Prefixes, Groups: listOf(e.SecurityGroups), Tags: e.Tags}
	if a := e.Attachment; a.ID != "" {
		out.Attachment = &attachmentState{a.ID, a.InstanceID, a.Card, a.Device, a.Status, a.DeleteOnTermination}
	}
	return out
}
