package oldipamd_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"cnictl/daemon/api/cnirpc"
	"cnictl/testenv/aws/oldipamd"
	"cnictl/testenv/rules/leftover"
)

func TestMain(m *testing.M) { leftover.Main(m) }

func start(t *testing.T, o oldipamd.Options) (*oldipamd.Daemon, cnirpc.CNIBackendClient) {
	t.Helper()
	o.Socket = filepath.Join(t.TempDir(), "ipamd.sock")
	d, err := oldipamd.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	conn, err := grpc.NewClient("unix://"+o.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return d, cnirpc.NewCNIBackendClient(conn)
}

func add(name, container string, multi bool) *cnirpc.AddNetworkRequest {
	return &cnirpc.AddNetworkRequest{
		K8S_POD_NAME: name, K8S_POD_NAMESPACE: "default", NetworkName: "aws-cni", ContainerID: container, IfName: "eth0",
		ClientVersion: "v1.23.1", RequiresMultiNICAttachment: multi,
	}
}

func del(name, container, uid string) *cnirpc.DelNetworkRequest {
	return &cnirpc.DelNetworkRequest{
		K8S_POD_NAME: name, K8S_POD_NAMESPACE: "default", NetworkName: "aws-cni", ContainerID: container, IfName: "eth0",
		ClientVersion: "v1.23.1", K8S_POD_UID: uid, Reason: "PodDeleted",
	}
}

// TestDaemon_KeepsWhatSandboxesHold: an address is held from ADD to DEL, and a second DEL
// fails with upstream's text.
func TestDaemon_KeepsWhatSandboxesHold(t *testing.T) {
	t.Parallel()
	d, client := start(t, oldipamd.Options{Version: "v1.23.1", NetworkPolicyMode: "strict"})
	d.SetPod("default", "web", oldipamd.Ordinary("10.0.0.5", 1, 2))
	d.SetPod("default", "six", oldipamd.IPv6("2001:db8::5"))
	d.SetPod("default", "two", oldipamd.TwoNICs("10.0.0.6", "10.0.1.6"))
	for _, r := range []*cnirpc.AddNetworkRequest{add("web", "c1", false), add("six", "c2", false), add("two", "c3", true), add("two", "c4", false)} {
		if reply, err := client.AddNetwork(t.Context(), r); err != nil || !reply.GetSuccess() || reply.GetNetworkPolicyMode() != "strict" {
			t.Errorf("ADD %s: %v %v", r.GetContainerID(), reply, err)
		}
	}
	key := func(container string) oldipamd.Sandbox {
		return oldipamd.Sandbox{Network: "aws-cni", ContainerID: container, IfName: "eth0"}
	}
	want := map[oldipamd.Sandbox][]string{
		key("c1"): {"10.0.0.5"}, key("c2"): {"2001:db8::5"}, key("c3"): {"10.0.0.6", "10.0.1.6"}, key("c4"): {"10.0.0.6"},
	}
	if diff := cmp.Diff(want, d.Held()); diff != "" {
		t.Error(diff)
	}
	if reply, err := client.AddNetwork(t.Context(), add("none", "c9", false)); err != nil || reply.GetSuccess() {
		t.Errorf("ADD of a pod that was not set: %v %v", reply, err)
	}
	if reply, err := client.DelNetwork(t.Context(), del("web", "c1", "")); err != nil || reply.GetIPAllocationMetadata()[0].GetIPv4Addr() != "10.0.0.5" {
		t.Errorf("DEL: %v %v", reply, err)
	}
	_, err := client.DelNetwork(t.Context(), del("web", "c1", ""))
	if want := "rpc error: code = Unknown desc = 1 error occurred:\n\t* datastore: unknown pod\n\n"; err == nil || err.Error() != want {
		t.Errorf("second DEL: %v", err)
	}
	other := add("web", "c1", false)
	other.ClientVersion = "v2"
	_, err = client.AddNetwork(t.Context(), other)
	if want := `rpc error: code = FailedPrecondition desc = wrong client version "v2" (!= "v1.23.1")`; err == nil || err.Error() != want {
		t.Errorf("another version: %v", err)
	}
}

// TestDaemon_BranchPods: upstream answers the DEL of a branch pod from its pod object.
func TestDaemon_BranchPods(t *testing.T) {
	t.Parallel()
	d, client := start(t, oldipamd.Options{PodENI: true})
	d.SetPod("default", "sg", oldipamd.BranchPod("10.0.2.5", "u1", oldipamd.Branch{VLAN: 7, MAC: "02:00:00:00:00:07", Gateway: "10.0.2.1", ParentIfIndex: 4}))
	reply, err := client.AddNetwork(t.Context(), add("sg", "c1", false))
	if err != nil || reply.GetPodVlanId() != 7 || reply.GetIPAllocationMetadata()[0].GetDeviceNumber() != -1 || len(d.Held()) != 0 {
		t.Errorf("ADD: %v %v, held %v", reply, err, d.Held())
	}
	_, err = client.DelNetwork(t.Context(), del("sg", "c1", ""))
	if want := "rpc error: code = Unknown desc = pod UID mismatch: got , expected u1"; err == nil || err.Error() != want {
		t.Errorf("DEL without UID: %v", err)
	}
	if reply, err := client.DelNetwork(t.Context(), del("sg", "c1", "u1")); err != nil || reply.GetPodVlanId() != 7 {
		t.Errorf("DEL: %v %v", reply, err)
	}
	d.RemovePod("default", "sg")
	_, err = client.DelNetwork(t.Context(), del("sg", "c1", "u1"))
	if want := `rpc error: code = Unknown desc = error while trying to retrieve pod info: pods "sg" not found`; err == nil || err.Error() != want {
		t.Errorf("DEL without a pod: %v", err)
	}
}
