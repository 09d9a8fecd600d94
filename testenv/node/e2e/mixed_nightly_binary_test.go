//go:build nightly

package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"cnictl/daemon/api/cnirpc"
)

// TestMixed_RecordedSandboxes: upstream's plugin repeats ADD, and sends DEL, for the recorded
// sandboxes. The replies match the recorded results.
func TestMixed_RecordedSandboxes(t *testing.T) {
	t.Parallel()
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			o := takeOver(t, mode)
			plugin := o.lab.upstreamPlugin(o.n)
			for i, p := range o.pods {
				metadata := []*cnirpc.IPAllocationMetadata{metadataOf(t, p)}
				id := p.ContainerID
				got, err := plugin.client.AddNetwork(t.Context(), &cnirpc.AddNetworkRequest{
					ClientVersion: "v1.23.1", K8S_POD_NAME: p.Name, K8S_POD_NAMESPACE: p.Namespace, K8S_POD_INFRA_CONTAINER_ID: id,
					ContainerID: id, IfName: p.IfName, NetworkName: "aws-cni", Netns: p.Path,
				})
				want := &cnirpc.AddNetworkReply{Success: true, IPAllocationMetadata: metadata, VPCv4CIDRs: []string{o.vpc.String()}}
				if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
					t.Errorf("ADD of %s: %v (-want +got):\n%s", p.Name, err, diff)
				}
				del := &cnirpc.DelNetworkRequest{
					ClientVersion: "v1.23.1", K8S_POD_NAME: p.Name, K8S_POD_NAMESPACE: p.Namespace, K8S_POD_INFRA_CONTAINER_ID: id,
					ContainerID: id, IfName: p.IfName, NetworkName: "aws-cni", Reason: podDeleted, K8S_POD_UID: "uid",
				}
				if i == 0 {
					del.Reason, del.K8S_POD_UID = setupNSFailed, ""
				}
				freed, err := plugin.client.DelNetwork(t.Context(), del)
				had := &cnirpc.DelNetworkReply{Success: true, IPAllocationMetadata: metadata}
				if diff := cmp.Diff(had, freed, protocmp.Transform()); diff != "" || err != nil {
					t.Errorf("DEL of %s: %v (-want +got):\n%s", p.Name, err, diff)
				}
				if o.assigned(o.n)[p.IP] {
					t.Errorf("%s is still held", p.IP)
				}
				_, err = plugin.client.DelNetwork(t.Context(), del)
				if s := status.Convert(err); s.Code() != codes.Unknown || s.Message() != "1 error occurred:\n\t* datastore: unknown pod\n\n" {
					t.Errorf("DEL of %s once more: %v", p.Name, err)
				}
			}
		})
	}
}
