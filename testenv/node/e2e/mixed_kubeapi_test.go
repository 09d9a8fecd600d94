package e2e_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"

	"cnictl/daemon/api/cnirpc"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// upstreamPlugin is upstream's plugin, of any release, as its daemon sees it: gRPC on ipamd.sock.
type upstreamPlugin struct {
	l      *lab
	client cnirpc.CNIBackendClient
}

func (l *lab) upstreamPlugin(n *node.Node) *upstreamPlugin {
	l.t.Helper()
	conn, err := grpc.NewClient("passthrough:///ipamd", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return n.Dial("unix", "/var/run/aws-node/ipamd.sock", testenv.Left(l.t))
		}))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	return &upstreamPlugin{l, cnirpc.NewCNIBackendClient(conn)}
}

// sandboxID is the container id in upstream's requests for a pod.
func sandboxID(p *corev1.Pod) string { return fmt.Sprintf("%064x", hashOf(string(p.UID))) }

func (o *upstreamPlugin) add(p *corev1.Pod, every bool) *cnirpc.AddNetworkReply {
	o.l.t.Helper()
	reply, err := o.client.AddNetwork(o.l.t.Context(), &cnirpc.AddNetworkRequest{
		ClientVersion: "v1.23.1", K8S_POD_NAME: p.Name, K8S_POD_NAMESPACE: p.Namespace, K8S_POD_INFRA_CONTAINER_ID: sandboxID(p),
		ContainerID: sandboxID(p), IfName: "eth0", NetworkName: "aws-cni", Netns: "/var/run/netns/x", RequiresMultiNICAttachment: every,
	})
	if err != nil {
		o.l.t.Fatal(err)
	}
	return reply
}

// del sends a runtime's DEL, or the one that upstream's plugin sends after a failed ADD: that has
// no UID and another reason.
func (o *upstreamPlugin) del(p *corev1.Pod, reason, uid string) (*cnirpc.DelNetworkReply, error) {
	return o.client.DelNetwork(o.l.t.Context(), &cnirpc.DelNetworkRequest{
		ClientVersion: "v1.22.0", K8S_POD_NAME: p.Name, K8S_POD_NAMESPACE: p.Namespace, K8S_POD_INFRA_CONTAINER_ID: sandboxID(p), K8S_POD_UID: uid,
		ContainerID: sandboxID(p), IfName: "eth0", NetworkName: "aws-cni", Reason: reason,
	})
}

const (
	podDeleted    = "PodDeleted"
	setupNSFailed = "SetupNSFailed"
)

// comesAndGoes checks the reply to an ADD and to its repetition, and that either kind of DEL
// frees what the pod had, after which the daemon no longer knows the pod.
func (o *upstreamPlugin) comesAndGoes(p *corev1.Pod, every bool, want func(got *cnirpc.AddNetworkReply) *cnirpc.AddNetworkReply) {
	o.l.t.Helper()
	for _, reason := range []string{setupNSFailed, podDeleted} {
		got := o.add(p, every)
		if diff := cmp.Diff(want(got), got, protocmp.Transform()); diff != "" {
			o.l.t.Errorf("%s, ADD (-want +got):\n%s", p.Name, diff)
		}
		if diff := cmp.Diff(got, o.add(p, every), protocmp.Transform()); diff != "" {
			o.l.t.Errorf("%s, ADD once more (-first +second):\n%s", p.Name, diff)
		}
		uid := ""
		if reason == podDeleted {
			uid = string(p.UID)
		}
		freed, err := o.del(p, reason, uid)
		had := &cnirpc.DelNetworkReply{Success: true, IPAllocationMetadata: got.GetIPAllocationMetadata()}
		if diff := cmp.Diff(had, freed, protocmp.Transform()); diff != "" || err != nil {
			o.l.t.Errorf("%s, DEL %s: %v (-want +got):\n%s", p.Name, reason, err, diff)
		}
		o.unknown(p, reason, uid)
	}
}

// unknown expects a DEL to fail with the error that upstream's plugin treats as success.
func (o *upstreamPlugin) unknown(p *corev1.Pod, reason, uid string) {
	o.l.t.Helper()
	_, err := o.del(p, reason, uid)
	if s := status.Convert(err); s.Code() != codes.Unknown || s.Message() != "1 error occurred:\n\t* datastore: unknown pod\n\n" {
		o.l.t.Errorf("%s, DEL %s once more: %v", p.Name, reason, err)
	}
}

// refused expects an ADD to get Success=false without a gRPC error, which is how upstream refuses.
func (o *upstreamPlugin) refused(p *corev1.Pod, every bool, cause string) {
	o.l.t.Helper()
	if r := o.add(p, every); r.GetSuccess() || r.GetCause() != cause || len(r.GetIPAllocationMetadata()) > 0 {
		o.l.t.Errorf("%s: %v, want a refusal for %s", p.Name, r, cause)
	}
}

// TestMixed_UpstreamPlugin: while a node is being updated, the plugin may still be upstream's. It
// gets the same replies as from upstream's daemon.
func TestMixed_UpstreamPlugin(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, map[string]func(*testing.T){
		"secondary addresses": func(t *testing.T) { mixedIPv4(t, nil) },
		"prefixes":            func(t *testing.T) { mixedIPv4(t, map[string]string{"ENABLE_PREFIX_DELEGATION": "true"}) },
		"IPv6":                mixedIPv6,
		"several cards":       mixedMultiNIC,
		"branch ENIs":         mixedBranch,
	}, func(t *testing.T, row func(*testing.T)) { row(t) })
}

