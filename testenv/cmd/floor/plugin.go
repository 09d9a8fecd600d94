package main

import (
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// Numbers of the objects, as for an ordinary pod on a secondary ENI.
const (
	mtu        = 9001
	podIndex   = 2
	table      = 2
	ruleTo     = 512
	ruleFrom   = 1536
	firstIndex = 1 << 20
	indexes    = 1<<24 - 1<<20
)

var gateway = netip.AddrFrom4([4]byte{169, 254, 1, 1})

func readStdin() error {
	buf := make([]byte, 4096)
	for {
		n, err := unix.Read(0, buf)
		if err != nil || n == 0 {
			return err
		}
	}
}

// identity derives names, indexes and MACs from the container id (FNV-1a).
func identity(id string) (near, far netstate.End) {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	ifName, _ := syscall.Getenv("CNI_IFNAME")
	near = netstate.End{
		Name: "flr" + id[:min(len(id), 12)], Index: firstIndex + int32(h>>8%indexes),
		MAC: netstate.MAC{2, byte(h), byte(h >> 8), byte(h >> 16), byte(h >> 24), byte(h >> 32)},
	}
	far = netstate.End{Name: ifName, Index: podIndex, MAC: near.MAC}
	far.MAC[5]++
	return near, far
}

func add() error {
	if err := readStdin(); err != nil {
		return err
	}
	id, _ := syscall.Getenv("CNI_CONTAINERID")
	path, _ := syscall.Getenv("CNI_NETNS")
	address, err := ask('A', id)
	if err != nil {
		return err
	}
	ns, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	host, err := rtnl.Open()
	if err != nil {
		return err
	}
	near, far := identity(id)
	var b rtnl.Batch
	b.Veth(near, far, mtu, ns)
	if err := host.Do(&b); err != nil {
		return err
	}
	pod, err := rtnl.OpenAndStay(ns)
	if err != nil {
		return err
	}
	own := netip.PrefixFrom(address, 32)
	b.Reset()
	b.LinkUp(podIndex)
	b.RouteReplace(netstate.Route{Dst: netip.PrefixFrom(gateway, 32), Link: podIndex, Scope: netstate.OnLink})
	b.RouteAdd(netstate.Route{Gateway: gateway, Link: podIndex})
	b.AddrAdd(netstate.Address{Link: podIndex, Prefix: own})
	b.NeighAdd(netstate.Neighbour{Link: podIndex, IP: gateway, MAC: near.MAC})
	if err := pod.Do(&b); err != nil {
		return err
	}
	b.Reset()
	b.RouteReplace(netstate.Route{Dst: own, Link: near.Index, Scope: netstate.OnLink})
	b.RuleAdd(netstate.Rule{Priority: ruleTo, To: own, Table: unix.RT_TABLE_MAIN})
	b.RuleAdd(netstate.Rule{Priority: ruleFrom, From: own, Table: table})
	if err := host.Do(&b); err != nil {
		return err
	}
	return answer(address)
}

func answer(address netip.Addr) error {
	_, err := unix.Write(1, []byte(`{"cniVersion":"0.4.0","ips":[{"version":"4","address":"`+address.String()+`/32"}],"dns":{}}`))
	return err
}

func del() error {
	if err := readStdin(); err != nil {
		return err
	}
	id, _ := syscall.Getenv("CNI_CONTAINERID")
	address, err := ask('D', id)
	if err != nil {
		return err
	}
	host, err := rtnl.Open()
	if err != nil {
		return err
	}
	own := netip.PrefixFrom(address, 32)
	var b rtnl.Batch
	b.RuleDel(netstate.Rule{Priority: ruleTo, To: own, Table: unix.RT_TABLE_MAIN})
	b.RuleDel(netstate.Rule{Priority: ruleFrom, From: own, Table: table})
	b.RouteDel(netstate.Route{Dst: own, Scope: netstate.OnLink})
	return host.Do(&b)
}
