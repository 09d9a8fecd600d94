package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/network/netns"
)

// RequireKernel skips the test unless the kernel (with its user-space programs)
// has every feature. A feature is a link type ("veth", "bridge", "vlan",
// "dummy", "ipvlan", "macvlan", "vrf", "vxlan", "ifb") or one of "iptables",
// "ip6tables", "nft". It implies RequireRoot. An unknown name fails the test.
//
// In a package whose TestMain calls MainOn, the tests run in a virtual machine if the
// machine's kernel lacks the feature.
func RequireKernel(t testing.TB, features ...string) {
	t.Helper()
	RequireRoot(t)
	for _, f := range features {
		probe, ok := kernelProbe(f)
		if !ok {
			t.Fatalf("testenv.RequireKernel: unknown feature %q", f)
		}
		// Probed each time: it takes a millisecond or two, and caching the answer would need
		// package state.
		if err := inThrowAwayNS(probe); err != nil {
			how := testCommand(t) + " on a kernel that has it"
			if refused := os.Getenv(guestRefusedVar); refused != "" {
				err, how = fmt.Errorf("%w; %s", err, refused), "make vm, and "+testCommand(t)
			}
			Missing(t, f, err.Error(), how)
		}
	}
}

// hasFeature reports whether the kernel has a feature, which it tries in a sandbox.
func hasFeature(feature string) bool {
	probe, known := kernelProbe(feature)
	return known && inThrowAwayNS(probe) == nil
}

func kernelProbe(feature string) (func() error, bool) {
	switch feature {
	case "iptables":
		return command("iptables", "-w", "-t", "nat", "-S"), true
	case "ip6tables":
		return command("ip6tables", "-w", "-t", "nat", "-S"), true
	case "nft":
		return command("nft", "add table ip probe; add chain ip probe c { type nat hook prerouting priority -90; }"), true
	}
	if slices.Contains([]string{"veth", "bridge", "vlan", "dummy", "ipvlan", "macvlan", "vrf", "vxlan", "ifb"}, feature) {
		return func() error { return probeLink(feature) }, true
	}
	return nil, false
}

// probeLink creates a link of a type. Types that need a parent link get a veth end.
func probeLink(kind string) error {
	base := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "base0"}, PeerName: "base1"}
	if err := netlink.LinkAdd(base); err != nil {
		return fmt.Errorf("link type veth: %w", err)
	}
	if kind == "veth" {
		return nil
	}
	parent, err := netlink.LinkByName("base0")
	if err != nil {
		return fmt.Errorf("link type veth: %w", err)
	}
	attrs := netlink.LinkAttrs{Name: "probe0"}
	if slices.Contains([]string{"vlan", "ipvlan", "macvlan"}, kind) {
		attrs.ParentIndex = parent.Attrs().Index
	}
	var link netlink.Link = &netlink.GenericLink{LinkAttrs: attrs, LinkType: kind}
	switch kind {
	case "vlan":
		link = &netlink.Vlan{LinkAttrs: attrs, VlanId: 3}
	case "vrf":
		link = &netlink.Vrf{LinkAttrs: attrs, Table: 10}
	case "vxlan":
		link = &netlink.Vxlan{LinkAttrs: attrs, VxlanId: 3}
	case "ipvlan":
		link = &netlink.IPVlan{LinkAttrs: attrs}
	case "macvlan":
		link = &netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}
	}
	if err := netlink.LinkAdd(link); err != nil {
		return fmt.Errorf("link type %s: %w", kind, err)
	}
	return nil
}

func command(name string, args ...string) func() error {
	return func() error {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
		}
		return nil
	}
}

// inThrowAwayNS runs f on a thread in a network namespace that disappears with the thread.
func inThrowAwayNS(f func() error) error {
	return netns.Discard(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make network namespace: %w", err)
		}
		return f()
	})
}
