package main

import (
	"context"
	"errors"
	"time"

	"cnictl/testenv/fakeaws"
)

// instanceType is the type in upstream's measurements, and maxPods the setting of its
// kubelet.
const (
	instanceType = "m5.4xlarge"
	maxPods      = 234
)

// start measures, on fresh nodes, the time from the start of the daemon until it serves. As
// with upstream, a kube-apiserver answers.
func (s *session) start(ctx context.Context) error {
	for _, v := range []struct {
		name     string
		latency  latencies
		times    int
		upstream time.Duration
		target   target
	}{
		{"start → serving, latency 0", nil, 7, upstreamStartAtOnce, startAtOnce},
		{"start → serving, realistic", fakeaws.RealisticLatency(), 7, upstreamStartRealistic, startRealistic},
	} {
		r := s.table.add(v.name, "ms").against(milliseconds(v.upstream), v.target)
		if v.latency != nil {
			r.bound = v.latency.startBound()
		}
		for range s.part(v.times) {
			took, err := s.startOnce(ctx, v.latency)
			if err != nil {
				return err
			}
			r.samples = append(r.samples, milliseconds(took).Value)
		}
	}
	return nil
}

func (s *session) startOnce(ctx context.Context, l latencies) (took time.Duration, err error) {
	t, err := s.newSite(ctx, instanceType, fakeaws.Options{Latency: l})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	env, err := s.join(ctx, t, maxPods)
	if err != nil {
		return 0, err
	}
	return t.serve(ctx, env)
}
