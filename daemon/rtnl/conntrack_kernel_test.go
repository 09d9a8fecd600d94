package rtnl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// entry is a connection tracking entry of a TCP connection that is being opened.
type entry struct {
	src, dst netip.AddrPort
	replySrc netip.Addr // behind DNAT: the pod; else dst
	zone     uint16
}

func (e entry) reply() netip.AddrPort {
	if e.replySrc.IsValid() {
		return netip.AddrPortFrom(e.replySrc, e.dst.Port())
	}
	return e.dst
}

// addFlows makes entries in the namespace of the calling thread.
func addFlows(entries []entry) (err error) {
	c, err := open(unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var b Batch
	for chunk := range slices.Chunk(entries, 100) {
		b.Reset()
		for _, e := range chunk {
			b.begin("add connection", ctNew, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
			b.nfgen(Family(e.src.Addr()))
			b.attr(ctaTupleOrig|unix.NLA_F_NESTED, tcpTuple(e.src, e.dst))
			b.attr(ctaTupleReply|unix.NLA_F_NESTED, tcpTuple(e.reply(), e.src))
			b.attr(7, binary.BigEndian.AppendUint32(nil, 3600)) // CTA_TIMEOUT
			// CTA_PROTOINFO, CTA_PROTOINFO_TCP, CTA_PROTOINFO_TCP_STATE: SYN_SENT
			b.attr(4|unix.NLA_F_NESTED, []byte{12, 0, 1, 0x80, 5, 0, 1, 0, 1, 0, 0, 0})
			if e.zone != 0 {
				b.attr(ctaZone, binary.BigEndian.AppendUint16(nil, e.zone))
			}
			b.end()
		}
		if err := c.Do(&b); err != nil {
			return err
		}
	}
	return nil
}

func tcpTuple(src, dst netip.AddrPort) []byte {
	b := Batch{buf: tuple(src.Addr(), dst.Addr())}
	b.buf = b.buf[:len(b.buf)-12] // the protocol that tuple wrote
	proto := b.nest(2 | unix.NLA_F_NESTED)
	b.attr(1, []byte{unix.IPPROTO_TCP})
	b.attr(2, binary.BigEndian.AppendUint16(nil, src.Port()))
	b.attr(3, binary.BigEndian.AppendUint16(nil, dst.Port()))
	b.endNest(proto)
	return b.buf
}

// flowsLeft counts the entries of the calling thread's namespace.
func flowsLeft() (n uint32, err error) {
	c, err := openFlows()
	if err != nil {
		return 0, err
	}
	n, err = c.flowCount()
	return n, errors.Join(err, c.Close())
}

// TestDeleteFlows on the real table: what goes is exactly what names one of the addresses, in
// any place, family and zone; more than one send deletes.
func TestDeleteFlows(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "iptables")
	at := netip.MustParseAddrPort
	pod, pod6 := netip.MustParseAddr("10.0.0.10"), netip.MustParseAddr("2001:db8::10")
	goes := []entry{
		{src: at("10.0.0.10:1000"), dst: at("10.0.0.1:80")},
		{src: at("10.0.0.1:1000"), dst: at("10.0.0.10:80")},
		{src: at("10.0.0.1:1001"), dst: at("172.20.0.10:80"), replySrc: pod},
		{src: at("10.0.0.1:1001"), dst: at("172.20.0.10:80"), replySrc: pod, zone: 7},
		{src: at("[2001:db8::1]:1000"), dst: at("[fd00::10]:80"), replySrc: pod6},
		{src: at("[2001:db8::10]:1000"), dst: at("[2001:db8::1]:80")},
	}
	stays := []entry{
		{src: at("10.0.0.11:1000"), dst: at("10.0.0.1:80")},
		{src: at("10.0.0.1:1002"), dst: at("172.20.0.10:80"), replySrc: netip.MustParseAddr("10.0.0.11")},
		{src: at("[2001:db8::11]:1000"), dst: at("[2001:db8::1]:80")},
	}
	for i := range 3 * flowBatch {
		goes = append(goes, entry{src: netip.AddrPortFrom(pod, uint16(2000+i)), dst: at("10.0.0.1:80")})
	}
	of := func(a netip.Addr) bool { return a == pod || a == pod6 }
	err := netns.New(t).Do(func() error {
		if n, err := DeleteFlows(t.Context(), of); err != nil || n != 0 {
			return fmt.Errorf("empty table: %d deleted, %w", n, err)
		}
		if err := addFlows(slices.Concat(goes, stays)); err != nil {
			return err
		}
		if n, err := DeleteFlows(t.Context(), of); err != nil || n != len(goes) {
			return fmt.Errorf("%d deleted of %d, %w", n, len(goes), err)
		}
		left, err := flowsLeft()
		if left != uint32(len(stays)) {
			t.Errorf("%d entries left, want %d", left, len(stays))
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, endedErr := DeleteFlows(ended, of); !errors.Is(endedErr, context.Canceled) {
			t.Errorf("after its end: %v", endedErr)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFlowDeleter_Refused: an entry that the kernel refuses to delete, such as an offloaded one of some
// kernels (EBUSY), is reported, and those before and after it go. Here it refuses one whose tuple
// has no protocol.
func TestFlowDeleter_Refused(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "iptables")
	all := func(netip.Addr) bool { return true }
	pod, peer := netip.MustParseAddr("10.0.0.10"), netip.MustParseAddrPort("10.0.0.1:80")
	var list []entry
	for i := range 3*flowBatch + 5 {
		list = append(list, entry{src: netip.AddrPortFrom(pod, uint16(2000+i)), dst: peer})
	}
	err := netns.New(t).Do(func() error {
		if err := addFlows(list); err != nil {
			return err
		}
		c, err := openFlows()
		if err != nil {
			return err
		}
		defer c.Close()
		d := flowDeleter{conn: c}
		for i, e := range list {
			if i%flowBatch == 3 {
				whole := tuple(pod, peer.Addr())
				if err := d.take(flow(unix.AF_INET, whole[:len(whole)-12], whole, false), all); err != nil {
					return fmt.Errorf("a refused entry ends the pass: %w", err)
				}
			}
			var b Batch // without an ID, which would have to be the entry's
			b.nfgen(unix.AF_INET)
			b.attr(ctaTupleOrig|unix.NLA_F_NESTED, tcpTuple(e.src, e.dst))
			b.attr(ctaTupleReply|unix.NLA_F_NESTED, tcpTuple(e.reply(), e.src))
			if err := d.take(b.buf, all); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
		if err := d.flush(); err != nil {
			return err
		}
		left, err := flowsLeft()
		if refused := (*Error)(nil); left != 0 || d.deleted != len(list) || !errors.As(d.refused, &refused) || refused.Index != 3 {
			t.Errorf("%d entries left, %d of %d deleted, refused %v", left, d.deleted, len(list), d.refused)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// BenchmarkDeleteFlows measures a pass over tables of several sizes that deletes nothing. The processor
// time includes the kernel's.
func BenchmarkDeleteFlows(b *testing.B) {
	testenv.RequireKernel(b, "iptables")
	for _, size := range []int{0, 1, 1000, 20_000, 200_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			if text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_max"); err == nil {
				if most, _ := strconv.Atoi(string(text[:max(0, len(text)-1)])); most < size {
					b.Skipf("skip: the kernel takes %d entries", most)
				}
			}
			err := netns.New(b).Do(func() error {
				entries := make([]entry, size)
				for i := range entries {
					src := netip.AddrFrom4([4]byte{10, 1 + byte(i>>16), byte(i >> 8), byte(i)})
					entries[i] = entry{src: netip.AddrPortFrom(src, uint16(1024+i%60000)), dst: netip.MustParseAddrPort("172.20.0.10:80"), replySrc: netip.MustParseAddr("10.0.0.11")}
				}
				if err := addFlows(entries); err != nil {
					return err
				}
				due := map[netip.Addr]bool{}
				for i := range 50 {
					due[netip.AddrFrom4([4]byte{10, 0, 9, byte(i)})] = true
				}
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					if n, err := DeleteFlows(b.Context(), func(a netip.Addr) bool { return due[a] }); n != 0 || err != nil {
						return fmt.Errorf("%d deleted, %w", n, err)
					}
				}
				b.ReportMetric(float64((cpuTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// cpuTime is the processor time of the thread, which Do locks.
func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
