package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// programs are measured while they print their version. grpc-health-probe fails without
// arguments, but only after its start.
var programs = []agent.Cmd{
	{Argv: []string{"aws-cni"}, Env: []string{"CNI_COMMAND=VERSION"}},
	{Argv: []string{"egress-cni"}, Env: []string{"CNI_COMMAND=VERSION"}},
	{Argv: []string{"grpc-health-probe"}},
	{Argv: []string{"cnictl", "--version"}},
	{Argv: []string{"aws-k8s-agent", "--version"}},
}

// programStart measures the start of each program, on a node with nothing but the floor.
func (r *run) programStart() {
	var lines [][]any
	for _, cmd := range programs {
		name, path := cmd.Argv[0], filepath.Join(r.bin, cmd.Argv[0])
		exec := func(argv0 string, env ...string) agent.Result {
			c := cmd
			c.Argv, c.Env = append([]string{argv0}, cmd.Argv[1:]...), append(env, cmd.Env...)
			return must(r.lab.floor.node.Exec(c))
		}
		var walls, faults []time.Duration
		least, packages := time.Hour, 0 // of package initialisation
		peak := int64(1 << 62)          // the least of several: it varies with scheduling
		for range r.part(50) {
			res := exec(path)
			walls, faults = append(walls, res.Wall), append(faults, time.Duration(res.MinFault))
			sum, n := initTime(exec(path, "GODEBUG=inittrace=1").Stderr)
			least, packages = min(least, sum), n
		}
		measured := peakVar + "=" + strings.Join(append([]string{path}, cmd.Argv[1:]...), " ")
		for range 5 {
			peak = min(peak, readPeak(exec(filepath.Join(r.bin, "floor"), measured).Stderr))
		}
		lines = append(lines, []any{name, median(walls), int64(median(faults)), fmt.Sprintf("%.3f", milliseconds(least)), packages,
			fmt.Sprintf("%.1f", float64(peak)/1e6), fmt.Sprintf("%.1f", float64(must(os.Stat(path)).Size())/1e6)})
	}
	r.grid("Start of each program (aws-cni: CNI_COMMAND=VERSION, must stay below 400 page faults)",
		"program|wall p50 ms|page faults|package init ms|packages|peak memory MB|binary MB", lines...)
}

// initTime adds up lines like "init os @0.40 ms, 0.012 ms clock, 416 bytes, 9 allocs".
func initTime(trace []byte) (sum time.Duration, packages int) {
	for line := range bytes.Lines(trace) {
		var name string
		var at, took float64
		if _, err := fmt.Sscanf(string(line), "init %s @%f ms, %f ms clock", &name, &at, &took); err == nil {
			sum += time.Duration(took * float64(time.Millisecond))
			packages++
		}
	}
	if packages == 0 {
		check(fmt.Errorf("no trace of package initialisation in %q", trace))
	}
	return sum, packages
}

// inTurns runs a command for each contender's pods, one at a time, with the contenders taking
// turns. The first are warm-up and don't count.
func (r *run) inTurns(list []*contender, pods map[*contender][]*node.Pod, warmUp int, verb string) results {
	const window = 5
	out, before := results{}, map[*contender]time.Duration{}
	for i := range pods[list[0]] {
		r.turns(list, i, func(c *contender) {
			into := out.of(c)
			if i < warmUp {
				into = &samples{}
			}
			r.command(c, pods[c][i], verb, into)
		})
		for _, c := range list {
			if done := i + 1 - warmUp; done >= 0 && done%window == 0 {
				if done > 0 && c.daemon != 0 {
					out.of(c).daemon = append(out.of(c).daemon, (c.used()-before[c])/window)
				}
				before[c] = c.used()
			}
		}
	}
	return out
}

