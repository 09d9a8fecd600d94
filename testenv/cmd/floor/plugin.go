package main

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// Numbers of the objects, as for an ordinary pod on a secondary ENI.
const (
	mtu, podIndex, table = 9001, 2, 2
	ruleTo, ruleFrom     = 512, 1536
	firstIndex, indexes  = 1 << 20, 1<<24 - 1<<20
)

var gateway = netip.AddrFrom4([4]byte{169, 254, 1, 1})

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

// begin reads the input and asks the server for the address.
func begin(verb byte) (id string, address netip.Addr, host *rtnl.Conn) {
	buf := make([]byte, 4096)
	for n := 1; n > 0; {
		var err error
		n, err = unix.Read(0, buf)
		check(err)
	}
	id, _ = syscall.Getenv("CNI_CONTAINERID")
	address = ask(verb, id)
	host, err := rtnl.Open()
	check(err)
	return id, address, host
}

func add() {
	id, address, host := begin('A')
	path, _ := syscall.Getenv("CNI_NETNS")
	ns, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	check(err)
	near, far := identity(id)
	var b rtnl.Batch
	b.Veth(near, far, mtu, ns)
	check(host.Do(&b))
	pod, err := rtnl.OpenAndStay(ns)
	check(err)
	own := netip.PrefixFrom(address, 32)
	b.Reset()
	b.LinkUp(podIndex)
	b.RouteReplace(netstate.Route{Dst: netip.PrefixFrom(gateway, 32), Link: podIndex, Scope: netstate.OnLink})
	b.RouteAdd(netstate.Route{Gateway: gateway, Link: podIndex})
	b.AddrAdd(netstate.Address{Link: podIndex, Prefix: own})
	b.NeighAdd(netstate.Neighbour{Link: podIndex, IP: gateway, MAC: near.MAC})
	check(pod.Do(&b))
	b.Reset()
	b.RouteReplace(netstate.Route{Dst: own, Link: near.Index, Scope: netstate.OnLink})
	b.RuleAdd(netstate.Rule{Priority: ruleTo, To: own, Table: unix.RT_TABLE_MAIN})
	b.RuleAdd(netstate.Rule{Priority: ruleFrom, From: own, Table: table})
	check(host.Do(&b))
	_, err = unix.Write(1, []byte(`{"cniVersion":"0.4.0","ips":[{"version":"4","address":"`+address.String()+`/32"}],"dns":{}}`))
	check(err)
}

func del() {
	_, address, host := begin('D')
	own := netip.PrefixFrom(address, 32)
	var b rtnl.Batch
	b.RuleDel(netstate.Rule{Priority: ruleTo, To: own, Table: unix.RT_TABLE_MAIN})
	b.RuleDel(netstate.Rule{Priority: ruleFrom, From: own, Table: table})
	b.RouteDel(netstate.Route{Dst: own, Scope: netstate.OnLink})
	check(host.Do(&b))
}

// at is where the server listens in a node of the bench.
var at = unix.SockaddrUnix{Name: "/run/floor.sock"}

// serve answers one line per connection, one connection at a time: "A <id>" with a fresh
// address, "D <id>" with the address of that id.
func serve() {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(errors.Join(err, unix.Bind(fd, &at), unix.Listen(fd, 1024)))
	given := map[string]netip.Addr{}
	last := uint32(10<<24 | 100<<16 | 1)
	var buf [512]byte
	for {
		conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		check(err)
		if n, _ := unix.Read(conn, buf[:]); n > 2 {
			id := string(buf[2:n])
			if buf[0] == 'A' {
				last++
				given[id] = netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, last)))
			}
			_, _ = unix.Write(conn, []byte(given[id].String()+"\n"))
			if buf[0] == 'D' {
				delete(given, id)
			}
		}
		unix.Close(conn)
	}
}

// ask sends one line and returns the address in the reply.
func ask(verb byte, id string) netip.Addr {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(err)
	check(unix.Connect(fd, &at))
	_, err = unix.Write(fd, append(append(make([]byte, 0, 128), verb, ' '), id+"\n"...))
	check(err)
	var buf [64]byte
	n := 0
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		n, err = unix.Read(fd, buf[:])
	}
	check(err)
	address, err := netip.ParseAddr(strings.TrimSuffix(string(buf[:n]), "\n"))
	check(err)
	return address
}
