package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// Limits of single operations. An EC2 attach is normally visible on the node within
// seconds; the original waits up to 162 s for it (spec/ipamd.md §4.1).
const (
	attachRetryLimit = 5 * time.Minute
	linkWaitLimit    = 2 * time.Minute
	deleteRetryLimit = 5 * time.Minute
)

// executor carries out the actions of plans beside the owner, each in a goroutine
// of its own, and reports every one with exactly one message.
type executor struct {
	spawn func(func(context.Context)) // starts a goroutine that Run owns and whose context Run ends
	ec2   *vpcapi.Client
	host  *hostnet.Host
	log   *slog.Logger
	post  func(message)
	mtu   int
}

func (x *executor) run(op func(ctx context.Context) message) {
	x.spawn(func(ctx context.Context) { x.post(op(ctx)) })
}

type attachPlan struct {
	card, device  int
	subnet        string
	cidr          netip.Prefix
	ips, prefixes int
	groups        []string
}

// attach creates an ENI with its addresses, attaches it and sets up its host
// routes. What was made is taken back when a later step fails for good; the owner
// hears of the failure as soon as the device index is free again.
func (x *executor) attach(id opID, p attachPlan) {
	x.spawn(func(ctx context.Context) {
		created, err := x.ec2.CreateENI(ctx, vpcapi.CreateENI{
			SubnetID: p.subnet, SecurityGroups: p.groups, IPs: p.ips, Prefixes: p.prefixes,
		})
		if err != nil {
			x.post(attachDone{id: id, err: fmt.Errorf("create ENI in %s: %w", p.subnet, err)})
			return
		}
		done := x.attachCreated(ctx, id, created, p)
		x.post(done)
		switch {
		case done.err == nil:
			return
		case done.left:
			x.adopt(ctx, resync.Attached{ENI: done.eni, CIDRs: done.cidrs})
			return
		}
		if err := x.delete(ctx, created.ID); err != nil {
			x.log.Error("ENI of a failed attach not deleted", slog.String(logline.KeyENI, string(created.ID)), slog.Any(logline.KeyError, err))
		}
	})
}

// attachCreated attaches and settles a created ENI; on failure it is detached again,
// or left attached for later if that fails too.
func (x *executor) attachCreated(ctx context.Context, id opID, created vpcapi.ENI, p attachPlan) attachDone {
	attachment, err := x.attachPersistently(ctx, created.ID, p.card, p.device)
	if err != nil {
		return attachDone{id: id, err: fmt.Errorf("attach ENI %s at device %d: %w", created.ID, p.device, err)}
	}
	x.post(eniAttached{id, created.ID})
	eni := ipam.ENI{
		ID: created.ID, MAC: created.MAC, Card: p.card, Device: p.device, SubnetID: p.subnet, Subnet: p.cidr,
		PrimaryIP: created.PrimaryIP, RouteTable: netnames.RouteTable(p.card, p.device),
	}
	if err := x.settle(ctx, eni, attachment); err != nil {
		if detachErr := x.detachENI(ctx, eni, attachment); detachErr != nil {
			return attachDone{id: id, eni: eni, attachment: attachment, cidrs: cidrs(created), left: true, err: errors.Join(err, detachErr)}
		}
		return attachDone{id: id, err: err}
	}
	return attachDone{id: id, eni: eni, attachment: attachment, cidrs: cidrs(created)}
}

// attachPersistently attaches an ENI. Throttling keeps the ENI and tries again:
// starting over would cost three more mutating calls.
func (x *executor) attachPersistently(ctx context.Context, id ipam.ENIID, card, device int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, attachRetryLimit)
	defer cancel()
	var pause clock
	for {
		attachment, err := x.ec2.AttachENI(ctx, id, card, device)
		if err == nil || !vpcapi.IsThrottled(err) {
			return attachment, err
		}
		x.log.Warn("attach throttled, ENI kept", slog.String(logline.KeyENI, string(id)), slog.Any(logline.KeyError, err))
		if pauseErr := pause.sleep(ctx); pauseErr != nil {
			return "", err
		}
	}
}

