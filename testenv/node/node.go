package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/netns"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node/agent"
)

// Node is a running node. Its methods may be called from any goroutine.
type Node struct {
	Name       string
	InstanceID string
	Dir        string
	NS         *netns.NS   // the node's network namespace
	Primary    fakeaws.ENI // as at boot
	Link       string      // name of the primary ENI's link

	opts  Options
	agent *agent.Agent
	nl    *netlink.Handle
	log   *os.File // the agent's output

	mu      sync.Mutex // guards the fields below
	daemon  *daemon    // nil while not running
	starts  int        // daemons started so far
	pods    int        // sandboxes created so far
	stopped bool
}

// MaybeAgent runs the node's agent if the process was started as one, and then
// does not return. testenv.Main and testenv.Enter call it; other programs call it
// first in main.
func MaybeAgent() { agent.Maybe() }

// Start boots a node. The context bounds only the boot.
func Start(ctx context.Context, o Options) (*Node, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("start node: %w", err)
	}
	n := &Node{Name: o.Name, InstanceID: o.InstanceID, Dir: o.Dir, opts: o}
	if err := n.boot(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("boot node %s: %w", o.Name, err), n.Close())
	}
	return n, nil
}

func (n *Node) boot(ctx context.Context) error {
	primary, err := n.primaryENI()
	if err != nil {
		return err
	}
	n.Primary = primary
	if n.log, err = os.Create(filepath.Join(n.Dir, "agent.log")); err != nil {
		return err
	}
	if n.agent, err = agent.Start(ctx, n.Name, n.log); err != nil {
		return err
	}
	n.NS = n.agent.NS
	if err := n.coverHostDirectories(); err != nil {
		return err
	}
	if err := n.makeMounts(); err != nil {
		return fmt.Errorf("make the daemon's mounts: %w", err)
	}
	if n.ipv6() {
		if err := n.NS.Do(func() error { return writeSysctls(earlyIPv6Sysctls) }); err != nil {
			return err
		}
	}
	if err := n.opts.Fabric.Join(n.InstanceID, n.NS); err != nil {
		return err
	}
	if err := n.NS.Do(func() error { n.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); return err }); err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	if err := n.configurePrimary(); err != nil {
		return err
	}
	return n.NS.Do(func() error { return writeSysctls(n.sysctls()) })
}

// ipv6 reports whether the instance was launched with an IPv6 address.
func (n *Node) ipv6() bool { return len(n.Primary.IPv6s) > 0 }

func (n *Node) primaryENI() (fakeaws.ENI, error) {
	for _, e := range n.opts.World.ENIs() {
		if e.Attachment.InstanceID == n.InstanceID && e.Primary() {
			return e, nil
		}
	}
	return fakeaws.ENI{}, fmt.Errorf("instance %s has no primary ENI", n.InstanceID)
}

// coverHostDirectories mounts the node's directories over the machine's. The log directory
// is created if missing, because the doctor reads it there. The empty directory is all that
// a node leaves on the machine.
func (n *Node) coverHostDirectories() error {
	if err := os.MkdirAll(hostLogs, 0o755); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	for own, places := range n.opts.paths().covered() {
		for _, place := range places {
			err := n.agent.Bind(own, place)
			if err != nil && !errors.Is(err, unix.ENOENT) {
				return err
			}
		}
	}
	return nil
}

// configurePrimary does what DHCP does at boot.
func (n *Node) configurePrimary() error {
	subnet, ok := n.opts.World.Subnet(n.Primary.SubnetID)
	if !ok {
		return fmt.Errorf("subnet %s is not in the world", n.Primary.SubnetID)
	}
	link, err := n.linkByMAC(n.Primary.MAC)
	if err != nil {
		return err
	}
	n.Link = link.Attrs().Name
	address := netip.PrefixFrom(n.Primary.PrimaryIP, subnet.CIDR.Bits())
	if err := n.nl.AddrAdd(link, &netlink.Addr{IPNet: ipNet(address)}); err != nil {
		return fmt.Errorf("add address %s to %s: %w", address, n.Link, err)
	}
	if err := n.nl.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", n.Link, err)
	}
	err = n.nl.RouteAdd(&netlink.Route{
		Dst: ipNet(netip.MustParsePrefix("0.0.0.0/0")), Gw: vpc.Gateway(subnet.CIDR).AsSlice(),
		LinkIndex: link.Attrs().Index,
	})
	if err != nil {
		return fmt.Errorf("add default route: %w", err)
	}
	if n.ipv6() {
		return n.configurePrimaryIPv6(link)
	}
	return nil
}

