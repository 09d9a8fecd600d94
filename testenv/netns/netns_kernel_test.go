package netns_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/netns"
)

func inode(t *testing.T, n *netns.NS) uint64 {
	t.Helper()
	ino, err := n.Inode()
	if err != nil {
		t.Fatal(err)
	}
	return ino
}

// here returns the inode of the calling thread's namespace.
func here() (uint64, error) {
	n, err := netns.Current()
	if err != nil {
		return 0, err
	}
	defer n.Close()
	return n.Inode()
}

func TestDo_RunsInsideAndNowhereElse(t *testing.T) {
	testenv.RequireRoot(t)
	t.Parallel()
	before, err := here()
	if err != nil {
		t.Fatal(err)
	}
	ns := netns.New(t)
	if inode(t, ns) == before {
		t.Fatal("the new namespace is the caller's own")
	}
	// Many at once, so that threads are reused while others are inside.
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			var inside uint64
			err := ns.Do(func() (err error) { inside, err = here(); return err })
			if err != nil || inside != inode(t, ns) {
				t.Errorf("inside Do: namespace %d, error %v; want %d", inside, err, inode(t, ns))
			}
			if after, err := here(); err != nil || after != before {
				t.Errorf("after Do: namespace %d, error %v; want %d", after, err, before)
			}
		})
	}
	wg.Wait()
}

