package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnictl/testenv/cmd/internal/figure"
	"cnictl/testenv/fakeaws"
)

// quietTime is how long an idle daemon is measured: long enough to include its periodic work,
// which takes only milliseconds.
const quietTime = 20 * time.Second

// load measures the daemon's memory and CPU: at rest, with pods, under a steady stream
// of pods, and in a big cluster.
func (s *session) load(ctx context.Context) (err error) {
	t, err := s.newSite(ctx, instanceType, fakeaws.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	env, err := s.join(ctx, t, maxPods)
	if err != nil {
		return err
	}
	// Enough for ten pods a second, so that ADD is measured and not growth.
	const pool = 220
	if _, err := t.serve(ctx, env, map[string]string{"MINIMUM_IP_TARGET": fmt.Sprint(pool), "WARM_IP_TARGET": "1"}); err != nil {
		return err
	}
	err = until(ctx, fmt.Sprintf("a pool of %d addresses", pool), func() bool {
		n := 0
		for _, e := range t.world.ENIsOf(t.node.InstanceID) {
			n += len(e.SecondaryIPs)
		}
		return n >= pool
	})
	if err != nil {
		return err
	}
	k := kubelet{node: t.node, namespace: "default", atATime: width}
	quiet := s.lasting(quietTime)
	if err := s.during(ctx, t, "at rest, no pods", func() error { pause(ctx, quiet); return nil }); err != nil {
		return err
	}
	if _, err := k.launch(ctx, queued(100)); err != nil {
		return err
	}
	if err := s.during(ctx, t, "at rest, 100 pods", func() error { pause(ctx, quiet); return nil }); err != nil {
		return err
	}
	s.row("daemon memory, at rest, 100 pods").upstream = figure.Of(upstreamMemory)
	if err := s.stream(ctx, t, k); err != nil {
		return err
	}
	return s.bigCluster(ctx, t, env, quiet)
}

// row finds a measured row by name.
func (s *session) row(name string) *row {
	for _, r := range s.table.rows {
		if r.name == name {
			return r
		}
	}
	return &row{}
}

// during measures what the daemon uses while do runs.
func (s *session) during(ctx context.Context, t *site, what string, do func() error) error {
	p := t.daemon()
	before, err := p.cpu()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := p.cpu()
	if err != nil {
		return err
	}
	rss, anonymous, err := p.rss()
	if err != nil {
		return err
	}
	// Upstream's figure is for 100 pods; our target applies to any load.
	memory := s.table.add("daemon memory, "+what, "MB", rss)
	memory.aim, memory.must = figure.Of(upstreamMemory).Times(daemonMemory.aim), figure.Of(upstreamMemory).Times(daemonMemory.must)
	s.table.add("of it anonymous, "+what, "MB", anonymous)
	s.table.add("daemon CPU, "+what, "ms/s", milliseconds(after-before).Value/took.Seconds())
	s.say("  %s: %.1f MB, anonymous %.1f", what, rss, anonymous)
	return nil
}

// stream adds ten pods a second, on a node that has enough free addresses not to grow, and
// counts the requests to EC2 and to the metadata service.
func (s *session) stream(ctx context.Context, t *site, k kubelet) error {
	const perSecond = 10
	n := perSecond * int(s.lasting(10*time.Second).Seconds()) // at most as many as the node has addresses for
	ec2, imds := len(t.world.Calls()), len(t.world.IMDSCalls())
	var out launched
	err := s.during(ctx, t, "10 ADD/s", func() (err error) {
		out, err = k.launch(ctx, paced(ctx, n, time.Second/perSecond))
		return err
	})
	if err != nil {
		return err
	}
	s.table.add("10 ADD/s: failed ADDs", "", float64(len(out.failed))).none()
	for _, of := range []struct {
		what string
		n    int
	}{{"EC2", len(t.world.Calls()) - ec2}, {"metadata", len(t.world.IMDSCalls()) - imds}} {
		s.table.add("10 ADD/s: "+of.what+" requests per ADD", "", float64(of.n)/float64(n)).askedSeldom()
	}
	return nil
}

// bigCluster fills the API server with other nodes and their pods, which must not affect
// the daemon, even when it restarts.
func (s *session) bigCluster(ctx context.Context, t *site, env map[string]string, quiet time.Duration) error {
	var nodes, pods int
	err := s.during(ctx, t, "while a big cluster is made", func() (err error) {
		nodes, pods, err = s.fill(ctx)
		return err
	})
	if err != nil {
		return err
	}
	big := fmt.Sprintf("%d nodes, %d pods elsewhere", nodes, pods)
	if err := s.during(ctx, t, "at rest, "+big, func() error { pause(ctx, quiet); return nil }); err != nil {
		return err
	}
	if err := t.stop(ctx); err != nil {
		return err
	}
	took, err := t.serve(ctx, env)
	if err != nil {
		return err
	}
	s.table.add("start → serving, "+big, "ms", milliseconds(took).Value)
	return s.during(ctx, t, "started anew, "+big, func() error { pause(ctx, quiet); return nil })
}
