package sim

import (
	"errors"
	"time"
)

// This file is one pool step of upstream (§4.2 to §4.8).

// Back-offs of upstream's helper: ×2, up to most, each step up to jitter longer.
const (
	originalMost   = time.Minute
	originalJitter = 0.15
	waitFirst      = 100 * time.Millisecond // §4.5 step 7
	detachFirst    = 200 * time.Millisecond // §4.8 step 2
	deleteFirst    = 500 * time.Millisecond // §4.8 step 4
	afterDetach    = 2 * time.Second        // §4.8 step 3
)

// poolStep grows the pool if it is low; it frees one ENI if there is one too many.
func (o *original) poolStep() {
	if o.low() {
		_ = o.increase() // a failure is only logged
	}
	o.freeOne()
}

// increase is one step of growth: addresses on one ENI, or one ENI.
func (o *original) increase() error {
	if o.shortAt >= 0 && o.n.w.clock-o.shortAt <= originalShort {
		return nil
	}
	added, err := o.fill()
	if err != nil || added {
		return err
	}
	if len(o.enis) < o.n.spec.Limits.ENIsByCard[0] {
		o.newENI()
	}
	return nil
}

// want is how many CIDRs a step asks for.
func (o *original) want() int {
	if !o.prefixes() {
		return o.slots()
	}
	free := 0
	for _, h := range o.enis {
		free += len(h.cidrs) - (h.used+blockSize-1)/blockSize
	}
	return max(1, o.n.spec.Policy.WarmPrefix-free)
}

// fill adds CIDRs to the first ENI that takes some. After an error it asks for one; after
// another that says nothing of the subnet, the step has failed (§4.4 steps 3 to 5).
func (o *original) fill() (added bool, err error) {
	for _, h := range o.enis {
		count := min(o.slots()-len(h.cidrs), o.want())
		if count < 1 {
			continue
		}
		got, err := o.assignCIDRs(h, count)
		if err != nil && !errors.Is(err, errAddressMax) {
			got, err = o.assignCIDRs(h, 1)
		}
		switch {
		case err == nil:
			o.take(h, got)
			return true, nil
		case errors.Is(err, errAddressMax):
			return o.reread(h)
		case !insufficient(err):
			return false, err
		}
	}
	return false, nil
}

// reread adds what EC2 says an ENI has.
func (o *original) reread(h *held) (added bool, err error) {
	found, err := o.describeOne(h.x.ID)
	if err != nil || len(found) == 0 {
		return false, err
	}
	o.take(h, found[0].CIDRs())
	return true, nil
}

// newENI is §4.5. What goes wrong is only logged.
func (o *original) newENI() {
	x := o.createSomewhere()
	if x == nil {
		return
	}
	device, err := o.freeDevice()
	if err != nil {
		_ = o.remove(x)
		return
	}
	attachment, err := o.attach(x.ID, device)
	if err != nil {
		_ = o.remove(x)
		return
	}
	if o.endWithInstance(x) != nil {
		if o.detachAndDelete(x, attachment) == nil {
			o.waitShown(nil) // the error is lost, and an ENI without an id waited for
		}
		return
	}
	if o.waitShown(x) {
		o.setUp(x)
	}
}

// createSomewhere creates an ENI in the first candidate subnet that gives one (§4.5
// steps 2 and 3).
func (o *original) createSomewhere() *eni {
	where := []string{o.n.primary.SubnetID}
	if subnets, err := o.describeSubnets(); err == nil {
		where = candidates(o.n, subnets)
	} else if _, err := o.describeSubnets(); err != nil { // is the node's own excluded?
		return nil
	}
	var failed error
	for _, subnet := range where {
		x, err := o.create(subnet, o.want())
		if err == nil {
			return x
		}
		failed = err
	}
	if insufficient(failed) {
		o.shortAt = o.n.w.clock
	}
	return nil
}

// waitShown waits until the metadata service shows an ENI (nil: one that never comes).
func (o *original) waitShown(x *eni) bool {
	err := o.retry(originalTries, simpleBackoff{waitFirst, originalMost, originalJitter}, func() error {
		if x != nil {
			if _, shown := o.n.metadata.shown[x.ID]; shown {
				return nil
			}
		}
		return errMetadata
	})
	return err == nil
}

// setUp is §1.7. An error of DescribeSubnets leaves the ENI in the datastore, empty.
func (o *original) setUp(x *eni) bool {
	h := o.hold(x)
	if _, err := o.describeSubnets(); err != nil {
		return false
	}
	o.take(h, o.shownCIDRs(x))
	return true
}

// freeOne frees an ENI without pods if there are addresses of one too many (§4.8).
func (o *original) freeOne() {
	spare := o.n.spec.Policy.WarmENI
	if o.prefixes() {
		spare = o.n.spec.Policy.WarmPrefix
	}
	if o.available() < (spare+1)*o.slots()*o.per() {
		return
	}
	for i, h := range o.enis {
		if h.x == o.n.primary || h.used > 0 || o.n.w.clock-h.since < originalENIAge {
			continue
		}
		o.enis = append(o.enis[:i:i], o.enis[i+1:]...)
		o.total -= len(h.free)
		o.free(h.x)
		return
	}
}

func (o *original) free(x *eni) {
	found, err := o.describeOne(x.ID)
	if err != nil || len(found) == 0 {
		return
	}
	_ = o.detachAndDelete(x, found[0].AttachmentID)
}

func (o *original) detachAndDelete(x *eni, attachment string) error {
	err := o.retry(originalTries, simpleBackoff{detachFirst, originalMost, originalJitter}, func() error {
		return o.change(detachAction, func() error { return o.n.w.ec2.detachFor(o.n, attachment) })
	})
	if err != nil {
		return err
	}
	o.n.w.sleep(afterDetach)
	return o.remove(x)
}
