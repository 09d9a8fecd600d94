package vpc_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"

	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// allocates answers every ADD with the given addresses.
func allocates(list ...cniwire.Allocation) func(*cniwire.AddRequest) *cniwire.AddReply {
	return func(*cniwire.AddRequest) *cniwire.AddReply {
		return &cniwire.AddReply{Success: true, Allocations: list}
	}
}

func hadAll(list ...cniwire.Allocation) func(*cniwire.DelRequest) *cniwire.DelReply {
	return func(*cniwire.DelRequest) *cniwire.DelReply {
		return &cniwire.DelReply{Success: true, Allocations: list}
	}
}

// podRules lists the rules of both families that the kernel does not create itself.
func podRules(t *testing.T, ns *netns.NS) (out []string) {
	t.Helper()
	do(t, ns, func() error {
		for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
			list, err := netns.Dump(func() ([]netlink.Rule, error) { return netlink.RuleList(family) })
			if err != nil {
				return err
			}
			for _, r := range list {
				if r.Priority == 0 || r.Priority >= netnames.RuleKernelMain {
					continue
				}
				var line strings.Builder
				line.WriteString(strings.TrimSpace(r.String()))
				out = append(out, line.String())
			}
		}
		return nil
	})
	return out
}

// withSource gives the node an address that the pod can reply to.
func withSource(t *testing.T, node *netns.NS, cidr string) {
	t.Helper()
	do(t, node, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(cidr)
		if err != nil {
			return err
		}
		if a.IP.To4() == nil {
			a.Flags = unix.IFA_F_NODAD
		}
		return netlink.AddrAdd(lo, a)
	})
}

// reached connects to the pod. With IPv6 the first packet must get through without waiting
// for a second neighbour solicitation, which comes after a second.
func reached(t *testing.T, node, pod *netns.NS, address string) {
	t.Helper()
	to := netip.MustParseAddr(address)
	echo, err := pod.EchoTCP(netip.AddrPortFrom(to, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	if to.Is6() {
		_, err = node.AskEchoAtOnce(t.Context(), netip.Addr{}, echo.Addr, testenv.Left(t), 900*time.Millisecond) //realtime: the kernel measures it
	} else {
		_, err = node.AskEcho(t.Context(), "tcp", netip.Addr{}, echo.Addr, testenv.Left(t))
	}
	if err != nil {
		t.Errorf("%s: %v", address, err)
	}
}

// TestBinary_Kinds: ADD, CHECK and each kind of DEL for pods without a branch ENI.
func TestBinary_Kinds(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	second := netnames.HostVeth("eni", "default", "web-0", 1)
	for name, row := range map[string]struct {
		result string
		list   []cniwire.Allocation
		source string
		rules  int
	}{
		"IPv6": {"IPv6", []cniwire.Allocation{{IPv6: "2001:db8::7", RouteTable: 254}}, "2001:db8:1::1/128", 1},
		"two": {"two", []cniwire.Allocation{{IPv4: "10.0.0.12", RouteTable: 254}, {IPv4: "10.2.0.7", Device: 2, RouteTable: 10102}},
			"192.0.2.1/32", 3},
		"two IPv6": {"two IPv6", []cniwire.Allocation{{IPv6: "2001:db8::7", RouteTable: 254}, {IPv6: "2001:db8:2::7", Device: 2, RouteTable: 10102}},
			"2001:db8:1::1/128", 3},
	} {
		for _, version := range []string{"0.4.0", "1.0.0"} {
			t.Run(name+" "+version, func(t *testing.T) {
				s := (&server{add: allocates(row.list...), del: hadAll(row.list...)}).serve(t)
				node, pod := netns.New(t), netns.New(t)
				withSource(t, node, row.source)
				box := newSandbox(t, node, "abc001", "web-0", pod.Path)
				want := podResults[row.result]
				for i := range want.nics {
					if i == 1 {
						want.nics[i].HostLink = second
					}
				}
				stdin := func(more ...string) string {
					return strings.Replace(strings.Replace(box.stdin(more...), `"0.4.0"`, `"`+version+`"`, 1),
						`pod-annotations":{}`, `pod-annotations":{"k8s.amazonaws.com/nicConfig":"multi-nic-attachment"}`, 1)
				}
				result := want.byLibrary(t, version, pod.Path)
				box.expect(t, "ADD", stdin(), 0, result)
				for _, n := range want.nics {
					reached(t, node, pod, n.Address)
				}
				if adds, _ := s.requests(); len(adds) != 1 || !adds[0].RequiresMultiNIC {
					t.Errorf("requests %+v", adds)
				}
				if got := podRules(t, node); len(got) != row.rules {
					t.Errorf("rules %q, want %d", got, row.rules)
				}
				box.expect(t, "CHECK", stdin(`,"prevResult":`+result), 0, "")
				box.expect(t, "ADD", stdin(), 0, result) // once more, over the existing network
				box.expect(t, "DEL", stdin(`,"prevResult":`+result), 0, "")
				if got := podRules(t, node); got != nil {
					t.Errorf("rules after DEL: %q", got)
				}
				code, out, _, err := box.run(t.Context(), "CHECK", stdin(`,"prevResult":`+result))
				if err != nil || code != 1 || !strings.Contains(out, "is missing") {
					t.Errorf("CHECK after DEL: %d %s %v", code, out, err)
				}
			})
		}
	}
	t.Run("by previous result", func(t *testing.T) {
		row := podResults["two IPv6"]
		node, pod := netns.New(t), netns.New(t)
		box := newSandbox(t, node, "abc001", "web-0", pod.Path)
		t.Run("ADD", func(t *testing.T) {
			(&server{add: allocates(cniwire.Allocation{IPv6: row.nics[0].Address, RouteTable: 254}, cniwire.Allocation{IPv6: row.nics[1].Address, RouteTable: 10102})}).serve(t)
			box.expect(t, "ADD", box.stdin(), 0, row.byLibrary(t, "0.4.0", pod.Path))
		})
		box.expect(t, "DEL", box.stdin(`,"prevResult":`+row.byLibrary(t, "0.4.0", pod.Path)), 0, "", "CNI_NETNS=")
		if got := podRules(t, node); got != nil {
			t.Errorf("rules after DEL: %q", got)
		}
	})
}

// TestBinary_KindFails: the parts specific to a kind of pod are undone with the rest.
func TestBinary_KindFails(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	s := (&server{
		add: allocates(cniwire.Allocation{IPv6: "2001:db8::7", RouteTable: 2}, cniwire.Allocation{IPv6: "2001:db8:2::7", RouteTable: 10102}),
		del: func(*cniwire.DelRequest) *cniwire.DelReply { return &cniwire.DelReply{Unknown: true} },
	}).serve(t)
	node, pod := netns.New(t), netns.New(t)
	do(t, pod, func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "mNicIf1", Index: 20}, PeerName: "x"})
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
	if got := podRules(t, node); got != nil {
		t.Errorf("rules left: %q", got)
	}
}

