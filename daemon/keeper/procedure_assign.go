package keeper

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// assignAddresses requests secondary IPs or prefixes, whichever is not 0. EC2 assigns all or
// nothing, so if the subnet has too few, or the ENI takes fewer than its type should, it
// requests half as many, repeatedly, down to one.
func assignAddresses(ctx context.Context, c Calls, op Operation) AssignDone {
	res := assignOnce(ctx, c, op)
	for op.IPs+op.Prefixes > 1 && (isShort(res.Err) || res.Full && res.Refused > 0) {
		op.IPs, op.Prefixes = op.IPs/2, op.Prefixes/2
		var less AssignDone
		err := unthrottled(ctx, c, func() error {
			less = assignOnce(ctx, c, op)
			return less.Err
		})
		if IsThrottled(err) {
			return res // EC2's first answer is more informative
		}
		res = less.after(res)
	}
	return res
}

// after adds to the result of a smaller request what the one before it, which EC2 refused, has
// found out about the ENI.
func (m AssignDone) after(before AssignDone) AssignDone {
	if m.Refused == 0 {
		m.Refused = before.Refused
	}
	if m.Before = before.Before; before.All {
		m.Before = before.CIDRs
	}
	return m
}

// fewerRetryLimit is how long a smaller request is retried while EC2 throttles it. Without
// retries, a node whose second request is always throttled would request the same amount again
// and again.
const fewerRetryLimit = 15 * time.Second

// unthrottled retries a call while EC2 throttles it.
func unthrottled(ctx context.Context, c Calls, call func() error) error {
	limit := c.Now().Add(fewerRetryLimit)
	var clock BackoffTimer
	for {
		err := call()
		if !IsThrottled(err) || !c.Now().Before(limit) || pause(ctx, c, &clock, ThrottleFirst, ThrottleMax) != nil {
			return err
		}
	}
}

// isShort reports whether a subnet has fewer addresses or blocks than requested.
func isShort(err error) bool { return IsFragmented(err) || IsSubnetExhausted(err) }

func assignOnce(ctx context.Context, c Calls, op Operation) AssignDone {
	res := AssignDone{ID: op.ID}
	switch {
	case op.ipv6:
		var p netip.Prefix
		if p, res.Err = c.AssignIPv6Prefix(ctx, op.ENI); res.Err == nil {
			res.CIDRs = []netip.Prefix{p}
		}
	case op.IPs > 0:
		var addrs []netip.Addr
		addrs, res.Err = c.AssignIPs(ctx, op.ENI, op.IPs)
		for _, a := range addrs {
			res.CIDRs = append(res.CIDRs, netip.PrefixFrom(a, a.BitLen()))
		}
	default:
		res.CIDRs, res.Err = c.AssignPrefixes(ctx, op.ENI, op.Prefixes)
	}
	if res.Err == nil {
		return res
	}
	full := IsAddressLimit(res.Err)
	if full || IsUnanswered(res.Err) {
		if found, err := c.DescribeENIs(ctx, []ipam.ENIID{op.ENI}); err == nil && len(found) == 1 {
			res.CIDRs, res.All = found[0].CIDRsOf(op.ipv6), true
			if full {
				res.Full, res.Err = true, nil
				if n := len(found[0].CIDRs()) + op.IPs + op.Prefixes; !op.ipv6 && n <= op.slots {
					res.Refused = n
				}
				return res
			}
		}
	}
	res.Err = fmt.Errorf("assign %d addresses, %d prefixes to ENI %s: %w", op.IPs, op.Prefixes, op.ENI, res.Err)
	return res
}

// unrouted fails if the kernel routes an address of the CIDRs to a pod, or if its routes
// cannot be read.
func unrouted(ctx context.Context, c Calls, cidrs []netip.Prefix) error {
	if len(cidrs) == 0 {
		return nil
	}
	routes, err := c.PodRoutes(ctx)
	if err != nil {
		return fmt.Errorf("look for pods: %w", hostFailure(err))
	}
	for _, r := range routes {
		for _, cidr := range cidrs {
			if r.HostLink != "" && cidr.Contains(r.Address) {
				return &Failure{Cause: cause.Internal, Err: fmt.Errorf("%s: %w: %s over %s", cidr, errRouted, r.Address, r.HostLink)}
			}
		}
	}
	return nil
}

// errRouted: whatever the book says, a running pod keeps its address.
var errRouted = errors.New("the kernel routes it to a pod")

// releaseCIDRs returns CIDRs to EC2, unless the kernel still routes one of their addresses
// to a pod.
func releaseCIDRs(ctx context.Context, c Calls, op Operation) ReleaseDone {
	if err := unrouted(ctx, c, op.CIDRs); err != nil {
		return ReleaseDone{ID: op.ID, Err: fmt.Errorf("release addresses of ENI %s: %w", op.ENI, err)}
	}
	err := c.Unassign(ctx, op.ENI, op.CIDRs)
	if err == nil {
		return ReleaseDone{ID: op.ID, Gone: op.CIDRs}
	}
	// Whatever the error, EC2 may have taken some of them back: the client repeats a request
	// whose answer was lost, and EC2 refuses to do it twice.
	gone := goneOf(ctx, c, op.ENI, op.CIDRs)
	var partly *PartlyUnassigned
	if errors.As(err, &partly) {
		for _, p := range partly.Gone {
			if !slices.Contains(gone, p) {
				gone = append(gone, p)
			}
		}
	}
	return ReleaseDone{ID: op.ID, Gone: gone, Err: fmt.Errorf("unassign %v of ENI %s: %w", op.CIDRs, op.ENI, err)}
}

// listRest is how long EC2's lists may lag: a list that does not show a change yet says
// nothing about a call that failed a moment ago.
const listRest = 10 * time.Second

// goneOf asks EC2 which of the CIDRs the ENI no longer has, for as long as it takes: giving a
// pod an address that EC2 has taken back is worse than waiting.
func goneOf(ctx context.Context, c Calls, eni ipam.ENIID, cidrs []netip.Prefix) []netip.Prefix {
	if c.Sleep(ctx, listRest) != nil {
		return cidrs // the process ends; the next start asks EC2 anyway
	}
	var clock BackoffTimer
	for {
		found, err := c.DescribeENIs(ctx, []ipam.ENIID{eni})
		if err == nil {
			var have []netip.Prefix
			if len(found) == 1 {
				have = slices.Concat(found[0].CIDRs(), found[0].IPv6Prefixes)
			}
			return slices.DeleteFunc(slices.Clone(cidrs), func(p netip.Prefix) bool { return slices.Contains(have, p) })
		}
		if pause(ctx, c, &clock, ThrottleFirst, ThrottleMax) != nil {
			return cidrs
		}
	}
}
