package rpcclient

import (
	"errors"
	"strings"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/grpcwire"
)

// StatusError is a call that failed with a gRPC status.
type StatusError = grpcwire.Status

// unknownPod is in the status of a DEL for a sandbox that upstream's daemon does
// not know.
const unknownPod = "datastore: unknown pod"

// AddNetwork calls rpc.CNIBackend/AddNetwork.
func AddNetwork(socket string, timeout time.Duration, r *cniwire.AddRequest) (*cniwire.AddReply, error) {
	body, err := call(socket, once, timeout, grpcwire.MethodAddNetwork, grpcwire.AppendAddNetworkRequest(nil, &grpcwire.AddNetworkRequest{
		PodName: r.PodName, PodNamespace: r.PodNamespace, InfraContainerID: r.ContainerID, Netns: r.Netns, IfName: r.IfName,
		NetworkName: r.NetworkName, ContainerID: r.ContainerID, ClientVersion: r.ClientVersion, RequiresMultiNIC: r.RequiresMultiNIC,
	}))
	if err != nil {
		return nil, err
	}
	m, err := grpcwire.DecodeAddNetworkReply(body)
	if err != nil {
		return nil, notDecoded(err)
	}
	return &cniwire.AddReply{
		Success: m.Success, Allocations: allocations(m.Allocations), UseExternalSNAT: m.UseExternalSNAT,
		VPCv4CIDRs: m.VPCv4CIDRs, VPCv6CIDRs: m.VPCv6CIDRs, PodVLANID: m.PodVLANID, PodENIMAC: m.PodENIMAC,
		PodENISubnetGW: m.PodENISubnetGW, ParentIfIndex: m.ParentIfIndex, NetworkPolicyMode: m.NetworkPolicyMode,
	}, nil
}

// DelNetwork calls rpc.CNIBackend/DelNetwork. A daemon that does not know the sandbox
// answers with an error; here that is a reply with Unknown.
func DelNetwork(socket string, timeout time.Duration, r *cniwire.DelRequest) (*cniwire.DelReply, error) {
	body, err := call(socket, once, timeout, grpcwire.MethodDelNetwork, grpcwire.AppendDelNetworkRequest(nil, &grpcwire.DelNetworkRequest{
		PodName: r.PodName, PodNamespace: r.PodNamespace, InfraContainerID: r.ContainerID, Reason: r.Reason, IfName: r.IfName,
		NetworkName: r.NetworkName, ContainerID: r.ContainerID, ClientVersion: r.ClientVersion, PodUID: r.PodUID,
	}))
	var refused *StatusError
	if errors.As(err, &refused) && strings.Contains(refused.Message, unknownPod) {
		return &cniwire.DelReply{Unknown: true}, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := grpcwire.DecodeDelNetworkReply(body)
	if err != nil {
		return nil, notDecoded(err)
	}
	return &cniwire.DelReply{
		Success: m.Success, Allocations: allocations(m.Allocations), PodVLANID: m.PodVLANID, NetworkPolicyMode: m.NetworkPolicyMode,
	}, nil
}

// EnforcePolicy calls rpc.NPBackend/EnforceNpToPod. An agent that is not there is looked
// for again until dial has passed; timeout bounds all.
func EnforcePolicy(socket string, dial, timeout time.Duration, r *cniwire.PolicyRequest) (ok bool, err error) {
	return policyReply(call(socket, dial, timeout, grpcwire.MethodEnforceNpToPod, grpcwire.AppendEnforceNpRequest(nil, &grpcwire.EnforceNpRequest{
		PodName: r.PodName, PodNamespace: r.PodNamespace, Mode: r.Mode, Interfaces: r.Interfaces,
	})))
}

// DeletePolicy calls rpc.NPBackend/DeletePodNp; see EnforcePolicy.
func DeletePolicy(socket string, dial, timeout time.Duration, r *cniwire.PolicyRequest) (ok bool, err error) {
	return policyReply(call(socket, dial, timeout, grpcwire.MethodDeletePodNp, grpcwire.AppendDeleteNpRequest(nil, &grpcwire.DeleteNpRequest{
		PodName: r.PodName, PodNamespace: r.PodNamespace,
	})))
}

func policyReply(body []byte, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	ok, err := grpcwire.DecodePolicyReply(body)
	if err != nil {
		return false, notDecoded(err)
	}
	return ok, nil
}

func notDecoded(err error) error {
	return &StatusError{Code: grpcwire.CodeInternal, Message: "grpc: failed to unmarshal the received message: " + err.Error()}
}

func allocations(in []grpcwire.Allocation) []cniwire.Allocation {
	var out []cniwire.Allocation
	for _, a := range in {
		out = append(out, cniwire.Allocation{IPv4: a.IPv4, IPv6: a.IPv6, Device: a.Device, RouteTable: a.RouteTable})
	}
	return out
}
