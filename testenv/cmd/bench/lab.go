package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/testenv/fakeaws"
	"cnictl/testenv/netns"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
	"cnictl/testenv/vpc"
)

// lab is the contenders and what lies under them.
type lab struct {
	floor, reference, ours, pluginOnly *contender

	dir    string
	agents []*agent.Agent
	world  *fakeaws.World
	fabric *vpc.Fabric
	node   *node.Node
}

// all is the contenders in the order of the table.
func (l *lab) all() []*contender {
	return []*contender{l.floor, l.reference, l.ours, l.pluginOnly}
}

// sequence is who takes turns one pod at a time.
func (l *lab) sequence() []*contender { return l.all() }

// poolSize is what the daemon keeps assigned: more than the most pods at one time.
const poolSize = 600

func newLab(ctx context.Context, bin string) (_ *lab, err error) {
	l := &lab{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return nil, err
	}
	if err := l.startFloor(ctx, bin); err != nil {
		return nil, err
	}
	if err := l.startReference(ctx, bin); err != nil {
		return nil, err
	}
	if err := l.startPluginOnly(ctx, bin); err != nil {
		return nil, err
	}
	if err := l.startOurs(ctx, bin); err != nil {
		return nil, err
	}
	for _, c := range l.all() {
		if c.idle, err = c.links(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *lab) close() error {
	var errs []error
	if l.node != nil {
		errs = append(errs, l.node.Close())
	}
	for _, a := range l.agents {
		errs = append(errs, a.Close())
	}
	if l.fabric != nil {
		errs = append(errs, l.fabric.Close())
	}
	if l.world != nil {
		l.world.Close()
	}
	if l.dir != "" {
		errs = append(errs, os.RemoveAll(l.dir))
	}
	return errors.Join(errs...)
}

func (l *lab) agent(ctx context.Context, name string) (*agent.Agent, error) {
	a, err := agent.Start(ctx, name, os.Stderr)
	if err == nil {
		l.agents = append(l.agents, a)
	}
	return a, err
}

func (l *lab) startFloor(ctx context.Context, bin string) error {
	a, err := l.agent(ctx, "floor")
	if err != nil {
		return err
	}
	program := filepath.Join(bin, "floor")
	pid, err := startFile(a, filepath.Join(l.dir, "floor.log"), program)
	if err != nil {
		return err
	}
	l.floor = &contender{name: "process floor", node: bareNode{a}, daemon: pid,
		chain: single(program, map[string]any{"cniVersion": "0.4.0", "name": "bench", "type": "floor"})}
	return waitFor(ctx, a, "/run/floor.sock")
}

func (l *lab) startReference(ctx context.Context, bin string) error {
	a, err := l.agent(ctx, "reference")
	if err != nil {
		return err
	}
	l.reference = &contender{name: "ptp + host-local", node: bareNode{a}, chain: single(filepath.Join(bin, referenceDir, "ptp"),
		map[string]any{"cniVersion": "0.4.0", "name": "bench", "type": "ptp", "mtu": 9001, "ipam": map[string]any{
			"type": "host-local", "subnet": "10.102.0.0/16", "dataDir": "/run/host-local",
			"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
		}})}
	return nil
}

// pluginConfig is the network configuration of aws-cni, as the shipped conflist has it.
func pluginConfig(log string) map[string]any {
	return map[string]any{
		"cniVersion": "0.4.0", "name": "aws-cni", "type": "aws-cni", "mtu": "9001", "vethPrefix": "eni",
		"podSGEnforcingMode": "strict", "pluginLogFile": log, "pluginLogLevel": "DEBUG",
		"runtimeConfig": map[string]any{"io.kubernetes.cri.pod-annotations": map[string]any{}},
	}
}

func (l *lab) startPluginOnly(ctx context.Context, bin string) error {
	a, err := l.agent(ctx, "plugin-only")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := startFile(a, filepath.Join(l.dir, "lean.log"), self, leanServerArg); err != nil {
		return err
	}
	l.pluginOnly = &contender{name: "aws-cni alone (stand-in daemon)", node: bareNode{a},
		chain: single(filepath.Join(bin, "aws-cni"), pluginConfig(filepath.Join(l.dir, "plugin-only.log")))}
	return waitFor(ctx, a, cniwire.Socket)
}

// fabricNode is a node of the simulated VPC.
type fabricNode struct {
	*node.Node
	pods map[*netns.NS]*node.Pod
}

func (f fabricNode) Run(c agent.Cmd) (agent.Result, error) { return f.Exec(c) }
func (f fabricNode) Namespace() *netns.NS                  { return f.NS }

func (f fabricNode) NewNetns(name string) (*netns.NS, error) {
	p, err := f.NewSandbox(node.PodSpec{Namespace: "default", Name: name})
	if err != nil {
		return nil, err
	}
	f.pods[p.Netns] = p
	return p.Netns, nil
}

func (f fabricNode) Remove(ns *netns.NS) error {
	p := f.pods[ns]
	delete(f.pods, ns)
	return f.RemoveSandbox(p)
}

func (l *lab) startOurs(ctx context.Context, bin string) error {
	l.world = fakeaws.NewWorld(fakeaws.Options{})
	v := l.world.AddVPC(netip.MustParsePrefix("10.0.0.0/16"))
	subnet, err := l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.0.0.0/18")})
	if err != nil {
		return err
	}
	instance, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.24xlarge", SubnetID: subnet.ID})
	if err != nil {
		return err
	}
	if l.fabric, err = vpc.NewFabric(vpc.Options{World: l.world}); err != nil {
		return err
	}
	own := filepath.Join(l.dir, "ours")
	if err := os.Mkdir(own, 0o755); err != nil {
		return err
	}
	l.node, err = node.Start(ctx, node.Options{Fabric: l.fabric, World: l.world, InstanceID: instance.ID, Dir: own, Binaries: bin, Name: "ours"})
	if err != nil {
		return err
	}
	// A warm node: what is measured is ADD, not growth. Without a cooldown the pool
	// may be smaller than the number of pods that come and go.
	err = l.node.StartDaemon(map[string]string{
		"CLUSTER_NAME": "bench", "MINIMUM_IP_TARGET": fmt.Sprint(poolSize), "WARM_IP_TARGET": "1", "IP_COOLDOWN_PERIOD": "0",
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	if err := l.node.WaitServing(ctx); err != nil {
		return err
	}
	l.ours = &contender{name: "aws-cni + aws-k8s-agent", daemon: l.node.DaemonPID(),
		node:  fabricNode{l.node, map[*netns.NS]*node.Pod{}},
		chain: single(filepath.Join(bin, "aws-cni"), pluginConfig(filepath.Join(own, "log", "plugin.log")))}
	return l.waitWarm(ctx, instance.ID)
}

// waitWarm waits until the pool has its size and the link of every network interface is
// on the node.
func (l *lab) waitWarm(ctx context.Context, instance string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		enis, addresses := l.world.ENIsOf(instance), 0
		for _, e := range enis {
			addresses += len(e.SecondaryIPs)
		}
		links, err := l.ours.links()
		if err != nil {
			return err
		}
		if addresses >= poolSize && links == 1+len(enis) { // lo
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for a pool of %d addresses: have %d on %d interfaces, %d links: %w",
				poolSize, addresses, len(enis), links, ctx.Err())
		case <-tick.C:
		}
	}
}

// waitFor waits until something accepts connections on a Unix socket of a node.
func waitFor(ctx context.Context, a *agent.Agent, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := a.Dial("unix", socket, time.Second)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", socket, err)
		case <-tick.C:
		}
	}
}
