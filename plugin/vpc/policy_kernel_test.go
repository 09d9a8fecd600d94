package vpc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"cnictl/daemon/api/cniwire"
	"cnictl/testenv"
	"cnictl/testenv/aws/npa"
	"cnictl/testenv/aws/oldipamd"
	"cnictl/testenv/network/netns"
)

// TestBinary_PolicyOfANewerSandbox: the agent identifies pods by name. While a pod has another
// sandbox, nobody notifies the agent of the end of this one; in all other cases it is notified.
func TestBinary_PolicyOfANewerSandbox(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	const link = "eni0761ccbeace"
	deleted := []npa.Call{{Delete: true, Namespace: "default", Name: "web-1", Success: true}}
	for name, row := range map[string]struct {
		link     string // of another sandbox, on the node
		record   string // of another sandbox
		noted    []entry
		added    bool // the sandbox itself, whose link still exists
		stopped  bool // its namespace is gone
		notified bool
	}{
		"nothing there":                     {stopped: true, notified: true},
		"own link":                          {added: true, notified: true},
		"own link, namespace not known":     {added: true, stopped: true, notified: true},
		"own allocation":                    {stopped: true, noted: []entry{{"aws-cni", "abc001", "10.0.0.21", "web-1"}}, notified: true},
		"another pod":                       {stopped: true, noted: []entry{{"aws-cni", "new", "10.0.0.22", "web-2"}}, notified: true},
		"link of a newer sandbox":           {link: link},
		"link, first DEL is late":           {link: link, stopped: true},
		"link in strict mode":               {link: "vlan0761ccbeace", stopped: true},
		"allocation, the link is yet to be": {stopped: true, noted: []entry{{"aws-cni", "new", "10.0.0.22", "web-1"}}},
		"record":                            {stopped: true, record: "new"},
	} {
		t.Run(name, func(t *testing.T) {
			node, in := netns.New(t), netns.New(t)
			agent := policyAgent(t, node)
			box := newSandbox(t, node, "abc001", "web-1", in.Path)
			if row.added {
				t.Run("ADD", func(t *testing.T) {
					(&server{add: gives("10.0.0.21", 1, 2)}).serve(t)
					if code, out, _, err := box.run(t.Context(), "ADD", box.stdin()); err != nil || code != 0 {
						t.Fatalf("%d %s %v", code, out, err)
					}
				})
			}
			if row.link != "" {
				do(t, node, func() error {
					return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: row.link}, PeerName: "peer"})
				})
			}
			if row.noted != nil {
				writeCheckpoint(t, row.noted...)
			}
			if row.record != "" {
				noted(t, row.record, "web-1", "02:00:00:00:00:03", "10.0.0.22")
			}
			if row.stopped {
				box.netns = ""
			}
			var want []npa.Call
			if row.notified {
				want = deleted
			}
			box.expect(t, "DEL", box.stdin(), 0, "") // no daemon answers
			if diff := cmp.Diff(want, agent.Calls()); diff != "" {
				t.Errorf("calls without a daemon (-want +got):\n%s\n%s", diff, box.logged(t))
			}
		})
	}
}

// TestBinary_PolicyOfANewerSandboxByDaemon: the same if a daemon answers, ours or upstream's.
func TestBinary_PolicyOfANewerSandboxByDaemon(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	living := func(t *testing.T) *sandbox {
		node := netns.New(t)
		do(t, node, func() error {
			return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eni0761ccbeace"}, PeerName: "peer"})
		})
		return newSandbox(t, node, "abc001", "web-1", "")
	}
	for name, reply := range map[string]*cniwire.DelReply{
		"known":               {Success: true, NetworkPolicyMode: "Strict", Allocations: []cniwire.Allocation{{IPv4: "10.0.0.21", RouteTable: 2}}},
		"unknown":             {Unknown: true, NetworkPolicyMode: "Strict"},
		"branch ENI, ignored": {Success: true, NetworkPolicyMode: "Strict", PodVLANID: 3, Allocations: []cniwire.Allocation{{IPv4: "10.0.0.21", Device: -1}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&server{del: func(*cniwire.DelRequest) *cniwire.DelReply { return reply }}).serve(t)
			box := living(t)
			if name == "branch ENI, ignored" { // the pod has no sandbox left, so no check
				box = newSandbox(t, netns.New(t), "abc001", "web-1", "")
			}
			box.expect(t, "DEL", box.stdin(), 0, "")
			if got := s.policyRequests(); got != nil {
				t.Errorf("the agent is called: %+v", got)
			}
		})
	}
	t.Run("upstream's", func(t *testing.T) {
		d := oldDaemon(t, oldipamd.Options{NetworkPolicyMode: "standard"})
		d.SetPod("default", "web-1", oldipamd.Ordinary("10.0.0.21", 1, 2))
		node, in := netns.New(t), netns.New(t)
		agent := policyAgent(t, node)
		box := newSandbox(t, node, "abc001", "web-1", in.Path)
		if code, out, _, err := box.run(t.Context(), "ADD", box.stdin()); err != nil || code != 0 {
			t.Fatalf("%d %s %v", code, out, err)
		}
		// The newer sandbox's ADD has its allocation but no link yet.
		writeCheckpoint(t, entry{"aws-cni", "new", "10.0.0.22", "web-1"})
		box.expect(t, "DEL", box.stdin(), 0, "")
		for _, call := range agent.Calls() {
			if call.Delete {
				t.Errorf("the agent is called: %+v", call)
			}
		}
	})
	t.Run("GC of a branch ENI", func(t *testing.T) {
		s := (&server{del: func(*cniwire.DelRequest) *cniwire.DelReply { return &cniwire.DelReply{Unknown: true} }}).serve(t)
		for pod, want := range map[string]int{"web-1": 0, "web-9": 1} { // the pod whose newer sandbox has the VLAN ID
			t.Run(pod, func(t *testing.T) {
				before := len(s.policyRequests())
				node := netns.New(t)
				leave(t, node, "vlan.eth.3", 103)
				mac := hostMAC(t, node, "vlan.eth.3").String()
				notedWith(t, "old", "web-1", mac, "10.0.0.21", "Strict")
				if pod == "web-1" {
					notedWith(t, "new", pod, mac, "10.0.0.21", "Strict")
				}
				box := newSandbox(t, node, "", "", "")
				box.expect(t, "GC", at("1.1.0", box.stdin(`,"cni.dev/valid-attachments":[{"containerID":"new","ifname":"eth0"}]`)), 0, "")
				if got := len(s.policyRequests()) - before; got != want {
					t.Errorf("the agent is called %d times, want %d", got, want)
				}
			})
		}
	})
}

// notedWith puts a record with a network policy mode in place.
func notedWith(t *testing.T, id, pod, mac, address, mode string) {
	t.Helper()
	noted(t, id, pod, mac, address)
	file := filepath.Join(recordsDir, id+"-eth0.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(b[:len(b)-1], `,"policyMode":"`+mode+`"}`...), 0o600); err != nil {
		t.Fatal(err)
	}
}
