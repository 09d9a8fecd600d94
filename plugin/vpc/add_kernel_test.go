package vpc_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/plugin/vpc"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// withNetns replaces the recorded namespace path with that of a pod.
func withNetns(result, recordedPath, path string) string {
	return strings.ReplaceAll(result, recordedPath, path)
}

func TestBinary_AddAndDel(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	for _, row := range []struct {
		pod, file, path, address string
		device, table            int32
		rules                    string
	}{
		{"web-0", "add-web-0.json", "/run/netns/rec1", "10.0.0.12", 0, 254, "512:\tfrom all to 10.0.0.12 lookup main\n"},
		{"web-1", "add-web-1.json", "/run/netns/rec2", "10.0.0.21", 1, 2,
			"512:\tfrom all to 10.0.0.21 lookup main\n1536:\tfrom 10.0.0.21 lookup 2\n"},
	} {
		t.Run(row.pod, func(t *testing.T) {
			s := (&server{add: gives(row.address, row.device, row.table), del: had(row.address, row.device, row.table)}).serve(t)
			node, pod := netns.New(t), netns.New(t)
			box := newSandbox(t, node, "abc001", row.pod, pod.Path)
			result := withNetns(recorded(t, row.file), row.path, pod.Path)

			box.expect(t, "ADD", box.stdin(), 0, result)
			host := netnames.HostVeth("eni", "default", row.pod, 0)
			if diff := cmp.Diff(row.address+" dev "+host+" scope link \n", ipRoute(t, node)); diff != "" {
				t.Errorf("host routes:\n%s", diff)
			}
			wantRules := strings.Replace(emptyRules, "32766", row.rules+"32766", 1)
			if diff := cmp.Diff(wantRules, ipRule(t, node)); diff != "" {
				t.Errorf("rules:\n%s", diff)
			}
			if diff := cmp.Diff(recorded(t, "pod-web-0.route.txt"), ipRoute(t, pod)); diff != "" {
				t.Errorf("pod routes:\n%s", diff)
			}
			wantNeigh := strings.Replace(recorded(t, "pod-web-1.neigh.txt"), "7a:ef:c5:cf:95:da", hostMAC(t, node, host).String(), 1)
			if diff := cmp.Diff(wantNeigh, neighbour(t, pod)); diff != "" {
				t.Errorf("pod neighbour:\n%s", diff)
			}

			// The same sandbox again, then three kinds of DEL, each harmless.
			box.expect(t, "ADD", box.stdin(), 0, result)
			prev := `,"prevResult":` + result
			box.expect(t, "DEL", box.stdin(prev), 0, "")
			if diff := cmp.Diff(emptyRules, ipRule(t, node)); diff != "" {
				t.Errorf("rules after DEL:\n%s", diff)
			}
			if got := ipRoute(t, node); got != "" {
				t.Errorf("routes after DEL: %s", got)
			}
			box.expect(t, "DEL", box.stdin(prev), 0, "")
			box.expect(t, "DEL", box.stdin(), 0, "", "CNI_NETNS=")
			checkRequests(t, s, box)
		})
	}
}

func checkRequests(t *testing.T, s *server, box *sandbox) {
	t.Helper()
	adds, dels := s.requests()
	wantAdd := cniwire.AddRequest{PodName: box.pod, PodNamespace: "default", PodUID: "uid-" + box.pod, ContainerID: box.id,
		IfName: "eth0", NetworkName: "aws-cni", Netns: box.netns, ClientVersion: binaryVersion(t)}
	wantDel := cniwire.DelRequest{PodName: box.pod, PodNamespace: "default", PodUID: "uid-" + box.pod, ContainerID: box.id,
		IfName: "eth0", NetworkName: "aws-cni", Reason: "PodDeleted", ClientVersion: wantAdd.ClientVersion}
	if diff := cmp.Diff([]cniwire.AddRequest{wantAdd, wantAdd}, adds); diff != "" {
		t.Errorf("ADD requests:\n%s", diff)
	}
	if diff := cmp.Diff([]cniwire.DelRequest{wantDel, wantDel, wantDel}, dels); diff != "" {
		t.Errorf("DEL requests:\n%s", diff)
	}
}

// binaryVersion is the version line that the plugin prints when run by hand.
func binaryVersion(t *testing.T) string {
	t.Helper()
	bin, err := buildPlugin()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	version, ok := strings.CutPrefix(line, "AWS CNI ")
	if !ok {
		t.Fatalf("the plugin says %q", out)
	}
	return strings.TrimSpace(version)
}

