package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/fakeaws"
	"cnictl/testenv/netns"
	"cnictl/testenv/node"
	"cnictl/testenv/vpc"
)

// denial is how long no answer means that there is none.
const denial = 250 * time.Millisecond

// lab is a world, its fabric, and stand-in binaries.
type lab struct {
	t        *testing.T
	world    *fakeaws.World
	fabric   *vpc.Fabric
	subnet   fakeaws.Subnet
	binaries string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	testenv.RequireKernel(t, "veth", "nft")
	l := &lab{t: t, world: fakeaws.NewWorld(fakeaws.Options{}), binaries: t.TempDir()}
	t.Cleanup(l.world.Close)
	v := l.world.AddVPC(netip.MustParsePrefix("10.1.0.0/16"))
	var err error
	l.subnet, err = l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.1.0.0/20")})
	if err != nil {
		t.Fatal(err)
	}
	if l.fabric, err = vpc.NewFabric(vpc.Options{World: l.world}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.fabric.Close(); err != nil {
			t.Error(err)
		}
	})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{node.PluginBinary, node.DaemonBinary} {
		if err := os.Symlink(exe, filepath.Join(l.binaries, name)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// node boots an instance; its primary ENI gets secondary addresses for pods.
func (l *lab) node(addresses int) (*node.Node, []string) {
	l.t.Helper()
	n := l.boot(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	var pool []string
	if addresses > 0 {
		got, err := l.world.Assign(n.Primary.ID, fakeaws.AssignSpec{Count: addresses})
		if err != nil {
			l.t.Fatal(err)
		}
		for _, p := range got {
			pool = append(pool, p.Addr().String())
		}
	}
	return n, pool
}

// boot adds an instance and starts it as a node.
func (l *lab) boot(spec fakeaws.InstanceSpec) *node.Node {
	l.t.Helper()
	i, err := l.world.AddInstance(spec)
	if err != nil {
		l.t.Fatal(err)
	}
	n, err := node.Start(l.t.Context(), node.Options{
		Fabric: l.fabric, World: l.world, InstanceID: i.ID, Dir: l.t.TempDir(), Binaries: l.binaries,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if l.t.Failed() {
			for file, text := range n.Logs() {
				l.t.Logf("%s of %s:\n%s", file, n.Name, text)
			}
		}
		if err := n.Close(); err != nil {
			l.t.Error(err)
		}
	})
	return n
}

// serving boots a node with a running daemon.
func (l *lab) serving(addresses int) *node.Node {
	l.t.Helper()
	n, pool := l.node(addresses)
	if err := n.StartDaemon(map[string]string{"POOL": strings.Join(pool, " ")}); err != nil {
		l.t.Fatal(err)
	}
	if err := n.WaitServing(testenv.Context(l.t)); err != nil {
		l.t.Fatal(err)
	}
	return n
}

// briefly returns a context that ends soon, for what is then still there.
func briefly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), testenv.Soon())
	t.Cleanup(cancel)
	return ctx
}