func TestBinary_Policy(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	two := []cniwire.Allocation{{IPv4: "10.0.0.12", RouteTable: 254}, {IPv4: "10.2.0.7", Device: 2, RouteTable: 10102}}
	answer := &cniwire.PolicyReply{Success: true}
	s := (&server{
		add: func(*cniwire.AddRequest) *cniwire.AddReply {
			return &cniwire.AddReply{Success: true, Allocations: two, NetworkPolicyMode: "Strict"}
		},
		del: func(*cniwire.DelRequest) *cniwire.DelReply {
			return &cniwire.DelReply{Success: true, Allocations: two, NetworkPolicyMode: "Strict"}
		},
		policy: func(*cniwire.PolicyRequest) *cniwire.PolicyReply { return answer },
	}).serve(t)
	node, pod := netns.New(t), netns.New(t)
	box := newSandbox(t, node, "abc001", "web-0", pod.Path)
	want := podResults["two"]
	want.nics = slices.Clone(want.nics)
	want.nics[1].HostLink = netnames.HostVeth("eni", "default", "web-0", 1)
	box.expect(t, "ADD", box.stdin(), 0, want.byLibrary(t, "0.4.0", pod.Path))
	box.expect(t, "DEL", box.stdin(), 0, "")
	enforce := cniwire.PolicyRequest{PodName: "web-0", PodNamespace: "default", ContainerID: "abc001", Mode: "Strict", Interfaces: 2}
	forget := cniwire.PolicyRequest{PodName: "web-0", PodNamespace: "default", ContainerID: "abc001", Delete: true}
	if diff := cmp.Diff([]cniwire.PolicyRequest{enforce, forget}, s.policyRequests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}

	// The agent refuses. ADD fails and leaves the pod to the runtime's DEL, which succeeds
	// although the agent still refuses.
	*answer = cniwire.PolicyReply{Cause: string(cause.PolicyAgentUnreachable), Detail: "nothing listens"}
	box.expect(t, "ADD", box.stdin(), 1, failed(999, "add cmd: failed to setup network policy", cause.PolicyAgentUnreachable, "nothing listens"))
	if got := podRules(t, node); len(got) != 3 {
		t.Errorf("rules after the failed ADD: %q", got)
	}
	if _, dels := s.requests(); len(dels) != 1 {
		t.Errorf("%d DELs of the daemon, want the first alone", len(dels))
	}
	box.expect(t, "DEL", box.stdin(), 0, "")
	if got := podRules(t, node); got != nil {
		t.Errorf("rules after DEL: %q", got)
	}
}