func (r *run) sequential() {
	const warmUp = 5
	l, list, n, pods := r.lab, r.lab.sequence(), r.part(r.rounds), map[*contender][]*node.Pod{}
	for _, c := range list {
		pods[c] = c.pods(warmUp + n)
	}
	phase := func(verb string) results {
		out := r.inTurns(list, pods, warmUp, verb)
		var lines [][]any
		for _, c := range list {
			s := out.of(c)
			lines = append(lines, []any{c.name, s.wall, s.cpu, s.daemon, int64(median(s.faults)), len(s.failed)})
		}
		r.grid(fmt.Sprintf("%s, one pod at a time, %d pods, ms (the daemon's CPU: means of 5 in a row)", verb, n),
			"contender|wall p50|p90|p99|plugin CPU p50|p90|p99|daemon CPU p50|p90|p99|page faults|failed", lines...)
		return out
	}
	adds, dels := phase("ADD"), phase("DEL")
	for _, c := range list {
		r.remove(c, pods[c])
	}
	var lines [][]any
	for _, row := range []struct {
		of, to *contender
		aim    string
	}{
		{l.ours, l.floor, "1.30"}, {l.ours, l.reference, "0.40, must 0.58"}, {l.floor, l.reference, "0.33"},
		{l.pluginOnly, l.floor, ""}, {l.pluginOnly, l.reference, ""}, {l.deployed, l.reference, "0.60 (CPU)"},
		{l.ours6, l.ours, "no wait for DAD"},
	} {
		line := []any{row.of.name + " / " + row.to.name}
		for _, m := range []results{adds, dels} {
			a, b := m.of(row.of), m.of(row.to)
			line = append(line, ratio(median(a.wall), median(b.wall)), ratio(median(a.cpu)+a.mean(), median(b.cpu)+b.mean()))
		}
		lines = append(lines, append(line, row.aim))
	}
	r.grid("Ratios of the medians", "|ADD wall|ADD CPU|DEL wall|DEL CPU|aim (ADD)", lines...)
	r.peaks(list)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// peaks measures the memory of an ADD: the minimum over several pods.
func (r *run) peaks(list []*contender) {
	var lines [][]any
	for _, c := range list {
		pods, least := c.pods(5), int64(1<<62)
		c.peak = filepath.Join(r.bin, "floor")
		for _, p := range pods {
			least = min(least, must(c.run(p, "ADD")).MaxRSS)
		}
		c.peak = ""
		r.clear(c, pods, 1)
		lines = append(lines, []any{c.name, fmt.Sprintf("%.1f", float64(least)/1e6)})
	}
	r.grid("Memory of the largest process of an ADD, MB (upstream's plugin: 17.5; aim 0.35 of it)", "contender|peak", lines...)
}

// parallel adds pods, width at a time, in blocks, with the contenders taking turns.
func (r *run) parallel(blocks, perBlock, width int, aim string) {
	out := results{}
	for range blocks {
		for _, c := range r.lab.all() {
			pods, before := c.pods(perBlock), c.used()
			r.burst(c, pods, width, "ADD", out.of(c))
			out.of(c).daemon = append(out.of(c).daemon, (c.used()-before)/time.Duration(perBlock))
			r.clear(c, pods, width)
		}
	}
	rate := func(s *samples) float64 { return float64(len(s.wall)) / s.took.Seconds() }
	floor := out.of(r.lab.floor)
	var lines [][]any
	for _, c := range r.lab.all() {
		s := out.of(c)
		lines = append(lines, []any{c.name, fmt.Sprintf("%.0f", rate(s)), rate(s) / rate(floor), s.wall,
			ratio(frame.Quantile(s.wall, 0.99), frame.Quantile(floor.wall, 0.99)), s.cpu, s.mean(), len(s.failed)})
	}
	r.grid(fmt.Sprintf("%d pods, %d at a time (aims: %s, no failed ADD)", blocks*perBlock, width, aim),
		"contender|ADD/s|of floor|wall p50 ms|p90|p99|p99 of floor|plugin CPU p50|p90|p99|daemon CPU mean|failed", lines...)
}

// crowd adds pods one by one until there are many, and compares the ADDs around the tenth pod with
// the last ones.
func (r *run) crowd() {
	const window = 19 // the tenth pod with nine on either side
	many, list, pods := max(r.part(500), 80), []*contender{r.lab.floor, r.lab.ours}, map[*contender][]*node.Pod{}
	for _, c := range list {
		pods[c] = c.pods(many)
	}
	out := r.inTurns(list, pods, 0, "ADD")
	var lines [][]any
	for _, c := range list {
		r.clear(c, pods[c], 4)
		wall := out.of(c).wall
		few, full := median(wall[:min(window, len(wall))]), median(wall[max(0, len(wall)-window):])
		lines = append(lines, []any{c.name, few, full, ratio(full, few), len(out.of(c).failed)})
	}
	r.grid(fmt.Sprintf("ADD on a node that fills up: around pod 10 and the last before pod %d, wall p50 ms (aim 1.05, must 1.15)", many),
		fmt.Sprintf("contender|pod 10|pod %d|ratio|failed", many), lines...)
}

// pairs adds a pod and deletes it again, n times per contender, with the contenders taking turns.
func (r *run) pairs(list []*contender, n int, adds, dels results) {
	before := map[*contender]time.Duration{}
	for _, c := range list {
		before[c] = c.used()
	}
	for i := range n {
		r.turns(list, i, func(c *contender) {
			p := c.pods(1)
			r.command(c, p[0], "ADD", adds.of(c))
			r.command(c, p[0], "DEL", dels.of(c))
			r.remove(c, p)
		})
	}
	for _, c := range list {
		dels.of(c).daemon = append(dels.of(c).daemon, (c.used()-before[c])/time.Duration(2*n))
	}
}

func (r *run) compared(title, head string, names [2]string, adds, dels [2]*samples) {
	var lines [][]any
	for i, name := range names {
		a, d := adds[i], dels[i]
		lines = append(lines, []any{name, median(a.wall), frame.Quantile(a.wall, 0.99), median(d.wall), frame.Quantile(d.wall, 0.99), d.mean(),
			len(a.failed) + len(d.failed)})
	}
	title = fmt.Sprintf("%d pods added and deleted in turn, %s", r.shortLived(), title)
	r.grid(title, head+"|ADD p50 ms|ADD p99|DEL p50|DEL p99|daemon CPU per command|failed", append(lines,
		[]any{"ratio", ratio(median(adds[0].wall), median(adds[1].wall)), "", ratio(median(dels[0].wall), median(dels[1].wall)), "", "", ""})...)
}

// shortLived is how many pods are added and deleted in turn: all of them are in cooldown at the end.
func (r *run) shortLived() int { return min(r.part(r.rounds), poolSize/2-20) }

// connections compares a daemon that deletes the connections of ended pods with one that has no
// cooldown and therefore does not, with an empty and with a large table on the node.
func (r *run) connections() {
	with := r.lab.served("passes", "passes", poolSize, map[string]string{"IP_COOLDOWN_PERIOD": "30"})
	without := r.lab.served("no passes", "unpassed", poolSize, nil)
	for _, entries := range []int{0, r.part(200_000)} {
		check(with.node.NS.Do(func() error { return track(entries) }))
		adds, dels := results{}, results{}
		r.pairs([]*contender{with, without}, r.shortLived(), adds, dels)
		r.compared(fmt.Sprintf("%d connections in the node's table (aim: p50 at most 0.1 ms more)", entries), "daemon",
			[2]string{"passes", "no passes"}, [2]*samples{adds.of(with), adds.of(without)}, [2]*samples{dels.of(with), dels.of(without)})
	}
}

// track makes connection tracking entries that concern no pod.
func track(entries int) error {
	h, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer h.Close()
	server := net.IPv4(10, 250, 0, 1)
	for i := range entries {
		client, port := net.IPv4(10, 200+byte(i>>16), byte(i>>8), byte(i)), uint16(1024+i%60000)
		flow := &netlink.ConntrackFlow{
			FamilyType: unix.AF_INET, TimeOut: 3600, ProtoInfo: &netlink.ProtoInfoTCP{State: unix.BPF_TCP_ESTABLISHED},
			Forward: netlink.IPTuple{SrcIP: client, DstIP: server, SrcPort: port, DstPort: 80, Protocol: unix.IPPROTO_TCP},
			Reverse: netlink.IPTuple{SrcIP: server, DstIP: client, SrcPort: 80, DstPort: port, Protocol: unix.IPPROTO_TCP},
		}
		if err := h.ConntrackCreate(netlink.ConntrackTable, unix.AF_INET, flow); err != nil {
			return fmt.Errorf("make connection tracking entry %d: %w", i, err)
		}
	}
	return nil
}

// flood compares ADD and DEL of a quiet daemon with those of one whose metrics a pod attacks, in
// turns on one node. The attacker works on the same CPUs.
func (r *run) flood() {
	const turns, unfinished = 5, 300
	n, c := max(r.shortLived()/turns, 1), r.lab.served("flooded", "flooded", poolSize, nil)
	adds, dels := [2]results{{}, {}}, [2]results{{}, {}}
	for range turns {
		r.pairs([]*contender{c}, n, adds[1], dels[1])
		ctx, cancel := context.WithCancel(r.ctx)
		var attack sync.WaitGroup
		attack.Go(func() { c.node.NS.Flood(ctx, netip.MustParseAddrPort("127.0.0.1:61678"), unfinished) })
		err := frame.Attempt(func() { r.pairs([]*contender{c}, n, adds[0], dels[0]) })
		cancel()
		attack.Wait()
		check(err)
	}
	r.compared(fmt.Sprintf("while %d unfinished requests attack the metrics (aim: ratio below 2)", unfinished), "metrics",
		[2]string{"attacked", "quiet"}, [2]*samples{adds[0].of(c), adds[1].of(c)}, [2]*samples{dels[0].of(c), dels[1].of(c)})
}

const rpFilter = ">/proc/sys/net/ipv4/conf/$1/rp_filter echo "

// sourceChecks are ways to drop what a pod sends with another source than its own address. ON and
// OFF are shell commands in the node, with the pod's host link as $1 and its address as $2. The
// link's rp_filter is 0 before ON. The link has no address, so the kernel treats 2, which asks only
// for some way back, like 1 (net/ipv4/fib_frontend.c, __fib_validate_source, no_addr).
var sourceChecks = []struct{ name, on, off string }{
	{"none", ":", ":"},
	{"rp_filter 2 of the pod's link, systemd's default", rpFilter + "2", ":"},
	{"rp_filter 1 of the pod's link", rpFilter + "1", ":"},
	{"iptables, match rpfilter, one rule", "iptables -t raw -I PREROUTING -i eni+ -m rpfilter --invert -j DROP",
		"iptables -t raw -D PREROUTING -i eni+ -m rpfilter --invert -j DROP"},
	{"nftables, fib of link and source, one rule", `nft 'table ip spoof { chain c {
		type filter hook prerouting priority raw; iifname "eni*" fib saddr . iif oif missing drop; }; }'`, "nft delete table ip spoof"},
	{"nftables, set of links and addresses", `nft "table ip spoof { set pods { type ifname . ipv4_addr; elements = { $1 . $2 }; }; chain c {
		type filter hook prerouting priority raw; iifname \"eni*\" iifname . ip saddr != @pods drop; }; }"`, "nft delete table ip spoof"},
}

// spoofing measures what a check of the source address adds to a packet from one pod to another on
// the node: the processor time of the sender, in whose context the kernel takes the packet to the
// receiver's socket.
func (r *run) spoofing() {
	c, stranger := r.lab.served("spoofed", "spoofed", 10, nil), netip.MustParseAddr("203.0.113.9")
	from, to := must(c.node.AddPod(node.PodSpec{Name: "from"})), must(c.node.AddPod(node.PodSpec{Name: "to"}))
	var added struct{ Interfaces []struct{ Name string } } // the first is the host link
	check(json.Unmarshal(from.Result, &added))
	shell := func(script string) {
		argv := []string{"/bin/sh", "-euc", script, "sh", added.Interfaces[0].Name, from.IP.String()}
		if res := must(c.node.Exec(agent.Cmd{Argv: argv, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}})); res.Code != 0 {
			check(fmt.Errorf("%s: %s", script, res.Stderr))
		}
	}
	shell("ip -n " + from.Netns.Name + " address add 203.0.113.9/32 dev lo")
	// open makes a socket of the receiver and one of the sender for each source address.
	open := func(sources ...netip.Addr) (sink net.PacketConn, conns []net.Conn) {
		sink = must(to.Netns.ListenPacket("udp", netip.AddrPortFrom(to.IP, 0).String()))
		check(sink.SetReadDeadline(time.Now().Add(time.Minute)))
		for _, source := range sources {
			conns = append(conns, must(from.Netns.Dial(r.ctx, "udp", source, sink.LocalAddr().(*net.UDPAddr).AddrPort())))
		}
		return sink, conns
	}
	_, sender := open(from.IP)
	rounds, packets, payload := r.part(15), r.part(20_000), make([]byte, 64)
	least, drops := make([]time.Duration, len(sourceChecks)), make([]bool, len(sourceChecks))
	runtime.LockOSThread() // its time is measured
	defer runtime.UnlockOSThread()
	for range rounds {
		for i, way := range sourceChecks {
			check(r.ctx.Err())
			shell(rpFilter + "0")
			shell(way.on)
			before := frame.Clock(unix.CLOCK_THREAD_CPUTIME_ID)
			for range packets {
				must(sender[0].Write(payload))
			}
			if took := (frame.Clock(unix.CLOCK_THREAD_CPUTIME_ID) - before) / time.Duration(packets); least[i] == 0 || took < least[i] {
				least[i] = took
			}
			sink, conns := open(stranger, from.IP)
			for _, conn := range conns { // what arrives first shows whether the stranger's did
				must(conn.Write(payload))
				check(conn.Close())
			}
			_, first, err := sink.ReadFrom(make([]byte, len(payload)))
			check(errors.Join(err, sink.Close()))
			drops[i] = first.(*net.UDPAddr).AddrPort().Addr() != stranger
			shell(way.off)
		}
	}
	var lines [][]any
	for i, way := range sourceChecks {
		lines = append(lines, []any{way.name, fmt.Sprintf("%.2f µs", float64(least[i].Nanoseconds())/1e3), ratio(least[i], least[0]), drops[i]})
	}
	r.grid(fmt.Sprintf("packets of 64 bytes from one pod to another, %d times %d", rounds, packets),
		"check of the source|processor time per packet|ratio|drops a stranger's address", lines...)
}
