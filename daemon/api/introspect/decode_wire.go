package introspect

// wireCard is a pool of any release. Members that some release lacks are pointers.
type wireCard struct {
	TotalIPs    *int
	AssignedIPs *int
	ENIs        map[string]wireENI
}

type wireENI struct {
	ID                  string
	IsPrimary           bool
	IsTrunk             bool
	IsEFA               bool
	DeviceNumber        int
	IPv4Addresses       map[string]wireAddress // up to v1.8
	AvailableIPv4Cidrs  map[string]wireCIDR    // from v1.9
	IPv6Cidrs           map[string]wireCIDR    // from v1.10
	RouteTableID        *int                   // from v1.20.x
	IsExcludedForPodIPs *bool                  // from v1.22
	SubnetID            *string                // from v1.22
}

type wireCIDR struct {
	Cidr          *wireIPNet
	IPv4Addresses map[string]wireAddress // v1.9
	IPAddresses   map[string]wireAddress // from v1.10
}

type wireIPNet struct {
	IP   string
	Mask string // base64
}

type wireAddress struct {
	Address        string
	IPAMKey        IPAMKey
	IPAMMetadata   IPAMMetadata // from v1.11
	AssignedTime   string       // from v1.11
	UnassignedTime string
}
