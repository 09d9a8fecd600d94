package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/install"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/aws/npa"
	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// site is a VPC with nodes. It ends with the scope that made it.
type site struct {
	*run
	world  *fakeaws.World
	fabric *vpc.Fabric
	subnet string
}

func (r *run) site(o fakeaws.Options) *site {
	s := &site{run: r, world: fakeaws.NewWorld(o)}
	r.later(func() error {
		defer s.world.Close()
		if bad := s.world.Violations(); len(bad) > 0 { // the measurement is worthless
			return fmt.Errorf("requests that EC2 or the metadata service would not understand: %v", bad)
		}
		return nil
	})
	v := s.world.AddVPC(netip.MustParsePrefix("10.0.0.0/16"))
	s.subnet = must(s.world.AddSubnet(fakeaws.SubnetSpec{
		VPCID: v.ID, CIDR: netip.MustParsePrefix("10.0.0.0/18"), IPv6CIDR: netip.MustParsePrefix("2001:db8:0:1::/64"),
	})).ID
	s.fabric = must(vpc.NewFabric(vpc.Options{World: s.world}))
	r.later(s.fabric.Close)
	return s
}

// boot starts a node that finds plugins in bin. Its directory has its name, so each name can be used only once.
func (s *site) boot(instanceType, name, bin string, ipv6 bool) *node.Node {
	instance := must(s.world.AddInstance(fakeaws.InstanceSpec{Type: instanceType, SubnetID: s.subnet, IPv6: ipv6}))
	dir := filepath.Join(s.dir, name)
	check(os.Mkdir(dir, 0o755))
	n := must(node.Start(s.ctx, node.Options{Fabric: s.fabric, World: s.world, InstanceID: instance.ID, Dir: dir, Binaries: bin, Name: name}))
	s.later(n.Close)
	return n
}

// serve starts a node's daemon and returns how long it takes until it serves.
func (r *run) serve(n *node.Node, env ...map[string]string) time.Duration {
	all := map[string]string{"CLUSTER_NAME": "bench"}
	for _, e := range env {
		maps.Copy(all, e)
	}
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	begin := time.Now()
	check(n.StartDaemon(all))
	check(n.WaitServing(ctx))
	return time.Since(begin)
}

// serverOf returns the process that listens on a socket of a node, as the bench sees it.
func serverOf(n *node.Node, socket string) int {
	conn := must(n.Dial("unix", socket, time.Minute)).(*net.UnixConn)
	defer conn.Close()
	var peer *unix.Ucred
	check(must(conn.SyscallConn()).Control(func(fd uintptr) { peer, _ = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }))
	return int(peer.Pid)
}

// warm waits until a node has its pool of addresses and the link of every network interface.
func (s *site) warm(n *node.Node, size int) {
	s.until(fmt.Sprintf("a pool of %d addresses on %s", size, n.Name), func() bool {
		enis, addresses := s.world.ENIsOf(n.InstanceID), 0
		for _, e := range enis {
			addresses += len(e.SecondaryIPs)
		}
		return addresses >= size && links(n) == 1+len(enis) // 1 is lo
	})
}

func links(n *node.Node) (count int) {
	check(n.NS.Do(func() error {
		table, err := os.ReadFile("/proc/thread-self/net/dev")
		count = bytes.Count(table, []byte("\n")) - 2 // headings
		return err
	}))
	return count
}

// copyPrograms makes the nodes run copies of the programs. Nearly all of a file counts as resident
// if the linker has just written it or if it was written in one go. The copies are written like an
// unpacked image: in pieces, with what would let the kernel copy the file itself hidden.
func (r *run) copyPrograms() {
	from, to := r.bin, filepath.Join(r.dir, "bin")
	check(os.Mkdir(to, 0o755))
	for _, name := range []string{node.DaemonBinary, node.PluginBinary} {
		in := must(os.Open(filepath.Join(from, name)))
		defer in.Close()
		out := must(os.OpenFile(filepath.Join(to, name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755))
		must(io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 32<<10)))
		check(out.Close())
	}
	r.bin = to
}

// startAPI starts the Kubernetes API server that the daemons watch, as in upstream's measurements.
func (r *run) startAPI() {
	r.copyPrograms()
	dir := filepath.Join(r.dir, "api")
	check(os.Mkdir(dir, 0o700))
	r.api = &cluster.Cluster{API: must(kubeapi.Open(r.ctx, dir, kubeapi.Options{}))}
	r.later(r.api.API.Close)
}

