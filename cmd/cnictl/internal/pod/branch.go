package pod

import (
	"encoding/json"
	"errors"
	"net/netip"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/cluster"
	"cnictl/daemon/fleet/document"
)

// maxAnnotation bounds how much of vpc.amazonaws.com/pod-eni is read.
const maxAnnotation = 64 << 10

// parseBranch parses the annotation of the VPC resource controller as far as possible;
// problem says what is wrong with it. The daemon's ParseBranch is stricter and decides: it
// sets up a pod from element 0 only.
func parseBranch(annotation string) (b *document.BranchInterface, problem string) {
	if annotation == "" {
		return nil, ""
	}
	if _, err := cluster.ParseBranch(annotation, false); err != nil {
		if _, err6 := cluster.ParseBranch(annotation, true); err6 != nil {
			problem = err.Error()
			var fault *cluster.BranchError
			if errors.As(err, &fault) {
				problem = fault.Err.Error()
			}
		}
	}
	var elements []struct {
		ENI         string `json:"eniId"`
		MAC         string `json:"ifAddress"`
		IPv4        string `json:"privateIp"`
		IPv6        string `json:"ipv6Addr"`
		VLAN        int    `json:"vlanId"`
		IPv4Subnet  string `json:"subnetCidr"`
		IPv6Subnet  string `json:"subnetV6Cidr"`
		Association string `json:"associationID"`
	}
	if len(annotation) > maxAnnotation || json.Unmarshal([]byte(annotation), &elements) != nil || len(elements) == 0 {
		return nil, problem
	}
	e := elements[0]
	b = &document.BranchInterface{ENIID: e.ENI, VLAN: e.VLAN, MAC: e.MAC, Association: e.Association}
	// Invalid addresses stay unknown; if it matters, problem says so.
	b.IPv4, _ = introspect.ParseAddr(e.IPv4)
	b.IPv6, _ = introspect.ParseAddr(e.IPv6)
	b.IPv4Subnet, _ = netip.ParsePrefix(e.IPv4Subnet)
	b.IPv6Subnet, _ = netip.ParsePrefix(e.IPv6Subnet)
	return b, problem
}
