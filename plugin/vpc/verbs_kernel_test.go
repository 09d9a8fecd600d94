package vpc_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// entry is one allocation in the daemon's checkpoint.
type entry struct{ network, container, address, pod string }

// writeCheckpoint records allocations where the daemon does, until the test ends.
func writeCheckpoint(t *testing.T, entries ...entry) {
	t.Helper()
	var list []string
	for i, e := range entries {
		list = append(list, `{"networkName":"`+e.network+`","containerID":"`+e.container+`","ifName":"eth0","ipv4":"`+e.address+
			`","allocationTimestamp":`+strconv.Itoa(i+1)+`,"metadata":{"k8sPodNamespace":"default","k8sPodName":"`+e.pod+`","interfacesCount":1}}`)
	}
	if err := os.MkdirAll(filepath.Dir(netnames.CheckpointFile), 0o755); err != nil {
		t.Fatal(err)
	}
	text := `{"version":"vpc-cni-ipam/1","allocations":[` + strings.Join(list, ",") + "]}\n"
	if err := os.WriteFile(netnames.CheckpointFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(netnames.CheckpointFile) })
}

// at changes the version of a configuration.
func at(version, stdin string) string { return strings.Replace(stdin, `"0.4.0"`, `"`+version+`"`, 1) }

// failure is the CNI error that a command printed.
func failure(t *testing.T, s *sandbox, command, stdin string) (code int, msg string) {
	t.Helper()
	exit, out, errOut, err := s.run(t.Context(), command, stdin)
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Code int
		Msg  string
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || exit != 1 {
		t.Fatalf("%s: exit %d, stdout %q, stderr %q", command, exit, out, errOut)
	}
	return said.Code, said.Msg
}