// TestBinary_PolicyOfARepeatedDel: a DEL may die between the daemon's answer and its call to
// the agent, so the next DEL calls the agent, unless the pod has a newer sandbox.
func TestBinary_PolicyOfARepeatedDel(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	reply := &cniwire.DelReply{Unknown: true, NetworkPolicyMode: "Strict"}
	s := (&server{del: func(*cniwire.DelRequest) *cniwire.DelReply { return reply }}).serve(t)
	box := newSandbox(t, netns.New(t), "abc001", "web-0", "")
	box.expect(t, "DEL", box.stdin(), 0, "")
	forget := cniwire.PolicyRequest{PodName: "web-0", PodNamespace: "default", ContainerID: "abc001", Delete: true}
	if diff := cmp.Diff([]cniwire.PolicyRequest{forget}, s.policyRequests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	reply = &cniwire.DelReply{Unknown: true, NetworkPolicyMode: "Strict", Allocations: []cniwire.Allocation{{IPv4: "10.0.0.12", RouteTable: 254}}}
	box.expect(t, "DEL", box.stdin(), 0, "")
	reply = &cniwire.DelReply{Unknown: true} // policies are off
	box.expect(t, "DEL", box.stdin(), 0, "")
	if n := len(s.policyRequests()); n != 1 {
		t.Errorf("%d requests, want the first alone", n)
	}
}

const recordsDir = "/var/run/aws-node/attachments"

// noted puts a record in place, as ADD writes it.
func noted(t *testing.T, id, pod, mac, address string) {
	t.Helper()
	notedIn(t, "aws-cni", id, pod, mac, address)
}

func notedIn(t *testing.T, network, id, pod, mac, address string) {
	t.Helper()
	if err := os.MkdirAll(recordsDir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(recordsDir) })
	record := map[string]string{
		"networkName": network, "containerID": id, "ifname": "eth0", "podNamespace": "default", "podName": pod, "vlan": "3", "mac": mac, "address": address, "hostLink": "vlan0761ccbeace",
	}
	if network == "" { // of a plugin that did not record it
		delete(record, "networkName")
	}
	b, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(recordsDir, id+"-eth0.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func recordsLeft(t *testing.T) (out []string) {
	t.Helper()
	list, err := os.ReadDir(recordsDir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// TestBinary_DelBranchOwner: DEL touches a VLAN device and the rules of its table only while
// the sandbox owns the VLAN ID. Another link with its name replaces the device, which needs a
// driver that most test kernels lack.
func TestBinary_DelBranchOwner(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	const prev = `,"prevResult":{"cniVersion":"0.4.0","interfaces":[{"name":"vlan0761ccbeace"},{"name":"eth0","mac":"0","sandbox":"/x"},{"name":"dummy0761ccbeace","mac":"3"}],` +
		`"ips":[{"version":"4","interface":1,"address":"10.0.0.21/32","gateway":"10.0.0.1"}],"dns":{}}`
	const other = "02:00:00:00:00:99"
	for name, row := range map[string]struct {
		notes func(t *testing.T, mac string) // mac is the device's
		more  func() error                   // runs on the node
		prev  string
		netns string
		gone  bool
		left  []string // remaining records
	}{
		"own record":                     {notes: func(t *testing.T, mac string) { noted(t, "abc001", "web-1", mac, "10.0.0.21") }, prev: prev, netns: "/x", gone: true},
		"own record, no previous result": {notes: func(t *testing.T, mac string) { noted(t, "abc001", "web-1", mac, "10.0.0.21") }, netns: "/x", gone: true},
		"own record, no namespace":       {notes: func(t *testing.T, mac string) { noted(t, "abc001", "web-1", mac, "10.0.0.21") }, prev: prev, gone: true},
		"device of another ENI": {notes: func(t *testing.T, _ string) { noted(t, "abc001", "web-1", other, "10.0.0.21") },
			more: func() error { return otherInTable("10.0.0.99", 103) }, prev: prev, netns: "/x"},
		"newer sandbox, same branch ENI": {notes: func(t *testing.T, mac string) { noted(t, "new", "web-1", mac, "10.0.0.21") }, prev: prev, netns: "/x", left: []string{"new-eth0.json"}},
		"other pod on the id":            {notes: func(t *testing.T, mac string) { noted(t, "new", "web-9", mac, "10.0.0.99") }, prev: prev, netns: "/x", left: []string{"new-eth0.json"}},
		"stale record of another MAC":    {notes: func(t *testing.T, _ string) { noted(t, "new", "web-9", other, "10.0.0.99") }, prev: prev, netns: "/x", gone: true},
		"stale record and own": {notes: func(t *testing.T, mac string) {
			noted(t, "new", "web-9", other, "10.0.0.99")
			noted(t, "abc001", "web-1", mac, "10.0.0.21")
		}, netns: "/x", gone: true},
		"damaged record":                {notes: func(t *testing.T, _ string) { noted(t, "abc001", "web-1", "x", "10.0.0.21") }, prev: prev, netns: "/x", gone: true},
		"upstream's":                    {prev: prev, netns: "/x", gone: true},
		"upstream's, no namespace":      {prev: prev},
		"upstream's, other pod, strict": {more: func() error { return otherInTable("10.0.0.99", 103) }, prev: prev, netns: "/x"},
	} {
		t.Run(name, func(t *testing.T) {
			node := netns.New(t)
			leave(t, node, "vlan.eth.3", 103)
			do(t, node, func() error {
				for _, iif := range []string{"vlan.eth.3", "vlan0761ccbeace"} {
					r := netlink.NewRule()
					r.Priority, r.Table, r.IifName = 10, 103, iif
					if err := netlink.RuleAdd(r); err != nil {
						return err
					}
				}
				return nil
			})
			if row.more != nil {
				do(t, node, row.more)
			}
			if row.notes != nil {
				row.notes(t, hostMAC(t, node, "vlan.eth.3").String())
			}
			box := newSandbox(t, node, "abc001", "web-1", row.netns)
			stdin := box.stdin()
			if row.prev != "" {
				stdin = box.stdin(row.prev)
			}
			for range 2 { // again: nothing more is removed
				box.expect(t, "DEL", stdin, 0, "")
				links := linkNames(t, node)
				if slices.Contains(links, "vlan.eth.3") == row.gone {
					t.Errorf("links %q\n%s", links, box.logged(t))
				}
				iif := strings.Count(ipRule(t, node), "10:\t")
				if want := map[bool]int{true: 0, false: 2}[row.gone]; iif != want {
					t.Errorf("%d rules of the VLAN, want %d", iif, want)
				}
			}
			if diff := cmp.Diff(row.left, recordsLeft(t)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBinary_RecordsLocked: a plugin process that is stuck holding the lock does not delay the
// DEL of a pod, nor does STATUS report a pod as cut off because of it.
func TestBinary_RecordsLocked(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	node := netns.New(t)
	leave(t, node, "vlan.eth.3", 103)
	noted(t, "abc001", "web-1", hostMAC(t, node, "vlan.eth.3").String(), "10.0.0.21")
	stuck, err := os.Open(recordsDir)
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	if err := unix.Flock(int(stuck.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	(&server{del: func(*cniwire.DelRequest) *cniwire.DelReply { return &cniwire.DelReply{Unknown: true} }}).serve(t)
	box := newSandbox(t, node, "abc001", "web-1", "")
	box.expect(t, "STATUS", at("1.1.0", box.stdin()), 0, "")
	box.expect(t, "DEL", box.stdin(), 0, "")
	if slices.Contains(linkNames(t, node), "vlan.eth.3") || recordsLeft(t) != nil {
		t.Errorf("links %q, records %q", linkNames(t, node), recordsLeft(t))
	}
	log := box.logged(t)
	for _, want := range []string{"The rules of pods with branch ENIs are not checked", "Could not lock the records: " + recordsDir} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
}

// otherInTable makes a route of a table lead to another pod.
func otherInTable(address string, table int) error {
	l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "vlanother"}, PeerName: "otherpeer"}
	if err := netlink.LinkAdd(l); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return err
	}
	dst, err := netlink.ParseIPNet(address + "/32")
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK, Table: table})
}

// TestBinary_GCBranch: for pods with branch ENIs, which are not in the daemon's checkpoint, GC
// goes by the records.
func TestBinary_GCBranch(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	for name, row := range map[string]struct{ network, valid string }{
		"stale":             {network: "aws-cni"},
		"valid":             {"aws-cni", `{"containerID":"abc001","ifname":"eth0"}`},
		"another network's": {network: "aws-cni-2"},
		"network not noted": {},
	} {
		t.Run(name, func(t *testing.T) {
			valid := row.valid
			node := netns.New(t)
			leave(t, node, "vlan.eth.3", 103)
			notedIn(t, row.network, "abc001", "web-1", hostMAC(t, node, "vlan.eth.3").String(), "10.0.0.21")
			box := newSandbox(t, node, "", "", "")
			stdin := strings.Replace(box.stdin(`,"cni.dev/valid-attachments":[`+valid+`]`), `"0.4.0"`, `"1.1.0"`, 1)
			box.expect(t, "GC", stdin, 0, "")
			stays := name != "stale"
			if slices.Contains(linkNames(t, node), "vlan.eth.3") != stays || (leftovers(t, node) != "") != stays || (recordsLeft(t) != nil) != stays {
				t.Errorf("links %q, left %q, records %q\n%s", linkNames(t, node), leftovers(t, node), recordsLeft(t), box.logged(t))
			}
		})
	}
}
