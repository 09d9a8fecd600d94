package sim

import (
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// This file has upstream's start and reconcile.

// start returns the errors that end the daemon.
func (u *upstream) start() error {
	w := u.n.w
	u.starts++
	w.stats.Starts++
	w.sleep(upstreamStart)
	attached, err := u.describeAll()
	if err != nil {
		return err
	}
	for _, e := range attached {
		if err := u.tagENI(e); err != nil {
			return err
		}
		u.setUpAtStart(w.ec2.enis[e.ID])
	}
	for _, e := range attached { // each ENI's security groups; a failure is only a warning
		_ = u.change(modifyAction, func() error { return nil })
		_ = e
	}
	if u.low() {
		return u.increase() // pre-scaling
	}
	return nil
}

// describeAll describes the instance's ENIs.
func (u *upstream) describeAll() (out []resync.ENI, err error) {
	instance := u.n.instance
	for try := 1; ; try++ {
		out, err = u.describe(func(e *resync.ENI) bool { return e.InstanceID == instance })
		if err == nil || try == upstreamTries {
			break
		}
		u.n.w.sleep(time.Duration(try) * 10 * time.Millisecond)
	}
	slices.SortFunc(out, func(a, b resync.ENI) int { return a.Device - b.Device })
	return out, err
}

// tagENI writes missing tags.
func (u *upstream) tagENI(e resync.ENI) error {
	if e.Tags[resync.TagInstanceID] == u.n.instance {
		return nil
	}
	tags := map[string]string{resync.TagInstanceID: u.n.instance, resync.TagClusterName: clusterName}
	return u.retry(upstreamTagTries, simpleBackoff{500 * time.Millisecond, time.Minute, 0.3}, func() error {
		return u.change(tagAction, func() error {
			u.n.w.ec2.tag(u.n.w.ec2.enis[e.ID], tags)
			return nil
		})
	})
}

// setUpAtStart makes 6 attempts to set an ENI up, then continues without it.
func (u *upstream) setUpAtStart(x *eni) {
	for try := range 6 {
		if try > 0 {
			u.n.w.sleep(upstreamSetUp)
		}
		if u.setUp(x) {
			return
		}
	}
}

// shownCIDRs returns the addresses and prefixes that the metadata service shows of an ENI.
func (u *upstream) shownCIDRs(x *eni) []netip.Prefix {
	f := u.n.metadata.shown[x.ID]
	out := slices.Clone(f.Prefixes)
	for i, a := range f.IPv4s {
		if i > 0 { // the first is the primary one
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}

// reconcile adds what the metadata service shows and the datastore lacks.
func (u *upstream) reconcile() {
	w := u.n.w
	if w.clock-u.pooledAt <= upstreamReconcile {
		return
	}
	u.pooledAt = w.clock
	asked := false
	for _, f := range u.n.metadata.list() {
		h := u.find(f.ENI)
		switch {
		case h == nil && !asked: // one description of all ENIs
			asked = true
			if _, err := u.describeAll(); err != nil {
				return
			}
			fallthrough
		case h == nil:
			u.adopt(f.ENI)
		case len(u.shownCIDRs(h.x)) != len(h.cidrs):
			_, _ = u.reread(h)
		}
	}
}

func (u *upstream) adopt(id ipam.ENIID) {
	if x := u.n.w.ec2.enis[id]; x != nil {
		_ = u.setUp(x)
	}
}