// failed is an error as printed. Without details, it has the title of the cause.
func failed(code int, msg string, why cause.Code, details string) string {
	return string(vpc.ErrorJSON(code, msg, why, details))
}

const lookAt = " (upstream's socket is /var/run/aws-node/ipamd.sock); look at the aws-node pod of this node: " +
	"kubectl -n kube-system get pods -l k8s-app=aws-node -o wide, and /var/log/aws-routed-eni/ipamd.log"

// explained is a recorded error with our details added.
func explained(t *testing.T, file string, why cause.Code, details string) string {
	t.Helper()
	var e struct {
		Code    int
		Msg     string
		Details string
	}
	plain := recorded(t, file)
	if err := json.Unmarshal([]byte(plain), &e); err != nil || failed(e.Code, e.Msg, "", "") != plain || e.Details != "" {
		t.Fatalf("%s is no error without details: %v", file, err)
	}
	return failed(e.Code, e.Msg, why, details)
}

func TestBinary_RecordedErrors(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	node, pod := netns.New(t), netns.New(t)
	box := newSandbox(t, node, "abc001", "web-0", pod.Path)

	t.Run("no socket", func(t *testing.T) {
		box.expect(t, "ADD", box.stdin(), 1,
			strings.Replace(explained(t, "err-daemon-down.out", cause.DaemonUnreachable, "there is no "+cniwire.Socket+": ipamd has not started since the node booted"+lookAt),
				"connection refused", "no such file or directory", 1))
	})
	t.Run("daemon down", func(t *testing.T) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: cniwire.Socket, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
		defer os.Remove(cniwire.Socket)
		box.expect(t, "ADD", box.stdin(), 1, explained(t, "err-daemon-down.out", cause.DaemonUnreachable, "nothing listens on "+cniwire.Socket+": ipamd has stopped or is still starting"+lookAt))
	})
	t.Run("exhausted", func(t *testing.T) {
		reply := &cniwire.AddReply{}
		(&server{add: func(*cniwire.AddRequest) *cniwire.AddReply { return reply }}).serve(t)
		box.expect(t, "ADD", box.stdin(), 1, strings.TrimSuffix(recorded(t, "err-exhausted.out"), "\n"))
		const msg = "add cmd: failed to assign an IP address to container"
		*reply = cniwire.AddReply{Cause: "pool-full", Detail: "no more"}
		box.expect(t, "ADD", box.stdin(), 1, failed(999, msg, cause.PoolFull, "no more"))
		*reply = cniwire.AddReply{Cause: "pool-dry", Detail: "no free address", Transient: true}
		box.expect(t, "ADD", box.stdin(), 1, failed(11, msg, cause.PoolDry, "no free address"))
	})
	t.Run("others", func(t *testing.T) {
		s := (&server{add: gives("10.0.0.9", 0, 254)}).serve(t)
		none := *box
		none.netns = "/run/netns/none"
		none.expect(t, "ADD", box.stdin(), 1, explained(t, "err-netns.out", cause.NetnsGone,
			`CNI_NETNS is "/run/netns/none", which does not exist: the sandbox was removed meanwhile, or it is not a path on the host`+netnsAccepted))
		box.expect(t, "ADD", box.stdin(), 1, explained(t, "err-args.out", cause.InvalidRequest, `CNI_ARGS is "FOO=bar"`+argsAccepted), "CNI_ARGS=FOO=bar")
		box.expect(t, "ADD", `{"cniVersion":`, 1, explained(t, "err-broken-json.out", cause.InvalidConfig, ""))
		box.expect(t, "ADD", strings.Replace(box.stdin(), `"eni"`, `"enienieni"`, 1), 1, explained(t, "err-vethprefix.out", cause.InvalidConfig,
			`key "vethPrefix" of the network configuration (a file in /etc/cni/net.d) is "enienieni"; accepted is at most 4 characters`))
		box.expect(t, "ADD", box.stdin(), 1, failed(8, "plugin's netns and netns from CNI_NETNS should not be the same", cause.InvalidRequest, ""),
			"CNI_NETNS="+node.Path)
		if adds, dels := s.requests(); len(adds)+len(dels) != 0 {
			t.Errorf("the daemon was asked: %v %v", adds, dels)
		}
	})
	if diff := cmp.Diff([]string{"lo"}, linkNames(t, node)); diff != "" {
		t.Errorf("links left:\n%s", diff)
	}
}

