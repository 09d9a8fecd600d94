package vpc_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/plugin/vpc"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// leave puts the host side of web-1 (10.0.0.21, table 2) into a namespace.
func leave(t *testing.T, node *netns.NS, link string, table int) {
	t.Helper()
	do(t, node, func() error {
		l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: link}, PeerName: "peer"}
		if err := netlink.LinkAdd(l); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return err
		}
		ip := &net.IPNet{IP: net.IPv4(10, 0, 0, 21).To4(), Mask: net.CIDRMask(32, 32)}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: ip, Scope: netlink.SCOPE_LINK}); err != nil {
			return err
		}
		to, from := netlink.NewRule(), netlink.NewRule()
		to.Priority, to.Table, to.Dst = 512, 254, ip
		from.Priority, from.Table, from.Src = 1536, table, ip
		if err := netlink.RuleAdd(to); err != nil {
			return err
		}
		return netlink.RuleAdd(from)
	})
}

func leftovers(t *testing.T, node *netns.NS) string {
	t.Helper()
	return strings.Replace(ipRule(t, node), emptyRules, "", 1) + ipRoute(t, node)
}

// TestBinary_DelByPrevResult: the daemon is down. DEL succeeds whatever the previous
// result is, and removes only what certainly belongs to the pod.
func TestBinary_DelByPrevResult(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	const link = "eni0761ccbeace"
	const good = `{"cniVersion":"0.4.0","interfaces":[{"name":"eni0761ccbeace"},{"name":"eth0","mac":"2","sandbox":"/x"},{"name":"dummy0761ccbeace","mac":"0","sandbox":"1"}],` +
		`"ips":[{"version":"4","interface":1,"address":"10.0.0.21/32"}],"dns":{}}`
	for _, row := range []struct {
		name, prev string
		link       string
		removed    bool
		noted      []entry // recorded by the daemon, which is now down
	}{
		{name: "as written", prev: good, link: link, removed: true},
		{name: "1.0.0", prev: strings.Replace(good, `"0.4.0"`, `"1.0.0"`, 1), link: link, removed: true},
		{name: "table left out by old plugins", prev: strings.Replace(good, `"mac":"2",`, ``, 1), link: link, removed: true},
		{name: "egress pair appended", prev: strings.Replace(good, `],"ips"`, `,{"name":"veth1"},{"name":"v4if0","mac":"02:00:00:00:00:01","sandbox":"/x"}],"ips"`, 1), link: link, removed: true},
		{name: "none", prev: ``, link: link},
		{name: "undecodable", prev: `{"interfaces":1}`, link: link},
		{name: "no dummy", prev: strings.Replace(good, "dummy", "dumb", 1), link: link},
		{name: "table is no number", prev: strings.Replace(good, `"mac":"2"`, `"mac":"02:00:00:00:00:01"`, 1), link: link},
		{name: "device is no number", prev: strings.Replace(good, `"sandbox":"1"`, `"sandbox":"x"`, 1), link: link},
		{name: "address given to another pod since", prev: good, link: "eniother"},
		{name: "noted for another pod, whose ADD is under way", prev: good, link: link, noted: []entry{{"aws-cni", "new", "10.0.0.21", "web-2"}}},
		{name: "noted for the sandbox", prev: good, link: link, removed: true, noted: []entry{{"aws-cni", "abc001", "10.0.0.21", "web-1"}}},
		{name: "rebuilt from the kernel", prev: good, link: link, removed: true, noted: []entry{{"_recovered", link, "10.0.0.21", ""}}},
		{name: "noted for others", prev: good, link: link, removed: true, noted: []entry{{"aws-cni", "new", "10.0.0.22", "web-2"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			node := netns.New(t)
			leave(t, node, row.link, 2)
			before := leftovers(t, node)
			if row.noted != nil {
				writeCheckpoint(t, row.noted...)
			}
			box := newSandbox(t, node, "abc001", "web-1", "")
			stdin := box.stdin()
			if row.prev != "" {
				stdin = box.stdin(`,"prevResult":` + row.prev)
			}
			box.expect(t, "DEL", stdin, 0, "")
			want := before
			if row.removed {
				want = ""
			}
			if diff := cmp.Diff(want, leftovers(t, node)); diff != "" {
				t.Errorf("leftovers (-want +got):\n%s\nlog:\n%s", diff, box.logged(t))
			}
		})
	}
}

// TestBinary_DelBranch: pods that upstream created with branch ENIs. The VLAN device
// needs a driver that most test kernels lack, so another link with its name
// replaces it.
func TestBinary_DelBranch(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	prev := func(vlan string) string {
		return `,"prevResult":{"cniVersion":"0.4.0","interfaces":[{"name":"vlan0761ccbeace"},{"name":"eth0","mac":"0","sandbox":"/x"},{"name":"dummy0761ccbeace","mac":"` + vlan + `"}],` +
			`"ips":[{"version":"4","interface":1,"address":"10.0.0.21/32","gateway":"10.0.0.1"}],"dns":{}}`
	}
	prepare := func(t *testing.T) (*netns.NS, *sandbox) {
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
		return node, newSandbox(t, node, "abc001", "web-1", "/run/netns/none")
	}
	t.Run("by previous result", func(t *testing.T) {
		node, box := prepare(t)
		box.expect(t, "DEL", box.stdin(prev("3")), 0, "")
		if got := leftovers(t, node); got != "" {
			t.Errorf("left: %s", got)
		}
		if diff := cmp.Diff([]string{"lo"}, linkNames(t, node)); diff != "" {
			t.Errorf("links:\n%s", diff)
		}
		box.expect(t, "DEL", box.stdin(prev("3")), 0, "") // again
	})
	t.Run("without namespace", func(t *testing.T) {
		node, box := prepare(t)
		before := leftovers(t, node)
		box.expect(t, "DEL", box.stdin(prev("3")), 0, "", "CNI_NETNS=")
		if diff := cmp.Diff(before, leftovers(t, node)); diff != "" {
			t.Errorf("changed:\n%s", diff)
		}
	})
	t.Run("malformed", func(t *testing.T) {
		_, box := prepare(t)
		box.expect(t, "DEL", box.stdin(prev("x")), 1,
			failed(999, "del cmd: failed to delete with prevResult: malformed vlanID in prevResult: x", cause.InvalidRequest, ""))
		box.expect(t, "DEL", box.stdin(strings.Replace(prev("3"), `"interface":1`, `"interface":0`, 1)), 1,
			failed(999, "del cmd: failed to delete with prevResult: found 0 containerIPs for eth0 in prevResult", cause.InvalidRequest, ""))
		box.expect(t, "DEL", box.stdin(strings.Replace(prev("3"), `"eth0"`, `"eth1"`, 1)), 1,
			failed(999, "del cmd: failed to delete with prevResult: cannot find contVethName eth0 in prevResult", cause.InvalidRequest, ""))
	})
	t.Run("by the daemon's word", func(t *testing.T) {
		reply := had("10.0.0.21", -1, 0)(nil)
		reply.PodVLANID = 3
		(&server{del: func(*cniwire.DelRequest) *cniwire.DelReply { return reply }}).serve(t)
		node, box := prepare(t)
		before := leftovers(t, node)
		box.expect(t, "DEL", box.stdin(), 0, "", "CNI_NETNS=")
		if diff := cmp.Diff(before, leftovers(t, node)); diff != "" {
			t.Errorf("changed without a namespace:\n%s", diff)
		}
		box.expect(t, "DEL", box.stdin(), 0, "")
		if got := leftovers(t, node); got != "" {
			t.Errorf("left: %s", got)
		}
	})
	t.Run("by the daemon's word, id and address are other pods'", func(t *testing.T) {
		reply := had("10.0.0.21", -1, 0)(nil)
		reply.PodVLANID = 3
		(&server{del: func(*cniwire.DelRequest) *cniwire.DelReply { return reply }}).serve(t)
		node := netns.New(t)
		leave(t, node, "eniother", 2)
		noted(t, "new", "web-9", "02:00:00:00:00:03", "10.0.0.99")
		before := leftovers(t, node)
		box := newSandbox(t, node, "abc001", "web-1", "/run/netns/none")
		box.expect(t, "DEL", box.stdin(), 0, "")
		if diff := cmp.Diff(before, leftovers(t, node)); diff != "" {
			t.Errorf("changed:\n%s", diff)
		}
	})
}

func TestBinary_DelReplies(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	for _, row := range []struct {
		reply cniwire.DelReply
		code  int
		out   string
		log   string
	}{
		{cniwire.DelReply{Unknown: true}, 0, "", "Container abc001 not found"},
		{cniwire.DelReply{Success: true}, 0, "", "no address, nothing to tear down"},
		{cniwire.DelReply{Cause: "internal", Detail: "x"}, 1, failed(999, "del cmd: failed to process delete request", cause.Internal, "x"), "failed to process"},
	} {
		t.Run(fmt.Sprintf("%+v", row.reply), func(t *testing.T) {
			(&server{del: func(*cniwire.DelRequest) *cniwire.DelReply { return &row.reply }}).serve(t)
			box := newSandbox(t, netns.New(t), "abc001", "web-1", "/run/netns/none")
			box.expect(t, "DEL", box.stdin(), row.code, row.out)
			if !strings.Contains(box.logged(t), row.log) {
				t.Errorf("log has no %q:\n%s", row.log, box.logged(t))
			}
			// A repeated DEL is not a failure: kubelet stops each sandbox twice.
			if got := strings.Contains(box.logged(t), `"level":"error"`); got != (row.code != 0) {
				t.Errorf("an error in the log: %v, of status %d:\n%s", got, row.code, box.logged(t))
			}
		})
	}
	t.Run("own namespace", func(t *testing.T) {
		(&server{del: had("10.0.0.21", 1, 2)}).serve(t)
		node := netns.New(t)
		box := newSandbox(t, node, "abc001", "web-1", node.Path)
		box.expect(t, "DEL", box.stdin(), 1, failed(8, "plugin's netns and netns from CNI_NETNS should not be the same", cause.InvalidRequest, ""))
		box.expect(t, "DEL", box.stdin(), 0, "", "CNI_NETNS_OVERRIDE=true")
	})
}

// TestBinary_LateDel: DEL of an old sandbox after ADD of a new one of the same pod.
func TestBinary_LateDel(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	addresses := map[string]string{"old": "10.0.0.21", "new": "10.0.0.22"}
	(&server{
		add: func(r *cniwire.AddRequest) *cniwire.AddReply { return gives(addresses[r.ContainerID], 1, 2)(r) },
		del: func(r *cniwire.DelRequest) *cniwire.DelReply { return had(addresses[r.ContainerID], 1, 2)(r) },
	}).serve(t)
	node := netns.New(t)
	old, next := newSandbox(t, node, "old", "web-1", netns.New(t).Path), newSandbox(t, node, "new", "web-1", netns.New(t).Path)
	for _, box := range []*sandbox{old, next} {
		if code, out, errOut, err := box.run(t.Context(), "ADD", box.stdin()); code != 0 || err != nil {
			t.Fatalf("ADD %s: %d %s %s %v", box.id, code, out, errOut, err)
		}
	}
	old.expect(t, "DEL", old.stdin(), 0, "")
	want := strings.Replace(emptyRules, "32766", "512:\tfrom all to 10.0.0.22 lookup main\n1536:\tfrom 10.0.0.22 lookup 2\n32766", 1)
	if diff := cmp.Diff(want, ipRule(t, node)); diff != "" {
		t.Errorf("rules:\n%s", diff)
	}
	if diff := cmp.Diff("10.0.0.22 dev eni0761ccbeace scope link \n", ipRoute(t, node)); diff != "" {
		t.Errorf("routes:\n%s", diff)
	}
}

// TestBinary_SlowDel: a DEL that stalls after the daemon's answer until another pod has the
// address leaves that pod alone.
func TestBinary_SlowDel(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	for _, taken := range []bool{true, false} {
		t.Run(fmt.Sprintf("taken=%t", taken), func(t *testing.T) {
			node := netns.New(t)
			old, next := newSandbox(t, node, "old", "web-1", netns.New(t).Path), newSandbox(t, node, "new", "web-2", netns.New(t).Path)
			(&server{
				add: gives("10.0.0.21", 1, 2),
				del: func(r *cniwire.DelRequest) *cniwire.DelReply {
					if taken {
						if code, out, errOut, err := next.run(t.Context(), "ADD", next.stdin()); code != 0 || err != nil {
							t.Errorf("ADD meanwhile: %d %s %s %v", code, out, errOut, err)
						}
					}
					<-time.After(vpc.Promptly + vpc.Promptly/2) //realtime: longer than an unhindered DEL takes
					return had("10.0.0.21", 1, 2)(r)
				},
			}).serve(t)
			if code, out, errOut, err := old.run(t.Context(), "ADD", old.stdin()); code != 0 || err != nil {
				t.Fatalf("ADD: %d %s %s %v", code, out, errOut, err)
			}
			old.expect(t, "DEL", old.stdin(), 0, "")
			want := emptyRules
			if taken {
				want = strings.Replace(emptyRules, "32766", "512:\tfrom all to 10.0.0.21 lookup main\n1536:\tfrom 10.0.0.21 lookup 2\n32766", 1)
			}
			if diff := cmp.Diff(want, ipRule(t, node)); diff != "" {
				t.Errorf("rules:\n%s", diff)
			}
			if taken && !strings.Contains(old.logged(t), "Address 10.0.0.21 belongs to another pod now") {
				t.Errorf("log:\n%s", old.logged(t))
			}
		})
	}
}

// TestBinary_DelOfUpstreamPods: without a daemon, upstream's results are enough to delete
// its pods, of the kinds and families that have no recording.
func TestBinary_DelOfUpstreamPods(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	second := netnames.HostVeth("eni", "default", "web-0", 1)
	for name, row := range map[string]struct {
		kind string
		edit func(result string) string
		left int // number of rules
	}{
		"IPv6":                         {kind: "IPv6"},
		"two":                          {kind: "two"},
		"two IPv6":                     {kind: "two IPv6"},
		"two, and the pair of egress":  {kind: "two", edit: egressPair},
		"IPv6, and the pair of egress": {kind: "IPv6", edit: egressPair},
		"IPv6, no table":               {kind: "IPv6", edit: func(s string) string { return strings.Replace(s, `"mac": "254",`, "", 1) }},
		"two, no dummy":                {kind: "two", edit: func(s string) string { return strings.Replace(s, `"dummy`, `"dumb`, 1) }, left: 3},
		"two, a table is garbage":      {kind: "two", edit: func(s string) string { return strings.Replace(s, `"10102"`, `"x"`, 1) }, left: 3},
	} {
		for _, version := range []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
			t.Run(name+" "+version, func(t *testing.T) {
				node, in := netns.New(t), netns.New(t)
				result := podResults[row.kind]
				result.nics = slices.Clone(result.nics)
				var list []cniwire.Allocation
				for i, n := range result.nics {
					a := cniwire.Allocation{IPv4: n.Address, RouteTable: int32(n.Table)}
					if strings.Contains(n.Address, ":") {
						a.IPv4, a.IPv6 = "", n.Address
					}
					list = append(list, a)
					if i == 1 {
						result.nics[i].HostLink = second
					}
				}
				box := newSandbox(t, node, "abc001", "web-0", in.Path)
				prev := result.byLibrary(t, version, in.Path)
				t.Run("ADD", func(t *testing.T) { // stops the daemon at its end
					(&server{add: allocates(list...)}).serve(t)
					box.expect(t, "ADD", at(version, box.stdin()), 0, prev)
				})
				if row.edit != nil {
					prev = row.edit(prev)
				}
				box.expect(t, "DEL", at(version, box.stdin(`,"prevResult":`+prev)), 0, "")
				if got := podRules(t, node); len(got) != row.left {
					t.Errorf("rules %q, want %d\n%s", got, row.left, box.logged(t))
				}
			})
		}
	}
}

// egressPair adds to a result what egress-cni adds.
func egressPair(result string) string {
	before, after, _ := strings.Cut(result, `"name": "dummy`)
	dummy, rest, _ := strings.Cut(after, "}")
	return before + `"name": "dummy` + dummy + `}, {"name": "veth0123"}, {"name": "v4if0", "mac": "02:00:00:00:00:01", "sandbox": "/x"}` + rest
}
