package sim

import (
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// This file is the start and the reconcile of upstream (§1.3, §5.1).

// start is fatal where §1.3 says so.
func (o *original) start() error {
	w := o.n.w
	o.starts++
	w.stats.Starts++
	w.sleep(originalStart)
	attached, err := o.describeAll()
	if err != nil {
		return err
	}
	for _, e := range attached {
		if err := o.tagENI(e); err != nil {
			return err
		}
		o.setUpAtStart(w.ec2.enis[e.ID])
	}
	for _, e := range attached { // the groups of each ENI, whatever they are; only warns
		_ = o.change(modifyAction, func() error { return nil })
		_ = e
	}
	if o.low() {
		return o.increase() // pre-scaling
	}
	return nil
}

// describeAll is §5.2.
func (o *original) describeAll() (out []resync.ENI, err error) {
	instance := o.n.instance
	for try := 1; ; try++ {
		out, err = o.describe(func(e *resync.ENI) bool { return e.InstanceID == instance })
		if err == nil || try == originalTries {
			break
		}
		o.n.w.sleep(time.Duration(try) * 10 * time.Millisecond)
	}
	slices.SortFunc(out, func(a, b resync.ENI) int { return a.Device - b.Device })
	return out, err
}

// tagENI writes the tags that are missing (§4.5).
func (o *original) tagENI(e resync.ENI) error {
	if e.Tags[resync.TagInstanceID] == o.n.instance {
		return nil
	}
	tags := map[string]string{resync.TagInstanceID: o.n.instance, resync.TagClusterName: clusterName}
	return o.retry(originalTagTries, simpleBackoff{500 * time.Millisecond, time.Minute, 0.3}, func() error {
		return o.change(tagAction, func() error {
			o.n.w.ec2.tag(o.n.w.ec2.enis[e.ID], tags)
			return nil
		})
	})
}

// setUpAtStart sets an ENI up with 6 attempts, and goes on without it after the last.
func (o *original) setUpAtStart(x *eni) {
	for try := range 6 {
		if try > 0 {
			o.n.w.sleep(originalSetUp)
		}
		if o.setUp(x) {
			return
		}
	}
}

// shownCIDRs is what the metadata service shows of an ENI's addresses.
func (o *original) shownCIDRs(x *eni) []netip.Prefix {
	f := o.n.metadata.shown[x.ID]
	out := slices.Clone(f.Prefixes)
	for i, a := range f.IPv4s {
		if i > 0 { // the first is the primary one
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}

// reconcile adds what the metadata service shows and the datastore lacks.
func (o *original) reconcile() {
	w := o.n.w
	if w.clock-o.pooledAt <= originalReconcile {
		return
	}
	o.pooledAt = w.clock
	asked := false
	for _, f := range o.n.metadata.list() {
		h := o.find(f.ENI)
		switch {
		case h == nil && !asked: // one full description
			asked = true
			if _, err := o.describeAll(); err != nil {
				return
			}
			fallthrough
		case h == nil:
			o.adopt(f.ENI)
		case len(o.shownCIDRs(h.x)) != len(h.cidrs):
			_, _ = o.reread(h)
		}
	}
}

func (o *original) adopt(id ipam.ENIID) {
	if x := o.n.w.ec2.enis[id]; x != nil {
		_ = o.setUp(x)
	}
}
