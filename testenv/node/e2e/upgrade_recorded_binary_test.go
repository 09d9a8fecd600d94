package e2e_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/netns"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// This file reads the recorded state of an upstream node with three pods (testdata/recorded:
// one folder per mode, with the files as they were recorded) and puts a node into that state.
// Everything is parsed from the files; nothing is copied by hand.

// modes are the recorded folders, with the settings for a daemon. The recordings were made with
// the environment of the shipped manifest.
var modes = map[string]map[string]string{
	"secondary": {"CLUSTER_NAME": recordedCluster},
	"two-enis":  {"CLUSTER_NAME": recordedCluster},
	"prefix":    {"CLUSTER_NAME": recordedCluster, "ENABLE_PREFIX_DELEGATION": "true"},
}

// From the recordings' notes and log.
const (
	recordedType    = "m5.large"
	recordedCluster = "bench"
	recordedSize    = 3 // pods
)

// recording is one folder, parsed.
type recording struct {
	t    testing.TB
	mode string

	vpc   netip.Prefix
	links map[string]recordedLink // by name
	enis  []introspect.ENI        // by device
	pods  []recordedPod
	rules []string // ip rule
	ipv4  []string // ip route show table all, without IPv6
	file  []byte   // ipam.json
}

type recordedLink struct {
	name, mac, mtu string
	addrs          []netip.Prefix // IPv4
}

type recordedPod struct {
	name, namespace, containerID, ifName string

	address netip.Addr
	netns   string // name below /run/netns
	host    recordedLink
	inside  recordedLink
	result  []byte   // what ADD printed
	routes  []string // inside
}

type recordedAllocation struct {
	ContainerID, IfName, IPv4 string
	Metadata                  struct{ K8sPodNamespace, K8sPodName string }
}

func readRecording(t testing.TB, mode string) *recording {
	t.Helper()
	r := &recording{t: t, mode: mode}
	r.file = r.read("ipam.three-pods.json")
	r.links = parseLinks(string(r.read("ip-addr.three-pods.txt")))
	r.rules = lines(string(r.read("ip-rule.three-pods.txt")))
	r.ipv4 = onlyIPv4(string(r.read("ip-route-all.three-pods.txt")))
	r.enis = r.readENIs()
	r.pods = r.readPods()
	saved := string(r.read("iptables-save.three-pods.txt"))
	r.vpc = netip.MustParsePrefix(r.find(saved, `-A AWS-SNAT-CHAIN-0 -d (\S+) `))
	return r
}

func (r *recording) read(name string) []byte {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "recorded", r.mode, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return data
}

// find returns the match of a pattern's only group.
func (r *recording) find(text, pattern string) string {
	r.t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		r.t.Fatalf("%s: nothing matches %s in:\n%s", r.mode, pattern, text)
	}
	return m[1]
}

func (r *recording) decode(data []byte, into any) {
	r.t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		r.t.Fatalf("%s: %v", r.mode, err)
	}
}

func (r *recording) readENIs() []introspect.ENI {
	r.t.Helper()
	var cards introspect.ENIs
	r.decode(r.read("v1-enis.three-pods.json"), &cards)
	return slices.SortedFunc(maps.Values(cards["0"].ENIs), func(a, b introspect.ENI) int {
		return cmp.Compare(a.DeviceNumber, b.DeviceNumber)
	})
}

func (r *recording) readPods() (pods []recordedPod) {
	r.t.Helper()
	var file struct{ Allocations []recordedAllocation }
	r.decode(r.file, &file)
	slices.SortFunc(file.Allocations, func(a, b recordedAllocation) int { return strings.Compare(a.ContainerID, b.ContainerID) })
	for _, a := range file.Allocations {
		name := a.Metadata.K8sPodName
		p := recordedPod{
			name: name, namespace: a.Metadata.K8sPodNamespace, containerID: a.ContainerID, ifName: a.IfName,
			address: netip.MustParseAddr(a.IPv4), result: r.read("add-" + name + ".json"),
			routes: lines(string(r.read("pod-" + name + ".route.txt"))),
		}
		var result struct {
			Interfaces []struct{ Name, Sandbox string }
		}
		r.decode(p.result, &result)
		p.host = r.links[result.Interfaces[0].Name]
		p.netns = filepath.Base(result.Interfaces[1].Sandbox)
		p.inside = parseLinks(string(r.read("pod-" + name + ".addr.txt")))[a.IfName]
		if p.host.name == "" || p.inside.name == "" {
			r.t.Fatalf("%s: links of %s: %+v, %+v", r.mode, name, p.host, p.inside)
		}
		pods = append(pods, p)
	}
	if len(pods) != recordedSize {
		r.t.Fatalf("%s: %d pods", r.mode, len(pods))
	}
	return pods
}

