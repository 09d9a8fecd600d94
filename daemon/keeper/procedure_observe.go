package keeper

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// observe reads the kernel and, if asked to, the metadata service and EC2.
func observe(ctx context.Context, c Calls, metadata, ec2 bool) Observed {
	v := Observed{AskedMetadata: metadata, AskedEC2: ec2}
	if metadata {
		v.Interfaces, v.InterfacesErr = c.Interfaces(ctx)
	}
	if ec2 {
		v.ENIs, v.ENIsErr = c.DescribeENIs(ctx, nil)
	}
	// Read the kernel last, so that pods that arrived meanwhile are seen.
	v.Links, v.Routes, v.KernelErr = observeKernel(ctx, c)
	return v
}

func observeKernel(ctx context.Context, c Calls) ([]string, []resync.PodRoute, error) {
	routes, err := c.PodRoutes(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list pod routes: %w", hostFailure(err))
	}
	links, err := c.PodLinks(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list host links: %w", hostFailure(err))
	}
	return slices.Sorted(maps.Keys(links)), routed(routes), nil
}

// routed returns the addresses with a route, nil if none: rules alone do not keep an address.
func routed(all []resync.PodRoute) (out []resync.PodRoute) {
	for _, r := range all {
		if r.HostLink != "" {
			out = append(out, r)
		}
	}
	return out
}

// dropPods removes the rules of pods that are gone, and returns those whose rules are all
// removed: only their addresses become free.
func dropPods(ctx context.Context, c Calls, gone []ipam.Assignment) []ipam.Assignment {
	var done []ipam.Assignment
	for _, a := range gone {
		if err := c.DropPod(ctx, a.Address); err != nil {
			note(c, Note(fmt.Sprintf("rules of an ended pod at %s not removed, will retry", a.Address)), a.ENI, err)
			continue
		}
		done = append(done, a)
	}
	return done
}

// Notes of a sweep.
const (
	LeakDeleted Note = "leaked ENI deleted"
	LeakKept    Note = "leaked ENI not deleted"
)

// sweepLeaked finds leaked ENIs and deletes them.
func sweepLeaked(ctx context.Context, c Calls, in resync.LeakInput) Swept {
	found, err := c.DescribeLeaked(ctx)
	if err != nil {
		return Swept{Err: fmt.Errorf("describe unattached ENIs: %w", err)}
	}
	in.Now = c.Now()
	var res Swept
	for _, v := range resync.Leaked(found, in) {
		switch v.Action {
		case resync.LeakTag:
			if err := persist(ctx, c, func() error { return c.TagCreated(ctx, v.ENI, in.Now) }); err != nil {
				note(c, "could not tag an unattached ENI that has no creation time", v.ENI, err)
			}
		case resync.LeakDelete:
			res.Found++
			if err := persist(ctx, c, func() error { return c.DeleteENI(ctx, v.ENI) }); err != nil {
				note(c, LeakKept, v.ENI, err)
				res.Err = &Failure{Cause: cause.EC2Error, Err: fmt.Errorf("delete leaked ENI %s: %w", v.ENI, err)}
				continue
			}
			note(c, LeakDeleted, v.ENI, nil)
			res.Deleted++
		}
	}
	return res
}

// tagENIs adds missing tags to the daemon's ENIs. A failure only warns.
func tagENIs(ctx context.Context, c Calls, enis []resync.ENI) {
	for _, e := range enis {
		if err := spread(ctx, c, func() error { return c.TagENI(ctx, e.ID, e.Tags) }); err != nil {
			note(c, "ENI not tagged", e.ID, err)
		}
	}
}

// tagSpread is the time over which nodes whose tag requests were throttled spread their
// retries: EC2 takes three minutes to serve a thousand nodes.
const tagSpread = 4 * time.Minute

// spread is persist for calls that all nodes make when they start and that nothing waits for:
// when throttled, it sleeps for a random time up to tagSpread before it retries.
func spread(ctx context.Context, c Calls, call func() error) error {
	err := call()
	switch {
	case IsThrottled(err):
		if c.Sleep(ctx, c.Jitter(tagSpread)) != nil {
			return err
		}
	case !IsUnanswered(err):
		return err
	}
	return persist(ctx, c, call)
}
