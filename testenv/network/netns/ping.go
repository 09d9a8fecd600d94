package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNoAnswer means that no echo reply came in time.
var ErrNoAnswer = errors.New("no answer")

// pingInterval is the pause between two echo requests of one Ping.
const pingInterval = 100 * time.Millisecond

// Ping is ns.Ping as a function.
func Ping(ns *NS, from, to netip.Addr, timeout time.Duration) error {
	return ns.Ping(from, to, timeout)
}

// Ping sends ICMP echo requests to an address every 100 ms until one is answered
// or the time is over ([ErrNoAnswer]). from, if valid, is the source address. Ping
// needs no program and no settings in the namespace.
func (n *NS) Ping(from, to netip.Addr, timeout time.Duration) error {
	proto := protoV4
	if to.Is6() {
		proto = protoV6
	}
	if err := n.ping(proto, from, to, timeout); err != nil {
		if from.IsValid() {
			return fmt.Errorf("ping %s from %s: %w", to, from, err)
		}
		return fmt.Errorf("ping %s: %w", to, err)
	}
	return nil
}

// echoProto holds what differs between ICMP and ICMPv6.
type echoProto struct {
	family, proto  int
	request, reply byte
	ipHeader       bool // a raw socket delivers the IP header
}

var (
	protoV4 = echoProto{family: unix.AF_INET, proto: unix.IPPROTO_ICMP, request: 8, reply: 0, ipHeader: true}
	protoV6 = echoProto{family: unix.AF_INET6, proto: unix.IPPROTO_ICMPV6, request: 128, reply: 129}
)

func (n *NS) ping(p echoProto, from, to netip.Addr, timeout time.Duration) error {
	var fd int
	err := n.Do(func() (err error) {
		fd, err = unix.Socket(p.family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, p.proto)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if from.IsValid() {
		if err := unix.Bind(fd, sockaddr(from)); err != nil {
			return fmt.Errorf("bind: %w", err)
		}
	}

	// The socket's number separates the replies of concurrent pings in one process; the
	// process id separates those of different processes.
	id := uint16(os.Getpid()<<8 ^ fd)
	deadline := time.Now().Add(timeout)
	var lastErr error
	for seq := uint16(1); time.Now().Before(deadline); seq++ {
		if err := unix.Sendto(fd, p.echoRequest(id, seq), 0, sockaddr(to)); err != nil {
			lastErr = err // unreachable now; it may become reachable before the deadline
		}
		until := time.Now().Add(pingInterval)
		if until.After(deadline) {
			until = deadline
		}
		ok, err := p.awaitReply(fd, id, to, until)
		if ok {
			return nil
		}
		if err != nil {
			lastErr = err
		}
	}
	if lastErr != nil {
		return fmt.Errorf("%w within %v (%w)", ErrNoAnswer, timeout, lastErr)
	}
	return fmt.Errorf("%w within %v", ErrNoAnswer, timeout)
}

func (p echoProto) echoRequest(id, seq uint16) []byte {
	b := make([]byte, 8+16)
	b[0] = p.request
	binary.BigEndian.PutUint16(b[4:], id)
	binary.BigEndian.PutUint16(b[6:], seq)
	if p.family == unix.AF_INET { // for ICMPv6 the kernel fills it in
		binary.BigEndian.PutUint16(b[2:], checksum(b))
	}
	return b
}

func (p echoProto) awaitReply(fd int, id uint16, from netip.Addr, until time.Time) (bool, error) {
	buf := make([]byte, 1500)
	for {
		left := time.Until(until)
		if left <= 0 {
			return false, nil
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		ready, err := unix.Poll(fds, int(left.Milliseconds())+1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, err
		}
		if ready == 0 {
			continue
		}
		size, peer, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, err
		}
		if p.isReply(buf[:size], id) && addrOf(peer) == from.WithZone("") {
			return true, nil
		}
	}
}

func (p echoProto) isReply(b []byte, id uint16) bool {
	if p.ipHeader {
		if len(b) < 20 || len(b) < int(b[0]&0xf)*4 {
			return false
		}
		b = b[int(b[0]&0xf)*4:]
	}
	return len(b) >= 8 && b[0] == p.reply && binary.BigEndian.Uint16(b[4:]) == id
}

// checksum is the Internet checksum of RFC 1071.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func sockaddr(a netip.Addr) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Addr: a.As16()}
}

func addrOf(sa unix.Sockaddr) netip.Addr {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(sa.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(sa.Addr)
	}
	return netip.Addr{}
}