func (r *run) newNode(name string, maxPods int64) {
	capacity := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(maxPods, resource.DecimalSI), "cpu": resource.MustParse("16")}
	must(cluster.Create(r.ctx, r.api, "", &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}))
}

func (r *run) newPod(name, node string) {
	must(cluster.Create(r.ctx, r.api, "default", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "bench"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "registry.invalid/app:1"}}},
	}))
}

// fill creates a big cluster around the daemon's node.
func (r *run) fill() (nodes, pods int) {
	nodes, pods = r.part(5000), r.part(20000)
	name := func(i int) string { return fmt.Sprintf("other-%d", i) }
	check(frame.Each(r.ctx, nodes, 16, func(i int) { r.newNode(name(i), 110) }))
	check(frame.Each(r.ctx, pods, 16, func(i int) { r.newPod(name(i), name(i%nodes)) }))
	return nodes, pods
}

// join creates a Node object and returns the settings with which its daemon reaches the API server.
func (r *run) join(n *node.Node, maxPods int64) map[string]string {
	r.newNode(n.Name, maxPods)
	proxy, end := r.api.API.Forward(must(n.NS.Listen("tcp", "127.0.0.1:0")).(*net.TCPListener))
	r.later(func() error { end(); return nil })
	path := filepath.Join(n.Dir, "kubeconfig")
	check(r.api.API.WriteKubeconfig(r.ctx, path, "aws-node", proxy.Addr()))
	return map[string]string{"KUBECONFIG": path, "MY_NODE_NAME": n.Name}
}

// contender is one way of wiring pods, on a node of its own.
type contender struct {
	name   string
	node   *node.Node
	chain  []link // plugins, in the order of ADD
	daemon int    // process whose processor time counts too; 0 if none
	peak   string // the program that reports the plugins' memory; "" to run them directly
	idle   int    // links on the node without pods
	made   int    // pods
}

// link is one plugin of a chain: its path, and its network configuration, nil for the shipped one.
type link struct {
	plugin string
	config map[string]any
}

type lab struct {
	*site
	floor, reference, ours, pluginOnly *contender
	deployed, ours6                    *contender // one pod at a time only
}

func (l *lab) all() []*contender      { return []*contender{l.floor, l.reference, l.ours, l.pluginOnly} }
func (l *lab) sequence() []*contender { return append(l.all(), l.deployed, l.ours6) }

// poolSize is how many addresses the daemon holds: more than the number of pods at any time.
const poolSize = 600

func (r *run) startLab() {
	l := &lab{site: r.site(fakeaws.Options{})}
	r.lab = l
	l.floor = l.bare("process floor", "floor", filepath.Join(r.bin, "floor"), only(map[string]any{"type": "floor"}), false)
	l.background(l.floor.node, "/run/floor.sock", filepath.Join(r.bin, "floor"))
	l.floor.daemon = serverOf(l.floor.node, "/run/floor.sock")
	l.reference = l.bare("ptp + host-local", "reference", filepath.Join(r.bin, "reference", "ptp"), only(map[string]any{
		"type": "ptp", "mtu": 9001, "ipam": map[string]any{
			"type": "host-local", "subnet": "10.102.0.0/16", "dataDir": "/run/host-local",
			"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
		}}), false)
	l.pluginOnly = l.bare("aws-cni alone (stand-in daemon)", "plugin-only", filepath.Join(r.bin, node.PluginBinary), nil, false)
	l.background(l.pluginOnly.node, cniwire.Socket, must(os.Executable()), inNode)
	l.ours = l.served("aws-cni + aws-k8s-agent", "ours", poolSize, nil)
	// Enough for all pods of the one-at-a-time phase, which stay until its end.
	l.deployed = l.served("conflist as deployed", "deployed", r.rounds+20, map[string]string{"NETWORK_POLICY_ENFORCING_MODE": "standard"})
	l.background(l.deployed.node, policyAgentSocket, must(os.Executable()), inNode)
	l.deployed.chain = l.conflist(l.deployed.node)
	// A /80 has room for all pods, so there is nothing to wait for.
	l.ours6 = l.served("aws-cni + aws-k8s-agent, IPv6", "ours6", 0, map[string]string{
		"ENABLE_IPv4": "false", "ENABLE_IPv6": "true", "ENABLE_PREFIX_DELEGATION": "true", "MINIMUM_IP_TARGET": "", "WARM_IP_TARGET": "",
	})
}