func addPod(t *testing.T, n *node.Node, name string) *node.Pod {
	t.Helper()
	p, err := n.AddPod(node.PodSpec{Namespace: "default", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStart_BootsAsAnInstance(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n, _ := l.node(0)
	if n.Link != "ens5" || n.Primary.PrimaryIP != netip.MustParseAddr("10.1.0.4") {
		t.Errorf("primary link %s, address %s", n.Link, n.Primary.PrimaryIP)
	}
	if err := n.Ping(vpc.Gateway(l.subnet.CIDR), testenv.Left(t)); err != nil {
		t.Error(err)
	}
	saw, err := n.NS.AskEcho(t.Context(), "tcp", netip.Addr{}, vpc.Outside, testenv.Left(t))
	if err != nil || saw.Addr() != n.Primary.PrimaryIP {
		t.Errorf("outside saw %v, error %v", saw, err)
	}
	if err := n.NS.Do(func() error {
		for file, want := range map[string]string{"ip_forward": "1", "conf/ens5/rp_filter": "2", "conf/all/rp_filter": "0"} {
			got, err := os.ReadFile("/proc/sys/net/ipv4/" + file)
			if err != nil {
				return err
			}
			if strings.TrimSpace(string(got)) != want {
				return fmt.Errorf("%s = %q, want %s", file, got, want)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	left, err := n.Leftovers(t.Context())
	if err != nil || len(left) != 0 {
		t.Errorf("leftovers of a fresh node: %v, error %v", left, err)
	}
}

func TestStart_MetadataOverTheFabric(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n, _ := l.node(0)
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			return n.Dial(network, address, testenv.Left(t))
		},
	}}
	get := func(method, path string, header http.Header) string {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://169.254.169.254"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: status %d, %s, error %v", method, path, resp.StatusCode, body, err)
		}
		return string(body)
	}
	token := get("PUT", "/latest/api/token", http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"60"}})
	if id := get("GET", "/latest/meta-data/instance-id", http.Header{"X-Aws-Ec2-Metadata-Token": {token}}); id != n.InstanceID {
		t.Errorf("instance-id = %q, want %s", id, n.InstanceID)
	}
}

func TestStart_RefusesBadOptions(t *testing.T) {
	l := newLab(t)
	for name, o := range map[string]node.Options{
		"no fabric":        {World: l.world, InstanceID: "i-1", Dir: t.TempDir()},
		"no world":         {Fabric: l.fabric, InstanceID: "i-1", Dir: t.TempDir()},
		"no instance":      {Fabric: l.fabric, World: l.world, Dir: t.TempDir()},
		"no directory":     {Fabric: l.fabric, World: l.world, InstanceID: "i-1"},
		"unknown instance": {Fabric: l.fabric, World: l.world, InstanceID: "i-1", Dir: t.TempDir()},
	} {
		if n, err := node.Start(t.Context(), o); err == nil {
			n.Close()
			t.Errorf("%s: started", name)
		}
	}
}

func TestPods_ReachEachOtherAndLeaveNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, b := l.serving(2), l.serving(1)
	first, second, far := addPod(t, a, "first"), addPod(t, a, "second"), addPod(t, b, "far")
	for _, to := range []netip.Addr{a.Primary.PrimaryIP, second.IP, far.IP, b.Primary.PrimaryIP} {
		if err := a.PingFrom(first, to, testenv.Left(t)); err != nil {
			t.Errorf("from the first pod: %v", err)
		}
	}
	if err := b.Ping(first.IP, testenv.Left(t)); err != nil {
		t.Errorf("from the other node: %v", err)
	}
	if err := first.Ping(netip.MustParseAddr("10.1.0.200"), denial); err == nil {
		t.Error("an unassigned address answers")
	}
	left, err := a.Leftovers(briefly(t))
	if err != nil || len(left) != 2+2+2+2+2 { // rules, routes, links, namespaces, allocations
		t.Errorf("with two pods: %v, error %v", left, err)
	}
	if first.Add.Wall <= 0 || first.Add.MinFault <= 0 {
		t.Errorf("ADD was not measured: %+v", first.Add)
	}
	for p, n := range map[*node.Pod]*node.Node{first: a, second: a, far: b} {
		if err := n.DelPod(p); err != nil {
			t.Error(err)
		}
	}
	for _, n := range []*node.Node{a, b} {
		left, err := n.Leftovers(testenv.Context(t))
		if err != nil || len(left) != 0 {
			t.Errorf("leftovers on %s: %v, error %v", n.Name, left, err)
		}
	}
	if err := b.Ping(first.IP, denial); err == nil {
		t.Error("a deleted pod answers")
	}
}