// parseLinks reads `ip addr`, with or without -d.
func parseLinks(text string) map[string]recordedLink {
	head := regexp.MustCompile(`^\d+: ([^:@]+)(?:@\S+)?: <\S+> mtu (\d+)`)
	ether := regexp.MustCompile(`^    link/\S+ (\S+) `)
	inet := regexp.MustCompile(`^    inet (\S+) `)
	links := map[string]recordedLink{}
	var l recordedLink
	for line := range strings.Lines(text) {
		if m := head.FindStringSubmatch(line); m != nil {
			l = recordedLink{name: m[1], mtu: m[2]}
		} else if m := ether.FindStringSubmatch(line); m != nil {
			l.mac = m[1]
		} else if m := inet.FindStringSubmatch(line); m != nil {
			l.addrs = append(l.addrs, netip.MustParsePrefix(m[1]))
		}
		links[l.name] = l
	}
	return links
}

// lines splits a dump into trimmed lines: programs differ in trailing spaces.
func lines(text string) (out []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// onlyIPv4 drops IPv6 routes: the kernel adds and removes them at any time (duplicate
// address detection), and no program here sets them.
func onlyIPv4(routes string) []string {
	out := slices.DeleteFunc(lines(routes), func(s string) bool { return strings.Contains(s, ":") })
	slices.Sort(out)
	return out
}

// without returns the multiset difference of a and b.
func without(a, b []string) []string {
	left := map[string]int{}
	for _, s := range b {
		left[s]++
	}
	var out []string
	for _, s := range a {
		if left[s]--; left[s] < 0 {
			out = append(out, s)
		}
	}
	return out
}

// boot boots the recorded instance: the VPC, subnet, ENIs and addresses of the
// recording in EC2, and a node without a daemon whose links are named as recorded.
func (r *recording) boot(t *testing.T) (*lab, *node.Node) {
	t.Helper()
	l, instance := r.instance(t)
	for _, e := range r.enis {
		r.addENI(l, instance, e)
	}
	return l, l.node(instance)
}

// instance creates the recorded instance with only its primary ENI.
func (r *recording) instance(t *testing.T) (l *lab, id string) {
	t.Helper()
	testenv.RequireKernel(t, "veth", "nft")
	l = newWorldLab(t, fakeaws.Options{}, vpc.EthLinkName)
	v := l.world.AddVPC(r.vpc)
	primary := r.links["eth0"].addrs[0]
	var err error
	if l.subnet, err = l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: primary.Masked()}); err != nil {
		t.Fatal(err)
	}
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: recordedType, SubnetID: l.subnet.ID, PrivateIP: primary.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	return l, i.ID
}

// addENI gives the instance one recorded ENI with its addresses. EC2 counts ids here as in the
// recording, so ENIs that others created in between are created and deleted.
func (r *recording) addENI(l *lab, instance string, want introspect.ENI) {
	r.t.Helper()
	link := r.links[fmt.Sprintf("eth%d", want.DeviceNumber)]
	if !want.IsPrimary {
		r.attach(l, instance, want, link)
	}
	var spec fakeaws.AssignSpec
	for text, c := range want.AvailableIPv4Cidrs {
		cidr := netip.MustParsePrefix(text)
		if c.IsPrefix {
			spec.Prefixes = append(spec.Prefixes, cidr)
		} else {
			spec.Addresses = append(spec.Addresses, cidr.Addr())
		}
	}
	slices.SortFunc(spec.Addresses, netip.Addr.Compare)
	if _, err := l.world.Assign(want.ID, spec); err != nil {
		r.t.Fatal(err)
	}
	got, ok := l.world.ENI(want.ID)
	if !ok || got.MAC != link.mac || got.PrimaryIP != link.addrs[0].Addr() || got.SubnetID != want.SubnetID {
		r.t.Fatalf("%s: made ENI %+v, recorded are %s on link %+v", r.mode, got, want.ID, link)
	}
	if err := l.world.SetTags(map[string]string{
		"cluster.k8s.amazonaws.com/name": recordedCluster, "eks:eni:owner": "amazon-vpc-cni", "node.k8s.amazonaws.com/instance_id": instance,
	}, want.ID); err != nil {
		r.t.Fatal(err)
	}
}

