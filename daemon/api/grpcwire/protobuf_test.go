package grpcwire

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"cnictl/daemon/api/cnirpc"
)

// encodings of the same message by this package and by the generated types.
func encodings(t *testing.T, a, b, c string, n int32, yes bool) map[string][2][]byte {
	t.Helper()
	theirs := func(m protoadapt.MessageV2) []byte {
		out, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Skip("no protobuf text")
		}
		return out
	}
	return map[string][2][]byte{
		"AddNetworkRequest": {
			AppendAddNetworkRequest(nil, &AddNetworkRequest{
				PodName: a, PodNamespace: b, InfraContainerID: c, Netns: a, IfName: b, NetworkName: c, ContainerID: a, ClientVersion: b, RequiresMultiNIC: yes,
			}),
			theirs(&cnirpc.AddNetworkRequest{
				K8S_POD_NAME: a, K8S_POD_NAMESPACE: b, K8S_POD_INFRA_CONTAINER_ID: c, Netns: a, IfName: b, NetworkName: c, ContainerID: a, ClientVersion: b,
				RequiresMultiNICAttachment: yes,
			}),
		},
		"DelNetworkRequest": {
			AppendDelNetworkRequest(nil, &DelNetworkRequest{
				PodName: a, PodNamespace: b, InfraContainerID: c, Reason: a, IfName: b, NetworkName: c, ContainerID: a, ClientVersion: b, PodUID: c,
			}),
			theirs(&cnirpc.DelNetworkRequest{
				K8S_POD_NAME: a, K8S_POD_NAMESPACE: b, K8S_POD_INFRA_CONTAINER_ID: c, Reason: a, IfName: b, NetworkName: c, ContainerID: a, ClientVersion: b, K8S_POD_UID: c,
			}),
		},
		"EnforceNpRequest": {
			AppendEnforceNpRequest(nil, &EnforceNpRequest{PodName: a, PodNamespace: b, Mode: c, Interfaces: n}),
			theirs(&cnirpc.EnforceNpRequest{K8S_POD_NAME: a, K8S_POD_NAMESPACE: b, NETWORK_POLICY_MODE: c, InterfaceCount: n}),
		},
		"DeleteNpRequest": {
			AppendDeleteNpRequest(nil, &DeleteNpRequest{PodName: a, PodNamespace: b}),
			theirs(&cnirpc.DeleteNpRequest{K8S_POD_NAME: a, K8S_POD_NAMESPACE: b}),
		},
	}
}

// FuzzEncode: requests have the bytes that the generated types give them.
func FuzzEncode(f *testing.F) {
	f.Add("web-0", "default", "0000abc", int32(2), true)
	f.Add("", "ü", "\x00", int32(-1), false)
	f.Fuzz(func(t *testing.T, a, b, c string, n int32, yes bool) {
		for name, e := range encodings(t, a, b, c, n, yes) {
			if !bytes.Equal(e[0], e[1]) {
				t.Errorf("%s: %x, the oracle says %x", name, e[0], e[1])
			}
		}
	})
}

func fullAddReply() *cnirpc.AddNetworkReply {
	return &cnirpc.AddNetworkReply{
		Success: true, UseExternalSNAT: true, VPCv4CIDRs: []string{"10.0.0.0/16", ""}, VPCv6CIDRs: []string{"2001:db8::/56"},
		IPAllocationMetadata: []*cnirpc.IPAllocationMetadata{{IPv4Addr: "10.0.0.5", DeviceNumber: -1, RouteTableId: 2}, {IPv6Addr: "2001:db8::5"}, {}},
		PodVlanId:            7, PodENIMAC: "02:00:00:00:00:01", PodENISubnetGW: "10.0.0.1", ParentIfIndex: 3, NetworkPolicyMode: "strict",
		Cause: "a field that this package skips", Transient: true,
	}
}