// TestBinary_RefusedReplies: an ADD whose reply makes no sense fails like one without an
// address, leaves nothing and gives the address back.
func TestBinary_RefusedReplies(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	one := []cniwire.Allocation{{IPv4: "10.0.0.9", RouteTable: 254}}
	branch := func(change func(*cniwire.AddReply)) cniwire.AddReply {
		r := cniwire.AddReply{Success: true, PodVLANID: 3, PodENIMAC: "02:00:00:00:00:03", PodENISubnetGW: "10.0.0.1", ParentIfIndex: 1,
			Allocations: []cniwire.Allocation{{IPv4: "10.0.0.9", Device: -1}}}
		change(&r)
		return r
	}
	for name, row := range map[string]struct {
		reply cniwire.AddReply
		why   string
	}{
		"none":         {cniwire.AddReply{Success: true}, "the daemon's reply has no address"},
		"garbage":      {cniwire.AddReply{Success: true, Allocations: []cniwire.Allocation{{IPv4: "10.0.0"}}}, `the daemon's reply has the unusable address "10.0.0"`},
		"empty":        {cniwire.AddReply{Success: true, Allocations: []cniwire.Allocation{{RouteTable: 254}}}, `the daemon's reply has the unusable address ""`},
		"wrong family": {cniwire.AddReply{Success: true, Allocations: []cniwire.Allocation{{IPv6: "10.0.0.9"}}}, `the daemon's reply has the unusable address "10.0.0.9"`},
		"zone":         {cniwire.AddReply{Success: true, Allocations: []cniwire.Allocation{{IPv6: "fe80::1%lo"}}}, `the daemon's reply has the unusable address "fe80::1%lo"`},
		"second":       {cniwire.AddReply{Success: true, Allocations: append(one, cniwire.Allocation{})}, `the daemon's reply has the unusable address ""`},
		"table":        {cniwire.AddReply{Success: true, Allocations: []cniwire.Allocation{{IPv4: "10.0.0.9", RouteTable: -1}}}, "lay out pod: route table -1 is negative"},
		"vlan":         {branch(func(r *cniwire.AddReply) { r.PodVLANID = 154 }), "lay out pod: VLAN id 154, want 1 to 120"},
		"mac":          {branch(func(r *cniwire.AddReply) { r.PodENIMAC = "02:00" }), `the daemon's reply has the unusable MAC "02:00" of a branch ENI`},
		"gateway":      {branch(func(r *cniwire.AddReply) { r.PodENISubnetGW = "" }), `the daemon's reply has the unusable gateway "" of a branch ENI's subnet`},
		"families":     {branch(func(r *cniwire.AddReply) { r.PodENISubnetGW = "fe80::1" }), "lay out pod: the subnet's gateway fe80::1 is not of the family of 10.0.0.9"},
		"trunk":        {branch(func(r *cniwire.AddReply) { r.ParentIfIndex = 0 }), "the daemon's reply has the unusable index 0 of the trunk ENI's link"},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&server{
				add: func(*cniwire.AddRequest) *cniwire.AddReply { return &row.reply },
				del: had("10.0.0.9", 0, 254),
			}).serve(t)
			node, pod := netns.New(t), netns.New(t)
			box := newSandbox(t, node, "abc001", "web-0", pod.Path)
			box.expect(t, "ADD", box.stdin(), 1, failed(999, "add cmd: failed to assign an IP address to container", cause.DaemonMismatch, row.why))
			_, dels := s.requests()
			if len(dels) != 1 || dels[0].Reason != "SetupNSFailed" || dels[0].PodUID != "" || dels[0].ContainerID != "abc001" {
				t.Errorf("given back by %+v", dels)
			}
			if diff := cmp.Diff([]string{"lo"}, linkNames(t, node)); diff != "" {
				t.Errorf("links left:\n%s", diff)
			}
		})
	}
}

