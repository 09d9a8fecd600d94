package sim

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/budget"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
)

// calls gives one task of a daemon access to EC2, the node and time: it is the model's
// keeper.Calls. Because of Both, a task may run in several fibers; each call waits in the
// fiber that makes it.
type calls struct{ p *process }

var _ keeper.Calls = &calls{}

// ask makes one call to EC2 through the daemon's client.
func ask[T any](ctx context.Context, c *calls, action string, mutating bool, effect func() (T, error)) (out T, err error) {
	err = c.p.client.do(c.p.node.w, action, wantOf(ctx), func(d time.Duration) error { return c.Sleep(ctx, d) }, func() (err error) {
		out, err = attempt(ctx, c, action, mutating, effect)
		return err
	})
	return out, err
}

func wantOf(ctx context.Context) budget.Want {
	if ctx.(within).urgent {
		return budget.Urgent
	}
	return budget.Housekeeping
}

// attempt makes one request: it reaches EC2, takes effect and is answered. It takes effect
// even if the caller dies meanwhile.
func attempt[T any](ctx context.Context, c *calls, action string, mutating bool, effect func() (T, error)) (out T, err error) {
	w, n := c.p.node.w, c.p.node
	f := w.fateOf()
	finished := w.awaitIn(scopeOf(ctx), func(done func()) {
		c.p.mayDie(w.Scenario.CrashAtCall)
		w.after(f.reach, func() {
			out, err = answerOf(w, n, action, mutating, f, effect)
			c.p.mayDie(w.Scenario.CrashAtCall)
			w.after(w.answerAfter(action, f, err), done)
		})
	})
	if !finished {
		var none T
		return none, errNoAnswer
	}
	return out, err
}

// answerOf is EC2's side of a call.
func answerOf[T any](w *World, n *node, action string, mutating bool, f fate, effect func() (T, error)) (out T, err error) {
	w.stats.call(action, mutating)
	if f.fault != "" {
		w.fault(f.fault)
	}
	if f.fault == "" && !w.ec2.admit(action, mutating) {
		f.fault = FaultThrottled
		w.stats.throttled(action)
	}
	switch f.fault {
	case FaultThrottled:
		err = errThrottled
	case FaultRefused:
		err = errUnable
	case FaultBroken:
		err = errBroken
	case FaultDropped:
		err = errNoAnswer
	case FaultErrorAfterEffect:
		_, _ = effect()
		n.surprised()
		err = errBroken
	case FaultLost:
		_, _ = effect()
		n.surprised()
		err = errNoAnswer
	case FaultMasked:
		_, _ = effect()
		n.surprised()
		err = errThrottled
	case FaultRepeated:
		_, _ = effect()
		n.surprised()
		out, err = effect()
	default:
		out, err = effect()
	}
	if err != nil {
		var none T
		out = none
	}
	if made := w.ec2.made; action == createAction && made != nil {
		made.unreported, w.ec2.made = err != nil, nil
	}
	n.calls.count(action, mutating, err)
	w.tracef("%s: EC2 %s: %s%v", n.name, action, faultText(f.fault), errText(err))
	return out, err
}

func faultText(f Fault) string {
	if f == "" {
		return ""
	}
	return "(" + string(f) + ") "
}

