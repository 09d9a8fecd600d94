package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/node/agent"
)

// sourceChecks are ways to drop what a pod sends with another source than its own address. ON and
// OFF are shell commands in the node, with the pod's host link as $1 and its address as $2. The
// link's rp_filter is 0 before ON. The link has no address, so the kernel treats 2, which asks only
// for some way back, like 1 (net/ipv4/fib_frontend.c, __fib_validate_source, no_addr).
var sourceChecks = []struct{ name, on, off string }{
	{"none", ":", ":"},
	{"rp_filter 2 of the pod's link, systemd's default", rpFilter + "2", ":"},
	{"rp_filter 1 of the pod's link", rpFilter + "1", ":"},
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
	{
		"nftables, set of links and addresses",
		`nft "table ip spoof { set pods { type ifname . ipv4_addr; elements = { $1 . $2 }; }; chain c {
			type filter hook prerouting priority raw; iifname \"eni*\" iifname . ip saddr != @pods drop; }; }"`,
		"nft delete table ip spoof",
	},
}

const rpFilter = ">/proc/sys/net/ipv4/conf/$1/rp_filter echo "

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
			if err := errors.Join(shell(rpFilter+"0"), shell(check.on), ctx.Err()); err != nil {
				return err
			}
			took, err := sendingCost(ctx, pods[0], at[0], to, r.scale(packets))
			if err != nil {
				return err
			}
			if least[i] == 0 || took < least[i] {
				least[i] = took
			}
			came, err := arrives(ctx, pods[0], at[0], stranger, sink)
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

// arrives reports whether a packet with a source that is not the pod's reaches the sink. Packets of
// the pod's own before and after it show when the kernel has dealt with those before them.
func arrives(ctx context.Context, p *pod, own, stranger netip.Addr, sink net.PacketConn) (bool, error) {
	to := sink.LocalAddr().(*net.UDPAddr).AddrPort()
	honest, err := p.netns.Dial(ctx, "udp", own, to)
	if err != nil {
		return false, err
	}
	defer honest.Close()
	spoofed, err := p.netns.Dial(ctx, "udp", stranger, to)
	if err != nil {
		return false, err
	}
	defer spoofed.Close()
	if _, err := received(honest, sink, "before"); err != nil { // and what the measurement left in the queue
		return false, err
	}
	if _, err := spoofed.Write([]byte("spoofed")); err != nil {
		return false, err
	}
	seen, err := received(honest, sink, "after")
	return seen["spoofed"], err
}

// received sends a text until the sink has it, and returns what the sink received up to it.
func received(from net.Conn, sink net.PacketConn, text string) (seen map[string]bool, _ error) {
	seen = map[string]bool{}
	buf := make([]byte, 1500)
	const attempts = 100
	for range attempts { // the queue may be full
		if _, err := from.Write([]byte(text)); err != nil {
			return nil, err
		}
		for !seen[text] {
			if err := sink.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
				return nil, err
			}
			n, _, err := sink.ReadFrom(buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return nil, err
			}
			seen[string(buf[:n])] = true
		}
		if seen[text] {
			return seen, nil
		}
	}
	return nil, fmt.Errorf("packets of a pod do not reach another one: %d of %q are lost", attempts, text)
}