// metadataOf returns upstream's metadata for an address of a member's ENIs.
func (m *member) metadataOf(a *cnirpc.IPAllocationMetadata) *cnirpc.IPAllocationMetadata {
	text := a.GetIPv4Addr() + a.GetIPv6Addr()
	at := m.owner(netip.MustParseAddr(text)).Attachment
	table := at.Device + 1
	switch {
	case at.Card > 0:
		table = 10000 + 100*at.Card + at.Device
	case at.Device == 0:
		table = 254
	}
	return &cnirpc.IPAllocationMetadata{IPv4Addr: a.GetIPv4Addr(), IPv6Addr: a.GetIPv6Addr(), DeviceNumber: int32(at.Device), RouteTableId: int32(table)}
}

func (m *member) repliesWith(n int, cidrs, cidrs6 []string) func(*cnirpc.AddNetworkReply) *cnirpc.AddNetworkReply {
	return func(got *cnirpc.AddNetworkReply) *cnirpc.AddNetworkReply {
		m.c.t.Helper()
		want := &cnirpc.AddNetworkReply{Success: true, VPCv4CIDRs: cidrs, VPCv6CIDRs: cidrs6}
		if len(got.GetIPAllocationMetadata()) != n {
			m.c.t.Fatalf("%v, want %d addresses", got, n)
		}
		for _, a := range got.GetIPAllocationMetadata() {
			want.IPAllocationMetadata = append(want.IPAllocationMetadata, m.metadataOf(a))
		}
		return want
	}
}

func mixedIPv4(t *testing.T, env map[string]string) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	m.start(env)
	o := c.upstreamPlugin(m.Node)
	o.comesAndGoes(m.bind("p"), false, m.repliesWith(1, []string{"10.1.0.0/16"}, nil))
	o.refused(m.bind("cards"), true, "multi-nic-disabled")
	noKey, err := o.client.AddNetwork(t.Context(), &cnirpc.AddNetworkRequest{K8S_POD_NAME: "p", K8S_POD_NAMESPACE: "default"})
	if err != nil || noKey.GetSuccess() {
		t.Errorf("ADD without a key: %v, %v", noKey, err)
	}
}

func mixedIPv6(t *testing.T) {
	c, subnet := ipv6Cluster(t, nil)
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: subnet.ID, IPv6: true})
	m.start(ipv6Env)
	c.upstreamPlugin(m.Node).comesAndGoes(m.bind("p"), false, func(got *cnirpc.AddNetworkReply) *cnirpc.AddNetworkReply {
		if len(got.GetIPAllocationMetadata()) != 1 {
			t.Fatal(got)
		}
		address := got.GetIPAllocationMetadata()[0].GetIPv6Addr()
		c.addressIn("p", m.ipv6Prefixes()[0], netip.MustParseAddr(address))
		return &cnirpc.AddNetworkReply{
			Success: true, VPCv6CIDRs: []string{"2001:db8:1::/56"},
			IPAllocationMetadata: []*cnirpc.IPAllocationMetadata{{IPv6Addr: address, RouteTableId: 254}},
		}
	})
}

func mixedMultiNIC(t *testing.T) {
	c, m := multiNICCluster(t)
	m.start(multiNIC)
	o := c.upstreamPlugin(m.Node)
	o.comesAndGoes(m.bind("every"), true, m.repliesWith(3, []string{"10.1.0.0/16"}, nil))
	o.comesAndGoes(m.bind("one"), false, m.repliesWith(1, []string{"10.1.0.0/16"}, nil))
}

// mixedBranch: the daemon recognises a branch pod by the pod's object.
func mixedBranch(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m)
	m.start(groupsForPods(nil))
	trunk := m.withTrunk()
	o := c.upstreamPlugin(m.Node)
	p := m.bind("branch", wantsBranch)
	got := o.add(p, false)
	b := c.branchOf(p)
	own := []*cnirpc.IPAllocationMetadata{{IPv4Addr: b.IPv4, DeviceNumber: -1}}
	want := &cnirpc.AddNetworkReply{
		Success: true, IPAllocationMetadata: own, VPCv4CIDRs: []string{"10.1.0.0/16"},
		PodVlanId: b.VLAN, PodENIMAC: b.MAC, PodENISubnetGW: gatewayOf(c.subnet).String(), ParentIfIndex: int32(m.linkIndex(trunk.MAC)),
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("ADD (-want +got):\n%s", diff)
	}
	for range 2 { // the branch ENI is the pod's as long as its object lives
		freed, err := o.del(p, podDeleted, string(p.UID))
		had := &cnirpc.DelNetworkReply{Success: true, IPAllocationMetadata: own, PodVlanId: b.VLAN}
		if diff := cmp.Diff(had, freed, protocmp.Transform()); diff != "" || err != nil {
			t.Errorf("DEL: %v (-want +got):\n%s", err, diff)
		}
	}
	o.comesAndGoes(m.bind("ordinary"), false, m.repliesWith(1, []string{"10.1.0.0/16"}, nil))
	// When it rolls back a failed ADD with a DEL, upstream's plugin reads only whether that
	// succeeded. Upstream's daemon refuses it because the UID is missing.
	if rollback, err := o.del(p, setupNSFailed, ""); err != nil || !rollback.GetSuccess() {
		t.Errorf("DEL %s: %v, %v", setupNSFailed, rollback, err)
	}
	c.api.DeletePod(t, p.Namespace, p.Name)
	testenv.Eventually(c.t, "the daemon to see the pod's end", func() bool {
		_, err := o.del(p, podDeleted, string(p.UID))
		return err != nil
	})
	o.unknown(p, podDeleted, string(p.UID))
}
