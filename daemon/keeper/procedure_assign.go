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

// AssignResult is what an ENI got.
type AssignResult struct {
	CIDRs []netip.Prefix
	// All: CIDRs is everything the ENI holds, read after EC2 said that it is full or
	// did not say what it gave.
	All  bool
	Full bool // EC2 says that the ENI takes no more
	Err  error
}

// assignAddresses asks for secondary IPs or prefixes, whichever is not 0. EC2 assigns all or
// nothing, so a subnet that has fewer is asked for half as many, down to one.
func assignAddresses(ctx context.Context, c Calls, eni ipam.ENIID, ips, prefixes int, ipv6 bool) AssignResult {
	res := assignOnce(ctx, c, eni, ips, prefixes, ipv6)
	for ips+prefixes > 1 && isShort(res.Err) {
		ips, prefixes = ips/2, prefixes/2
		var less AssignResult
		err := unthrottled(ctx, c, func() error {
			less = assignOnce(ctx, c, eni, ips, prefixes, ipv6)
			return less.Err
		})
		if IsThrottled(err) {
			return res // EC2's answer about the subnet says more
		}
		res = less
	}
	return res
}

// fewerRetryLimit is how long a smaller request is repeated while EC2 throttles it.
// Without that, a node whose second request is always throttled would ask for the same
// amount again and again.
const fewerRetryLimit = 15 * time.Second

// unthrottled repeats a call while EC2 throttles it.
func unthrottled(ctx context.Context, c Calls, call func() error) error {
	limit := c.Now().Add(fewerRetryLimit)
	var clock Clock
	for {
		err := call()
		if !IsThrottled(err) || !c.Now().Before(limit) || pause(ctx, c, &clock, ThrottleFirst, ThrottleMost) != nil {
			return err
		}
	}
}

// isShort reports that a subnet has fewer addresses or blocks than were asked for.
func isShort(err error) bool { return IsFragmented(err) || IsSubnetExhausted(err) }

func assignOnce(ctx context.Context, c Calls, eni ipam.ENIID, ips, prefixes int, ipv6 bool) AssignResult {
	var res AssignResult
	switch {
	case ipv6:
		var p netip.Prefix
		if p, res.Err = c.AssignIPv6Prefix(ctx, eni); res.Err == nil {
			res.CIDRs = []netip.Prefix{p}
		}
	case ips > 0:
		var addrs []netip.Addr
		addrs, res.Err = c.AssignIPs(ctx, eni, ips)
		for _, a := range addrs {
			res.CIDRs = append(res.CIDRs, netip.PrefixFrom(a, a.BitLen()))
		}
	default:
		res.CIDRs, res.Err = c.AssignPrefixes(ctx, eni, prefixes)
	}
	if res.Err == nil {
		return res
	}
	full := IsAddressLimit(res.Err)
	if full || IsUnanswered(res.Err) {
		if found, err := c.DescribeENIs(ctx, []ipam.ENIID{eni}); err == nil && len(found) == 1 {
			res.CIDRs, res.All = found[0].CIDRsOf(ipv6), true
			if full {
				return AssignResult{CIDRs: res.CIDRs, All: true, Full: true}
			}
		}
	}
	res.Err = fmt.Errorf("assign %d addresses, %d prefixes to ENI %s: %w", ips, prefixes, eni, res.Err)
	return res
}

// ReleaseResult says which CIDRs are EC2's again.
type ReleaseResult struct {
	Gone []netip.Prefix
	Err  error
}

// unrouted fails when the kernel routes an address of the CIDRs to a pod, or does not
// say.
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

// errRouted: whatever the book says, a living pod keeps its address.
var errRouted = errors.New("the kernel routes it to a pod")

// releaseCIDRs returns CIDRs to EC2, unless the kernel still routes one of their addresses
// to a pod.
func releaseCIDRs(ctx context.Context, c Calls, eni ipam.ENIID, cidrs []netip.Prefix) ReleaseResult {
	if err := unrouted(ctx, c, cidrs); err != nil {
		return ReleaseResult{Err: fmt.Errorf("release addresses of ENI %s: %w", eni, err)}
	}
	err := c.Unassign(ctx, eni, cidrs)
	if err == nil {
		return ReleaseResult{Gone: cidrs}
	}
	// Whatever the error says, EC2 may have taken some of them back: the client repeats
	// a request whose answer was lost, and EC2 refuses to do it twice.
	gone := goneOf(ctx, c, eni, cidrs)
	var partly *PartlyUnassigned
	if errors.As(err, &partly) {
		for _, p := range partly.Gone {
			if !slices.Contains(gone, p) {
				gone = append(gone, p)
			}
		}
	}
	return ReleaseResult{Gone: gone, Err: fmt.Errorf("unassign %v of ENI %s: %w", cidrs, eni, err)}
}

// listRest is how long a list of EC2 may go on to show what it did not do: a list that
// does not show a change yet says nothing about a call that failed a moment ago.
const listRest = 10 * time.Second

// goneOf asks EC2 which of the CIDRs the ENI has no more, for as long as it takes: to
// give a pod an address that EC2 has taken back is worse than to wait.
func goneOf(ctx context.Context, c Calls, eni ipam.ENIID, cidrs []netip.Prefix) []netip.Prefix {
	if c.Sleep(ctx, listRest) != nil {
		return cidrs // the process ends; the next start asks EC2 anyway
	}
	var clock Clock
	for {
		found, err := c.DescribeENIs(ctx, []ipam.ENIID{eni})
		if err == nil {
			var have []netip.Prefix
			if len(found) == 1 {
				have = slices.Concat(found[0].CIDRs(), found[0].IPv6Prefixes)
			}
			return slices.DeleteFunc(slices.Clone(cidrs), func(p netip.Prefix) bool { return slices.Contains(have, p) })
		}
		if pause(ctx, c, &clock, ThrottleFirst, ThrottleMost) != nil {
			return cidrs
		}
	}
}
