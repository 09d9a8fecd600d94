package cniwire

// Kind is the kind of a request.
type Kind uint8

const (
	KindAdd    Kind = 1
	KindDel    Kind = 2
	KindPolicy Kind = 5
)

// AddRequest asks for the addresses of one sandbox. The fields mean the same as in
// rpc.AddNetworkRequest.
type AddRequest struct {
	PodName          string
	PodNamespace     string
	PodUID           string
	ContainerID      string
	IfName           string
	NetworkName      string
	Netns            string
	ClientVersion    string
	RequiresMultiNIC bool
}

// Allocation is one address given to a sandbox. Exactly one of IPv4 and IPv6 is set.
type Allocation struct {
	IPv4       string // plain address, no mask
	IPv6       string
	Device     int32 // device index of the ENI; −1 for a branch ENI
	RouteTable int32 // 254 = main; 0 for a branch ENI
}

// AddReply answers an AddRequest. If Success is false, Cause, Detail and Transient say why,
// and nothing is allocated.
type AddReply struct {
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

	Cause     string // a code of daemon/api/cause
	Detail    string // one sentence for people
	Transient bool   // an early retry may succeed
}

// DelRequest ends the allocations of one sandbox.
type DelRequest struct {
	PodName       string
	PodNamespace  string
	PodUID        string
	ContainerID   string
	IfName        string
	NetworkName   string
	Reason        string // "PodDeleted" or "SetupNSFailed"
	ClientVersion string
}

// DelReply answers a DelRequest. Unknown means that the daemon holds nothing for the
// sandbox, which a DEL treats as success; Allocations then lists the addresses of the pod's
// other sandboxes, which the DEL must leave alone.
type DelReply struct {
	Success           bool
	Unknown           bool
	Allocations       []Allocation
	PodVLANID         int32
	NetworkPolicyMode string

	Cause  string
	Detail string
}

// PolicyRequest has the daemon notify the node's network policy agent that a pod's
// interfaces exist, or with Delete that they are gone. The plugin sends it only to a daemon
// whose replies carry a NetworkPolicyMode.
type PolicyRequest struct {
	PodName      string
	PodNamespace string
	ContainerID  string
	Mode         string // NetworkPolicyMode of the reply, unchanged; unused with Delete
	Interfaces   int32  // of the pod; unused with Delete
	Delete       bool
}

// CallError answers any request that was forwarded to a gRPC server and failed there. The
// daemon never sends it: it comes from aws-cni-grpc, which makes such calls for the plugin.
type CallError struct {
	Answered bool   // the server was reached in time and returned the error itself
	Text     string // grpc's wording, "rpc error: code = … desc = …"
}

func (e *CallError) Error() string { return e.Text }

// PolicyReply answers a PolicyRequest. A deletion that could not be sent yet is a
// success: the daemon notifies the agent later.
type PolicyReply struct {
	Success bool

	Cause  string // a code of daemon/api/cause
	Detail string
}