func (l *lab) bare(name, host, plugin string, config map[string]any, ipv6 bool) *contender {
	n := l.boot("m5.24xlarge", host, filepath.Dir(plugin), ipv6)
	return &contender{name: name, node: n, chain: []link{{plugin, config}}, idle: links(n)}
}

// served adds a contender with our daemon and a pool of addresses, so that ADD is measured and not
// growth. Without a cooldown the pool may be smaller than the total number of pods.
func (l *lab) served(name, host string, size int, env map[string]string) *contender {
	c := l.bare(name, host, filepath.Join(l.bin, node.PluginBinary), nil, env["ENABLE_IPv6"] == "true")
	l.serve(c.node, map[string]string{"MINIMUM_IP_TARGET": strconv.Itoa(size), "WARM_IP_TARGET": "1", "IP_COOLDOWN_PERIOD": "0"}, env)
	l.warm(c.node, size)
	c.daemon, c.idle = serverOf(c.node, cniwire.Socket), links(c.node)
	return c
}

func (l *lab) background(n *node.Node, socket string, argv ...string) {
	log := must(os.Create(filepath.Join(n.Dir, "log", "server.log")))
	defer log.Close()
	must(n.Background(agent.Cmd{Argv: argv, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}}, log, log))
	l.until(socket, func() bool {
		c, err := n.Dial("unix", socket, time.Second)
		return err == nil && c.Close() == nil
	})
}

// only is a configuration without what the shipped one of aws-cni has besides.
func only(config map[string]any) map[string]any {
	out := maps.Clone(config)
	for _, key := range []string{"mtu", "vethPrefix", "podSGEnforcingMode", "pluginLogFile", "pluginLogLevel", "runtimeConfig"} {
		out[key] = config[key]
	}
	return out
}

// conflist returns the plugins of the conflist as the entrypoint installs it, with egress off and unused.
func (l *lab) conflist(n *node.Node) (chain []link) {
	settings := install.Defaults(false)
	settings.OmitEgress, settings.PluginLogFile = true, filepath.Join(n.Dir, "log", "plugin.log")
	var list struct {
		CNIVersion, Name string
		Plugins          []map[string]any
	}
	check(json.Unmarshal(must(install.Conflist(install.Template, settings)), &list))
	for _, config := range list.Plugins {
		config["cniVersion"], config["name"], config["runtimeConfig"] = list.CNIVersion, list.Name, map[string]any{}
		chain = append(chain, link{filepath.Join(l.bin, config["type"].(string)), only(config)})
	}
	return chain
}

// run runs one command of the chain for a pod, as a runtime does: each plugin of an ADD gets
// the previous plugin's result, and a DEL goes in reverse with the final result. The
// runtime's own time is not counted. The error is a plugin's.
func (c *contender) run(p *node.Pod, command string) (sum agent.Result, _ error) {
	chain, last := slices.Clone(c.chain), p.Result
	if command == "DEL" {
		slices.Reverse(chain)
	}
	for _, l := range chain {
		p.Plugin, p.Config, p.Env = l.plugin, l.config, nil
		if c.peak != "" {
			p.Plugin, p.Env = c.peak, []string{peakVar + "=" + l.plugin}
		}
		r, err := c.node.RunPlugin(p, command, last)
		if refused := (*node.PluginError)(nil); errors.As(err, &refused) {
			return sum, fmt.Errorf("%s: %s: %w", c.name, filepath.Base(l.plugin), err)
		}
		check(err)
		if command == "ADD" {
			last = bytes.Clone(r.Stdout)
		}
		if c.peak != "" {
			r.MaxRSS = readPeak(r.Stderr)
		}
		sum.Wall, sum.User, sum.System = sum.Wall+r.Wall, sum.User+r.User, sum.System+r.System
		sum.MinFault, sum.MaxRSS = sum.MinFault+r.MinFault, max(sum.MaxRSS, r.MaxRSS)
	}
	p.Result = last
	return sum, nil
}

const peakVar = "FLOOR_PEAK" // makes floor run a program and print its peak memory

// readPeak returns the bytes in the last line that floor prints.
func readPeak(stderr []byte) int64 {
	_, kib, _ := bytes.Cut(stderr, []byte("\npeak_kib="))
	return must(strconv.ParseInt(strings.TrimSpace(string(kib)), 10, 64)) << 10
}

func (c *contender) used() time.Duration {
	if c.daemon == 0 {
		return 0
	}
	return frame.CPU(c.daemon)
}