func marshal(t testing.TB, m protoadapt.MessageV2) []byte {
	t.Helper()
	out, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantAllocations(in []*cnirpc.IPAllocationMetadata) (out []Allocation) {
	for _, a := range in {
		out = append(out, Allocation{a.GetIPv4Addr(), a.GetIPv6Addr(), a.GetDeviceNumber(), a.GetRouteTableId()})
	}
	return out
}

// checkDecode compares what is read in b with what the generated types read.
func checkDecode(t *testing.T, b []byte) {
	t.Helper()
	same := func(name string, want, got any, wantErr, err error) {
		t.Helper()
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s %x: %v, the oracle says %v", name, b, err, wantErr)
		}
		if d := cmp.Diff(want, got); err == nil && d != "" {
			t.Fatalf("%s %x (-oracle +ours):\n%s", name, b, d)
		}
	}
	var add cnirpc.AddNetworkReply
	wantErr := proto.Unmarshal(b, &add)
	gotAdd, err := DecodeAddNetworkReply(b)
	same("AddNetworkReply", &AddNetworkReply{
		Success: add.GetSuccess(), Allocations: wantAllocations(add.GetIPAllocationMetadata()), UseExternalSNAT: add.GetUseExternalSNAT(),
		VPCv4CIDRs: add.GetVPCv4CIDRs(), VPCv6CIDRs: add.GetVPCv6CIDRs(), PodVLANID: add.GetPodVlanId(), PodENIMAC: add.GetPodENIMAC(),
		PodENISubnetGW: add.GetPodENISubnetGW(), ParentIfIndex: add.GetParentIfIndex(), NetworkPolicyMode: add.GetNetworkPolicyMode(),
	}, gotAdd, withoutOurs(wantErr, b, &add), err)

	var del cnirpc.DelNetworkReply
	wantErr = proto.Unmarshal(b, &del)
	gotDel, err := DecodeDelNetworkReply(b)
	same("DelNetworkReply", &DelNetworkReply{
		Success: del.GetSuccess(), Allocations: wantAllocations(del.GetIPAllocationMetadata()), PodVLANID: del.GetPodVlanId(), NetworkPolicyMode: del.GetNetworkPolicyMode(),
	}, gotDel, withoutOurs(wantErr, b, &del), err)

	var np cnirpc.EnforceNpReply
	wantErr = proto.Unmarshal(b, &np)
	ok, err := DecodePolicyReply(b)
	same("EnforceNpReply", np.GetSuccess(), ok, wantErr, err)
}

// withoutOurs: texts of the fields that only our daemon fills are skipped here, whatever
// they are.
func withoutOurs(err error, b []byte, m protoadapt.MessageV2) error {
	if err == nil {
		return nil
	}
	r := protoReader{rest: b}
	var rest []byte
	for before := r.rest; r.next(); before = r.rest {
		if r.field < 100 {
			rest = append(rest, before[:len(before)-len(r.rest)]...)
		}
	}
	if r.err != nil {
		return err
	}
	return proto.Unmarshal(rest, m)
}

// FuzzReplies: replies mean what the generated types read in them, or neither reads them.
func FuzzReplies(f *testing.F) {
	f.Add(marshal(f, fullAddReply()))
	f.Add(marshal(f, &cnirpc.DelNetworkReply{Success: true, PodVlanId: 3, NetworkPolicyMode: "strict", IPAllocationMetadata: fullAddReply().GetIPAllocationMetadata()}))
	for _, seed := range []string{
		"\x08\x02", "\x0a\x01\x01", "\x12\x02\x08\x01", "\x6a\x01\xff", "\x00\x00", "\x0b\x10\x01\x0c", "\x0b\x0c\x14", "\x0d\x01\x02\x03\x04", "\x09\x01",
		"\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x38\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", "\x3a\x02\x01\x02",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(checkDecode)
}

// TestReplies_Groups: groups in groups are skipped, to a depth.
func TestReplies_Groups(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{1, 2, 9999, 10000, 10001, 20000} {
		b := append(bytes.Repeat([]byte{0x7b}, depth), bytes.Repeat([]byte{0x7c}, depth)...)
		checkDecode(t, append(b, 0x08, 0x01))
		checkDecode(t, b[:len(b)-1])
	}
}
