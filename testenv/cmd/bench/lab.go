package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/install"
	"cnictl/plugin/portmap"
	"cnictl/testenv/fakeaws"
	"cnictl/testenv/netns"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
	"cnictl/testenv/vpc"
)

// lab holds the contenders and their infrastructure.
type lab struct {
	floor, reference, ours, pluginOnly *contender
	deployed, ours6                    *contender // one pod at a time only

	dir    string
	agents []*agent.Agent
	world  *fakeaws.World
	subnet string
	fabric *vpc.Fabric
	nodes  []*node.Node
}

// all returns the contenders in the order of the table.
func (l *lab) all() []*contender {
	return []*contender{l.floor, l.reference, l.ours, l.pluginOnly}
}

// sequence returns the contenders that take turns, one pod at a time.
func (l *lab) sequence() []*contender { return append(l.all(), l.deployed, l.ours6) }

// poolSize is how many addresses the daemon holds: more than the number of pods at any time.
const poolSize = 600

func newLab(ctx context.Context, bin string, rounds int) (_ *lab, err error) {
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
	if err := l.startFabric(); err != nil {
		return nil, err
	}
	for _, start := range []func(context.Context, string, int) error{l.startOurs, l.startDeployed, l.startOurs6} {
		if err := start(ctx, bin, rounds); err != nil {
			return nil, err
		}
	}
	for _, c := range l.sequence() {
		if c.idle, err = c.links(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *lab) close() error {
	var errs []error
	for _, n := range l.nodes {
		errs = append(errs, n.Close())
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

// pluginConfig returns the network configuration of aws-cni from the shipped conflist.
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

func (l *lab) startFabric() (err error) {
	l.world = fakeaws.NewWorld(fakeaws.Options{})
	v := l.world.AddVPC(netip.MustParsePrefix("10.0.0.0/16"))
	subnet, err := l.world.AddSubnet(fakeaws.SubnetSpec{
		VPCID: v.ID, CIDR: netip.MustParsePrefix("10.0.0.0/18"), IPv6CIDR: netip.MustParsePrefix("2001:db8:0:1::/64"),
	})
	if err != nil {
		return err
	}
	l.subnet = subnet.ID
	l.fabric, err = vpc.NewFabric(vpc.Options{World: l.world})
	return err
}

// join boots a node with its daemon and returns an unnamed contender.
func (l *lab) join(ctx context.Context, bin, name string, ipv6 bool, env map[string]string) (*contender, error) {
	instance, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.24xlarge", SubnetID: l.subnet, IPv6: ipv6})
	if err != nil {
		return nil, err
	}
	own := filepath.Join(l.dir, name)
	if err := os.Mkdir(own, 0o755); err != nil {
		return nil, err
	}
	n, err := node.Start(ctx, node.Options{Fabric: l.fabric, World: l.world, InstanceID: instance.ID, Dir: own, Binaries: bin, Name: name})
	if err != nil {
		return nil, err
	}
	l.nodes = append(l.nodes, n)
	if err := n.StartDaemon(env); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	if err := n.WaitServing(ctx); err != nil {
		return nil, err
	}
	return &contender{daemon: n.DaemonPID(), node: fabricNode{n, map[*netns.NS]*node.Pod{}},
		chain: single(filepath.Join(bin, "aws-cni"), pluginConfig(filepath.Join(own, "log", "plugin.log")))}, nil
}

// warm returns the environment for a warm node, so that ADD is measured and not growth. Without
// a cooldown the pool may be smaller than the total number of pods.
func warm(size int, more map[string]string) map[string]string {
	env := map[string]string{
		"CLUSTER_NAME": "bench", "MINIMUM_IP_TARGET": fmt.Sprint(size), "WARM_IP_TARGET": "1", "IP_COOLDOWN_PERIOD": "0",
	}
	maps.Copy(env, more)
	return env
}

func (l *lab) startOurs(ctx context.Context, bin string, _ int) (err error) {
	if l.ours, err = l.join(ctx, bin, "ours", false, warm(poolSize, nil)); err != nil {
		return err
	}
	l.ours.name = "aws-cni + aws-k8s-agent"
	return l.waitWarm(ctx, l.ours, poolSize)
}

// sequencePool is enough for all pods of the one-at-a-time phase, which stay until its end.
func sequencePool(rounds int) int { return rounds + 20 }

// startDeployed starts a node with the conflist as the entrypoint installs it, with egress off
// and unused, and with a network policy agent.
func (l *lab) startDeployed(ctx context.Context, bin string, rounds int) (err error) {
	size := sequencePool(rounds)
	if l.deployed, err = l.join(ctx, bin, "deployed", false, warm(size, map[string]string{"NETWORK_POLICY_ENFORCING_MODE": "standard"})); err != nil {
		return err
	}
	n := l.nodes[len(l.nodes)-1]
	self, err := os.Executable()
	if err != nil {
		return err
	}
	agentLog, err := os.Create(filepath.Join(l.dir, "policy-agent.log"))
	if err != nil {
		return err
	}
	defer agentLog.Close()
	if _, err := n.Background(agent.Cmd{Argv: []string{self, policyAgentArg}}, agentLog, agentLog); err != nil {
		return err
	}
	l.deployed.name = "conflist as deployed"
	if l.deployed.chain, err = l.conflist(bin); err != nil {
		return err
	}
	return l.waitWarm(ctx, l.deployed, size)
}

// conflist returns the plugin chain of the conflist that a node of this cluster gets.
func (l *lab) conflist(bin string) ([]link, error) {
	own := filepath.Join(l.dir, "deployed")
	programs := filepath.Join(own, "bin") // filled as by aws-vpc-cni-init
	if err := os.Mkdir(programs, 0o755); err != nil {
		return nil, err
	}
	for from, to := range map[string]string{"aws-cni": "aws-cni", "portmap": "portmap", referenceDir + "/portmap": portmap.Reference} {
		program, err := os.ReadFile(filepath.Join(bin, from))
		if err == nil {
			err = os.WriteFile(filepath.Join(programs, to), program, 0o755)
		}
		if err != nil {
			return nil, err
		}
	}
	settings := install.Defaults(false)
	settings.OmitEgress, settings.PluginLogFile = true, filepath.Join(own, "log", "plugin.log")
	text, err := install.Conflist(install.Template, settings)
	if err != nil {
		return nil, err
	}
	var list struct {
		CNIVersion, Name string
		Plugins          []map[string]any
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	var chain []link
	for _, config := range list.Plugins {
		kind, _ := config["type"].(string)
		config["cniVersion"], config["name"] = list.CNIVersion, list.Name
		config["runtimeConfig"] = map[string]any{}
		chain = append(chain, link{filepath.Join(programs, kind), config})
	}
	return chain, nil
}

func (l *lab) startOurs6(ctx context.Context, bin string, _ int) (err error) {
	// A /80 has room for all of them, so there is nothing to wait for.
	l.ours6, err = l.join(ctx, bin, "ours6", true, map[string]string{
		"CLUSTER_NAME": "bench", "ENABLE_IPv4": "false", "ENABLE_IPv6": "true", "ENABLE_PREFIX_DELEGATION": "true",
	})
	if err == nil {
		l.ours6.name = "aws-cni + aws-k8s-agent, IPv6"
	}
	return err
}

// waitWarm waits until the pool has its size and the link of every network interface has
// appeared on the node.
func (l *lab) waitWarm(ctx context.Context, c *contender, size int) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	instance := c.node.(fabricNode).InstanceID
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		enis, addresses := l.world.ENIsOf(instance), 0
		for _, e := range enis {
			addresses += len(e.SecondaryIPs)
		}
		links, err := c.links()
		if err != nil {
			return err
		}
		if addresses >= size && links == 1+len(enis) { // 1 is lo
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for a pool of %d addresses: have %d on %d interfaces, %d links: %w",
				size, addresses, len(enis), links, ctx.Err())
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