func TestAddPod_ReportsThePluginsError(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n := l.serving(1)
	addPod(t, n, "only")
	_, err := n.AddPod(node.PodSpec{Namespace: "default", Name: "too-many"})
	var reported *node.PluginError
	if !errors.As(err, &reported) || reported.Code != 999 || reported.Msg != "no address left" || reported.Exit != 1 {
		t.Fatalf("AddPod = %v", err)
	}
	if !strings.Contains(err.Error(), "ADD: code 999: no address left; stand-in") {
		t.Errorf("text: %v", err)
	}
	left, err := n.Leftovers(briefly(t))
	if err != nil || len(left) != 5 { // those of the pod that is up
		t.Errorf("leftovers: %v, error %v", left, err)
	}
	p, err := n.NewSandbox(node.PodSpec{Namespace: "default", Name: "odd", Plugin: "/bin/false"})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Add(p); !errors.As(err, &reported) || reported.Code != 0 || reported.Exit != 1 {
		t.Errorf("a plugin without output: %v", err)
	}
	if err := n.RemoveSandbox(p); err != nil {
		t.Error(err)
	}
}

func TestLeftovers_FindsWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ leak, want string }{
		{"rule", "rule 512: from <nil> to 10.1.0.5/32 lookup 254"},
		{"allocation", "allocation of 10.1.0.5 to container "},
	} {
		t.Run(tc.leak, func(t *testing.T) {
			l := newLab(t)
			n := l.serving(1)
			p, err := n.AddPod(node.PodSpec{Namespace: "default", Name: "leaky", Config: map[string]any{"leak": tc.leak}})
			if err != nil {
				t.Fatal(err)
			}
			if err := n.DelPod(p); err != nil {
				t.Fatal(err)
			}
			left, err := n.Leftovers(briefly(t))
			if err != nil || !slices.ContainsFunc(left, func(s string) bool { return strings.HasPrefix(s, tc.want) }) {
				t.Errorf("leftovers: %q, error %v; want %q", left, err, tc.want)
			}
		})
	}
}

func TestDaemon_StartStop(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n := l.serving(0)
	if err := n.StartDaemon(nil); err == nil {
		t.Error("a second daemon was started")
	}
	r, err := n.StopDaemon(testenv.Context(t), unix.SIGTERM)
	if err != nil || r.Code != 0 {
		t.Errorf("StopDaemon = code %d, error %v", r.Code, err)
	}
	if !strings.Contains(n.Logs()["daemon-1.out"], "terminated") {
		t.Errorf("logs: %q", n.Logs())
	}
	if _, err := n.StopDaemon(testenv.Context(t), unix.SIGTERM); err == nil {
		t.Error("a daemon was stopped twice")
	}
	if err := n.WaitServing(testenv.Context(t)); err == nil {
		t.Error("a stopped daemon serves")
	}

	if err := n.StartDaemon(map[string]string{"STANDIN_FAIL": "1"}); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitServing(testenv.Context(t)); err == nil || !strings.Contains(err.Error(), "ended with status 4") || !strings.Contains(err.Error(), "asked to fail") {
		t.Errorf("WaitServing of a failing daemon = %v", err)
	}
}