func (r *recording) attach(l *lab, instance string, want introspect.ENI, link recordedLink) {
	r.t.Helper()
	for {
		e, err := l.world.CreateENI(fakeaws.ENISpec{SubnetID: want.SubnetID, PrimaryIP: link.addrs[0].Addr(), Description: "aws-K8S-" + instance})
		if err != nil {
			r.t.Fatal(err)
		}
		if e.ID == want.ID {
			break
		}
		if e.ID > want.ID {
			r.t.Fatalf("%s: %s cannot be made any more, the next is %s", r.mode, want.ID, e.ID)
		}
		if err := l.world.DeleteENI(e.ID); err != nil {
			r.t.Fatal(err)
		}
	}
	_, err := l.world.AttachENI(fakeaws.AttachSpec{ENIID: want.ID, InstanceID: instance, Device: want.DeviceNumber, DeleteOnTermination: true})
	if err != nil {
		r.t.Fatal(err)
	}
}

// restore gives the node the recorded kernel state and file, and returns its pods as
// the runtime knows them.
func (r *recording) restore(l *lab, n *node.Node) []*node.Pod {
	r.t.Helper()
	r.writeSysctls(n, "lo", "eth0", "eth1", "all", "default") // first, as new links copy them
	var pods []*node.Pod
	for _, p := range r.pods {
		pods = append(pods, r.addPod(l, n, p))
	}
	for name, link := range r.links {
		if name == n.Link || !strings.HasPrefix(name, "eth") {
			continue
		}
		l.sh(n, "ip link set "+name+" mtu "+link.mtu+" up")
		for _, a := range link.addrs {
			l.sh(n, fmt.Sprintf("ip addr add %s brd + dev %s", a, name))
		}
	}
	l.sh(n, r.ruleScript()+r.routeScript(l.routes(n)))
	l.shWith(n, "iptables-restore", r.read("iptables-save.three-pods.txt"))
	// iptables created the rest of the recorded rule set, so it exists already.
	_, own, found := strings.Cut(string(r.read("nft-ruleset.three-pods.txt")), "table ip aws-cni {")
	if !found {
		r.t.Fatalf("%s: no native table recorded", r.mode)
	}
	l.shWith(n, "nft -f -", []byte("table ip aws-cni {"+own))
	r.writeSysctls(n)
	l.sh(n, "mkdir -p "+filepath.Dir(node.Checkpoint))
	l.shWith(n, "umask 077; cat > "+node.Checkpoint, r.file)
	return pods
}

// ruleScript adds the recorded rules that a namespace does not have by default.
func (r *recording) ruleScript() (script string) {
	for _, rule := range r.rules {
		priority, selector, _ := strings.Cut(rule, ":")
		if priority != "0" && priority != "32766" && priority != "32767" {
			script += "ip rule add prio " + priority + " " + strings.TrimSpace(selector) + "\n"
		}
	}
	return script
}

// routeScript makes the routes equal to the recorded ones. Routes through a gateway come last:
// they need the others.
func (r *recording) routeScript(there []string) (script string) {
	for _, route := range without(there, r.ipv4) {
		script += "ip route del " + route + "\n"
	}
	add := without(r.ipv4, there)
	slices.SortStableFunc(add, func(a, b string) int {
		return strings.Count(a, " via ") - strings.Count(b, " via ")
	})
	for _, route := range add {
		script += "ip route add " + route + "\n"
	}
	return script
}

