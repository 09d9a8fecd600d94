package introspect

import (
	"slices"
	"time"
)

// Paths of the introspection server.
const (
	PathENIs          = "/v1/enis"
	PathENIConfigs    = "/v1/eni-configs"
	PathNetworkEnv    = "/v1/networkutils-env-settings"
	PathIPAMEnv       = "/v1/ipamd-env-settings"
	PathSummary       = "/v1/summary"
	PathConfig        = "/v1/config"
	PathPlan          = "/v1/plan"
	PathFailures      = "/v1/failures"
	PathEvents        = "/v1/events"
	PathPod           = "/v1/pod"
	PathLogs          = "/v1/logs"
	PathSubnetHistory = "/v1/subnet-history"
	PathSchemas       = "/v1/schemas" // and /v1/schemas/<kind>
)

// UpstreamPaths are the paths that upstream's daemon serves too. DocumentPaths are all
// paths that return a document about the node without parameters, upstream's first.
var (
	UpstreamPaths = []string{PathENIs, PathENIConfigs, PathNetworkEnv, PathIPAMEnv}
	DocumentPaths = append(slices.Clone(UpstreamPaths), PathSummary, PathConfig, PathPlan, PathFailures, PathEvents)
)

// ENIs answers /v1/enis: one pool per network card, keyed by the card's index in
// decimal. Go sorts map keys as strings, as upstream's encoder does.
type ENIs map[string]Card

// Card is the pool of one network card. The counts are upstream's running counters: they
// include every CIDR, also those of excluded ENIs and of the mode not in use.
type Card struct {
	TotalIPs    int
	AssignedIPs int
	ENIs        map[string]ENI // by ENI id
}

// ENI is one network interface of a card. Both maps are keyed by canonical CIDR and are
// never nil, so that an empty one encodes as {}.
type ENI struct {
	ID                  string
	IsPrimary           bool
	IsTrunk             bool
	IsEFA               bool
	DeviceNumber        int
	AvailableIPv4Cidrs  map[string]CIDR
	IPv6Cidrs           map[string]CIDR
	IsExcludedForPodIPs bool
	RouteTableID        int // 254 is the main table
	SubnetID            string
}

// CIDR is a secondary IP (/32, /128) or a prefix (/28, /80).
type CIDR struct {
	Cidr          IPNet
	IPAddresses   map[string]Address // only addresses that are or were assigned
	IsPrefix      bool
	AddressFamily string // always "" in upstream's answers
}

// IPNet encodes like Go's net.IPNet: dotted address, mask bytes in base64.
type IPNet struct {
	IP   string
	Mask []byte
}

// Address is the record of one address.
type Address struct {
	Address        string
	IPAMKey        IPAMKey
	IPAMMetadata   IPAMMetadata
	AssignedTime   time.Time
	UnassignedTime time.Time // zero: assigned, or never unassigned
}

// IPAMKey is the key of an assignment. Answers since v1.23.0 blank ContainerID and IfName,
// so "assigned" means NetworkName != "".
type IPAMKey struct {
	NetworkName string `json:"networkName"`
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifName"`
}

// IPAMMetadata names the pod. All members are absent while the address is unassigned.
type IPAMMetadata struct {
	PodNamespace string `json:"k8sPodNamespace,omitempty"`
	PodName      string `json:"k8sPodName,omitempty"`
	Interfaces   int    `json:"interfacesCount,omitempty"`
}

// NetworkEnv answers /v1/networkutils-env-settings. Unset lists are null; RandomizeSNAT is
// 0 for none, 1 for hashrandom, 2 for prng.
type NetworkEnv struct {
	ExternalServiceCIDRs []string `json:"AWS_EXTERNAL_SERVICE_CIDRS"`
	NodePortSupport      bool     `json:"AWS_VPC_CNI_NODE_PORT_SUPPORT"`
	MTU                  int      `json:"AWS_VPC_ENI_MTU"`
	Connmark             uint32   `json:"AWS_VPC_K8S_CNI_CONNMARK"`
	ExcludeSNATCIDRs     []string `json:"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS"`
	ExternalSNAT         bool     `json:"AWS_VPC_K8S_CNI_EXTERNALSNAT"`
	RandomizeSNAT        int      `json:"AWS_VPC_K8S_CNI_RANDOMIZESNAT"`
	VethPrefix           string   `json:"AWS_VPC_K8S_CNI_VETHPREFIX"`
}

// IPAMEnv answers /v1/ipamd-env-settings: upstream's five keys, no more.
type IPAMEnv struct {
	ManageUnschedulable bool `json:"AWS_MANAGE_ENIS_NON_SCHEDULABLE"`
	CustomNetworking    bool `json:"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"`
	SubnetDiscovery     bool `json:"ENABLE_SUBNET_DISCOVERY"`
	WarmENITarget       int  `json:"WARM_ENI_TARGET"`
	WarmIPTarget        int  `json:"WARM_IP_TARGET"`
}

// Commands answers / and every unknown path, with status 200. A client that gets it for a
// path knows that the node does not have that path.
type Commands struct {
	AvailableCommands []string
}
