package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/network/netns"
	"cnictl/testenv/node/agent"
)

// KernelState is the node's network state as printed by the usual programs.
type KernelState struct {
	Rules    string // ip rule
	Rules6   string // ip -6 rule
	Routes   string // ip route show table all
	Links    string // ip -d addr
	IPTables string // iptables-save
	NFT      string // nft list ruleset
}

// KernelState reads the node's network state, for tests that compare it and to print when
// a test fails.
func (n *Node) KernelState() (KernelState, error) {
	var s KernelState
	for _, c := range []struct {
		into *string
		argv []string
	}{
		{&s.Rules, []string{"ip", "rule"}},
		{&s.Rules6, []string{"ip", "-6", "rule"}},
		{&s.Routes, []string{"ip", "route", "show", "table", "all"}},
		{&s.Links, []string{"ip", "-d", "addr"}},
		{&s.IPTables, []string{"iptables-save"}},
		{&s.NFT, []string{"nft", "list", "ruleset"}},
	} {
		path, err := lookPath(c.argv[0])
		if err != nil {
			return s, fmt.Errorf("read kernel state: %w", err)
		}
		r, err := n.agent.Run(agent.Cmd{
			Argv: append([]string{path}, c.argv[1:]...), Env: []string{"PATH=" + os.Getenv("PATH")},
		})
		if err != nil {
			return s, fmt.Errorf("read kernel state: %w", err)
		}
		if r.Code != 0 {
			return s, fmt.Errorf("read kernel state: %v: exit status %d: %s", c.argv, r.Code, r.Stderr)
		}
		*c.into = string(r.Stdout)
	}
	return s, nil
}

func lookPath(program string) (string, error) {
	// iptables and nft are in /usr/sbin, which an ordinary user's PATH may lack.
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
		path := filepath.Join(dir, program)
		if unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("find program %s: %w", program, os.ErrNotExist)
}

// podRules are the priorities of the rules that the plugin installs per pod.
var podRules = map[int]bool{10: true, 512: true, 1536: true}

// Leftovers lists what pods left behind: their rules, routes, links, namespaces, and
// allocations in the checkpoint. It returns nil on a node without pods. The kernel
// removes a namespace's links shortly after the namespace, so the check is repeated until
// nothing is left or the context ends.
func (n *Node) Leftovers(ctx context.Context) ([]string, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := n.leftovers()
		if err != nil {
			return nil, fmt.Errorf("look for leftovers on node %s: %w", n.Name, err)
		}
		if len(left) == 0 {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return left, nil
		case <-tick.C:
		}
	}
}

func (n *Node) leftovers() ([]string, error) {
	var left []string
	for _, find := range []func() ([]string, error){n.leftRules, n.leftRoutes, n.leftLinks, n.leftNetns, n.leftAllocations} {
		found, err := find()
		if err != nil {
			return nil, err
		}
		left = append(left, found...)
	}
	return left, nil
}

// families are the address families of pods.
var families = []int{unix.AF_INET, unix.AF_INET6}

func (n *Node) leftRules() ([]string, error) {
	var left []string
	for _, family := range families {
		rules, err := netns.Dump(func() ([]netlink.Rule, error) { return n.nl.RuleList(family) })
		if err != nil {
			return nil, fmt.Errorf("list rules: %w", err)
		}
		for _, r := range rules {
			if podRules[r.Priority] {
				left = append(left, fmt.Sprintf("rule %d: from %v to %v lookup %d", r.Priority, r.Src, r.Dst, r.Table))
			}
		}
	}
	return left, nil
}

// leftRoutes finds routes over pods' host links. The kernel removes a link's routes with the link.
func (n *Node) leftRoutes() ([]string, error) {
	links, err := n.links()
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	var left []string
	for _, family := range families {
		routes, err := netns.Dump(func() ([]netlink.Route, error) {
			return n.nl.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		})
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		for _, r := range routes {
			if name := names[r.LinkIndex]; isPodLink(name) && !kernels(r) {
				left = append(left, fmt.Sprintf("route %v dev %s table %d", r.Dst, name, r.Table))
			}
		}
	}
	return left, nil
}

// kernels reports whether the kernel itself added the route: with IPv6 it gives every link
// routes to link-local and multicast addresses.
func kernels(r netlink.Route) bool {
	return r.Dst != nil && (r.Dst.IP.IsLinkLocalUnicast() || r.Dst.IP.IsMulticast()) && r.Dst.IP.To4() == nil
}

func (n *Node) leftLinks() ([]string, error) {
	links, err := n.links()
	if err != nil {
		return nil, err
	}
	var left []string
	for _, l := range links {
		if isPodLink(l.Attrs().Name) {
			left = append(left, "link "+l.Attrs().Name)
		}
	}
	return left, nil
}

// isPodLink recognises the host end of a pod's veth, or a branch ENI's device, by its name.
func isPodLink(name string) bool {
	return (strings.HasPrefix(name, "eni") || strings.HasPrefix(name, "vlan")) && len(name) > len("vlan")
}

func (n *Node) leftNetns() ([]string, error) {
	dir, err := n.agent.Open(netns.Dir, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list network namespaces: %w", err)
	}
	var left []string
	for _, name := range names {
		left = append(left, "network namespace "+name)
	}
	return left, nil
}

// Allocation is one entry of the daemon's checkpoint.
type Allocation struct {
	ContainerID string     `json:"containerID"`
	IfName      string     `json:"ifName"`
	IPv4        netip.Addr `json:"ipv4"`
	IPv6        netip.Addr `json:"ipv6"`
}

// Address is the pod's address of either family.
func (a Allocation) Address() netip.Addr {
	if a.IPv4.IsValid() {
		return a.IPv4
	}
	return a.IPv6
}

// Allocations reads the daemon's checkpoint. It returns none if the file does not exist.
func (n *Node) Allocations() ([]Allocation, error) {
	f, err := n.agent.Open(Checkpoint, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	var file struct {
		Allocations []Allocation `json:"allocations"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("read %s: %w", Checkpoint, err)
	}
	return file.Allocations, nil
}

func (n *Node) leftAllocations() ([]string, error) {
	allocations, err := n.Allocations()
	if err != nil {
		return nil, err
	}
	var left []string
	for _, a := range allocations {
		left = append(left, fmt.Sprintf("allocation of %v to container %.12s", a.Address(), a.ContainerID))
	}
	return left, nil
}

// links lists the node's links.
func (n *Node) links() ([]netlink.Link, error) {
	links, err := netns.Dump(n.nl.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	return links, nil
}
