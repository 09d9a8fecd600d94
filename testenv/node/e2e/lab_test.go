// Package e2e_test runs the built daemon and plugin on simulated nodes: fake AWS on
// the wire, the real SDK, real sockets, the real kernel.
package e2e_test

import (
	"context"
	"encoding/json"
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

	"cnictl/deploy"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
)

// Tests wait for their nodes more than they compute.
//
//testlayers:uses=cmd/...,deploy/images,testenv/cmd/podprobe,testenv/node/e2e/testdata/chained,tools/reference,tools/release parallel=8
func TestMain(m *testing.M) { testenv.Main(m, kubeapi.EndShared()...) }

// lab is a world with its fabric and the built binaries.
type lab struct {
	t        *testing.T
	world    *fakeaws.World
	fabric   *vpc.Fabric
	subnet   fakeaws.Subnet
	binaries string
	refusing bool // the test withholds permissions
}

func newLab(t *testing.T, o fakeaws.Options) *lab {
	t.Helper()
	return newLabWithLinks(t, o, 0)
}

// newLabWithLinks makes a lab whose ENIs get their links some time after they are attached.
func newLabWithLinks(t *testing.T, o fakeaws.Options, linkDelay time.Duration) *lab {
	t.Helper()
	testenv.RequireKernel(t, "veth", "nft")
	l := &lab{t: t, world: fakeaws.NewWorld(o), binaries: os.Getenv("CNI_TEST_BIN")}
	if l.binaries == "" {
		l.binaries = filepath.Join("..", "..", "..", "bin")
	}
	for _, name := range []string{node.DaemonBinary, node.PluginBinary} {
		if _, err := os.Stat(filepath.Join(l.binaries, name)); err != nil {
			t.Fatalf("built binaries are missing; run: make build: %v", err)
		}
	}
	t.Cleanup(l.world.Close)
	l.grant("", "aws-node-ipv4")
	v := l.world.AddVPC(netip.MustParsePrefix("10.1.0.0/16"))
	var err error
	if l.subnet, err = l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.1.0.0/20")}); err != nil {
		t.Fatal(err)
	}
	if l.fabric, err = vpc.NewFabric(vpc.Options{World: l.world, LinkDelay: linkDelay}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.fabric.Close(); err != nil {
			t.Error(err)
		}
		if bad := l.world.Violations(); len(bad) > 0 {
			t.Errorf("requests that EC2 or the metadata service would not understand: %v", bad)
		}
		if err := l.world.Check(); err != nil {
			t.Errorf("world: %v", err)
		}
	})
	return l
}

// boot starts a node of an instance type, with its daemon serving.
func (l *lab) boot(instanceType string, env map[string]string) *node.Node {
	l.t.Helper()
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: instanceType, SubnetID: l.subnet.ID})
	if err != nil {
		l.t.Fatal(err)
	}
	n := l.node(i.ID)
	l.start(n, env)
	return n
}

// node starts the node of an instance, without a daemon.
func (l *lab) node(instanceID string) *node.Node {
	l.t.Helper()
	n, err := node.Start(l.t.Context(), node.Options{
		Fabric: l.fabric, World: l.world, InstanceID: instanceID, Dir: l.t.TempDir(), Binaries: l.binaries,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if l.t.Failed() {
			for file, text := range n.Logs() {
				l.t.Logf("%s of %s:\n%s", file, n.Name, text[max(0, len(text)-20_000):])
			}
		}
		if err := n.Close(); err != nil {
			l.t.Error(err)
		}
		if denied := l.world.ActionsDenied(instanceID); len(denied) > 0 && !l.refusing {
			l.t.Errorf("%s asked for %v, which its role does not allow as deploy/iam grants it", n.Name, denied)
		}
	})
	return n
}

// scopedCluster is the cluster of the scoped policies.
const scopedCluster = "prod"

// grant gives an instance's role, or all other roles, a policy of deploy/iam. Scoped ones need an
// instance.
func (l *lab) grant(instanceID, policy string) {
	l.t.Helper()
	document, err := deploy.IAM(policy)
	if err != nil {
		l.t.Fatal(err)
	}
	i, _ := l.world.Instance(instanceID)
	if err := l.world.SetPolicy(instanceID, l.world.Filled(document, scopedCluster, i.VPCID)); err != nil {
		l.t.Fatal(err)
	}
}