// addPod creates one recorded pod: namespace, veth pair, and what is inside. The
// gateway's neighbour entry has the MAC of the host link at the time of the other
// dumps: one pod was added again after its inside had been recorded.
func (r *recording) addPod(l *lab, n *node.Node, p recordedPod) *node.Pod {
	r.t.Helper()
	script := fmt.Sprintf(`ip netns add %[1]s
ip link add %[2]s address %[3]s mtu %[4]s type veth peer name %[5]s netns %[1]s address %[6]s mtu %[7]s
ip link set %[2]s up
ip -n %[1]s link set %[5]s up
`, p.netns, p.host.name, p.host.mac, p.host.mtu, p.inside.name, p.inside.mac, p.inside.mtu)
	for _, a := range p.inside.addrs {
		script += fmt.Sprintf("ip -n %s addr add %s dev %s\n", p.netns, a, p.inside.name)
	}
	for _, route := range slices.Backward(p.routes) { // the default route needs the route to its gateway
		script += "ip -n " + p.netns + " route add " + route + "\n"
	}
	neigh := strings.Fields(string(r.read("pod-" + p.name + ".neigh.txt")))
	script += fmt.Sprintf("ip -n %s neigh add %s dev %s lladdr %s nud permanent\n", p.netns, neigh[0], neigh[2], p.host.mac)
	l.sh(n, script)
	return l.sandbox(n, p)
}

// sandbox is a recorded pod's sandbox as the runtime knows it.
func (l *lab) sandbox(n *node.Node, p recordedPod) *node.Pod {
	l.t.Helper()
	path := "/run/netns/" + p.netns
	f, err := n.Open(path, os.O_RDONLY, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	pod := &node.Pod{
		PodSpec: node.PodSpec{Namespace: p.namespace, Name: p.name, ContainerID: p.containerID, Plugin: filepath.Join(l.absBinaries(), node.PluginBinary)},
		IfName:  p.ifName, Netns: netns.FromFile(p.netns, f), Path: path, Result: p.result, IP: p.address,
	}
	l.t.Cleanup(func() {
		if pod.Netns != nil {
			_ = pod.Netns.Close() // nothing is written through it
		}
	})
	return pod
}

func (l *lab) absBinaries() string {
	l.t.Helper()
	path, err := filepath.Abs(l.binaries)
	if err != nil {
		l.t.Fatal(err)
	}
	return path
}

// sysctls returns the recorded values and their paths below /proc/sys, in recorded order.
func (r *recording) sysctls() (paths, values []string) {
	for _, line := range lines(string(r.read("sysctl.three-pods.txt"))) {
		key, value, _ := strings.Cut(line, " = ")
		paths = append(paths, strings.ReplaceAll(key, ".", "/"))
		values = append(values, value)
	}
	return paths, values
}

// writeSysctls sets recorded values, of all links or only of the named ones.
func (r *recording) writeSysctls(n *node.Node, only ...string) {
	r.t.Helper()
	paths, values := r.sysctls()
	have := readSysctls(r.t, n, paths)
	err := n.NS.Do(func() error {
		for i, path := range paths {
			link := filepath.Base(filepath.Dir(path))
			if have[i] == values[i] || have[i] == "" || len(only) > 0 && !slices.Contains(only, link) {
				continue
			}
			if err := os.WriteFile(filepath.Join("/proc/sys", path), []byte(values[i]), 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// readSysctls reads values in the node; "" for a setting that the kernel does not have.
func readSysctls(t testing.TB, n *node.Node, paths []string) []string {
	t.Helper()
	values := make([]string, len(paths))
	err := n.NS.Do(func() error {
		for i, path := range paths {
			data, err := os.ReadFile(filepath.Join("/proc/sys", path))
			if err != nil && !os.IsNotExist(err) {
				return err
			}
			values[i] = strings.TrimSpace(string(data))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// sh runs a script in the node and returns what it prints.
func (l *lab) sh(n *node.Node, script string) string {
	l.t.Helper()
	return l.shWith(n, script, nil)
}

func (l *lab) shWith(n *node.Node, script string, stdin []byte) string {
	l.t.Helper()
	r, err := n.Exec(agent.Cmd{
		Argv: []string{"/bin/sh", "-euc", script}, Stdin: stdin,
		Env: []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"},
	})
	if err != nil || r.Code != 0 {
		l.t.Fatalf("%s: %v, status %d: %s", script, err, r.Code, r.Stderr)
	}
	return string(r.Stdout)
}

func (l *lab) routes(n *node.Node) []string {
	l.t.Helper()
	return onlyIPv4(l.sh(n, "ip route show table all"))
}

// newWorldLab is newLab with an empty world and the given link names.
func newWorldLab(t *testing.T, o fakeaws.Options, name func(vpc.ENI) string) *lab {
	t.Helper()
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
	var err error
	if l.fabric, err = vpc.NewFabric(vpc.Options{World: l.world, LinkName: name}); err != nil {
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
