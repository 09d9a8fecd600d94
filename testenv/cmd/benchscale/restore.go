package main

import (
	"context"
	"errors"
	"fmt"

	"cnictl/testenv/fakeaws"
)

// A node with room for many pods: 15 ENIs of 49 addresses each.
const (
	bigInstanceType = "m5.24xlarge"
	bigMaxPods      = 737
	keptPods        = 700
)

// restore measures the start of a daemon whose checkpoint has 700 pods. All of them exist:
// the plugin has added each, with its namespace, veth pair, route and rule, so the daemon
// finds every link.
func (s *session) restore(ctx context.Context) (err error) {
	t, err := s.newSite(ctx, bigInstanceType, fakeaws.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	n := s.part(keptPods)
	env, err := s.join(ctx, t, bigMaxPods)
	if err != nil {
		return err
	}
	if _, err := t.serve(ctx, env); err != nil {
		return err
	}
	k := kubelet{node: t.node, namespace: "default", atATime: width}
	out, err := k.launch(ctx, queued(n))
	if err != nil {
		return err
	}
	s.say("  %d pods in %.1f s, %d failed ADDs", n, out.took.Seconds(), len(out.failed))
	name := fmt.Sprintf("start → serving, checkpoint of %d pods", n)
	r := s.table.add(name, "ms")
	for range s.part(5) {
		if err := t.stop(ctx); err != nil {
			return err
		}
		took, err := t.serve(ctx, env)
		if err != nil {
			return err
		}
		r.samples = append(r.samples, milliseconds(took).Value)
		kept, err := t.node.Allocations()
		if err != nil {
			return err
		}
		if len(kept) != n {
			return fmt.Errorf("after a restart the checkpoint has %d of %d pods", len(kept), n)
		}
	}
	return s.during(ctx, t, fmt.Sprintf("%d pods restored", n), func() error { pause(ctx, s.lasting(quietTime)); return nil })
}
