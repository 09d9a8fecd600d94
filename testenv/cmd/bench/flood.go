package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"cnictl/testenv/cmd/internal/figure"
)

// flooding is how many unfinished requests attack the metrics.
const flooding = 300

// flood compares ADD and DEL of a quiet daemon with those of one whose metrics a pod attacks, in
// turns on one node. The attacker works on the same CPUs.
func (r *session) flood(ctx context.Context) error {
	n := min(r.scale(r.rounds), poolSize/2-20)
	c, err := r.join(ctx, r.bin, "flooded", false, warm(poolSize, map[string]string{"IP_COOLDOWN_PERIOD": "0"}))
	if err != nil {
		return err
	}
	if err := r.waitWarm(ctx, c, poolSize); err != nil {
		return err
	}
	if c.idle, err = c.links(); err != nil {
		return err
	}
	const turns = 5
	adds, dels := map[bool]*samples{false: {}, true: {}}, map[bool]*samples{false: {}, true: {}}
	for turn := range 2 * turns {
		attacked := turn%2 == 1
		a, d, err := r.attacked(ctx, c, attacked, max(n/turns, 1))
		if err != nil {
			return err
		}
		adds[attacked].join(a)
		dels[attacked].join(d)
	}
	r.section("%d pods added and deleted in turn, while %d unfinished requests attack the metrics (aim: ratio below 2)", n, flooding)
	lines := []string{"metrics\tADD p50 ms\tADD p99\tDEL p50\tDEL p99\tfailed"}
	for _, attacked := range []bool{true, false} {
		a, d := adds[attacked], dels[attacked]
		lines = append(lines, strings.Join([]string{
			map[bool]string{false: "quiet", true: "attacked"}[attacked], ms(figure.Quantile(a.wall, 0.5)), ms(figure.Quantile(a.wall, 0.99)),
			ms(figure.Quantile(d.wall, 0.5)), ms(figure.Quantile(d.wall, 0.99)), fmt.Sprint(len(a.failed) + len(d.failed))}, "\t"))
	}
	r.rows(append(lines, fmt.Sprintf("ratio\t%s\t\t%s", ratio(figure.Quantile(adds[true].wall, 0.5), figure.Quantile(adds[false].wall, 0.5)),
		ratio(figure.Quantile(dels[true].wall, 0.5), figure.Quantile(dels[false].wall, 0.5))))...)
	return nil
}

func (r *session) attacked(ctx context.Context, c *contender, attack bool, n int) (adds, dels *samples, _ error) {
	attackCtx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	if attack {
		all.Go(func() { c.node.Namespace().Flood(attackCtx, netip.MustParseAddrPort("127.0.0.1:61678"), flooding) })
	}
	a, d, err := pairs(ctx, []*contender{c}, n)
	cancel()
	all.Wait()
	return a[c], d[c], err
}

// join adds the results of another part of the same phase.
func (s *samples) join(more *samples) {
	if more == nil {
		return
	}
	s.wall = append(s.wall, more.wall...)
	s.failed = append(s.failed, more.failed...)
}
