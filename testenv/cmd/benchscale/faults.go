package main

import (
	"context"
	"time"

	"cnictl/testenv/fakeaws"
)

// faults measures two faults: an exhausted subnet and throttled attachments.
func (s *session) faults(ctx context.Context) error {
	exhausted := scenario{
		name: "40 pods, subnet exhausted once", pods: fewPods, options: realistic(),
		fault: fakeaws.FailCalls(createENI, 1, 1, fakeaws.Fault{Code: "InsufficientFreeAddressesInSubnet", Message: "insufficient free addresses"}),
	}
	if err := s.faulty(ctx, exhausted, 123500*time.Millisecond, 4*time.Second, exhausted.growth().exhaustedBound(exhausted.options.Latency)); err != nil {
		return err
	}
	const device, metadata = 2 * time.Second, time.Second
	throttled := scenario{
		name: "40 pods, attach throttled 3 times", pods: fewPods, options: fakeaws.Options{AttachDelay: device, MetadataLag: metadata},
		fault: fakeaws.FailCalls(attachENI, 1, 3, fakeaws.Throttled),
	}
	return s.faulty(ctx, throttled, 17*time.Second, 8*time.Second, lateBound(device))
}

func (s *session) faulty(ctx context.Context, v scenario, upstream, possible time.Duration, b bound) error {
	all, err := s.repeat(ctx, v)
	if err != nil {
		return err
	}
	s.table.add(v.name, "s", sample(all, wall)...).possible(seconds(upstream), seconds(possible)).bound = b
	s.table.add(v.name+": failed ADDs", "", sample(all, failures)...).none()
	s.table.add(v.name+": ENIs given up", "", sample(all, deleted)...).none()
	return nil
}

// deleted returns how many ENIs were deleted.
func deleted(o outcome) float64 {
	n := 0
	for _, c := range o.calls {
		if c.Action == "DeleteNetworkInterface" {
			n++
		}
	}
	return float64(n)
}
