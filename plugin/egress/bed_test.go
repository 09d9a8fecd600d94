package egress_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"

	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// programs are egress-cni and the real host-local, either from make test (CNI_TEST_BIN) or built
// once for the package.
var programs = sync.OnceValues(func() (struct{ egress, cniPath string }, error) {
	var p struct{ egress, cniPath string }
	dir := os.Getenv("CNI_TEST_BIN")
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "egress-cni"); err != nil {
			return p, err
		}
	}
	p.egress, p.cniPath = filepath.Join(dir, "egress-cni"), filepath.Join(dir, "reference")
	return p, errors.Join(
		build(p.egress, "cnictl/cmd/egress-cni", "."),
		buildHostLocal(filepath.Join(p.cniPath, "host-local")))
})

// buildHostLocal needs a module that the tests themselves do not.
func buildHostLocal(bin string) error {
	err := build(bin, "github.com/containernetworking/plugins/plugins/ipam/host-local", "../../tools/reference")
	if err != nil {
		return fmt.Errorf("%w\nthe test sandbox has no network: run make reference once, which fetches the modules", err)
	}
	return nil
}

func build(bin, pkg, module string) error {
	if _, err := os.Stat(bin); err == nil {
		return nil
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, pkg)
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// backends are the iptables backends, as Debian names the programs.
var backends = []string{"legacy", "nft"}

// bed is a node with a network outside it.
type bed struct {
	t             *testing.T
	v6            bool
	node, outside *netns.NS
	nodeIP, out   netip.Addr
	dataDir       string
	subnet        string
	path          string // PATH of plugin runs
	cniPath       string
	egress        string
	log           string
}

func newBed(t *testing.T, backend string, v6 bool) *bed {
	t.Helper()
	testenv.RequireRoot(t)
	p, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := &bed{
		t: t, v6: v6, node: netns.New(t), outside: netns.New(t), egress: p.egress, cniPath: p.cniPath,
		dataDir: filepath.Join(dir, "ipam"), subnet: "169.254.172.0/22", path: filepath.Join(dir, "bin"), log: filepath.Join(dir, "egress.log"),
		nodeIP: netip.MustParseAddr("198.51.100.1"), out: netip.MustParseAddr("198.51.100.9"),
	}
	bits := 24
	if v6 {
		b.subnet, bits = "fd00::ac:00/118", 64
		b.nodeIP, b.out = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::9")
	}
	b.useBackend(backend)
	b.do(b.node, func() error {
		// Pods reach outside through the node.
		return errors.Join(os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0),
			join("ens5", b.outside, netip.PrefixFrom(b.nodeIP, bits)))
	})
	b.do(b.outside, func() error { return address("ens5", netip.PrefixFrom(b.out, bits)) })
	return b
}

// useBackend sets up a PATH in which iptables uses the given backend.
func (b *bed) useBackend(backend string) {
	b.t.Helper()
	if err := os.MkdirAll(b.path, 0o755); err != nil {
		b.t.Fatal(err)
	}
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		link := filepath.Join(b.path, name)
		_ = os.Remove(link)
		target, err := exec.LookPath("/usr/sbin/xtables-" + backend + "-multi")
		if err != nil {
			testenv.Missing(b.t, "root", err.Error(), "apt-get install iptables")
		}
		if err := os.Symlink(target, link); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bed) do(ns *netns.NS, f func() error) {
	b.t.Helper()
	if err := ns.Do(f); err != nil {
		b.t.Fatal(err)
	}
}

// join creates a link of the same name here and in another namespace, with an address on this end.
func join(name string, other *netns.NS, at netip.Prefix) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name, PeerNamespace: netlink.NsFd(other.FD())}); err != nil {
		return err
	}
	return address(name, at)
}

func address(name string, at netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(at.String())
	if err != nil {
		return err
	}
	if at.Addr().Is6() {
		a.Flags = 2 // IFA_F_NODAD
	}
	return errors.Join(netlink.LinkSetUp(link), netlink.AddrAdd(link, a))
}

// pod is one sandbox. Its link eth0 leads nowhere.
type pod struct {
	b  *bed
	ns *netns.NS
	id string
}

func (b *bed) pod(id string) *pod {
	b.t.Helper()
	p := &pod{b: b, ns: netns.New(b.t), id: id}
	b.do(p.ns, func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "eth0"
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "peer0"}); err != nil {
			return err
		}
		own := "2001:db8:9::5/128" // of the cluster's family, not the egress family
		if b.v6 {
			own = "10.0.0.5/32"
		}
		return address("eth0", netip.MustParsePrefix(own))
	})
	return p
}

