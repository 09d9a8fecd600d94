package sim

import (
	"cmp"
	"net/netip"
	"slices"

	"cnictl/daemon/budget"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
)

// This file is the EC2 calls of upstream, with the SDK's retries.

// originalAsk makes one call.
func originalAsk[T any](o *original, action string, mutating bool, effect func() (T, error)) (out T, err error) {
	w := o.n.w
	err = o.client.do(w, action, budget.Urgent, o.pause, func() (err error) {
		w.await(func(done func()) {
			out, err = answerOf(w, o.n, action, mutating, w.fateOf(), effect)
			w.after(w.answerAfter(action, fate{}, err), done)
		})
		return err
	})
	return out, err
}

// change is a call that only says whether it worked.
func (o *original) change(action string, effect func() error) error {
	_, err := originalAsk(o, action, true, func() (none, error) { return none{}, effect() })
	return err
}

func (o *original) describe(match func(*resync.ENI) bool) ([]resync.ENI, error) {
	return originalAsk(o, describeENIs, false, func() ([]resync.ENI, error) { return o.n.w.ec2.list(match), nil })
}

func (o *original) describeOne(id ipam.ENIID) ([]resync.ENI, error) {
	return o.describe(func(e *resync.ENI) bool { return e.ID == id })
}

func (o *original) describeSubnets() ([]resync.Subnet, error) {
	return originalAsk(o, describeSubnets, false, func() ([]resync.Subnet, error) { return o.n.w.ec2.describeSubnets(o.n), nil })
}

// freeDevice is DescribeInstances: the lowest unused device index.
func (o *original) freeDevice() (int, error) {
	return originalAsk(o, describeInstances, false, func() (int, error) {
		used := map[int]bool{}
		for _, x := range o.n.attached {
			used[x.Device] = true
		}
		device := 0
		for used[device] {
			device++
		}
		return device, nil
	})
}

func (o *original) create(subnet string, count int) (*eni, error) {
	spec := keeper.CreateENI{SubnetID: subnet, IPs: count, CreatedAt: o.n.w.now()}
	if o.prefixes() {
		spec.IPs, spec.Prefixes = 0, count
	}
	made, err := originalAsk(o, createAction, true, func() (resync.ENI, error) { return o.n.w.ec2.createFor(o.n, spec) })
	return o.n.w.ec2.enis[made.ID], err
}

func (o *original) attach(id ipam.ENIID, device int) (string, error) {
	return originalAsk(o, attachAction, true, func() (string, error) { return o.n.w.ec2.attachFor(o.n, id, device) })
}

// endWithInstance is the ModifyNetworkInterfaceAttribute of §4.5 step 6.
func (o *original) endWithInstance(x *eni) error {
	return o.change(modifyAction, func() error {
		x.DeleteOnTermination = true
		return nil
	})
}

func (o *original) assignCIDRs(h *held, count int) ([]netip.Prefix, error) {
	ips, prefixes := count, 0
	if o.prefixes() {
		ips, prefixes = 0, count
	}
	return originalAsk(o, assignAction, true, func() ([]netip.Prefix, error) { return o.n.w.ec2.assignFor(o.n, h.x.ID, ips, prefixes) })
}

// remove is DeleteNetworkInterface with its back-off (§4.8 step 4).
func (o *original) remove(x *eni) error {
	return o.retry(originalTries, simpleBackoff{deleteFirst, originalMost, originalJitter}, func() error {
		err := o.change(deleteAction, func() error { return o.n.w.ec2.deleteFor(o.n, x.ID) })
		if keeper.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// candidates are the subnets to try, the one with most free addresses first (§4.6).
func candidates(n *node, subnets []resync.Subnet) []string {
	slices.SortStableFunc(subnets, func(a, b resync.Subnet) int { return cmp.Compare(b.AvailableIPs, a.AvailableIPs) })
	var out []string
	for _, s := range subnets {
		role := s.Tags[resync.TagSubnetRole]
		if role != "0" && (role != "" || s.ID == n.primary.SubnetID) {
			out = append(out, s.ID)
		}
	}
	return out
}
