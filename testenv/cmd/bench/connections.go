package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/cmd/internal/figure"
)

// tracked is the size of a large connection tracking table.
const tracked = 200_000

// connections compares a daemon that deletes the connections of ended pods with one that has no
// cooldown and therefore does not, with an empty and with a large table on the node. Each pod is
// added and deleted in turn, so that passes are made all the time.
func (r *session) connections(ctx context.Context) error {
	n := min(r.scale(r.rounds), poolSize/2-20) // all of them are in cooldown at the end
	var list []*contender
	for _, row := range []struct{ name, node, cooldown string }{{"passes", "passes", "30"}, {"no passes", "unpassed", "0"}} {
		c, err := r.join(ctx, r.bin, row.node, false, warm(poolSize, map[string]string{"IP_COOLDOWN_PERIOD": row.cooldown}))
		if err != nil {
			return err
		}
		if err := r.waitWarm(ctx, c, poolSize); err != nil {
			return err
		}
		if c.idle, err = c.links(); err != nil {
			return err
		}
		c.name = row.name
		list = append(list, c)
	}
	for _, entries := range []int{0, r.scale(tracked)} {
		if err := track(list[0], entries); err != nil {
			return err
		}
		adds, dels, err := pairs(ctx, list, n)
		if err != nil {
			return err
		}
		r.report.connections(list, adds, dels, entries, n)
	}
	return nil
}

// track makes entries that concern no pod.
func track(c *contender, entries int) error {
	return c.node.Namespace().Do(func() error {
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
	})
}

// pairs adds a pod and deletes it again, n times per contender, with the contenders taking turns.
func pairs(ctx context.Context, list []*contender, n int) (adds, dels map[*contender]*samples, _ error) {
	adds, dels = map[*contender]*samples{}, map[*contender]*samples{}
	before := map[*contender]time.Duration{}
	for _, c := range list {
		adds[c], dels[c] = &samples{}, &samples{}
		cpu, err := c.daemonCPU()
		if err != nil {
			return nil, nil, err
		}
		before[c] = cpu
	}
	for i := range n {
		for turn := range list {
			c := list[(turn+i)%len(list)]
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			p, err := c.newPod()
			if err != nil {
				return nil, nil, err
			}
			if err := adds[c].note(c.run(p, "ADD")); err != nil {
				return nil, nil, err
			}
			if err := dels[c].note(c.run(p, "DEL")); err != nil {
				return nil, nil, err
			}
			if err := c.remove(ctx, []*pod{p}); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, c := range list {
		cpu, err := c.daemonCPU()
		if err != nil {
			return nil, nil, err
		}
		dels[c].daemon = append(dels[c].daemon, (cpu-before[c])/time.Duration(2*n))
	}
	return adds, dels, nil
}

func (r report) connections(list []*contender, adds, dels map[*contender]*samples, entries, n int) {
	r.section("%d pods added and deleted in turn, %d connections in the node's table (aim: p50 at most 0.1 ms more)", n, entries)
	lines := []string{"daemon\tADD p50 ms\tADD p99\tDEL p50\tDEL p99\tdaemon CPU per command\tfailed"}
	for _, c := range list {
		a, d := adds[c], dels[c]
		lines = append(lines, strings.Join([]string{
			c.name, ms(figure.Quantile(a.wall, 0.5)), ms(figure.Quantile(a.wall, 0.99)),
			ms(figure.Quantile(d.wall, 0.5)), ms(figure.Quantile(d.wall, 0.99)),
			ms(d.daemonMean()), fmt.Sprint(len(a.failed) + len(d.failed))}, "\t"))
	}
	on, off := list[0], list[1]
	r.rows(append(lines, fmt.Sprintf("ratio\t%s\t\t%s", ratio(figure.Quantile(adds[on].wall, 0.5), figure.Quantile(adds[off].wall, 0.5)),
		ratio(figure.Quantile(dels[on].wall, 0.5), figure.Quantile(dels[off].wall, 0.5))))...)
}
