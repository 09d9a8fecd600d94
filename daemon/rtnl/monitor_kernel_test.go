package rtnl_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"cnictl/daemon/rtnl"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// script runs commands in a namespace.
func script(t *testing.T, ns *netns.NS, text string) {
	t.Helper()
	err := ns.Do(func() error {
		out, err := exec.Command("sh", "-euc", "PATH=$PATH:/usr/sbin:/sbin\n"+text).CombinedOutput()
		if err != nil {
			return errors.New(string(out) + err.Error())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// watched opens a watch in a namespace and wraps it in a file with deadlines.
func watched(t *testing.T, ns *netns.NS, open func() (int, error)) *os.File {
	t.Helper()
	var f *os.File
	if err := ns.Do(func() error {
		fd, err := open()
		f = os.NewFile(uintptr(fd), "watch")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestWatch(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	ns := netns.New(t)
	script(t, ns, `ip link add eth0 type veth peer name far; ip link set far up; ip link set eth0 up; ip addr add 10.0.0.10/24 dev eth0
ip route add 10.9.0.1 dev eth0 table 7; ip rule add priority 512 to 10.9.0.1 lookup main`)
	f := watched(t, ns, rtnl.Watch)
	script(t, ns, `ip rule del priority 512; ip route del 10.9.0.1 table 7; ip addr del 10.0.0.10/24 dev eth0
echo 2 > /proc/sys/net/ipv4/conf/eth0/rp_filter; ip link set eth0 down; ip link del eth0`)
	var kinds []rtnl.NoticeKind
	buf := make([]byte, 64<<10)
	for !slices.Contains(kinds, rtnl.NoticeNoLink) {
		n, err := f.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		if err := rtnl.Notices(buf[:n], func(n rtnl.Notice) { kinds = append(kinds, n.Kind) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []rtnl.NoticeKind{rtnl.NoticeNoRule, rtnl.NoticeNoRoute, rtnl.NoticeNoAddress, rtnl.NoticeSetting, rtnl.NoticeLink} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no notice of kind %d in %v", want, kinds)
		}
	}
}

// TestWatch_HeldBack: changes that every ADD makes do not wake the reader; replacements and
// removals do.
func TestWatch_HeldBack(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	ns := netns.New(t)
	script(t, ns, `ip link add eth0 type veth peer name far; ip link set far up; ip link set eth0 up`)
	f := watched(t, ns, rtnl.Watch)
	script(t, ns, `ip route add 10.9.0.1 dev eth0; ip -6 route add 2001:db8::1 dev eth0; ip rule add priority 512 to 10.9.0.1 lookup main
ip -6 rule add priority 512 to 2001:db8::1 lookup main; ip route add 10.9.1.0/24 dev eth0; ip route del 10.9.1.0/24
ip route add 10.9.0.2 dev eth0 table 7; ip route add 10.9.0.3 dev eth0 table 700; ip route add 10.9.0.3 dev eth0
ip route replace 10.9.0.1 dev far; ip rule add priority 0 from 10.9.0.4 lookup 7; ip route del 10.9.0.1; ip -6 route del 2001:db8::1; ip addr add 10.9.9.9/32 dev lo`)
	var got []string
	buf := make([]byte, 64<<10)
	for !slices.Contains(got, "address 10.9.9.9/32") {
		n, err := f.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		if err := rtnl.Notices(buf[:n], func(n rtnl.Notice) {
			switch n.Kind {
			case rtnl.NoticeRoute:
				got = append(got, fmt.Sprint("route ", n.Route.Dst, " in ", n.Route.Table))
			case rtnl.NoticeNoRoute:
				got = append(got, fmt.Sprint("no route ", n.Route.Dst))
			case rtnl.NoticeRule:
				got = append(got, fmt.Sprint("rule ", n.Rule.Priority))
			case rtnl.NoticeAddress:
				got = append(got, fmt.Sprint("address ", n.Address.Prefix))
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"route 10.9.0.2/32 in 7", "route 10.9.0.3/32 in 700", "route 10.9.0.1/32 in 254", "rule 0", "no route 10.9.0.1/32", "no route 2001:db8::1/128",
		"address 10.9.9.9/32",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

// TestGather: a reader is woken once, however many changes come, and again after it is
// armed.
func TestGather(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	ns := netns.New(t)
	var fd int
	if err := ns.Do(func() (err error) { fd, err = rtnl.Watch(); return err }); err != nil {
		t.Fatal(err)
	}
	g, err := rtnl.NewGather(fd)
	if err != nil {
		t.Fatal(err)
	}
	wakeup := os.NewFile(uintptr(g.FD()), "wakeup")
	defer func() {
		if err := errors.Join(wakeup.Close(), g.Close()); err != nil {
			t.Error(err)
		}
	}()
	wait, err := wakeup.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	for round := range 3 {
		if g.Woken() {
			t.Errorf("round %d: woken before anything is reported", round)
		}
		script(t, ns, "ip link set lo mtu 1400")
		if err := wait.Read(func(uintptr) bool { return g.Woken() }); err != nil {
			t.Fatal(err)
		}
		script(t, ns, "ip link set lo mtu 1500")
		if g.Woken() {
			t.Errorf("round %d: woken twice", round)
		}
		n := 0
		for {
			_, err := g.Read(buf)
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n < 2 {
			t.Errorf("round %d: %d notices", round, n)
		}
		if err := g.Arm(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWatch_Overrun(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	ns := netns.New(t)
	f := watched(t, ns, rtnl.Watch)
	script(t, ns, `ip link set lo up; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo "rule add priority $((i+2000)) lookup 9"; echo "rule del priority $((i+2000))"; done | ip -batch -
while i=$((i-1)); [ $i -gt 0 ]; do echo "link set lo mtu $((i+1000))"; done | ip -batch -`)
	buf := make([]byte, 64<<10)
	for {
		_, err := f.Read(buf)
		if errors.Is(err, unix.ENOBUFS) {
			return
		}
		if err != nil {
			t.Fatalf("the overrun was not reported: %v", err)
		}
	}
}

func TestWatchFilters(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "nft")
	ns := netns.New(t)
	script(t, ns, `nft add table ip aws-cni; nft add chain ip aws-cni snat-mark; nft add rule ip aws-cni snat-mark counter`)
	f := watched(t, ns, rtnl.WatchFilters)
	script(t, ns, `nft flush chain ip aws-cni snat-mark; nft delete table ip aws-cni`)
	var got []string
	buf := make([]byte, 64<<10)
	for !slices.Contains(got, "table") {
		n, err := f.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		if err := rtnl.FilterNotices(buf[:n], func(n rtnl.FilterNotice) {
			switch {
			case !n.Gone || n.IPv6 || string(n.Table) != "aws-cni":
				t.Errorf("reported %+v", n)
			case n.Rule:
				got = append(got, "rule of "+string(n.Chain))
			case len(n.Chain) > 0:
				got = append(got, "chain "+string(n.Chain))
			default:
				got = append(got, "table")
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, []string{"rule of snat-mark", "chain snat-mark", "table"}) {
		t.Errorf("reported %q", got)
	}
}
