package vpcrc

import (
	"testing"
)

func sampleBranch() branch {
	return branch{ENI: "eni-0123456789abcdef0", MAC: "06:25:70:70:b1:69", IP: "192.168.53.199", VLAN: 1,
		SubnetCIDR: "192.168.32.0/19", AssociationID: "trunk-assoc-0123456789abcdef0"}
}

func TestAnnotation_Bytes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		branches []branch
		faults   Faults
		want     string
	}{
		{"as the controller writes it", []branch{sampleBranch()}, Faults{},
			`[{"eniId":"eni-0123456789abcdef0","ifAddress":"06:25:70:70:b1:69","privateIp":"192.168.53.199","ipv6Addr":"","vlanId":1,"subnetCidr":"192.168.32.0/19","subnetV6Cidr":"","associationID":"trunk-assoc-0123456789abcdef0"}]`},
		{"vlanID", []branch{sampleBranch()}, Faults{AnnotationVLANID: true},
			`[{"eniId":"eni-0123456789abcdef0","ifAddress":"06:25:70:70:b1:69","privateIp":"192.168.53.199","ipv6Addr":"","vlanID":1,"subnetCidr":"192.168.32.0/19","subnetV6Cidr":"","associationID":"trunk-assoc-0123456789abcdef0"}]`},
		{"of 2021", []branch{sampleBranch()}, Faults{AnnotationNoIPv6: true},
			`[{"eniId":"eni-0123456789abcdef0","ifAddress":"06:25:70:70:b1:69","privateIp":"192.168.53.199","vlanId":1,"subnetCidr":"192.168.32.0/19"}]`},
		{"another network", []branch{sampleBranch()}, Faults{AnnotationNoIPv6: true, AnnotationCIDR: true},
			`[{"eniId":"eni-0123456789abcdef0","ifAddress":"06:25:70:70:b1:69","privateIp":"192.168.53.199","vlanId":1,"subnetCidr":"192.0.2.0/24"}]`},
		{"two", []branch{{VLAN: 1}, {VLAN: 2}}, Faults{AnnotationNoIPv6: true},
			`[{"eniId":"","ifAddress":"","privateIp":"","vlanId":1,"subnetCidr":""},{"eniId":"","ifAddress":"","privateIp":"","vlanId":2,"subnetCidr":""}]`},
	} {
		got, err := annotation(row.branches, row.faults)
		if err != nil || got != row.want {
			t.Errorf("%s: %v\n got %s\nwant %s", row.name, err, got, row.want)
		}
	}
}
