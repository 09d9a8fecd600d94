package hostnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// TestDeleteFlows_Reuse: a client on the node keeps sending SYNs to Services whose pods end.
// kube-proxy removes the pods' rules late, after the first pass, so that a SYN creates the
// entry again. When the addresses have new pods, none of these gets a SYN; without the passes, all
// do. Connection tracking, NAT and the packets are real, and so is what the keeper decides, on
// a clock of its own.
func TestDeleteFlows_Reuse(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name         string
		ipv6, passes bool
		rounds       int
	}{
		{"IPv4", false, true, 40}, {"IPv6", true, true, 4}, {"IPv4 without passes", false, false, 1}, {"IPv6 without passes", true, false, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			testenv.RequireKernel(t, "veth", "iptables", "ip6tables")
			l := newFlowsLab(t, row.ipv6)
			k := newFlowsKeeper(l, row.passes)
			reused := 0
			for range row.rounds {
				addrs := k.add()
				l.proxy(addrs)
				l.syns(phaseLiving)
				l.await(phaseLiving)
				k.end()
				l.syns(phaseEnded)
				l.unproxy()
				k.rest()
				for _, a := range k.add() {
					if slices.Contains(addrs, a) {
						reused++
					}
				}
				l.syns(phaseReused)
				if !row.passes {
					l.await(phaseReused) // otherwise the test would not see them
				} else if n := l.arrived(phaseReused); n > 0 {
					t.Fatalf("after %d reuses, %d SYNs to ended pods reach new pods", reused, n)
				}
				k.end()
				k.rest()
			}
			if want := row.rounds * flowsPods; reused != want {
				t.Errorf("%d addresses were used again, want %d", reused, want)
			}
			t.Logf("%d reuses, %d entries deleted in %d passes", reused, k.deleted, k.passed)
		})
	}
}

// flowsPods is the number of pods, each behind a Service of its own.
const flowsPods = 250

// Phases of a round, in which the client sends a SYN to each Service.
const (
	phaseLiving = iota + 1
	phaseEnded
	phaseReused
	phases
)

// flowsLab is a node between a client and its pods, each in a namespace: the pods' receives
// for all of them and never answers.
type flowsLab struct {
	t                  *testing.T
	ipv6               bool
	node, client, pods *netns.NS
	send, recv         int // raw socket of the client, packet socket of the pods
	marker             netip.Addr
	markers            int
	got                [phases]int
}

func newFlowsLab(t *testing.T, ipv6 bool) *flowsLab {
	l := &flowsLab{t: t, ipv6: ipv6, node: netns.New(t), client: netns.New(t), pods: netns.New(t), marker: netip.MustParseAddr("10.0.8.254")}
	if ipv6 {
		l.marker = netip.MustParseAddr("2001:db8:0:0:8::254")
	}
	for _, peer := range []*netns.NS{l.client, l.pods} {
		name := map[*netns.NS]string{l.client: "client", l.pods: "pods"}[peer]
		l.sh(l.node, "ip link add "+name+" type veth peer name eth0 netns "+fmt.Sprintf("/proc/self/fd/%d", 3), peer)
	}
	l.sh(l.node, `sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
ip addr add 10.0.2.1/24 dev client; ip addr add 2001:db8:2::1/64 dev client nodad; ip link set client up
ip addr add 169.254.9.1/30 dev pods; ip addr add fd00:9::1/64 dev pods nodad; ip link set pods up
ip route add 10.0.8.0/24 via 169.254.9.2; ip route add 2001:db8:0:0:8::/80 via fd00:9::2`, nil)
	l.sh(l.client, `ip addr add 10.0.2.2/24 dev eth0; ip addr add 2001:db8:2::2/64 dev eth0 nodad; ip link set eth0 up
ip route add default via 10.0.2.1; ip route add default via 2001:db8:2::1`, nil)
	l.sh(l.pods, `ip addr add 169.254.9.2/30 dev eth0; ip addr add fd00:9::2/64 dev eth0 nodad; ip link set eth0 up`, nil)
	family, ethertype := unix.AF_INET, uint16(unix.ETH_P_IP)
	if ipv6 {
		family, ethertype = unix.AF_INET6, unix.ETH_P_IPV6
	}
	l.send = l.socket(l.client, family, unix.SOCK_RAW, unix.IPPROTO_RAW)
	big := ethertype<<8 | ethertype>>8
	l.recv = l.socket(l.pods, unix.AF_PACKET, unix.SOCK_DGRAM, int(big))
	if err := unix.SetsockoptInt(l.recv, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20); err != nil {
		t.Fatal(err)
	}
	// With the last rule that needs it, connection tracking would end in the namespace.
	l.nat("-A PREROUTING -j KUBE-SERVICES\n-A OUTPUT -j KUBE-SERVICES\n-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE\n")
	l.arrived(phaseLiving) // the neighbours are known from here on
	return l
}

