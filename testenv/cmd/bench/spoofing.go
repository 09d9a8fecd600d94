package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/node/agent"
)

// sourceChecks are ways to drop what a pod sends with another source than its own address. ON and
// OFF are shell commands in the node, with the pod's host link as $1 and its address as $2.
var sourceChecks = []struct{ name, on, off string }{
	{"none", ":", ":"},
	{"rp_filter of the pod's link", "echo 1 >/proc/sys/net/ipv4/conf/$1/rp_filter", "echo 0 >/proc/sys/net/ipv4/conf/$1/rp_filter"},
	{
		"iptables, match rpfilter, one rule",
		"iptables -t raw -I PREROUTING -i eni+ -m rpfilter --invert -j DROP",
		"iptables -t raw -D PREROUTING -i eni+ -m rpfilter --invert -j DROP",
	},
	{
		"nftables, fib of link and source, one rule",
		`nft 'table ip spoof { chain c {
			type filter hook prerouting priority raw; iifname "eni*" fib saddr . iif oif missing drop; }; }'`,
		"nft delete table ip spoof",
	},
	{"nftables, set of links and addresses", `nft "table ip spoof { set pods { type ifname . ipv4_addr; elements = { $1 . $2 }; };
		chain c { type filter hook prerouting priority raw; iifname \"eni*\" iifname . ip saddr != @pods drop; }; }"`,
		"nft delete table ip spoof"},
}

// spoofing measures what a check of the source address adds to a packet from one pod to another on
// the node: the processor time of the sender, in whose context the kernel takes the packet to the
// receiver's socket.
func (r *session) spoofing(ctx context.Context) error {
	c, err := r.join(ctx, r.bin, "spoofed", false, warm(10, nil))
	if err != nil {
		return err
	}
	if err := r.waitWarm(ctx, c, 10); err != nil {
		return err
	}
	pods, err := c.newPods(2)
	if err != nil {
		return err
	}
	var at [2]netip.Addr
	var link string
	for i, p := range pods {
		if _, err := c.run(p, "ADD"); err != nil {
			return err
		}
		name, ip, err := wiring(p.result)
		if err != nil {
			return err
		}
		if at[i] = ip; i == 0 {
			link = name
		}
	}
	sink, err := pods[1].netns.ListenPacket("udp", netip.AddrPortFrom(at[1], 0).String())
	if err != nil {
		return err
	}
	defer sink.Close()
	to := sink.LocalAddr().(*net.UDPAddr).AddrPort()
	shell := func(script string) error {
		result, err := c.node.Run(agent.Cmd{
			Argv: []string{"/bin/sh", "-euc", script, "sh", link, at[0].String()}, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
		})
		if err == nil && result.Code != 0 {
			err = fmt.Errorf("%s: %s", script, result.Stderr)
		}
		return err
	}
	stranger := netip.MustParseAddr("203.0.113.9")
	if err := pods[0].netns.Do(func() error { return addAddress(stranger) }); err != nil {
		return err
	}

	const rounds, packets = 15, 20_000
	least, drops := make([]time.Duration, len(sourceChecks)), make([]bool, len(sourceChecks))
	for range r.scale(rounds) {
		for i, check := range sourceChecks {
			if err := errors.Join(shell(check.on), ctx.Err()); err != nil {
				return err
			}
			took, err := sendingCost(ctx, pods[0], at[0], to, r.scale(packets))
			if err != nil {
				return err
			}
			if least[i] == 0 || took < least[i] {
				least[i] = took
			}
			came, err := arrives(ctx, pods[0], stranger, sink)
			if err != nil {
				return err
			}
			drops[i] = !came
			if err := shell(check.off); err != nil {
				return err
			}
		}
	}
	r.section("packets of 64 bytes from one pod to another, %d times %d", r.scale(rounds), r.scale(packets))
	lines := []string{"check of the source\tprocessor time per packet\tratio\tdrops a stranger's address"}
	for i, check := range sourceChecks {
		cost := fmt.Sprintf("%.2f µs", float64(least[i].Nanoseconds())/1e3)
		lines = append(lines, strings.Join([]string{check.name, cost, ratio(least[i], least[0]), fmt.Sprint(drops[i])}, "\t"))
	}
	r.rows(lines...)
	return nil
}

// wiring returns a pod's host link and address from the result of its ADD.
func wiring(result json.RawMessage) (link string, ip netip.Addr, _ error) {
	var got struct {
		Interfaces []struct{ Name string }
		IPs        []struct{ Address netip.Prefix }
	}
	if err := json.Unmarshal(result, &got); err != nil {
		return "", ip, err
	}
	if len(got.Interfaces) == 0 || len(got.IPs) == 0 {
		return "", ip, fmt.Errorf("the result of ADD has no interface or address: %s", result)
	}
	return got.Interfaces[0].Name, got.IPs[0].Address.Addr(), nil
}

// addAddress adds an address to lo.
func addAddress(ip netip.Addr) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(32, 32)}})
}

// sendingCost returns the processor time of sending a packet.
func sendingCost(ctx context.Context, p *pod, from netip.Addr, to netip.AddrPort, n int) (time.Duration, error) {
	conn, err := p.netns.Dial(ctx, "udp", from, to)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	payload := make([]byte, 64)
	before, err := threadCPU()
	if err != nil {
		return 0, err
	}
	for range n {
		if _, err := conn.Write(payload); err != nil {
			return 0, err
		}
	}
	after, err := threadCPU()
	return (after - before) / time.Duration(n), err
}

func threadCPU() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano()), err
}

// arrives reports whether a packet with a source that is not the pod's reaches the sink.
func arrives(ctx context.Context, p *pod, from netip.Addr, sink net.PacketConn) (bool, error) {
	buf := make([]byte, 1500)
	for { // what the measurement left in the sink's queue
		if err := sink.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			return false, err
		}
		if _, _, err := sink.ReadFrom(buf); err != nil {
			break
		}
	}
	conn, err := p.netns.Dial(ctx, "udp", from, sink.LocalAddr().(*net.UDPAddr).AddrPort())
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("spoofed")); err != nil {
		return false, err
	}
	// The kernel has taken the packet to the socket, or dropped it, by now.
	if err := sink.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		return false, err
	}
	_, _, err = sink.ReadFrom(buf)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return false, nil
	}
	return err == nil, err
}
