package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/deploy"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
)

// worker describes one simulated node.
type worker struct {
	name, instanceType string
	subnet             int
	mode               string // a description for people
	env                map[string]string
}

// workers differ in size, subnet and mode: 4, 10 and 15 addresses per ENI.
var workers = []worker{
	{name: "worker-1", instanceType: "t3.medium", subnet: 0, mode: "secondary IPs"},
	{name: "worker-2", instanceType: "m5.large", subnet: 0, mode: "secondary IPs", env: map[string]string{
		"WARM_IP_TARGET": "4", "MINIMUM_IP_TARGET": "6",
	}},
	{name: "worker-3", instanceType: "c5.xlarge", subnet: 1, mode: "prefixes", env: map[string]string{
		"ENABLE_PREFIX_DELEGATION": "true",
	}},
}

// lab is the simulated account, its network and its nodes.
type lab struct {
	world   *fakeaws.World
	fabric  *vpc.Fabric
	subnets []fakeaws.Subnet // in their state before the first instance
	nodes   []*labNode
}

type labNode struct {
	*node.Node
	worker
	socket string // address of introspection
}

// pace holds the latencies of the simulated AWS.
type pace struct {
	latency                map[string]time.Duration
	attachDelay, linkDelay time.Duration
}

// newLab creates the account and the network; nodes are booted one by one.
func newLab(p pace) (*lab, error) {
	l := &lab{world: fakeaws.NewWorld(fakeaws.Options{Latency: p.latency, AttachDelay: p.attachDelay})}
	v := l.world.AddVPC(netip.MustParsePrefix("10.0.0.0/16"))
	for _, cidr := range []string{"10.0.0.0/20", "10.0.16.0/20"} {
		s, err := l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix(cidr)})
		if err != nil {
			l.world.Close()
			return nil, fmt.Errorf("add subnet %s: %w", cidr, err)
		}
		l.subnets = append(l.subnets, s)
	}
	role, err := deploy.IAM("aws-node-ipv4")
	if err == nil {
		err = l.world.SetPolicy("", string(role))
	}
	if err != nil {
		l.world.Close()
		return nil, fmt.Errorf("grant the nodes' role: %w", err)
	}
	fabric, err := vpc.NewFabric(vpc.Options{World: l.world, LinkDelay: p.linkDelay})
	if err != nil {
		l.world.Close()
		return nil, err
	}
	l.fabric = fabric
	return l, nil
}

// boot starts an instance as a node, without its daemon.
func (l *lab) boot(ctx context.Context, w worker, bin, dir string) (*labNode, error) {
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: w.instanceType, SubnetID: l.subnets[w.subnet].ID})
	if err != nil {
		return nil, fmt.Errorf("add instance of %s: %w", w.name, err)
	}
	own := filepath.Join(dir, w.name)
	if err := os.Mkdir(own, 0o755); err != nil {
		return nil, err
	}
	n, err := node.Start(ctx, node.Options{
		Fabric: l.fabric, World: l.world, InstanceID: i.ID, Dir: own, Binaries: bin, Name: w.name,
	})
	if err != nil {
		return nil, err
	}
	ln := &labNode{Node: n, worker: w, socket: filepath.Join(own, "introspect.sock")}
	l.nodes = append(l.nodes, ln)
	return ln, nil
}

// serve starts a node's daemon and waits until it serves.
func (n *labNode) serve(ctx context.Context) error {
	env := map[string]string{
		"CLUSTER_NAME":               "demo",
		"INTROSPECTION_BIND_ADDRESS": "unix:" + n.socket,
	}
	maps.Copy(env, n.env)
	if err := n.StartDaemon(env); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return n.WaitServing(ctx)
}

// targets returns the value for cnictl's --targets that reaches all nodes.
func (l *lab) targets() string {
	var out []string
	for _, n := range l.nodes {
		out = append(out, n.Name+"=unix:"+n.socket)
	}
	return strings.Join(out, ",")
}

// stopDaemons stops all daemons in parallel, as a node's shutdown does.
func (l *lab) stopDaemons(ctx context.Context) error {
	errs := make([]error, len(l.nodes))
	var wg sync.WaitGroup
	for i, n := range l.nodes {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			r, err := n.StopDaemon(ctx, unix.SIGTERM)
			if err == nil && r.Code != 0 {
				err = fmt.Errorf("daemon of %s ended with status %d", n.Name, r.Code)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// close takes the nodes, the network and the account down.
func (l *lab) close() error {
	var errs []error
	for _, n := range l.nodes {
		errs = append(errs, n.Close())
	}
	errs = append(errs, l.fabric.Close())
	l.world.Close()
	return errors.Join(errs...)
}

// eniOf returns the ENI that owns an address, and a description for people.
func (l *lab) eniOf(a netip.Addr) (fakeaws.ENI, string) {
	e, ok := l.world.OwnerOf(a)
	if !ok {
		return e, "an address that no ENI owns"
	}
	return e, fmt.Sprintf("%s (device %d)", e.ID, e.Attachment.Device)
}