// stdin returns the configuration. changes are pairs of old and new text.
func (b *bed) stdin(changes ...string) string {
	dst := "0.0.0.0/0"
	if b.v6 {
		dst = "::/0"
	}
	conf := `{"cniVersion":"1.1.0","name":"aws-cni","type":"egress-cni","mtu":"9001","enabled":"true","randomizeSNAT":"prng","nodeIP":"` + b.nodeIP.String() +
		`","ipam":{"type":"host-local","ranges":[[{"subnet":"` + b.subnet + `"}]],"routes":[{"dst":"` + dst + `"}],"dataDir":"` + b.dataDir +
		`"},"pluginLogFile":"` + b.log + `","pluginLogLevel":"DEBUG","prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"eni1"},{"name":"eth0","mac":"254","sandbox":"/n"},` +
		`{"name":"dummy1","mac":"0","sandbox":"0"}],"ips":[{"address":"10.0.0.5/32","interface":1}]}}`
	return strings.NewReplacer(changes...).Replace(conf)
}

const (
	isOn  = `"enabled":"true"`
	isOff = `"enabled":"false"`
)

// command returns a plugin run that has not started.
func (p *pod) command(ctx context.Context, verb, stdin string, change ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.b.egress)
	cmd.Env = append([]string{
		"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + p.id, "CNI_NETNS=" + p.ns.Path, "CNI_IFNAME=eth0", "CNI_PATH=/nonexistent:" + p.b.cniPath,
		"CNI_ARGS=IgnoreUnknown=1", "PATH=" + p.b.path,
	}, change...)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// try runs the plugin on the node.
func (p *pod) try(ctx context.Context, verb, stdin string, change ...string) (string, error) {
	cmd := p.command(ctx, verb, stdin, change...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := p.b.node.Do(cmd.Start) // the child runs in the network namespace of the thread that starts it
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s%s", verb, err, out.String(), errOut.String())
	}
	return out.String(), nil
}

func (p *pod) run(verb, stdin string, change ...string) string {
	p.b.t.Helper()
	out, err := p.try(p.b.t.Context(), verb, stdin, change...)
	if err != nil {
		p.b.t.Fatal(err)
	}
	return out
}

// fails runs the plugin and expects an error that contains every element of want.
func (p *pod) fails(verb, stdin string, want []string, change ...string) {
	p.b.t.Helper()
	out, err := p.try(p.b.t.Context(), verb, stdin, change...)
	if err == nil {
		p.b.t.Fatalf("%s succeeds: %s", verb, out)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			p.b.t.Errorf("%s says %s\nwithout %q", verb, out, w)
		}
	}
}

// saved returns our part of the nat table of the egress family.
func (b *bed) saved() string {
	b.t.Helper()
	name := "iptables-save"
	if b.v6 {
		name = "ip6tables-save"
	}
	cmd := exec.CommandContext(b.t.Context(), filepath.Join(b.path, name), "-t", "nat")
	var out bytes.Buffer
	cmd.Stdout = &out
	b.do(b.node, cmd.Start)
	if err := cmd.Wait(); err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "CNI-E") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// leases returns the addresses that host-local has allocated.
func (b *bed) leases() (out []string) {
	b.t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.dataDir, "aws-cni"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := netip.ParseAddr(e.Name()); err == nil {
			out = append(out, e.Name())
		}
	}
	return out
}

// routes returns the node's routes to the pods' egress addresses.
func (b *bed) routes() (out []string) {
	b.t.Helper()
	fam, within := netlink.FAMILY_V4, netip.MustParsePrefix("169.254.172.0/22")
	if b.v6 {
		fam, within = netlink.FAMILY_V6, netip.MustParsePrefix("fd00::ac:0/118")
	}
	b.do(b.node, func() error {
		list, err := netns.Dump(func() ([]netlink.Route, error) { return netlink.RouteList(nil, fam) })
		for _, r := range list {
			if r.Dst == nil {
				continue
			}
			ip, _ := netip.AddrFromSlice(r.Dst.IP)
			if ones, bits := r.Dst.Mask.Size(); within.Contains(ip.Unmap()) && ones == bits {
				out = append(out, ip.Unmap().String())
			}
		}
		return err
	})
	slices.Sort(out)
	return out
}

// empty expects the node to have no egress state of any pod.
func (b *bed) empty() {
	b.t.Helper()
	if got := b.saved(); got != "" {
		b.t.Errorf("rules are left:\n%s", got)
	}
	if got := b.leases(); len(got) > 0 {
		b.t.Errorf("leases are left: %v", got)
	}
	if got := b.routes(); len(got) > 0 {
		b.t.Errorf("routes are left: %v", got)
	}
}

// links returns the names of the pod's links.
func (p *pod) links() (out []string) {
	p.b.t.Helper()
	p.b.do(p.ns, func() error {
		list, err := netns.Dump(netlink.LinkList)
		for _, l := range list {
			out = append(out, l.Attrs().Name)
		}
		return err
	})
	slices.Sort(out)
	return out
}