// settle makes an attached ENI die with its instance and puts its routes into the
// kernel, side by side. An ENI enters the pool only after both.
func (x *executor) settle(ctx context.Context, eni ipam.ENI, attachment string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return x.retryThrottled(ctx, attachRetryLimit, func() error {
			if err := x.ec2.SetDeleteOnTermination(ctx, eni.ID, attachment); err != nil {
				return fmt.Errorf("set delete-on-termination of ENI %s: %w", eni.ID, err)
			}
			return nil
		})
	})
	group.Go(func() error {
		return x.setUpENI(ctx, eni)
	})
	return group.Wait()
}

// setUpENI waits for an ENI's link and puts its routes into the kernel.
func (x *executor) setUpENI(ctx context.Context, eni ipam.ENI) error {
	ctx, cancel := context.WithTimeout(ctx, linkWaitLimit)
	defer cancel()
	if err := x.host.SetupENI(ctx, x.eniInput(eni)); err != nil {
		return fmt.Errorf("set up ENI %s: %w", eni.ID, &hostError{err})
	}
	return nil
}

func (x *executor) eniInput(eni ipam.ENI) rules.ENIInput {
	return rules.ENIInput{
		MAC: eni.MAC, Card: eni.Card, Device: eni.Device, PrimaryIP: eni.PrimaryIP, Subnet: eni.Subnet,
		MTU: x.mtu, RouteTable: eni.RouteTable, Trunk: eni.Trunk,
	}
}

// assign asks for addresses or prefixes. When EC2 says the ENI is full, what it
// holds already is reported instead: the book had missed some.
func (x *executor) assign(id opID, eni ipam.ENIID, ips, prefixes int) {
	x.run(func(ctx context.Context) message {
		done := assignDone{id: id}
		if ips > 0 {
			addrs, err := x.ec2.AssignIPs(ctx, eni, ips)
			done.err = err
			for _, a := range addrs {
				done.cidrs = append(done.cidrs, netip.PrefixFrom(a, a.BitLen()))
			}
		} else {
			done.cidrs, done.err = x.ec2.AssignPrefixes(ctx, eni, prefixes)
		}
		if vpcapi.IsAddressLimit(done.err) {
			described, err := x.ec2.DescribeENIs(ctx, []ipam.ENIID{eni})
			if err == nil && len(described) == 1 {
				return assignDone{id: id, cidrs: cidrs(described[0]), full: true}
			}
		}
		if done.err != nil {
			done.err = fmt.Errorf("assign %d addresses, %d prefixes to ENI %s: %w", ips, prefixes, eni, done.err)
		}
		return done
	})
}

// release returns CIDRs to EC2, unless the kernel still routes one of their
// addresses to a pod: whatever the book says, a living pod keeps its address.
func (x *executor) release(id opID, eni ipam.ENIID, release []netip.Prefix) {
	x.run(func(ctx context.Context) message {
		routes, err := x.host.PodRoutes(ctx)
		if err != nil {
			return releaseDone{id, fmt.Errorf("look for pods on the addresses of ENI %s: %w", eni, &hostError{err})}
		}
		for _, r := range routes {
			for _, c := range release {
				if r.HostLink != "" && c.Contains(r.Address) {
					return releaseDone{id, &hostError{fmt.Errorf("release %s of ENI %s: the kernel routes %s to %s", c, eni, r.Address, r.HostLink)}}
				}
			}
		}
		if err := x.ec2.Unassign(ctx, eni, release); err != nil {
			return releaseDone{id, fmt.Errorf("unassign %v of ENI %s: %w", cidrTexts(release), eni, err)}
		}
		return releaseDone{id: id}
	})
}

// detach takes an ENI off the instance, reports that, and deletes the ENI.
func (x *executor) detach(id opID, eni ipam.ENI, attachment string) {
	x.spawn(func(ctx context.Context) {
		err := x.detachENI(ctx, eni, attachment)
		x.post(detachDone{id: id, err: err})
		if err != nil {
			return
		}
		if err := x.delete(ctx, eni.ID); err != nil {
			x.log.Error("ENI detached but not deleted", slog.String(logline.KeyENI, string(eni.ID)), slog.Any(logline.KeyError, err))
			return
		}
		x.log.Info(textFreed+string(eni.ID), slog.String(logline.KeyENI, string(eni.ID))) //nolint:sloglint // the original's line, which people search for
	})
}