// configurePrimaryIPv6 does what DHCPv6 and a router advertisement do at boot.
func (n *Node) configurePrimaryIPv6(link netlink.Link) error {
	address := netip.PrefixFrom(n.Primary.IPv6s[0], 128)
	if err := n.nl.AddrAdd(link, &netlink.Addr{IPNet: ipNet(address), Flags: unix.IFA_F_NODAD}); err != nil {
		return fmt.Errorf("add address %s to %s: %w", address, n.Link, err)
	}
	err := n.nl.RouteAdd(&netlink.Route{
		Dst: ipNet(netip.MustParsePrefix("::/0")), Gw: vpc.GatewayIPv6.AsSlice(), LinkIndex: link.Attrs().Index,
	})
	if err != nil {
		return fmt.Errorf("add IPv6 default route: %w", err)
	}
	return nil
}

func (n *Node) linkByMAC(mac string) (netlink.Link, error) {
	links, err := n.links()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if l.Attrs().HardwareAddr.String() == mac {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no link has MAC %s", mac)
}

// sysctls returns the settings that the AMI, kube-proxy and the init container make before
// the daemon starts (ip_forward is not set by the CNI), and those that a new namespace would
// copy from the machine.
func (n *Node) sysctls() []sysctl {
	list := []sysctl{
		{"net/ipv4/ip_forward", "1"},
		{"net/ipv4/conf/all/rp_filter", "0"},
		{"net/ipv4/conf/default/rp_filter", "2"}, // Amazon Linux 2023
		{"net/ipv4/conf/" + n.Link + "/rp_filter", "2"},
		{"net/ipv4/conf/all/send_redirects", "0"},
		{"net/ipv4/conf/" + n.Link + "/send_redirects", "0"},
	}
	if n.ipv6() {
		list = append(list, sysctl{"net/ipv6/conf/" + n.Link + "/accept_ra", "2"}, sysctl{"net/ipv6/conf/all/forwarding", "1"})
	}
	return list
}

// earlyIPv6Sysctls are set before any link exists. As on nodes that nodeadm configures,
// duplicate address detection is off: it would delay IPv6 on a new link by about a second.
var earlyIPv6Sysctls = []sysctl{
	{"net/ipv6/conf/all/disable_ipv6", "0"},
	{"net/ipv6/conf/default/disable_ipv6", "0"},
	{"net/ipv6/conf/default/accept_dad", "0"},
}

type sysctl struct{ name, value string }

func writeSysctls(list []sysctl) error {
	for _, s := range list {
		if err := os.WriteFile(filepath.Join("/proc/sys", s.name), []byte(s.value), 0); err != nil {
			return fmt.Errorf("set sysctl: %w", err)
		}
	}
	return nil
}

// Exec runs a program in the node and waits for it. The result holds its output,
// times and page faults, measured inside the node from before fork until wait returns.
func (n *Node) Exec(c agent.Cmd) (agent.Result, error) { return n.agent.Run(c) }

// Background starts a program in the node. It runs at most until the node ends.
func (n *Node) Background(c agent.Cmd, stdout, stderr *os.File) (pid int, err error) {
	return n.agent.Background(c, stdout, stderr)
}

// Open opens a file as the node sees it.
func (n *Node) Open(path string, flag int, mode os.FileMode) (*os.File, error) {
	return n.agent.Open(path, flag, mode)
}

// Dial connects from inside the node, to TCP addresses or to Unix sockets on its /run.
func (n *Node) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	return n.agent.Dial(network, address, timeout)
}

// Ping pings from the node itself.
func (n *Node) Ping(to netip.Addr, timeout time.Duration) error {
	return n.NS.Ping(netip.Addr{}, to, timeout)
}

// Close ends the node and everything in it. Repeated calls do nothing.
func (n *Node) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return nil
	}
	n.stopped = true
	var errs []error
	if n.nl != nil {
		n.nl.Close()
	}
	errs = append(errs, n.opts.Fabric.Leave(n.InstanceID))
	if n.agent != nil {
		errs = append(errs, n.agent.Close())
	}
	if n.daemon != nil {
		errs = append(errs, n.daemon.output.Close())
		n.daemon = nil
	}
	if n.log != nil {
		errs = append(errs, n.log.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close node %s: %w", n.Name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Agent returns the node's agent, to run other programs in the node, such as a container runtime's.
func (n *Node) Agent() *agent.Agent { return n.agent }

// MachineFindings are the codes of findings about the machine itself, which all test nodes share with the
// other tests: it may be busy, its disk nearly full, or its kernel without bpffs or a module.
var MachineFindings = []string{"obs/cpu", "boot/disk-full", "obs/kernel-module"}

// OfMachine reports whether a finding with this code is about the machine itself.
func OfMachine(code string) bool { return slices.Contains(MachineFindings, code) }
