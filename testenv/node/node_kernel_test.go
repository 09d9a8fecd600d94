package node_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/vpc"
)

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
