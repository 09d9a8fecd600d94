package metrics

import (
	"path"
	"strings"
	"time"
)

// APIMetadata is the label `api` for the latency of instance metadata requests. Upstream
// defines the name but never uses it.
const APIMetadata = "GetMetadata"

// getters are upstream's names for metadata, by the last part of the path. Upstream counts
// failures of only some of them, we of all.
var getters = map[string]string{
	"availability-zone":       "GetAZ",
	"device-number":           "GetDeviceNumber",
	"document":                "GetInstanceIdentityDocument", // our own: zone, id, type and address in one
	"instance-id":             "GetInstanceID",
	"instance-type":           "GetInstanceType",
	"interface-id":            "GetInterfaceID",
	"ipv4-prefix":             "GetIPv4Prefixes",
	"ipv6-prefix":             "GetIPv6Prefixes",
	"ipv6s":                   "GetIPv6s",
	"local-ipv4":              "GetLocalIPv4",
	"local-ipv4s":             "GetLocalIPv4s",
	"mac":                     "GetMAC",
	"macs":                    "GetMACs",
	"network-card":            "GetNetworkCard",
	"security-group-ids":      "GetSecurityGroupIDs",
	"subnet-id":               "GetSubnetID",
	"subnet-ipv4-cidr-block":  "GetSubnetIPv4CIDRBlock",
	"subnet-ipv6-cidr-blocks": "GetSubnetIPv6CIDRBlocks",
	"vpc-id":                  "GetVpcID",
	"vpc-ipv4-cidr-blocks":    "GetVPCIPv4CIDRBlocks",
	"vpc-ipv6-cidr-blocks":    "GetVPCIPv6CIDRBlocks",
}

// getterFields is the listing of an interface's values. getterOther covers every path
// without a name: paths contain MACs, so as labels they would be unbounded.
const (
	getterFields = "GetMACImdsFields"
	getterOther  = "GetOther"
)

// IMDSCall records one request for instance metadata: its path, its duration and, on
// failure, the error. A 404 is an answer, not an error.
func (e *ec2) IMDSCall(requested string, took time.Duration, err error) {
	e.APILatency(APIMetadata, took, CodeIMDS, err)
	if err != nil {
		e.IMDSError(getterOf(requested))
	}
}

func getterOf(requested string) string {
	parent, last := path.Split(strings.TrimSuffix(requested, "/"))
	if name, ok := getters[last]; ok {
		return name
	}
	if path.Base(parent) == "macs" {
		return getterFields
	}
	return getterOther
}