func TestDaemon_KilledWhenItDoesNotStop(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n, _ := l.node(0)
	if err := n.StartDaemon(map[string]string{"STANDIN_DEAF": "1"}); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitServing(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	r, err := n.StopDaemon(briefly(t), unix.SIGTERM)
	if !errors.Is(err, context.DeadlineExceeded) || r.Code != 128+int(unix.SIGKILL) {
		t.Errorf("StopDaemon = code %d, error %v", r.Code, err)
	}
}

func TestNodes_SixAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	nodes := make([]*node.Node, 6)
	pods := make([]*node.Pod, len(nodes))
	for i := range nodes {
		nodes[i] = l.serving(1)
	}
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			var err error
			if pods[i], err = n.AddPod(node.PodSpec{Namespace: "default", Name: "p"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for i := range pods {
		if err := pods[i].Ping(pods[(i+1)%len(pods)].IP, testenv.Left(t)); err != nil {
			t.Error(err)
		}
	}
	state, err := nodes[0].KernelState()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(state.Rules, "512:\tfrom all to "+pods[0].IP.String()+" lookup main") {
		t.Errorf("rules:\n%s", state.Rules)
	}
	if !strings.Contains(state.Routes, pods[0].IP.String()+" dev eni") || !strings.Contains(state.Links, "ens5") {
		t.Errorf("routes:\n%s\nlinks:\n%s", state.Routes, state.Links)
	}
}

// Instances with IPv6 boot with it, and their pods reach each other over the VPC.
func TestStart_IPv6(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	subnet, err := l.world.AddSubnet(fakeaws.SubnetSpec{
		VPCID: l.subnet.VPCID, CIDR: netip.MustParsePrefix("10.1.32.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1:2::/64"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*node.Node
	var pods []netip.Addr
	for range 2 {
		n := l.boot(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: subnet.ID, IPv6: true})
		got, err := l.world.Assign(n.Primary.ID, fakeaws.AssignSpec{IPv6Prefixes: 1})
		if err != nil {
			t.Fatal(err)
		}
		nodes, pods = append(nodes, n), append(pods, got[0].Addr().Next())
		routedPod(t, n, pods[len(pods)-1])
		for setting, want := range map[string]string{"all/forwarding": "1", n.Link + "/accept_ra": "2"} {
			if v, err := readSysctl(n, "net/ipv6/conf/"+setting); v != want || err != nil {
				t.Errorf("%s = %q, %v; want %s", setting, v, err, want)
			}
		}
	}
	for i, n := range nodes {
		for _, to := range []netip.Addr{nodes[1-i].Primary.IPv6s[0], pods[1-i]} {
			if err := n.Ping(to, testenv.Left(t)); err != nil {
				t.Error(err)
			}
		}
		if err := n.NS.Ping(netip.Addr{}, netip.MustParseAddr("2001:db8:1:2::dead"), denial); err == nil {
			t.Errorf("node %s reaches an unassigned address", n.Name)
		}
	}
	left, err := nodes[0].Leftovers(briefly(t))
	if err != nil || len(left) != 2 { // the pod's link and the route over it
		t.Errorf("left %q, %v", left, err)
	}
}

// routedPod connects a namespace with an address to a node, as the plugin would.
func routedPod(t *testing.T, n *node.Node, addr netip.Addr) {
	t.Helper()
	pod := netns.New(t)
	const host, inside = "eni0d7763386da", "podeth0"
	to := &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(128, 128)}
	if err := n.NS.Do(func() error {
		pair := netlink.NewVeth(netlink.LinkAttrs{Name: host, Flags: net.FlagUp})
		pair.PeerName, pair.PeerNamespace = inside, netlink.NsFd(pod.FD())
		if err := netlink.LinkAdd(pair); err != nil {
			return err
		}
		link, err := netlink.LinkByName(host)
		if err != nil {
			return err
		}
		return errors.Join(
			netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP("fe80::1"), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD}),
			netlink.RouteAdd(&netlink.Route{Dst: to, LinkIndex: link.Attrs().Index}),
		)
	}); err != nil {
		t.Fatal(err)
	}
	if err := pod.Do(func() error {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+inside+"/accept_dad", []byte("0"), 0); err != nil {
			return err
		}
		link, err := netlink.LinkByName(inside)
		if err != nil {
			return err
		}
		return errors.Join(
			netlink.LinkSetUp(link),
			netlink.AddrAdd(link, &netlink.Addr{IPNet: to, Flags: unix.IFA_F_NODAD}),
			netlink.RouteAdd(&netlink.Route{Dst: &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}, Gw: net.ParseIP("fe80::1"), LinkIndex: link.Attrs().Index}),
		)
	}); err != nil {
		t.Fatal(err)
	}
}

func readSysctl(n *node.Node, name string) (string, error) {
	var text []byte
	err := n.NS.Do(func() (err error) {
		text, err = os.ReadFile("/proc/sys/" + name)
		return err
	})
	return strings.TrimSpace(string(text)), err
}
