package netns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Listen creates a stream listener ("tcp", "tcp4", "unix") inside the namespace.
func (n *NS) Listen(network, address string) (net.Listener, error) {
	var l net.Listener
	err := n.Do(func() (err error) {
		l, err = net.Listen(network, address)
		return err
	})
	return l, err
}

// ListenPacket creates a packet socket ("udp", "udp4") inside the namespace.
func (n *NS) ListenPacket(network, address string) (net.PacketConn, error) {
	var c net.PacketConn
	err := n.Do(func() (err error) {
		c, err = net.ListenPacket(network, address)
		return err
	})
	return c, err
}

// Dial connects from inside the namespace to a literal address. from, if valid, is the source
// address.
func (n *NS) Dial(ctx context.Context, network string, from netip.Addr, to netip.AddrPort) (net.Conn, error) {
	// Without the fallback race, which would create sockets on goroutines outside.
	d := net.Dialer{FallbackDelay: -1}
	if from.IsValid() {
		if strings.HasPrefix(network, "udp") {
			d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
		} else {
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
		}
	}
	var c net.Conn
	err := n.Do(func() (err error) {
		c, err = d.DialContext(ctx, network, to.String())
		return err
	})
	return c, err
}

// Echo is a server that answers each line with the source address it saw, followed by the
// line: "<addr>:<port> <line>\n".
type Echo struct {
	Addr netip.AddrPort

	close func() error
	wg    sync.WaitGroup
}

// EchoTCP serves lines over TCP at an address in the namespace; port 0 picks a free one.
func (n *NS) EchoTCP(at netip.AddrPort) (*Echo, error) {
	l, err := n.Listen("tcp", at.String())
	if err != nil {
		return nil, fmt.Errorf("echo server in %s: %w", n.Name, err)
	}
	var mu sync.Mutex // guards open and closed
	open := map[net.Conn]bool{}
	closed := false
	e := &Echo{Addr: l.Addr().(*net.TCPAddr).AddrPort()}
	e.close = func() error {
		mu.Lock()
		defer mu.Unlock()
		closed = true
		errs := []error{l.Close()}
		for c := range open {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
	e.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			mu.Lock()
			if closed {
				mu.Unlock()
				c.Close()
				return
			}
			open[c] = true
			e.wg.Go(func() {
				for in := bufio.NewScanner(c); in.Scan(); {
					if _, err := fmt.Fprintf(c, "%s %s\n", c.RemoteAddr(), in.Text()); err != nil {
						break
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if open[c] && !closed {
					delete(open, c)
					c.Close()
				}
			})
			mu.Unlock()
		}
	})
	return e, nil
}

// EchoUDP serves datagrams at an address in the namespace; port 0 picks a free one.
func (n *NS) EchoUDP(at netip.AddrPort) (*Echo, error) {
	c, err := n.ListenPacket("udp", at.String())
	if err != nil {
		return nil, fmt.Errorf("echo server in %s: %w", n.Name, err)
	}
	e := &Echo{Addr: c.LocalAddr().(*net.UDPAddr).AddrPort(), close: c.Close}
	e.wg.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			size, peer, err := c.ReadFrom(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				// If the reply cannot be sent, the peer misses it and reports that.
				_, _ = c.WriteTo(fmt.Appendf(nil, "%s %s\n", peer, strings.TrimSpace(string(buf[:size]))), peer)
			}
		}
	})
	return e, nil
}

// Close stops the server and waits for its goroutines.
func (e *Echo) Close() error {
	err := e.close()
	e.wg.Wait()
	return err
}

// AskEcho sends one line to an Echo server over "tcp" or "udp" from inside the
// namespace and returns the source address that the server saw.
func (n *NS) AskEcho(ctx context.Context, network string, from netip.Addr, to netip.AddrPort, timeout time.Duration) (netip.AddrPort, error) {
	return n.askEcho(ctx, network, from, to, timeout, nil)
}

// AskEchoAtOnce is AskEcho over TCP, but fails if a packet was retransmitted or the round
// trip took most or longer. The kernel measures both, so a slow machine does not matter.
func (n *NS) AskEchoAtOnce(ctx context.Context, from netip.Addr, to netip.AddrPort, timeout, most time.Duration) (netip.AddrPort, error) {
	return n.askEcho(ctx, "tcp", from, to, timeout, func(c net.Conn) error { return atOnce(c, most) })
}

// atOnce checks all packets of a TCP connection, including the handshake.
func atOnce(c net.Conn, most time.Duration) error {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return fmt.Errorf("%T is no TCP connection", c)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var info *unix.TCPInfo
	if e := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO) }); e != nil {
		return e
	}
	if err != nil {
		return err
	}
	if way := time.Duration(info.Rtt) * time.Microsecond; info.Total_retrans > 0 || way >= most {
		return fmt.Errorf("%d packets were sent again, the way there and back took %v", info.Total_retrans, way)
	}
	return nil
}

func (n *NS) askEcho(ctx context.Context, network string, from netip.Addr, to netip.AddrPort, timeout time.Duration, check func(net.Conn) error) (netip.AddrPort, error) {
	saw, err := n.exchange(ctx, network, from, to, timeout, check)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("ask %s echo server %s: %w", network, to, err)
	}
	return saw, nil
}

// greet sends a line until an answer comes or ctx ends. UDP loses packets; on a busy machine
// also those of the neighbour discovery that precedes the first one.
func greet(ctx context.Context, c net.Conn, network string) (string, error) {
	end, _ := ctx.Deadline()
	for {
		wait := end
		if network == "udp" && time.Until(end) > time.Second {
			wait = time.Now().Add(time.Second)
		}
		if err := c.SetDeadline(wait); err != nil {
			return "", err
		}
		if _, err := fmt.Fprintln(c, "hello"); err != nil {
			return "", err
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if errors.Is(err, os.ErrDeadlineExceeded) && wait.Before(end) {
			continue
		}
		return line, err
	}
}

func (n *NS) exchange(ctx context.Context, network string, from netip.Addr, to netip.AddrPort, timeout time.Duration, check func(net.Conn) error) (netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := n.Dial(ctx, network, from, to)
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer c.Close()
	line, err := greet(ctx, c, network)
	if err != nil {
		return netip.AddrPort{}, err
	}
	peer, said, _ := strings.Cut(strings.TrimSpace(line), " ")
	if said != "hello" {
		return netip.AddrPort{}, fmt.Errorf("answer %q is not an echo", line)
	}
	if check != nil {
		if err := check(c); err != nil {
			return netip.AddrPort{}, err
		}
	}
	return netip.ParseAddrPort(peer)
}
