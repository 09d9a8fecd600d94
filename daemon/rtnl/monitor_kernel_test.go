package rtnl_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/rtnl"
	"cnictl/testenv"
	"cnictl/testenv/netns"
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

// watched opens a watch in a namespace as a file with deadlines.
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
	if err := f.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
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
			t.Fatalf("the overrun was not told: %v", err)
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
				t.Errorf("told of %+v", n)
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
		t.Errorf("told of %q", got)
	}
}