func TestDiscard_NotOnTheFirstThread(t *testing.T) {
	// Not parallel: this goroutine visits all threads, including the first.
	for i := 0; i < 20_000 && unix.Gettid() != unix.Getpid(); i++ {
		runtime.Gosched()
	}
	for range 200 {
		err := netns.Discard(func() error {
			if unix.Gettid() == unix.Getpid() {
				return errors.New("on the first thread")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A namespace disappears when it is closed: nothing of the process stays in it, in
// particular not the first thread, which the runtime cannot end.
func TestClose_LeavesNoThreadBehind(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	t.Parallel()
	outer := netns.New(t)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			ns, err := netns.Create("")
			if err != nil {
				t.Error(err)
				return
			}
			err = outer.Do(func() error {
				attrs := netlink.NewLinkAttrs()
				attrs.Name = fmt.Sprintf("v%d", i)
				veth := netlink.NewVeth(attrs)
				veth.PeerName, veth.PeerNamespace = "peer", netlink.NsFd(ns.FD())
				return netlink.LinkAdd(veth)
			})
			if err := errors.Join(err, ns.Do(netns.LoopbackUp), ns.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// The kernel removes a veth with the namespace of its peer.
	testenv.EventuallyErr(t, "the end of the namespaces", func() error {
		var links []netlink.Link
		if err := outer.Do(func() (err error) { links, err = netns.Dump(netlink.LinkList); return err }); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(links, func(l netlink.Link) bool { return l.Type() == "veth" }) {
			return fmt.Errorf("%d links left", len(links))
		}
		return nil
	})
}

func TestDo_ReturnsTheFunctionsError(t *testing.T) {
	testenv.RequireRoot(t)
	t.Parallel()
	want := errors.New("from inside")
	if err := netns.New(t).Do(func() error { return want }); !errors.Is(err, want) {
		t.Fatalf("Do = %v, want %v", err, want)
	}
}

func TestDo_ClosedNamespaceIsAnError(t *testing.T) {
	testenv.RequireRoot(t)
	t.Parallel()
	ns, err := netns.Create("")
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ns.Do(func() error { return nil }); err == nil {
		t.Fatal("Do in a closed namespace succeeded")
	}
	if _, err := os.Stat(ns.Path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("path after Close: %v, want not to exist", err)
	}
}

func TestCreate_Names(t *testing.T) {
	testenv.RequireRoot(t)
	t.Parallel()
	ns, err := netns.Create("named-once")
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if ns.Path != netns.Dir+"/named-once" {
		t.Errorf("Path = %q", ns.Path)
	}
	if _, err := netns.Create("named-once"); !errors.Is(err, os.ErrExist) {
		t.Errorf("second Create of one name = %v, want ErrExist", err)
	}
	if _, err := netns.Create("../escape"); err == nil {
		t.Error("a name with a separator was accepted")
	}
	same, err := netns.FromPath(ns.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer same.Close()
	if inode(t, same) != inode(t, ns) {
		t.Error("FromPath opened another namespace")
	}
}

func TestNew_LoopbackIsUp(t *testing.T) {
	testenv.RequireRoot(t)
	t.Parallel()
	ns := netns.New(t)
	if err := ns.Ping(netip.Addr{}, netip.MustParseAddr("127.0.0.1"), 2*time.Minute); err != nil {
		t.Error(err)
	}
	if err := ns.Ping(netip.Addr{}, netip.MustParseAddr("::1"), 2*time.Minute); err != nil {
		t.Error(err)
	}
}

// joined creates two namespaces joined by a veth pair, 10.9.0.1 and 10.9.0.2.
func joined(t *testing.T) (a, b *netns.NS) {
	t.Helper()
	a, b = netns.New(t), netns.New(t)
	err := a.Do(func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "v0"}, PeerName: "v0", PeerNamespace: netlink.NsFd(b.FD())}
		return netlink.LinkAdd(veth)
	})
	if err != nil {
		t.Fatal(err)
	}
	for ns, addr := range map[*netns.NS]string{a: "10.9.0.1/24", b: "10.9.0.2/24"} {
		err := ns.Do(func() error {
			link, err := netlink.LinkByName("v0")
			if err != nil {
				return err
			}
			parsed, err := netlink.ParseAddr(addr)
			if err != nil {
				return err
			}
			return errors.Join(netlink.AddrAdd(link, parsed), netlink.LinkSetUp(link))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func TestPing(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	t.Parallel()
	a, b := joined(t)
	addrA, addrB := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.2")
	for range 3 {
		if err := a.Ping(netip.Addr{}, addrB, 2*time.Minute); err != nil {
			t.Error(err)
		}
		if err := netns.Ping(b, addrB, addrA, 2*time.Minute); err != nil {
			t.Error(err)
		}
	}
	if err := a.Ping(netip.Addr{}, netip.MustParseAddr("10.9.0.99"), 250*time.Millisecond); !errors.Is(err, netns.ErrNoAnswer) {
		t.Errorf("ping of a free address = %v, want ErrNoAnswer", err)
	}
	if err := a.Ping(netip.Addr{}, netip.MustParseAddr("192.0.2.1"), 250*time.Millisecond); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("ping without a route = %v, want ENETUNREACH", err)
	}
	if err := a.Ping(addrB, addrB, 250*time.Millisecond); !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("ping from a foreign address = %v, want EADDRNOTAVAIL", err)
	}
}

func TestEcho_ReportsTheSource(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	t.Parallel()
	a, b := joined(t)
	addrA := netip.MustParseAddr("10.9.0.1")
	at := netip.MustParseAddrPort("10.9.0.2:0")
	for network, serve := range map[string]func(netip.AddrPort) (*netns.Echo, error){"tcp": b.EchoTCP, "udp": b.EchoUDP} {
		echo, err := serve(at)
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []netip.Addr{{}, addrA} {
			saw, err := a.AskEcho(t.Context(), network, from, echo.Addr, 2*time.Minute)
			if err != nil || saw.Addr() != addrA {
				t.Errorf("%s echo saw %v, error %v; want %v", network, saw, err, addrA)
			}
		}
		if err := echo.Close(); err != nil {
			t.Error(err)
		}
		if _, err := a.AskEcho(t.Context(), network, addrA, echo.Addr, 250*time.Millisecond); err == nil {
			t.Errorf("%s echo answers after Close", network)
		}
	}
}

// TestAskEchoAtOnce: on any machine, an answer that needed a retransmission or took longer
// than allowed is an error.
func TestAskEchoAtOnce(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	t.Parallel()
	a, b := joined(t)
	echo, err := b.EchoTCP(netip.MustParseAddrPort("10.9.0.2:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	ask := func(most time.Duration) error {
		_, err := a.AskEchoAtOnce(t.Context(), netip.Addr{}, echo.Addr, 2*time.Minute, most)
		return err
	}
	if err := ask(time.Minute); err != nil {
		t.Error(err)
	}
	if err := ask(0); err == nil || !strings.Contains(err.Error(), "0 packets were sent again, the way there and back took ") {
		t.Errorf("no time at all is enough: %v", err)
	}
	err = b.Do(func() error {
		return exec.CommandContext(t.Context(), "iptables", strings.Fields("-A INPUT -p tcp --syn -m statistic --mode nth --every 2 --packet 0 -j DROP")...).Run()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(time.Minute); err == nil || !strings.Contains(err.Error(), ": 1 packets were sent again") {
		t.Errorf("the first packet is lost: %v", err)
	}
}