// TestBinary_Check: CHECK passes for a pod as ADD left it, even with additions by other
// plugins, and names every difference.
func TestBinary_Check(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	const address, link = "10.0.0.21", "eni0761ccbeace"
	ip := &net.IPNet{IP: net.IPv4(10, 0, 0, 21).To4(), Mask: net.CIDRMask(32, 32)}
	(&server{add: gives(address, 1, 2)}).serve(t)
	noted := entry{"aws-cni", "abc001", address, "web-1"}
	rule := func(priority, table int) *netlink.Rule {
		r := netlink.NewRule()
		r.Priority, r.Table = priority, table
		return r
	}
	byName := func(name string, f func(netlink.Link) error) func() error {
		return func() error {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			return f(l)
		}
	}
	for _, row := range []struct {
		name  string
		node  func() error
		pod   func() error
		noted []entry // recorded by default
		want  string  // part of the message; success if empty
	}{
		{name: "as left"},
		{name: "another plugin's", pod: byName("eth0", func(l netlink.Link) error {
			return netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(169, 254, 172, 9), Mask: net.CIDRMask(22, 32)}})
		})},
		{name: "before upstream knew networks", noted: []entry{{"_migrated-from-cri", "abc001", address, "web-1"}}},
		{name: "rebuilt from the kernel", noted: []entry{{"_recovered", link, address, ""}}},
		{name: "rebuilt from the kernel, another's", noted: []entry{{"_recovered", "eni00000000000", address, ""}}, want: "ipamd has no allocation for the sandbox"},
		{name: "rebuilt from the kernel with another address", noted: []entry{{"_recovered", link, "10.0.0.22", ""}}, want: "ipamd has no allocation for the sandbox"},
		{name: "its own entry counts", noted: []entry{{"_recovered", link, address, ""}, {"aws-cni", "abc001", "10.0.0.22", "web-1"}},
			want: "ipamd has allocated 10.0.0.22 to the sandbox, not " + address},
		{name: "host link down", node: byName(link, netlink.LinkSetDown),
			want: "host link " + link + " is down; host route " + address + " dev " + link + " scope link is missing"},
		{name: "host route", node: func() error { return netlink.RouteDel(&netlink.Route{Dst: ip, Scope: netlink.SCOPE_LINK}) },
			want: "host route " + address + " dev " + link + " scope link is missing"},
		{name: "rule to the pod", node: func() error { r := rule(512, 254); r.Dst = ip; return netlink.RuleDel(r) },
			want: "host rule 512: from all to " + address + " lookup main is missing"},
		{name: "rule from the pod", node: func() error { r := rule(1536, 2); r.Src = ip; return netlink.RuleDel(r) },
			want: "host rule 1536: from " + address + " lookup 2 is missing"},
		{name: "rule to another ENI", node: func() error { r := rule(1536, 3); r.Src = ip; return netlink.RuleAdd(r) },
			want: "host rule 1536: from " + address + " lookup 3 belongs to another ENI than the pod's"},
		{name: "MAC", node: byName(link, func(l netlink.Link) error {
			return netlink.LinkSetHardwareAddr(l, net.HardwareAddr{2, 0, 0, 0, 0, 9})
		}), want: ", and host link " + link + " has 02:00:00:00:00:09"},
		{name: "address", pod: byName("eth0", func(l netlink.Link) error { return netlink.AddrDel(l, &netlink.Addr{IPNet: ip}) }),
			want: "pod address " + address + "/32 is missing on eth0"},
		{name: "default route", pod: byName("eth0", func(l netlink.Link) error {
			return netlink.RouteDel(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}})
		}), want: "pod route default via 169.254.1.1 dev eth0 is missing"},
		{name: "neighbour", pod: byName("eth0", func(l netlink.Link) error {
			return netlink.NeighDel(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: net.IPv4(169, 254, 1, 1).To4()})
		}), want: "pod neighbour 169.254.1.1 is missing on eth0"},
		{name: "links", node: byName(link, netlink.LinkDel),
			want: "host link " + link + " is missing; pod link eth0 is missing"},
		{name: "other links", pod: func() error {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			if err := netlink.LinkSetDown(l); err != nil {
				return err
			}
			if err := netlink.LinkSetName(l, "old"); err != nil {
				return err
			}
			other := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "peer"}
			if err := netlink.LinkAdd(other); err != nil {
				return err
			}
			return netlink.LinkSetUp(other)
		}, want: "pod link eth0 is not the other end of host link " + link},
		{name: "allocation", noted: []entry{{"aws-cni", "abc002", address, "web-1"}}, want: "ipamd has no allocation for the sandbox"},
		{name: "another network's allocation", noted: []entry{{"other", "abc001", address, "web-1"}}, want: "ipamd has no allocation for the sandbox"},
		{name: "address of the allocation", noted: []entry{{"aws-cni", "abc001", "10.0.0.22", "web-1"}},
			want: "ipamd has allocated 10.0.0.22 to the sandbox, not " + address},
	} {
		t.Run(row.name, func(t *testing.T) {
			node, pod := netns.New(t), netns.New(t)
			box := newSandbox(t, node, "abc001", "web-1", pod.Path)
			result := withNetns(recorded(t, "add-web-1.json"), "/run/netns/rec2", pod.Path)
			box.expect(t, "ADD", box.stdin(), 0, result)
			if row.noted == nil {
				row.noted = []entry{noted}
			}
			writeCheckpoint(t, row.noted...)
			if row.node != nil {
				do(t, node, row.node)
			}
			if row.pod != nil {
				do(t, pod, row.pod)
			}
			stdin := box.stdin(`,"prevResult":` + result)
			if row.want == "" {
				for _, version := range []string{"0.4.0", "1.0.0", "1.1.0"} {
					box.expect(t, "CHECK", at(version, stdin), 0, "") // as recorded: check.out is empty
				}
				return
			}
			code, msg := failure(t, box, "CHECK", stdin)
			if code != 999 || !strings.HasPrefix(msg, "check cmd: the pod's network is not as ADD left it: ") || !strings.Contains(msg, row.want) {
				t.Errorf("code %d, %s\nwant %s", code, msg, row.want)
			}
		})
	}
}

// TestBinary_CheckWithoutCheckpoint: a daemon may keep its allocations elsewhere.
func TestBinary_CheckWithoutCheckpoint(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	(&server{add: gives("10.0.0.21", 1, 2)}).serve(t)
	node, pod := netns.New(t), netns.New(t)
	box := newSandbox(t, node, "abc001", "web-1", pod.Path)
	result := withNetns(recorded(t, "add-web-1.json"), "/run/netns/rec2", pod.Path)
	box.expect(t, "ADD", box.stdin(), 0, result)
	box.expect(t, "CHECK", box.stdin(`,"prevResult":`+result), 0, "")
	if log := box.logged(t); !strings.Contains(log, "The allocation is not checked: read /var/run/aws-node/ipam.json: no such file or directory") {
		t.Errorf("log:\n%s", log)
	}
}