func errText(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

// none is the result of calls that return only an error.
type none struct{}

func (c *calls) CreateENI(ctx context.Context, s keeper.CreateENI) (resync.ENI, error) {
	return ask(ctx, c, createAction, true, func() (resync.ENI, error) { return c.ec2().createFor(c.p.node, s) })
}

func (c *calls) AttachENI(ctx context.Context, id ipam.ENIID, card, device int) (string, error) {
	return ask(ctx, c, attachAction, true, func() (string, error) { return c.ec2().attachFor(c.p.node, id, device) })
}

func (c *calls) SetDeleteOnTermination(ctx context.Context, id ipam.ENIID, attachment string) error {
	_, err := ask(ctx, c, modifyAction, true, func() (none, error) {
		x := c.ec2().enis[id]
		switch {
		case x == nil:
			return none{}, errNoENI
		case x.AttachmentID != attachment:
			return none{}, errNoAttach
		}
		x.DeleteOnTermination = true
		c.ec2().changed(x)
		return none{}, nil
	})
	return err
}

func (c *calls) DetachENI(ctx context.Context, attachment string) error {
	_, err := ask(ctx, c, detachAction, true, func() (none, error) { return none{}, c.ec2().detachFor(c.p.node, attachment) })
	return err
}

func (c *calls) DeleteENI(ctx context.Context, id ipam.ENIID) error {
	_, err := ask(ctx, c, deleteAction, true, func() (none, error) { return none{}, c.ec2().deleteFor(c.p.node, id) })
	if keeper.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *calls) AssignIPs(ctx context.Context, id ipam.ENIID, n int) ([]netip.Addr, error) {
	cidrs, err := ask(ctx, c, assignAction, true, func() ([]netip.Prefix, error) { return c.ec2().assignFor(c.p.node, id, n, 0) })
	var out []netip.Addr
	for _, p := range cidrs {
		out = append(out, p.Addr())
	}
	return out, err
}

func (c *calls) AssignPrefixes(ctx context.Context, id ipam.ENIID, n int) ([]netip.Prefix, error) {
	return ask(ctx, c, assignAction, true, func() ([]netip.Prefix, error) { return c.ec2().assignFor(c.p.node, id, 0, n) })
}

// AssignIPv6Prefix fails: simulated worlds are IPv4 only.
func (c *calls) AssignIPv6Prefix(ctx context.Context, id ipam.ENIID) (netip.Prefix, error) {
	return ask(ctx, c, "AssignIpv6Addresses", true, func() (netip.Prefix, error) {
		return netip.Prefix{}, &keeper.Failure{Cause: cause.EC2Error, Err: fmt.Errorf("the subnet of %s has no IPv6 block", id)}
	})
}

// SetSecurityGroups changes nothing: worlds have no security groups.
func (c *calls) SetSecurityGroups(ctx context.Context, _ ipam.ENIID, _ []string) error {
	_, err := ask(ctx, c, modifyAction, true, func() (struct{}, error) { return struct{}{}, nil })
	return err
}

// Unassign makes two calls if there are both addresses and prefixes, as in vpcapi.
func (c *calls) Unassign(ctx context.Context, id ipam.ENIID, cidrs []netip.Prefix) error {
	var prefixes, addrs, gone []netip.Prefix
	for _, p := range cidrs {
		if p.IsSingleIP() {
			addrs = append(addrs, p)
		} else {
			prefixes = append(prefixes, p)
		}
	}
	var failed error
	for _, part := range [][]netip.Prefix{prefixes, addrs} {
		if len(part) == 0 {
			continue
		}
		_, err := ask(ctx, c, "UnassignPrivateIpAddresses", true, func() (none, error) { return none{}, c.ec2().unassignFor(c.p.node, id, part) })
		if err != nil {
			failed = err
			continue
		}
		gone = append(gone, part...)
	}
	if failed == nil || len(gone) == 0 {
		return failed
	}
	c.p.node.w.fault(FaultPartial)
	return &keeper.PartlyUnassigned{Gone: gone, Err: failed}
}

func (c *calls) DescribeENIs(ctx context.Context, ids []ipam.ENIID) ([]resync.ENI, error) {
	return ask(ctx, c, describeENIs, false, func() ([]resync.ENI, error) {
		return c.ec2().list(func(e *resync.ENI) bool {
			if len(ids) == 0 {
				return e.InstanceID == c.p.node.instance
			}
			return slices.Contains(ids, e.ID)
		}), nil
	})
}

func (c *calls) DescribeSubnets(ctx context.Context) ([]resync.Subnet, error) {
	return ask(ctx, c, describeSubnets, false, func() ([]resync.Subnet, error) { return c.ec2().describeSubnets(c.p.node), nil })
}

func (c *calls) DescribeLeaked(ctx context.Context) ([]resync.ENI, error) {
	return ask(ctx, c, describeENIs, false, func() ([]resync.ENI, error) {
		return c.ec2().list(func(e *resync.ENI) bool {
			return e.Status == resync.StatusAvailable && e.Tags[resync.TagInstanceID] != "" && e.Tags[resync.TagClusterName] == clusterName
		}), nil
	})
}

// DescribeOrphans returns what a start looks for: unattached ENIs that a daemon of this
// instance created.
func (c *calls) DescribeOrphans(ctx context.Context) ([]resync.ENI, error) {
	n := c.p.node
	return ask(ctx, c, describeENIs, false, func() ([]resync.ENI, error) {
		return c.ec2().list(func(e *resync.ENI) bool {
			return e.Status == resync.StatusAvailable && e.Tags[resync.TagInstanceID] == n.instance &&
				e.Tags[resync.TagNoManage] != "true" && e.Description == resync.DescriptionPrefix+n.instance
		}), nil
	})
}

func (c *calls) TagENI(ctx context.Context, id ipam.ENIID, have map[string]string) error {
	missing := map[string]string{}
	for k, v := range map[string]string{resync.TagInstanceID: c.p.node.instance, resync.TagClusterName: clusterName} {
		if have[k] != v {
			missing[k] = v
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return c.tag(ctx, id, missing)
}

func (c *calls) TagCreated(ctx context.Context, id ipam.ENIID, now time.Time) error {
	return c.tag(ctx, id, map[string]string{resync.TagCreatedAt: now.UTC().Format(time.RFC3339)})
}

func (c *calls) tag(ctx context.Context, id ipam.ENIID, tags map[string]string) error {
	_, err := ask(ctx, c, tagAction, true, func() (none, error) {
		x := c.ec2().enis[id]
		if x == nil {
			return none{}, errNoENI
		}
		if tags[resync.TagInstanceID] != "" && x.maker == nil && x != c.p.node.primary {
			x.maker, x.adopted = c.p.node, true // managed although untagged: MANAGE_UNTAGGED_ENI
		}
		c.ec2().tag(x, tags)
		return none{}, nil
	})
	return err
}

func (c *calls) ec2() *ec2 { return c.p.node.w.ec2 }

func (c *calls) Now() time.Time { return c.p.node.w.now() }

func (c *calls) Sleep(ctx context.Context, d time.Duration) error {
	w := c.p.node.w
	if !w.awaitIn(scopeOf(ctx), func(done func()) { w.after(d, done) }) {
		return errEnded
	}
	return nil
}

func (c *calls) Jitter(n time.Duration) time.Duration { return c.p.node.jitter(n) }

// Both runs two steps in separate fibers.
func (c *calls) Both(f, g func() error) error {
	var errs [2]error
	left := 2
	c.p.node.w.await(func(done func()) {
		for i, step := range []func() error{f, g} {
			c.p.spawn(func() {
				errs[i] = step()
				if left--; left == 0 {
					done()
				}
			})
		}
	})
	if errs[0] != nil {
		return errs[0]
	}
	return errs[1]
}

func (c *calls) Lasting(ctx context.Context, limit time.Duration) (context.Context, func()) {
	lasting := &scope{}
	c.p.node.w.after(limit, lasting.cancel)
	return within{lasting, ctx.(within).urgent}, lasting.cancel
}

func (c *calls) Post(m keeper.Message) {
	if n, noted := m.(keeper.Noted); noted {
		c.p.node.w.tracef("%s: notes: %s %s: %v", c.p.node.name, n.What, n.ENI, n.Err)
	}
	c.p.post(m)
}
