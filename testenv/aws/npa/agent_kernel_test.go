package npa_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"cnictl/daemon/api/cnirpc"
	"cnictl/daemon/api/netnames"
	"cnictl/testenv"
	"cnictl/testenv/aws/npa"
	"cnictl/testenv/network/netns"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestAgent_LooksForLinks: the agent finds the links of both prefixes and of each index, and
// refuses a pod that lacks some of them.
func TestAgent_LooksForLinks(t *testing.T) {
	testenv.RequireRoot(t)
	ns := netns.New(t)
	addLink(t, ns, netnames.HostVeth("eni", "default", "web-0", 0))
	addLink(t, ns, netnames.HostVeth("vlan", "default", "web-0", 1))
	socket := filepath.Join(t.TempDir(), "npa.sock")
	a, err := npa.Start(npa.Options{Socket: socket, Netns: ns})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	conn := dial(t, socket)
	client := cnirpc.NewNPBackendClient(conn)
	enforce := func(mode string, interfaces int32) string {
		r, err := client.EnforceNpToPod(t.Context(), &cnirpc.EnforceNpRequest{
			K8S_POD_NAME: "web-0", K8S_POD_NAMESPACE: "default", NETWORK_POLICY_MODE: mode, InterfaceCount: interfaces,
		})
		switch {
		case err != nil:
			return err.Error()
		case !r.GetSuccess():
			return "refused"
		}
		return ""
	}
	for _, row := range []struct {
		mode       string
		interfaces int32
		want       string
	}{
		{"strict", 1, ""}, {"Standard", 2, ""},
		{"strict", 3, "rpc error: code = Unknown desc = Link not found"},
		{"none", 1, "rpc error: code = Unknown desc = Invalid Network Policy Mode"},
	} {
		if got := enforce(row.mode, row.interfaces); got != row.want {
			t.Errorf("mode %s, %d interfaces: %q, want %q", row.mode, row.interfaces, got, row.want)
		}
	}
	if d := cmp.Diff(map[string]string{"default/web-0": "Standard"}, a.Pods()); d != "" {
		t.Error(d)
	}
	a.SetFault(npa.Fault{Refuse: true, Times: 1})
	if got := enforce("strict", 1) + enforce("strict", 1); got != "refused" {
		t.Errorf("one refusal: %q", got)
	}
	a.SetFault(npa.Fault{Hang: true})
	short, cancel := context.WithDeadline(t.Context(), testenv.Soon())
	defer cancel()
	if _, err := client.EnforceNpToPod(short, &cnirpc.EnforceNpRequest{}); err == nil {
		t.Error("a call that hangs was answered")
	}
	if _, err := client.DeletePodNp(t.Context(), &cnirpc.DeleteNpRequest{K8S_POD_NAME: "web-0", K8S_POD_NAMESPACE: "default"}); err != nil || len(a.Pods()) != 0 {
		t.Errorf("deletion: %v, left %v", err, a.Pods())
	}
	if err := a.Await(testenv.Context(t), func(c []npa.Call) bool { return len(c) == 8 }); err != nil {
		t.Error(err)
	}
	r, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: npa.HealthService})
	if err != nil || r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v %v", r, err)
	}
}

func addLink(t *testing.T, ns *netns.NS, name string) {
	t.Helper()
	err := ns.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "p" + name[len(name)-8:]})
	})
	if err != nil {
		t.Fatal(err)
	}
}