func (c *contender) pods(n int) (out []*node.Pod) {
	for range n {
		c.made++
		out = append(out, must(c.node.NewSandbox(node.PodSpec{Namespace: "default", Name: podName(c.made)})))
	}
	return out
}

// remove removes pods' namespaces and waits until the kernel has removed their links, so that it
// does not disturb the next measurement.
func (r *run) remove(c *contender, pods []*node.Pod) {
	for _, p := range pods {
		check(c.node.RemoveSandbox(p))
	}
	r.until("links of removed pods to disappear from "+c.name, func() bool { return links(c.node) <= c.idle })
}

// samples holds the measurements of one contender's commands: page faults as plain numbers, and the
// daemon's processor time per command, each the mean of several in a row.
type samples struct {
	wall, cpu, faults, daemon []time.Duration
	failed                    []error
	took                      time.Duration // of all, for rates
}

func (s *samples) mean() time.Duration {
	var sum time.Duration
	for _, d := range s.daemon {
		sum += d
	}
	return sum / time.Duration(max(len(s.daemon), 1))
}

type results map[*contender]*samples

func (m results) of(c *contender) *samples {
	if m[c] == nil {
		m[c] = &samples{}
	}
	return m[c]
}

func (r *run) command(c *contender, p *node.Pod, verb string, into *samples) {
	res, err := c.run(p, verb)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		into.failed, r.failed = append(into.failed, err), append(r.failed, err)
		return
	}
	into.wall, into.cpu = append(into.wall, res.Wall), append(into.cpu, res.CPU())
	into.faults = append(into.faults, time.Duration(res.MinFault))
}

// turns calls do for each contender; the one that begins is another in each round.
func (r *run) turns(list []*contender, round int, do func(*contender)) {
	check(r.ctx.Err())
	for turn := range list {
		do(list[(turn+round)%len(list)])
	}
}

// burst runs a command for all pods, width at a time.
func (r *run) burst(c *contender, pods []*node.Pod, width int, verb string, into *samples) {
	begin := time.Now()
	check(frame.Each(r.ctx, len(pods), width, func(i int) { r.command(c, pods[i], verb, into) }))
	into.took += time.Since(begin)
}

func (r *run) clear(c *contender, pods []*node.Pod, width int) {
	r.burst(c, pods, width, "DEL", &samples{})
	r.remove(c, pods)
}

const inNode = "in-node" // the argument that runs the program as a server in a node

var policyAgentSocket = filepath.Join(filepath.Dir(cniwire.Socket), "npa.sock")

// serveInNode is a node's network policy agent that always reports success, beside a daemon. Without
// one it is a stand-in for the daemon: it answers the plugin's protocol from a counter, one
// connection at a time, keeps no checkpoint and never runs out of addresses. Measurements with it
// show the plugin alone, and the table says so.
func serveInNode() error {
	if _, err := os.Stat(cniwire.Socket); err == nil {
		a, err := npa.Start(npa.Options{Socket: policyAgentSocket})
		if err != nil {
			return err
		}
		defer a.Close()
		select {} // until the node ends
	}
	if err := os.MkdirAll(filepath.Dir(cniwire.Socket), 0o755); err != nil {
		return err
	}
	l, err := net.Listen("unix", cniwire.Socket)
	if err != nil {
		return err
	}
	given, last := map[string]string{}, uint32(10<<24|101<<16|1)
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		if frame, err := cniwire.ReadFrame(conn, nil); err == nil {
			if q, err := cniwire.DecodeRequest(frame); err == nil {
				last++
				_, _ = conn.Write(answer(q, given, netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, last))).String()))
			}
		}
		conn.Close()
	}
}

func answer(q cniwire.Request, given map[string]string, fresh string) []byte {
	if q.Add != nil {
		given[q.Add.ContainerID] = fresh
		return cniwire.AppendAddReply(nil, &cniwire.AddReply{Success: true, VPCv4CIDRs: []string{"10.0.0.0/16"},
			Allocations: []cniwire.Allocation{{IPv4: fresh, Device: 1, RouteTable: 2}}})
	}
	a, known := given[q.Del.ContainerID]
	delete(given, q.Del.ContainerID)
	d := &cniwire.DelReply{Success: known, Unknown: !known}
	if known {
		d.Allocations = []cniwire.Allocation{{IPv4: a, Device: 1, RouteTable: 2}}
	}
	return cniwire.AppendDelReply(nil, d)
}
