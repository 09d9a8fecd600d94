package branch_test

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/netstate"
	"cnictl/plugin/podnet/apply"
	"cnictl/plugin/podnet/rules"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// half is a pod whose network the test sets up and undoes step by step.
type half struct {
	setup *apply.Setup
	ns    *apply.Netns
	pod   rules.Pod
}

func newHalf(t *testing.T, node *netns.NS, parent int32, sandbox, hostLink, address string) *half {
	t.Helper()
	p, err := rules.NewBranchPod(rules.NewPair(sandbox, hostLink, "eth0", 9001), netip.MustParseAddr(address), rules.BranchENI{
		VLAN: 3, MAC: netstate.MAC{2, 0, 0, 0, 0, 3}, Gateway: netip.MustParseAddr("10.0.0.1"), Trunk: parent, Strict: strings.HasPrefix(hostLink, "vlan"),
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &half{pod: p}
	if h.ns, err = apply.OpenNetns(netns.New(t).Path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.ns.Close() })
	do(t, node, func() (err error) {
		h.setup, err = apply.Begin(h.ns, apply.Options{})
		return err
	})
	t.Cleanup(func() { h.setup.Close() })
	return h
}

// TestSetup_UndoIsLate: an ADD that fails late removes nothing of another pod that now has the
// VLAN ID, nor of the pod's next sandbox, and leaves nothing behind.
func TestSetup_UndoIsLate(t *testing.T) {
	testenv.RequireKernel(t, "veth", "vlan")
	const pod, other, address = "0d7763386da", "1111111111a", "10.0.0.90"
	for name, row := range map[string]struct{ pod, address string }{
		"another pod":                      {other, "10.0.0.91"},
		"another pod, same address":        {other, address},
		"next sandbox, same branch ENI":    {pod, address},
		"next sandbox, another branch ENI": {pod, "10.0.0.91"},
	} {
		for _, prefix := range []string{"vlan", "eni"} {
			t.Run(name+" "+prefix, func(t *testing.T) {
				node := netns.New(t)
				parent := trunk(t, node)
				old := newHalf(t, node, parent, "old", prefix+pod, address)
				next := newHalf(t, node, parent, "new", prefix+row.pod, row.address)
				do(t, node, func() error { return old.setup.Network(old.pod) })
				do(t, node, func() error { return next.setup.Network(next.pod) })
				old.setup.LeaveVLAN(row.address == address)
				do(t, node, old.setup.Undo)
				do(t, node, func() error {
					missing, err := apply.Missing(next.ns, next.pod)
					if len(missing) > 0 {
						t.Errorf("missing: %q", missing)
					}
					return err
				})
				left := ipRule(t, node) + ipRoute(t, node) + strings.Join(routesOf(t, node, 103), "\n") + strings.Join(linkNames(t, node), "\n")
				if row.pod != pod && strings.Contains(left, pod) || row.address != address && strings.Contains(left, address) {
					t.Errorf("left:\n%s", left)
				}
			})
		}
	}
}

// TestPlugin_DiesInUndo: a plugin killed while it undoes a failed ADD leaves the record
// by which DEL finds the device.
func TestPlugin_DiesInUndo(t *testing.T) {
	testenv.RequireKernel(t, "veth", "vlan")
	node, pod := netns.New(t), netns.New(t)
	parent := trunk(t, node)
	do(t, pod, func() error { // blocks the pod's own link, which is created after the device
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}})
	})
	(&server{
		add: func(*cniwire.AddRequest) *cniwire.AddReply {
			return branchReply(parent, 3, "02:00:00:00:00:03", "10.0.0.90")
		},
		del: func(*cniwire.DelRequest) *cniwire.DelReply { return &cniwire.DelReply{Unknown: true} },
	}).serve(t)
	box := newSandbox(t, node, "abc001", "web-0", pod.Path)
	crashing := *box
	crashing.plugin = filepath.Join(filepath.Dir(box.plugin), "crash", "aws-cni")
	if code, out := crashing.run(t, "ADD", box.stdin(), "CNI_CRASH_AT=plugin-before-undo"); code != -1 {
		t.Fatalf("not killed: %d %s", code, out)
	}
	if !slices.Contains(linkNames(t, node), "vlan.eth.3") {
		t.Fatalf("no device to leave behind: %s", box.logged(t))
	}
	box.expect(t, "DEL", box.stdin(), 0, "", "CNI_NETNS=")
	if slices.Contains(linkNames(t, node), "vlan.eth.3") || recordsLeft(t) != nil {
		t.Errorf("left: %q, records %q\n%s", linkNames(t, node), recordsLeft(t), box.logged(t))
	}
	if code, out := box.run(t, "ADD", box.stdin()); code != 1 {
		t.Errorf("ADD: %d %s", code, out)
	}
	if slices.Contains(linkNames(t, node), "vlan.eth.3") || recordsLeft(t) != nil {
		t.Errorf("left of a failed ADD: %q, records %q", linkNames(t, node), recordsLeft(t))
	}
}

// setLink sets a one-byte link attribute that the library has no name for.
func setLink(name string, attribute int, value byte) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	r := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(l.Attrs().Index)
	r.AddData(msg)
	r.AddData(nl.NewRtAttr(attribute, []byte{value}))
	_, err = r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// TestPlugin_WaitsUnlocked: an ADD that waits for its IPv6 addresses does not block other pods
// with branch ENIs. A dormant link is not running, whatever its carrier, until user space
// sets its state.
func TestPlugin_WaitsUnlocked(t *testing.T) {
	testenv.RequireKernel(t, "veth", "vlan")
	const link = "eni0d7763386da"
	node, pod := netns.New(t), netns.New(t)
	parent := trunk(t, node)
	(&server{
		add: func(*cniwire.AddRequest) *cniwire.AddReply {
			testenv.Eventually(t, "the pod's link", func() bool { return slices.Contains(linkNames(t, node), link) })
			do(t, node, func() error { return setLink(link, unix.IFLA_LINKMODE, 1) })
			return &cniwire.AddReply{Success: true, PodVLANID: 3, PodENIMAC: "02:00:00:00:00:03", PodENISubnetGW: "fe80:ec2::1", ParentIfIndex: parent,
				Allocations: []cniwire.Allocation{{IPv6: "2001:db8::90", Device: -1}}}
		},
	}).serve(t)
	box := newSandbox(t, node, "abc001", "web-0", pod.Path)
	cmd := exec.CommandContext(t.Context(), box.plugin)
	cmd.Env, cmd.Stdin = box.env("ADD"), strings.NewReader(inMode(box.stdin(), "standard"))
	do(t, node, cmd.Start)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// The rules are the last step before the wait.
	testenv.Eventually(t, "the rules of the pod", func() bool { return strings.Contains(rulesOf(t, node, netlink.FAMILY_V6), "1536: from 2001:db8::90") })
	dir, err := os.Open(recordsDir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("lock the records while an ADD waits: %v", err)
	}
	select {
	case err := <-ended:
		t.Fatalf("the ADD did not wait: %v\n%s", err, box.logged(t))
	default:
	}
	const operUp = 6
	do(t, node, func() error { return setLink(link, unix.IFLA_OPERSTATE, operUp) })
	if err := <-ended; err != nil {
		t.Errorf("ADD: %v\n%s", err, box.logged(t))
	}
}
