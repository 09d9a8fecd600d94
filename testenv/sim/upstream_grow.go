package sim

import (
	"errors"
	"time"
)

// This file is one pool step of upstream.

// Parameters of simpleBackoff.
const (
	upstreamMost   = time.Minute
	upstreamJitter = 0.15
	waitFirst      = 100 * time.Millisecond
	detachFirst    = 200 * time.Millisecond
	deleteFirst    = 500 * time.Millisecond
	afterDetach    = 2 * time.Second
)

// poolStep grows the pool if it is low, and frees one ENI if there is one too many.
func (u *upstream) poolStep() {
	if u.low() {
		_ = u.increase() // a failure is only logged
	}
	u.freeOne()
}

// increase makes one step of growth: addresses on one ENI, or one new ENI.
func (u *upstream) increase() error {
	if u.shortAt >= 0 && u.n.w.clock-u.shortAt <= upstreamShort {
		return nil
	}
	added, err := u.fill()
	if err != nil || added {
		return err
	}
	if len(u.enis) < u.n.spec.Limits.ENIsByCard[0] {
		u.newENI()
	}
	return nil
}

// want returns how many CIDRs a step requests.
func (u *upstream) want() int {
	if !u.prefixes() {
		return u.slots()
	}
	free := 0
	for _, h := range u.enis {
		free += len(h.cidrs) - (h.used+blockSize-1)/blockSize
	}
	return max(1, u.n.spec.Policy.WarmPrefix-free)
}

// fill adds CIDRs to the first ENI with room. After an error it requests one CIDR; if that
// also fails, but not because of the subnet, the step has failed.
func (u *upstream) fill() (added bool, err error) {
	for _, h := range u.enis {
		count := min(u.slots()-len(h.cidrs), u.want())
		if count < 1 {
			continue
		}
		got, err := u.assignCIDRs(h, count)
		if err != nil && !errors.Is(err, errAddressMax) {
			got, err = u.assignCIDRs(h, 1)
		}
		switch {
		case err == nil:
			u.take(h, got)
			return true, nil
		case errors.Is(err, errAddressMax):
			return u.reread(h)
		case !insufficient(err):
			return false, err
		}
	}
	return false, nil
}

// reread adds the CIDRs that an ENI has in EC2.
func (u *upstream) reread(h *held) (added bool, err error) {
	found, err := u.describeOne(h.x.ID)
	if err != nil || len(found) == 0 {
		return false, err
	}
	u.take(h, found[0].CIDRs())
	return true, nil
}

// newENI creates, attaches and sets up an ENI. Errors are only logged.
func (u *upstream) newENI() {
	x := u.createSomewhere()
	if x == nil {
		return
	}
	device, err := u.freeDevice()
	if err != nil {
		_ = u.remove(x)
		return
	}
	attachment, err := u.attach(x.ID, device)
	if err != nil {
		_ = u.remove(x)
		return
	}
	if u.endWithInstance(x) != nil {
		if u.detachAndDelete(x, attachment) == nil {
			u.waitShown(nil) // upstream drops the error and waits for an ENI without an id
		}
		return
	}
	if u.waitShown(x) {
		u.setUp(x)
	}
}

// createSomewhere creates an ENI in the first candidate subnet where that succeeds.
func (u *upstream) createSomewhere() *eni {
	where := []string{u.n.primary.SubnetID}
	if subnets, err := u.describeSubnets(); err == nil {
		where = candidates(u.n, subnets)
	} else if _, err := u.describeSubnets(); err != nil { // is the node's own excluded?
		return nil
	}
	var failed error
	for _, subnet := range where {
		x, err := u.create(subnet, u.want())
		if err == nil {
			return x
		}
		failed = err
	}
	if insufficient(failed) {
		u.shortAt = u.n.w.clock
	}
	return nil
}

// waitShown waits until the metadata service shows an ENI; if x is nil, it never does.
func (u *upstream) waitShown(x *eni) bool {
	err := u.retry(upstreamTries, simpleBackoff{waitFirst, upstreamMost, upstreamJitter}, func() error {
		if x != nil {
			if _, shown := u.n.metadata.shown[x.ID]; shown {
				return nil
			}
		}
		return errMetadata
	})
	return err == nil
}

// setUp adds a new ENI to the datastore. If DescribeSubnets fails, the ENI remains in the
// datastore, empty.
func (u *upstream) setUp(x *eni) bool {
	h := u.hold(x)
	if _, err := u.describeSubnets(); err != nil {
		return false
	}
	u.take(h, u.shownCIDRs(x))
	return true
}

// freeOne frees an ENI without pods if there are enough addresses without it.
func (u *upstream) freeOne() {
	spare := u.n.spec.Policy.WarmENI
	if u.prefixes() {
		spare = u.n.spec.Policy.WarmPrefix
	}
	if u.available() < (spare+1)*u.slots()*u.per() {
		return
	}
	for i, h := range u.enis {
		if h.x == u.n.primary || h.used > 0 || u.n.w.clock-h.since < upstreamENIAge {
			continue
		}
		u.enis = append(u.enis[:i:i], u.enis[i+1:]...)
		u.total -= len(h.free)
		u.free(h.x)
		return
	}
}

func (u *upstream) free(x *eni) {
	found, err := u.describeOne(x.ID)
	if err != nil || len(found) == 0 {
		return
	}
	_ = u.detachAndDelete(x, found[0].AttachmentID)
}

func (u *upstream) detachAndDelete(x *eni, attachment string) error {
	err := u.retry(upstreamTries, simpleBackoff{detachFirst, upstreamMost, upstreamJitter}, func() error {
		return u.change(detachAction, func() error { return u.n.w.ec2.detachFor(u.n, attachment) })
	})
	if err != nil {
		return err
	}
	u.n.w.sleep(afterDetach)
	return u.remove(x)
}