// sh runs a script in a namespace; another one is its descriptor 3.
func (l *flowsLab) sh(ns *netns.NS, script string, other *netns.NS) {
	l.t.Helper()
	err := ns.Do(func() error {
		cmd := exec.Command("sh", "-ec", script)
		if other != nil {
			cmd.ExtraFiles = append(cmd.ExtraFiles, other.File())
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", script, err, out)
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *flowsLab) socket(ns *netns.NS, family, kind, protocol int) (fd int) {
	l.t.Helper()
	err := ns.Do(func() (err error) {
		fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// service is the address of a Service.
func (l *flowsLab) service(i int) netip.Addr {
	if l.ipv6 {
		return netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x20, 14: 1, 15: byte(i)})
	}
	return netip.AddrFrom4([4]byte{172, 20, 1, byte(i)})
}

// nat applies lines to the node's table as kube-proxy does: chains that are declared are
// emptied, everything else stays.
func (l *flowsLab) nat(lines string) {
	l.t.Helper()
	program := "iptables-restore"
	if l.ipv6 {
		program = "ip6tables-restore"
	}
	l.sh(l.node, program+" -w --noflush <<'EOF'\n*nat\n:KUBE-SERVICES - [0:0]\n"+lines+"COMMIT\nEOF\n", nil)
}

// proxy writes the rules of the Services.
func (l *flowsLab) proxy(addrs []netip.Addr) {
	l.t.Helper()
	var chains, rules strings.Builder
	for i, a := range addrs {
		fmt.Fprintf(&chains, ":KUBE-SVC-%d - [0:0]\n:KUBE-SEP-%d - [0:0]\n", i, i)
		fmt.Fprintf(&rules, "-A KUBE-SERVICES -d %s -p tcp -m tcp --dport 80 -j KUBE-SVC-%d\n-A KUBE-SVC-%d -j KUBE-SEP-%d\n-A KUBE-SEP-%d -p tcp -m tcp -j DNAT --to-destination %s\n",
			l.service(i), i, i, i, i, netip.AddrPortFrom(a, 8080))
	}
	l.nat(chains.String() + rules.String())
}

// unproxy removes them.
func (l *flowsLab) unproxy() {
	l.t.Helper()
	var chains, gone strings.Builder
	for i := range flowsPods {
		fmt.Fprintf(&chains, ":KUBE-SVC-%d - [0:0]\n:KUBE-SEP-%d - [0:0]\n", i, i)
		fmt.Fprintf(&gone, "-X KUBE-SVC-%d\n-X KUBE-SEP-%d\n", i, i)
	}
	l.nat(chains.String() + gone.String())
}

// syns sends a SYN to every Service, from the same port in each phase, as a retransmission is.
func (l *flowsLab) syns(phase int) {
	l.t.Helper()
	for i := range flowsPods {
		l.sendTo(l.service(i), uint16(30000+i), phase)
	}
}

// await waits until all SYNs of a phase have reached the pods.
func (l *flowsLab) await(phase int) {
	l.t.Helper()
	n := 0
	for range 100 {
		if n += l.arrived(phase); n == flowsPods {
			return
		}
	}
	l.t.Fatalf("%d of %d SYNs reach the pods", n, flowsPods)
}

// arrived counts the SYNs of a phase that have reached the pods since it was last asked.
func (l *flowsLab) arrived(phase int) (arrived int) {
	l.t.Helper()
	l.markers++
	port := uint16(l.markers)
	buf := make([]byte, 2048)
	testenv.Eventually(l.t, "the packet after the SYNs", func() bool {
		l.sendTo(l.marker, port, phase) // behind them
		for range 10_000 {
			n, _, err := unix.Recvfrom(l.recv, buf, unix.MSG_DONTWAIT)
			if errors.Is(err, unix.EAGAIN) {
				ready := []unix.PollFd{{Fd: int32(l.recv), Events: unix.POLLIN}}
				if n, _ := unix.Poll(ready, 100); n > 0 {
					continue
				}
				return false // nothing for a while: it may have been lost while the neighbour was resolved
			}
			if err != nil {
				l.t.Fatal(err)
			}
			of, dst, from := l.read(buf[:n])
			switch {
			case of == 0 || of >= phases:
			case dst != l.marker:
				l.got[of]++
			case from == port:
				arrived, l.got[phase] = l.got[phase], 0
				return true
			}
		}
		return false
	})
	return arrived
}

// sendTo sends a SYN of a phase, which is in the packet's ID or flow label.
func (l *flowsLab) sendTo(dst netip.Addr, from uint16, phase int) {
	l.t.Helper()
	tcp := make([]byte, 20)
	binary.BigEndian.PutUint16(tcp, from)
	binary.BigEndian.PutUint16(tcp[2:], 80)
	binary.BigEndian.PutUint32(tcp[4:], 1_000_000)
	tcp[12], tcp[13] = 5<<4, 2 // SYN
	binary.BigEndian.PutUint16(tcp[14:], 65535)
	src, to := netip.MustParseAddr("10.0.2.2"), dst.AsSlice()
	if l.ipv6 {
		src = netip.MustParseAddr("2001:db8:2::2")
	}
	sum := uint32(unix.IPPROTO_TCP + len(tcp))
	for _, part := range [][]byte{src.AsSlice(), to, tcp} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(tcp[16:], ^uint16(sum))
	var err error
	if l.ipv6 {
		head := make([]byte, 40)
		binary.BigEndian.PutUint32(head, 6<<28|uint32(phase))
		binary.BigEndian.PutUint16(head[4:], uint16(len(tcp)))
		head[6], head[7] = unix.IPPROTO_TCP, 64
		copy(head[8:], src.AsSlice())
		copy(head[24:], to)
		err = unix.Sendto(l.send, append(head, tcp...), 0, &unix.SockaddrInet6{Addr: dst.As16()})
	} else {
		head := make([]byte, 20) // the kernel fills in length and checksum
		head[0], head[8], head[9] = 4<<4|5, 64, unix.IPPROTO_TCP
		binary.BigEndian.PutUint16(head[4:], uint16(phase))
		copy(head[12:], src.AsSlice())
		copy(head[16:], to)
		err = unix.Sendto(l.send, append(head, tcp...), 0, &unix.SockaddrInet4{Addr: dst.As4()})
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// read returns a SYN's phase, destination and source port; phase 0 is another packet.
func (l *flowsLab) read(p []byte) (phase int, dst netip.Addr, from uint16) {
	size, proto, at := 20, 9, 16
	if l.ipv6 {
		size, proto, at = 40, 6, 24
	}
	if len(p) < size+20 || p[proto] != unix.IPPROTO_TCP || p[size+13] != 2 {
		return 0, dst, 0
	}
	phase = int(binary.BigEndian.Uint16(p[4:]))
	if l.ipv6 {
		phase = int(binary.BigEndian.Uint32(p) & 0xfffff)
	}
	dst, _ = netip.AddrFromSlice(p[at:size])
	return phase, dst, binary.BigEndian.Uint16(p[size:])
}

// flowsKeeper is a keeper on its own clock whose passes are made in the lab's node.
type flowsKeeper struct {
	*keeper.Keeper
	keeper.Calls // of its tasks, which make no others than those below
	lab          *flowsLab
	works        bool
	clock        time.Time
	inbox        []keeper.Message
	tasks        []keeper.FlowsTask
	round        int
	pods         []string
	passed       int
	deleted      int
}

func newFlowsKeeper(l *flowsLab, works bool) *flowsKeeper {
	l.t.Helper()
	k := &flowsKeeper{lab: l, works: works, clock: time.Unix(1_790_000_000, 0)}
	eni := resync.Attached{ENI: ipam.ENI{ID: "eni-1", Primary: true, RouteTable: 254, PrimaryIP: netip.MustParseAddr("10.0.0.4")}}
	for i := range flowsPods {
		eni.CIDRs = append(eni.CIDRs, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 8, byte(i)}), 32))
	}
	policy := warmpool.Policy{Cooldown: 30 * time.Second, MaxPods: 1000}
	if l.ipv6 {
		eni.CIDRs = []netip.Prefix{netip.MustParsePrefix("2001:db8:0:0:8::/80")}
		policy.IPv6, policy.PrefixDelegation = true, true
	}
	k.Keeper = keeper.New(keeper.Options{
		Settings: keeper.Settings{Policy: policy, IPv6: l.ipv6, CheckpointPath: "ipam.json", VethPrefix: "eni", PrimaryENI: "eni-1"},
		Limits:   warmpool.Limits{IPv4PerENI: 256, ENIsByCard: []int{1}}, Outside: k, Jitter: func(d time.Duration) time.Duration { return d / 2 }, Now: k.clock,
	})
	if _, err := k.Restore(k.clock, keeper.Start{Usable: []resync.Attached{eni}}); err != nil {
		l.t.Fatal(err)
	}
	return k
}

func (k *flowsKeeper) Begin(t keeper.Task) {
	if f, ok := t.(keeper.FlowsTask); ok {
		k.tasks = append(k.tasks, f)
	}
}
func (k *flowsKeeper) Write(i keeper.Image)  { k.inbox = append(k.inbox, keeper.Committed{Gen: i.Gen}) }
func (k *flowsKeeper) Post(m keeper.Message) { k.inbox = append(k.inbox, m) }

func (k *flowsKeeper) Record(_ time.Time, e keeper.Event) {
	switch e := e.(type) {
	case keeper.FlowsDeleted:
		k.passed++
		k.deleted += e.Entries
	case keeper.FlowsKept:
		k.lab.t.Errorf("pass: %v", e.Err)
	case keeper.BookRefused:
		k.lab.t.Errorf("the book refused %T: %v", e.Event, e.Err)
	}
}

// DeleteFlows makes a pass in the node's namespace.
func (k *flowsKeeper) DeleteFlows(ctx context.Context, of func(netip.Addr) bool) (n int, err error) {
	if !k.works {
		return 0, nil
	}
	return n, k.lab.node.Do(func() (err error) {
		n, err = (&Host{}).DeleteFlows(ctx, of)
		return err
	})
}

// settle lets the keeper act until nothing is left to do at this time.
func (k *flowsKeeper) settle() {
	k.Step(k.clock)
	for len(k.inbox)+len(k.tasks) > 0 {
		inbox, tasks := k.inbox, k.tasks
		k.inbox, k.tasks = nil, nil
		for _, m := range inbox {
			k.Handle(k.clock, m)
		}
		for _, t := range tasks {
			keeper.Run(k.lab.t.Context(), k, t)
		}
		k.Step(k.clock)
	}
}

// add gives every address a pod.
func (k *flowsKeeper) add() (out []netip.Addr) {
	k.lab.t.Helper()
	k.round++
	for i := range flowsPods {
		id := fmt.Sprintf("pod-%d-%d", k.round, i)
		k.pods = append(k.pods, id)
		k.Handle(k.clock, &keeper.Add{
			Request: &cniwire.AddRequest{PodName: id, PodNamespace: "shop", ContainerID: id, IfName: "eth0", NetworkName: "aws-cni"},
			Arrived: k.clock, Deadline: k.clock,
			Reply: func(r *cniwire.AddReply) {
				if !r.Success {
					k.lab.t.Fatalf("ADD: %s: %s", r.Cause, r.Detail)
				}
				a, _ := netip.ParseAddr(r.Allocations[0].IPv4 + r.Allocations[0].IPv6)
				out = append(out, a)
			},
		})
	}
	k.settle()
	if len(out) != flowsPods {
		k.lab.t.Fatalf("%d of %d ADDs are answered", len(out), flowsPods)
	}
	return out
}

// end ends all pods.
func (k *flowsKeeper) end() {
	for _, id := range k.pods {
		k.Handle(k.clock, &keeper.Del{
			Request: &cniwire.DelRequest{PodName: id, PodNamespace: "shop", ContainerID: id, IfName: "eth0", NetworkName: "aws-cni"},
			Reply:   func(*cniwire.DelReply) {},
		})
	}
	k.pods = nil
	k.settle()
}

// rest moves the clock to the end of the cooldown.
func (k *flowsKeeper) rest() {
	for end := k.clock.Add(31 * time.Second); k.clock.Before(end); k.settle() {
		k.clock = k.NextWake(k.clock)
	}
}

// TestDeleteFlows_Denied: the error says what is missing.
func TestDeleteFlows_Denied(t *testing.T) {
	t.Parallel()
	for errno, want := range map[unix.Errno]string{
		unix.EPERM: "NET_ADMIN", unix.EINVAL: "nf_conntrack_netlink", unix.EPROTONOSUPPORT: "nf_conntrack_netlink", unix.ENOBUFS: "",
	} {
		if got := whyNoFlows(fmt.Errorf("list connections: %w", errno)); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%v: %q, want %q", errno, got, want)
		}
	}
}