func (x *executor) detachENI(ctx context.Context, eni ipam.ENI, attachment string) error {
	if attachment == "" {
		found, err := x.ec2.DescribeENIs(ctx, []ipam.ENIID{eni.ID})
		switch {
		case vpcapi.IsNotFound(err):
			return x.teardown(ctx, eni)
		case err != nil:
			return fmt.Errorf("find attachment of ENI %s: %w", eni.ID, err)
		case len(found) == 1:
			attachment = found[0].AttachmentID
		}
	}
	if attachment != "" {
		err := x.ec2.DetachENI(ctx, attachment)
		if err != nil && !vpcapi.IsNotFound(err) {
			return fmt.Errorf("detach ENI %s: %w", eni.ID, err)
		}
	}
	return x.teardown(ctx, eni)
}

func (x *executor) teardown(ctx context.Context, eni ipam.ENI) error {
	if err := x.host.TeardownENI(ctx, eni.PrimaryIP); err != nil {
		// The ENI is gone; a leftover rule is repaired by the next start.
		x.log.Warn("rules of a detached ENI not removed", slog.String(logline.KeyENI, string(eni.ID)), slog.Any(logline.KeyError, err))
	}
	return nil
}

// delete deletes a detached ENI. EC2 refuses while the detach is still settling, so
// its state is read between attempts. An attempt that has begun outlives the end of
// the context, as far as the grace that Run gives goes: a forgotten ENI would leak.
func (x *executor) delete(ctx context.Context, id ipam.ENIID) error {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteRetryLimit)
	defer cancel()
	var pause clock
	for {
		err := x.deleteWhenAvailable(lasting, id)
		if err == nil {
			return nil
		}
		if pauseErr := pause.sleep(ctx); pauseErr != nil {
			return fmt.Errorf("delete ENI %s: %w", id, err)
		}
	}
}

var errStillAttached = errors.New("still attached")

func (x *executor) deleteWhenAvailable(ctx context.Context, id ipam.ENIID) error {
	found, err := x.ec2.DescribeENIs(ctx, []ipam.ENIID{id})
	switch {
	case vpcapi.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case len(found) == 1 && found[0].Status != "available":
		return fmt.Errorf("%w (%s)", errStillAttached, found[0].Status)
	}
	return x.ec2.DeleteENI(ctx, id)
}

// deleteOrphans deletes ENIs that a daemon before this one made and never attached.
func (x *executor) deleteOrphans(enis []vpcapi.ENI) {
	for _, e := range enis {
		x.spawn(func(ctx context.Context) {
			if err := x.delete(ctx, e.ID); err != nil {
				x.log.Warn("ENI left by an earlier daemon not deleted", slog.String(logline.KeyENI, string(e.ID)), slog.Any(logline.KeyError, err))
				return
			}
			x.log.Info("ENI left by an earlier daemon deleted", slog.String(logline.KeyENI, string(e.ID)))
		})
	}
}

// tagAll writes the tags that the daemon's ENIs lack; it is background work and a
// failure only warns.
func (x *executor) tagAll(enis []vpcapi.ENI) {
	for _, e := range enis {
		x.spawn(func(ctx context.Context) {
			err := x.retryThrottled(ctx, attachRetryLimit, func() error { return x.ec2.TagENI(ctx, e.ID, e.Tags) })
			if err != nil {
				x.log.Warn("ENI not tagged", slog.String(logline.KeyENI, string(e.ID)), slog.Any(logline.KeyError, err))
			}
		})
	}
}

func (x *executor) describeSubnets() {
	x.run(func(ctx context.Context) message {
		subnets, err := x.ec2.DescribeSubnets(ctx)
		return subnetsRead{subnets: subnets, err: err}
	})
}

func (x *executor) retryThrottled(ctx context.Context, limit time.Duration, call func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var pause clock
	for {
		err := call()
		if err == nil || !vpcapi.IsThrottled(err) {
			return err
		}
		if pauseErr := pause.sleep(ctx); pauseErr != nil {
			return err
		}
	}
}

// sleep waits one step of the clock or until the context ends.
func (c *clock) sleep(ctx context.Context) error {
	now := time.Now()
	c.fail(now, now, cause.EC2Throttled, throttleFirst, throttleMost)
	timer := time.NewTimer(c.until.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cidrs lists what an ENI can give to pods.
func cidrs(e vpcapi.ENI) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(e.SecondaryIPs)+len(e.Prefixes))
	for _, a := range e.SecondaryIPs {
		out = append(out, netip.PrefixFrom(a, a.BitLen()))
	}
	return append(out, e.Prefixes...)
}