func TestBinary_SetupFails(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	s := (&server{
		add: gives("10.0.0.9", 1, 2),
		del: func(*cniwire.DelRequest) *cniwire.DelReply { return &cniwire.DelReply{Unknown: true} },
	}).serve(t)
	node, pod := netns.New(t), netns.New(t)
	do(t, pod, func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0", Index: 20}, PeerName: "x"})
	})
	box := newSandbox(t, node, "abc001", "web-0", pod.Path)
	box.expect(t, "ADD", box.stdin(), 1, failed(999,
		"add command: failed to setup network: SetupPodNetwork: failed to setup veth pair: failed to setup veth network: file exists", cause.PodNetworkSetup, ""))
	if _, dels := s.requests(); len(dels) != 1 {
		t.Errorf("given back by %+v", dels)
	}
	if diff := cmp.Diff([]string{"lo"}, linkNames(t, node)); diff != "" {
		t.Errorf("links left:\n%s", diff)
	}
	if diff := cmp.Diff(emptyRules, ipRule(t, node)); diff != "" {
		t.Errorf("rules left:\n%s", diff)
	}
}

func TestBinary_Log(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	(&server{add: gives("10.0.0.21", 1, 2), del: had("10.0.0.21", 1, 2)}).serve(t)
	node, pod := netns.New(t), netns.New(t)
	box := newSandbox(t, node, "abc001", "web-1", pod.Path)
	result := withNetns(recorded(t, "add-web-1.json"), "/run/netns/rec2", pod.Path)
	box.expect(t, "ADD", box.stdin(), 0, result)
	box.expect(t, "DEL", box.stdin(`,"prevResult":`+result), 0, "")
	log := box.logged(t)
	for _, phrase := range []string{
		"Received CNI add request: ContainerID(abc001) Netns(" + pod.Path + ") IfName(eth0) Args(" + box.args() + ") Path(/opt/cni/bin argsStdinData({",
		`Received add network response from ipamd for container abc001 interface eth0: Success:true  IPAllocationMetadata:{IPv4Addr:\"10.0.0.21\"  DeviceNumber:1  RouteTableId:2}  VPCv4CIDRs:\"10.0.0.0/16\"`,
		"Successfully setup fromContainer rule, containerAddr=10.0.0.21/32, rtTable=2",
		"Using dummy interface: {Name:dummy0761ccbeace Mac:0 Mtu:0 Sandbox:1 SocketPath: PciID:}",
		"NETWORK_POLICY_ENFORCING_MODE is not set",
		"Received CNI del request: ContainerID(abc001)",
		"Received del network response from ipamd for pod web-1 namespace default sandbox abc001: Success:true",
		"Successfully deleted toContainer rule, containerAddr=10.0.0.21/32, rtTable=main",
	} {
		if !strings.Contains(log, phrase) {
			t.Errorf("not in the log: %s", phrase)
		}
	}
	for line := range strings.Lines(log) {
		var l struct{ Level, TS, Caller, Msg string }
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Level == "" || l.TS == "" || l.Caller == "" || l.Msg == "" {
			t.Errorf("line %s: %v", line, err)
		}
	}

	// A log file that cannot be written, or would be standard output, does no harm.
	for _, path := range []string{"/proc/none/plugin.log", "/", "STDOUT", "stderr", ""} {
		odd := *box
		odd.log = path
		odd.expect(t, "ADD", odd.stdin(), 0, result)
	}
}

func TestBinary_Parallel(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	const pods = 50
	addressOf := func(id string) string {
		var n int
		fmt.Sscanf(id, "sandbox%d", &n)
		return fmt.Sprintf("10.0.1.%d", n+1)
	}
	(&server{
		add: func(r *cniwire.AddRequest) *cniwire.AddReply { return gives(addressOf(r.ContainerID), 1, 2)(r) },
		del: func(r *cniwire.DelRequest) *cniwire.DelReply { return had(addressOf(r.ContainerID), 1, 2)(r) },
	}).serve(t)
	node := netns.New(t)
	var boxes []*sandbox
	for i := range pods {
		boxes = append(boxes, newSandbox(t, node, fmt.Sprint("sandbox", i), fmt.Sprint("pod-", i), netns.New(t).Path))
	}
	if _, err := buildPlugin(); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"ADD", "DEL"} {
		var wg sync.WaitGroup
		for _, box := range boxes {
			wg.Add(1)
			go func() {
				defer wg.Done()
				code, out, errOut, err := box.run(t.Context(), command, box.stdin())
				if code != 0 || err != nil {
					t.Errorf("%s of %s: exit %d, %s %s %v", command, box.id, code, out, errOut, err)
				}
			}()
		}
		wg.Wait()
		want := 2*pods + 3
		if command == "DEL" {
			want = 3
		}
		if got := strings.Count(ipRule(t, node), "\n"); got != want {
			t.Errorf("%d rules after %s, want %d", got, command, want)
		}
	}
}
