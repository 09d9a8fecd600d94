package grpcwire

// The messages of daemon/api/cnirpc, less what only servers of this project fill.

// AddNetworkRequest is rpc.AddNetworkRequest.
type AddNetworkRequest struct {
	PodName          string
	PodNamespace     string
	InfraContainerID string
	Netns            string
	IfName           string
	NetworkName      string
	ContainerID      string
	ClientVersion    string
	RequiresMultiNIC bool
}

// Allocation is rpc.IPAllocationMetadata.
type Allocation struct {
	IPv4       string
	IPv6       string
	Device     int32
	RouteTable int32
}

// AddNetworkReply is rpc.AddNetworkReply.
type AddNetworkReply struct {
	Success           bool
	Allocations       []Allocation
	UseExternalSNAT   bool
	VPCv4CIDRs        []string
	VPCv6CIDRs        []string
	PodVLANID         int32
	PodENIMAC         string
	PodENISubnetGW    string
	ParentIfIndex     int32
	NetworkPolicyMode string
}

// DelNetworkRequest is rpc.DelNetworkRequest.
type DelNetworkRequest struct {
	PodName          string
	PodNamespace     string
	InfraContainerID string
	Reason           string
	IfName           string
	NetworkName      string
	ContainerID      string
	ClientVersion    string
	PodUID           string
}

// DelNetworkReply is rpc.DelNetworkReply.
type DelNetworkReply struct {
	Success           bool
	Allocations       []Allocation
	PodVLANID         int32
	NetworkPolicyMode string
}

// EnforceNpRequest is rpc.EnforceNpRequest.
type EnforceNpRequest struct {
	PodName      string
	PodNamespace string
	Mode         string
	Interfaces   int32
}

// DeleteNpRequest is rpc.DeleteNpRequest.
type DeleteNpRequest struct {
	PodName      string
	PodNamespace string
}

// Methods are the full names of the calls, as the path of a request has them.
const (
	MethodAddNetwork     = "/rpc.CNIBackend/AddNetwork"
	MethodDelNetwork     = "/rpc.CNIBackend/DelNetwork"
	MethodEnforceNpToPod = "/rpc.NPBackend/EnforceNpToPod"
	MethodDeletePodNp    = "/rpc.NPBackend/DeletePodNp"
)

// AppendAddNetworkRequest appends the message to b.
func AppendAddNetworkRequest(b []byte, r *AddNetworkRequest) []byte {
	b = appendString(b, 1, r.PodName)
	b = appendString(b, 2, r.PodNamespace)
	b = appendString(b, 3, r.InfraContainerID)
	b = appendString(b, 4, r.Netns)
	b = appendString(b, 5, r.IfName)
	b = appendString(b, 6, r.NetworkName)
	b = appendString(b, 7, r.ContainerID)
	b = appendString(b, 8, r.ClientVersion)
	return appendBool(b, 9, r.RequiresMultiNIC)
}

// AppendDelNetworkRequest appends the message to b.
func AppendDelNetworkRequest(b []byte, r *DelNetworkRequest) []byte {
	b = appendString(b, 1, r.PodName)
	b = appendString(b, 2, r.PodNamespace)
	b = appendString(b, 3, r.InfraContainerID)
	b = appendString(b, 5, r.Reason)
	b = appendString(b, 6, r.IfName)
	b = appendString(b, 7, r.NetworkName)
	b = appendString(b, 8, r.ContainerID)
	b = appendString(b, 9, r.ClientVersion)
	return appendString(b, 10, r.PodUID)
}

// AppendEnforceNpRequest appends the message to b.
func AppendEnforceNpRequest(b []byte, r *EnforceNpRequest) []byte {
	b = appendString(b, 1, r.PodName)
	b = appendString(b, 2, r.PodNamespace)
	b = appendString(b, 3, r.Mode)
	return appendInt32(b, 4, r.Interfaces)
}

// AppendDeleteNpRequest appends the message to b.
func AppendDeleteNpRequest(b []byte, r *DeleteNpRequest) []byte {
	b = appendString(b, 1, r.PodName)
	return appendString(b, 2, r.PodNamespace)
}

// DecodeAddNetworkReply reads a whole message. The result does not alias it.
func DecodeAddNetworkReply(b []byte) (*AddNetworkReply, error) {
	out := &AddNetworkReply{}
	r := protoReader{rest: b}
	for r.next() {
		switch r.field {
		case 1:
			r.bool(&out.Success)
		case 2:
			r.allocation(&out.Allocations)
		case 5:
			r.bool(&out.UseExternalSNAT)
		case 6:
			r.texts(&out.VPCv4CIDRs)
		case 7:
			r.int32(&out.PodVLANID)
		case 8:
			r.text(&out.PodENIMAC)
		case 9:
			r.text(&out.PodENISubnetGW)
		case 10:
			r.int32(&out.ParentIfIndex)
		case 12:
			r.texts(&out.VPCv6CIDRs)
		case 13:
			r.text(&out.NetworkPolicyMode)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

// DecodeDelNetworkReply reads a whole message. The result does not alias it.
func DecodeDelNetworkReply(b []byte) (*DelNetworkReply, error) {
	out := &DelNetworkReply{}
	r := protoReader{rest: b}
	for r.next() {
		switch r.field {
		case 1:
			r.bool(&out.Success)
		case 2:
			r.allocation(&out.Allocations)
		case 4:
			r.int32(&out.PodVLANID)
		case 6:
			r.text(&out.NetworkPolicyMode)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

// DecodePolicyReply reads rpc.EnforceNpReply or rpc.DeleteNpReply, which are alike.
func DecodePolicyReply(b []byte) (success bool, err error) {
	r := protoReader{rest: b}
	for r.next() {
		if r.field == 1 {
			r.bool(&success)
		}
	}
	return success && r.err == nil, r.err
}

func (r *protoReader) allocation(all *[]Allocation) {
	if r.kind != kindBytes {
		return
	}
	var out Allocation
	in := protoReader{rest: r.bytes}
	for in.next() {
		switch in.field {
		case 1:
			in.text(&out.IPv4)
		case 2:
			in.text(&out.IPv6)
		case 3:
			in.int32(&out.Device)
		case 4:
			in.int32(&out.RouteTable)
		}
	}
	if in.err != nil && r.err == nil {
		r.err = in.err
	}
	*all = append(*all, out)
}