// TestBinary_Status: 0 if a daemon runs, 50 if none does or it hangs, 51 if the rules of a
// running pod are missing.
func TestBinary_Status(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	node, pod := netns.New(t), netns.New(t)
	box := newSandbox(t, node, "abc001", "web-1", pod.Path)
	stdin := at("1.1.0", box.stdin())
	env := []string{"CNI_CONTAINERID=", "CNI_NETNS=", "CNI_IFNAME=", "CNI_ARGS="}
	if code, msg := failure(t, box, "STATUS", stdin); code != 50 || msg != "status cmd: ipamd does not answer" {
		t.Errorf("no daemon: code %d, %s", code, msg)
	}
	t.Run("hangs", func(t *testing.T) {
		if err := os.MkdirAll(filepath.Dir(cniwire.Socket), 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", cniwire.Socket) // never accepts
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if code, msg := failure(t, box, "STATUS", stdin); code != 50 || msg != "status cmd: ipamd does not answer" {
			t.Errorf("code %d, %s", code, msg)
		}
	})

	(&server{add: gives("10.0.0.21", 1, 2)}).serve(t)
	box.expect(t, "STATUS", stdin, 0, "", env...)
	box.expect(t, "ADD", box.stdin(), 0, withNetns(recorded(t, "add-web-1.json"), "/run/netns/rec2", pod.Path))
	// An older sandbox of the same pod, one that ended, and one that never ran.
	writeCheckpoint(t, entry{"aws-cni", "old", "10.0.0.20", "web-1"}, entry{"aws-cni", "gone", "10.0.0.9", "web-9"},
		entry{"_migrated-from-cri", "older", "10.0.0.8", ""}, entry{"aws-cni", "abc001", "10.0.0.21", "web-1"})
	box.expect(t, "STATUS", stdin, 0, "", env...)
	// The host link's route leads only to its own pod.
	writeCheckpoint(t, entry{"aws-cni", "abc001", "10.0.0.20", "web-1"})
	box.expect(t, "STATUS", stdin, 0, "", env...)
	writeCheckpoint(t, entry{"aws-cni", "abc001", "10.0.0.21", "web-1"})

	do(t, node, func() error {
		r := netlink.NewRule()
		r.Priority, r.Table, r.Dst = 512, 254, &net.IPNet{IP: net.IPv4(10, 0, 0, 21).To4(), Mask: net.CIDRMask(32, 32)}
		return netlink.RuleDel(r)
	})
	code, msg := failure(t, box, "STATUS", stdin)
	if code != 51 || msg != "status cmd: the rules of 1 running pods are missing, the first is 10.0.0.21 behind eni0761ccbeace" {
		t.Errorf("rule deleted: code %d, %s", code, msg)
	}
	// An ADD may still be working with a recent allocation.
	file, err := os.ReadFile(netnames.CheckpointFile)
	if err != nil {
		t.Fatal(err)
	}
	now := `"allocationTimestamp":` + strconv.FormatInt(time.Now().UnixNano(), 10)
	if err := os.WriteFile(netnames.CheckpointFile, []byte(strings.Replace(string(file), `"allocationTimestamp":1`, now, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	box.expect(t, "STATUS", stdin, 0, "", env...)
	if err := os.WriteFile(netnames.CheckpointFile, []byte(`{"version":`), 0o644); err != nil {
		t.Fatal(err)
	}
	box.expect(t, "STATUS", stdin, 0, "", env...)
}

// TestBinary_GC: sandboxes that the list does not name are removed with link, rules, route and
// allocation; named ones, another network's, and a younger sandbox of the same pod stay.
func TestBinary_GC(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	addresses := map[string]string{"abc001": "10.0.0.21", "abc002": "10.0.0.22", "abc003": "10.0.0.23", "gone": "10.0.0.24"}
	refuse := ""
	s := (&server{
		add: func(r *cniwire.AddRequest) *cniwire.AddReply { return gives(addresses[r.ContainerID], 1, 2)(r) },
		del: func(r *cniwire.DelRequest) *cniwire.DelReply {
			switch {
			case r.ContainerID == refuse:
				return &cniwire.DelReply{Cause: "checkpoint-unwritable", Detail: "no space"}
			case r.ContainerID == "gone":
				return &cniwire.DelReply{Unknown: true}
			}
			return had(addresses[r.ContainerID], 1, 2)(r)
		},
	}).serve(t)
	node := netns.New(t)
	boxes := map[string]*sandbox{}
	for id, pod := range map[string]string{"abc001": "web-1", "abc002": "web-2", "abc003": "web-3"} {
		boxes[id] = newSandbox(t, node, id, pod, netns.New(t).Path)
		if code, out, _, err := boxes[id].run(t.Context(), "ADD", boxes[id].stdin()); err != nil || code != 0 {
			t.Fatalf("ADD: %d, %s, %v", code, out, err)
		}
	}
	writeCheckpoint(t, entry{"aws-cni", "abc001", "10.0.0.21", "web-1"}, entry{"aws-cni", "abc002", "10.0.0.22", "web-2"},
		entry{"other", "abc003", "10.0.0.23", "web-3"}, entry{"aws-cni", "gone", "10.0.0.24", "web-3"})
	box := boxes["abc001"]
	state := func() string { return leftovers(t, node) + strings.Join(linkNames(t, node), "\n") + "\n" }
	gc := func(list string) string { return at("1.1.0", box.stdin(`,"cni.dev/valid-attachments":`+list)) }

	all := state()
	box.expect(t, "GC", at("1.1.0", box.stdin()), 0, "") // no list of attachments
	box.expect(t, "GC", gc("null"), 0, "")
	if code, _ := failure(t, box, "GC", gc(`[{"containerID":"abc001"}]`)); code != 6 {
		t.Errorf("a list that is not understood: code %d", code)
	}
	if _, dels := s.requests(); len(dels) > 0 || state() != all {
		t.Fatalf("removed without a list: %v, %s", dels, cmp.Diff(all, state()))
	}

	refuse = "abc002"
	code, msg := failure(t, box, "GC", gc(`[{"containerID":"abc001","ifname":"eth0"}]`))
	if code != 999 || msg != "gc cmd: 1 of 2 attachments are not removed, the last because of: failed to process delete request: checkpoint-unwritable: no space" {
		t.Errorf("code %d, %s", code, msg)
	}
	refuse = ""
	box.expect(t, "GC", gc(`[{"containerID":"abc001","ifname":"eth0"}]`), 0, "")
	if diff := cmp.Diff(without(all, "10.0.0.22", hostLink("web-2")), state()); diff != "" {
		t.Errorf("left (-want +got):\n%s\nlog:\n%s", diff, box.logged(t))
	}
	_, dels := s.requests()
	var asked []string
	for _, d := range dels {
		asked = append(asked, d.NetworkName+" "+d.ContainerID+" "+d.IfName+" "+d.PodNamespace+"/"+d.PodName+" "+d.Reason)
	}
	one, other := "aws-cni abc002 eth0 default/web-2 PodDeleted", "aws-cni gone eth0 default/web-3 PodDeleted"
	if diff := cmp.Diff([]string{one, other, one, other}, asked); diff != "" {
		t.Errorf("asked of the daemon (-want +got):\n%s", diff)
	}
}

// hostLink is the host end of a pod's link in the namespace default.
func hostLink(pod string) string { return netnames.HostVeth("eni", "default", pod, 0) }

// without drops the lines that contain any of the words.
func without(text string, words ...string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(line, w) }) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestBinary_GCOfAnEmptyNode: before ipamd's first start there is nothing to collect, and GC
// creates nothing.
func TestBinary_GCOfAnEmptyNode(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	const dir = "/var/run/aws-node"
	for _, made := range []string{"", dir} {
		t.Run("with "+made, func(t *testing.T) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if made != "" {
				if err := os.MkdirAll(made, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			box := newSandbox(t, netns.New(t), "abc001", "web-1", "")
			box.expect(t, "GC", at("1.1.0", box.stdin(`,"cni.dev/valid-attachments":[]`)), 0, "")
			box.expect(t, "DEL", box.stdin(`,"prevResult":{"cniVersion":"0.4.0","interfaces":[{"name":"vlan0761ccbeace"},{"name":"eth0","mac":"0","sandbox":"/x"},`+
				`{"name":"dummy0761ccbeace","mac":"3"}],"ips":[{"version":"4","interface":1,"address":"10.0.0.21/32"}],"dns":{}}`), 0, "", "CNI_NETNS=/x")
			_, _ = failure(t, box, "STATUS", at("1.1.0", box.stdin()))
			left, err := os.ReadDir(dir)
			if made == "" != os.IsNotExist(err) || len(left) > 0 {
				t.Errorf("%v in %s, %v", left, dir, err)
			}
		})
	}
}

// TestBinary_GCWithoutDaemon: the error asks the runtime to try again.
func TestBinary_GCWithoutDaemon(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	writeCheckpoint(t, entry{"aws-cni", "a", "10.0.0.21", "web-1"}, entry{"aws-cni", "b", "10.0.0.22", "web-2"})
	box := newSandbox(t, netns.New(t), "", "", "")
	code, msg := failure(t, box, "GC", at("1.1.0", box.stdin(`,"cni.dev/valid-attachments":[]`)))
	if code != 11 || !strings.HasPrefix(msg, "gc cmd: 2 of 2 attachments are not removed, the last because of: Error received from DelNetwork gRPC call: rpc error: code = Unavailable") {
		t.Errorf("code %d, %s", code, msg)
	}
}