// allowOnly removes all other permissions from all roles.
func (l *lab) allowOnly(actions ...string) {
	l.refusing = true
	l.world.Allow(actions...)
}

// start starts a daemon and waits until it serves. A daemon that gets no processor while the
// metadata service has a second to answer ends; like kubelet, start then starts another.
func (l *lab) start(n *node.Node, env map[string]string) {
	l.t.Helper()
	if env["ENABLE_IPv6"] == "true" && !l.refusing {
		l.grant(n.InstanceID, "aws-node-ipv6")
	}
	ctx := testenv.Context(l.t)
	for {
		if err := n.StartDaemon(env); err != nil {
			l.t.Fatal(err)
		}
		err := n.WaitServing(ctx)
		if err == nil {
			return
		}
		starved := strings.Contains(err.Error(), "ec2imds: GetMetadata, request canceled, context deadline exceeded")
		if _, ended := n.DaemonEnded(ctx); !starved || ended != nil {
			l.t.Fatal(err)
		}
		l.t.Logf("started again: %v", err)
	}
}

// add adds count pods, at most parallel at a time, and returns those that came up and the
// failures.
func add(n *node.Node, prefix string, count, parallel int) (pods []*node.Pod, failed []error) {
	var mu sync.Mutex
	each(count, parallel, func(i int) {
		p, err := n.AddPod(node.PodSpec{Namespace: "default", Name: fmt.Sprintf("%s-%d", prefix, i)})
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = append(failed, err)
			return
		}
		pods = append(pods, p)
	})
	slices.SortFunc(pods, func(a, b *node.Pod) int { return a.IP.Compare(b.IP) })
	return pods, failed
}

func (l *lab) mustAdd(n *node.Node, prefix string, count, parallel int) []*node.Pod {
	l.t.Helper()
	pods, failed := add(n, prefix, count, parallel)
	for _, err := range failed {
		l.t.Error(err)
	}
	if len(failed) > 0 {
		l.t.FailNow()
	}
	return pods
}

func (l *lab) del(n *node.Node, pods []*node.Pod, parallel int) {
	l.t.Helper()
	var mu sync.Mutex
	each(len(pods), parallel, func(i int) {
		if err := n.DelPod(pods[i]); err != nil {
			mu.Lock()
			defer mu.Unlock()
			l.t.Error(err)
		}
	})
}

func (l *lab) nothingLeft(n *node.Node) {
	l.t.Helper()
	ctx := testenv.Context(l.t)
	left, err := n.Leftovers(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, what := range left {
		l.t.Errorf("left on %s: %s", n.Name, what)
	}
}

// atOnce runs a subtest beside others.
func atOnce(t *testing.T, name string, run func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		run(t)
	})
}

// rowsAtOnce runs the rows of a table beside each other, each as a subtest.
func rowsAtOnce[T any](t *testing.T, rows map[string]T, run func(t *testing.T, row T)) {
	t.Helper()
	for name, row := range rows {
		atOnce(t, name, func(t *testing.T) { run(t, row) })
	}
}

func each(count, parallel int, f func(i int)) {
	slots := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for i := range count {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	all.Wait()
}

// dial connects to a server in the node, which may not listen yet: it starts concurrently
// with the sockets that show that the daemon serves.
func (l *lab) dial(n *node.Node, network, addr string) (conn net.Conn) {
	l.t.Helper()
	testenv.Eventually(l.t, "a server at "+addr, func() (ok bool) {
		var err error
		conn, err = n.Dial(network, addr, testenv.Left(l.t))
		return err == nil
	})
	return conn
}

// get reads an introspection document from inside the node.
func (l *lab) get(n *node.Node, path string, into any) {
	l.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return l.dial(n, "tcp", "127.0.0.1:61679"), nil
		}}}
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, "http://node"+path, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		l.t.Fatalf("GET %s: %v: %s", path, err, body)
	}
}

// within waits for a condition, which must hold in time.
func (l *lab) within(most time.Duration, what string, ok func() bool) {
	l.t.Helper()
	testenv.Within(l.t, most, what, func() { testenv.Eventually(l.t, what, ok) })
}
