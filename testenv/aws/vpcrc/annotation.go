package vpcrc

import (
	"encoding/json"
	"strings"
)

// branch is a branch ENI in the annotation, with the keys in this order.
type branch struct {
	ENI           string `json:"eniId"`
	MAC           string `json:"ifAddress"`
	IP            string `json:"privateIp"`
	IPv6          string `json:"ipv6Addr"`
	VLAN          int    `json:"vlanId"`
	SubnetCIDR    string `json:"subnetCidr"`
	SubnetCIDR6   string `json:"subnetV6Cidr"`
	AssociationID string `json:"associationID"`
}

// oldBranch is the form that the controller wrote in 2021.
type oldBranch struct {
	ENI        string `json:"eniId"`
	MAC        string `json:"ifAddress"`
	IP         string `json:"privateIp"`
	VLAN       int    `json:"vlanId"`
	SubnetCIDR string `json:"subnetCidr"`
}

// wrongCIDR is the network of Faults.AnnotationCIDR: a documentation range, so part of no VPC.
const wrongCIDR = "192.0.2.0/24"

// annotation is the value of vpc.amazonaws.com/pod-eni.
func annotation(branches []branch, f Faults) (string, error) {
	written := make([]any, 0, len(branches))
	for _, b := range branches {
		if f.AnnotationCIDR {
			b.SubnetCIDR = wrongCIDR
		}
		if f.AnnotationNoIPv6 {
			written = append(written, oldBranch{b.ENI, b.MAC, b.IP, b.VLAN, b.SubnetCIDR})
			continue
		}
		written = append(written, b)
	}
	text, err := json.Marshal(written)
	if f.AnnotationVLANID {
		return strings.ReplaceAll(string(text), `"vlanId"`, `"vlanID"`), err
	}
	return string(text), err
}
