package cnirpc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The wire format of upstream's binaries (amazon-vpc-cni-k8s: rpc/rpc.proto).
var contract = map[string]string{
	"AddNetworkRequest": "K8S_POD_NAME=1 string; K8S_POD_NAMESPACE=2 string; K8S_POD_INFRA_CONTAINER_ID=3 string; Netns=4 string; " +
		"IfName=5 string; NetworkName=6 string; ContainerID=7 string; ClientVersion=8 string; RequiresMultiNICAttachment=9 bool",
	"IPAllocationMetadata": "IPv4Addr=1 string; IPv6Addr=2 string; DeviceNumber=3 int32; RouteTableId=4 int32",
	"AddNetworkReply": "Success=1 bool; IPAllocationMetadata=2 repeated message; UseExternalSNAT=5 bool; VPCv4CIDRs=6 repeated string; " +
		"PodVlanId=7 int32; PodENIMAC=8 string; PodENISubnetGW=9 string; ParentIfIndex=10 int32; VPCv6CIDRs=12 repeated string; NetworkPolicyMode=13 string",
	"DelNetworkRequest": "K8S_POD_NAME=1 string; K8S_POD_NAMESPACE=2 string; K8S_POD_INFRA_CONTAINER_ID=3 string; Reason=5 string; IfName=6 string; " +
		"NetworkName=7 string; ContainerID=8 string; ClientVersion=9 string; K8S_POD_UID=10 string",
	"DelNetworkReply":               "Success=1 bool; IPAllocationMetadata=2 repeated message; PodVlanId=4 int32; NetworkPolicyMode=6 string",
	"EnforceNpRequest":              "K8S_POD_NAME=1 string; K8S_POD_NAMESPACE=2 string; NETWORK_POLICY_MODE=3 string; InterfaceCount=4 int32",
	"EnforceNpReply":                "Success=1 bool",
	"DeleteNpRequest":               "K8S_POD_NAME=1 string; K8S_POD_NAMESPACE=2 string",
	"DeleteNpReply":                 "Success=1 bool",
	"NetworkPolicyAgentConfigReply": "NetworkPolicyMode=1 string; MultiNICEnabled=2 bool; NodeIPv4=3 string; NodeIPv6=4 string; InstanceID=5 string; Region=6 string",
}

var ours = map[string]string{
	"AddNetworkReply": "Cause=100 string; Detail=101 string; Transient=102 bool",
	"DelNetworkReply": "Cause=100 string; Detail=101 string; Transient=102 bool",
}

func TestMessages(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	messages := File_rpc_proto.Messages()
	for i := range messages.Len() {
		m := messages.Get(i)
		var fields []string
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			kind := f.Kind().String()
			if f.Cardinality() == protoreflect.Repeated {
				kind = "repeated " + kind
			}
			fields = append(fields, fmt.Sprintf("%s=%d %s", f.Name(), f.Number(), kind))
		}
		got[string(m.Name())] = strings.Join(fields, "; ")
	}
	want := map[string]string{}
	for name, fields := range contract {
		if extra, ok := ours[name]; ok {
			fields += "; " + extra
		}
		want[name] = fields
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestServices(t *testing.T) {
	t.Parallel()
	var got []string
	services := File_rpc_proto.Services()
	for i := range services.Len() {
		s := services.Get(i)
		for j := range s.Methods().Len() {
			m := s.Methods().Get(j)
			if m.IsStreamingClient() || m.IsStreamingServer() {
				t.Errorf("%s is streaming", m.FullName())
			}
			got = append(got, fmt.Sprintf("/%s/%s %s → %s", s.FullName(), m.Name(), m.Input().FullName(), m.Output().FullName()))
		}
	}
	want := []string{
		"/rpc.CNIBackend/AddNetwork rpc.AddNetworkRequest → rpc.AddNetworkReply",
		"/rpc.CNIBackend/DelNetwork rpc.DelNetworkRequest → rpc.DelNetworkReply",
		"/rpc.ConfigServerBackend/GetNetworkPolicyConfigs google.protobuf.Empty → rpc.NetworkPolicyAgentConfigReply",
		"/rpc.NPBackend/EnforceNpToPod rpc.EnforceNpRequest → rpc.EnforceNpReply",
		"/rpc.NPBackend/DeletePodNp rpc.DeleteNpRequest → rpc.DeleteNpReply",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("methods (-want +got):\n%s", diff)
	}
}

// TestHistoricNumbersAreReserved: field numbers of older releases must not be reused.
func TestHistoricNumbersAreReserved(t *testing.T) {
	t.Parallel()
	for name, numbers := range map[protoreflect.Name][]protoreflect.FieldNumber{
		"AddNetworkReply": {3, 4, 11}, "DelNetworkRequest": {4}, "DelNetworkReply": {3, 5},
	} {
		m := File_rpc_proto.Messages().ByName(name)
		for _, n := range numbers {
			if !m.ReservedRanges().Has(n) {
				t.Errorf("%s: number %d is not reserved", name, n)
			}
		}
	}
}

// TestBytes pins encoded messages, independent of the generated code: tag bytes are
// number<<3|type (0 varint, 2 length-delimited).
func TestBytes(t *testing.T) {
	t.Parallel()
	got, err := proto.MarshalOptions{Deterministic: true}.Marshal(&AddNetworkReply{
		Success:              true,
		IPAllocationMetadata: []*IPAllocationMetadata{{IPv4Addr: "10.0.0.9", DeviceNumber: 1, RouteTableId: 2}},
		NetworkPolicyMode:    "none",
		Cause:                "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{
		1 << 3, 1,
		2<<3 | 2, 14, 1<<3 | 2, 8, '1', '0', '.', '0', '.', '0', '.', '9', 3 << 3, 1, 4 << 3, 2,
		13<<3 | 2, 4, 'n', 'o', 'n', 'e',
		0xa2, 0x06, 1, 'x', // 100<<3|2 = 802
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
}
