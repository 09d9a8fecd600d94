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

// This file has upstream's EC2 calls, with the SDK's retries.

// upstreamAsk makes one call.
func upstreamAsk[T any](u *upstream, action string, mutating bool, effect func() (T, error)) (out T, err error) {
	w := u.n.w
	err = u.client.do(w, action, budget.Urgent, u.pause, func() (err error) {
		w.await(func(done func()) {
			out, err = answerOf(w, u.n, action, mutating, w.fateOf(), effect)
			w.after(w.answerAfter(action, fate{}, err), done)
		})
		return err
	})
	return out, err
}

// change makes a call that returns only success or an error.
func (u *upstream) change(action string, effect func() error) error {
	_, err := upstreamAsk(u, action, true, func() (none, error) { return none{}, effect() })
	return err
}

func (u *upstream) describe(match func(*resync.ENI) bool) ([]resync.ENI, error) {
	return upstreamAsk(u, describeENIs, false, func() ([]resync.ENI, error) { return u.n.w.ec2.list(match), nil })
}

func (u *upstream) describeOne(id ipam.ENIID) ([]resync.ENI, error) {
	return u.describe(func(e *resync.ENI) bool { return e.ID == id })
}

func (u *upstream) describeSubnets() ([]resync.Subnet, error) {
	return upstreamAsk(u, describeSubnets, false, func() ([]resync.Subnet, error) { return u.n.w.ec2.describeSubnets(u.n), nil })
}

// freeDevice uses DescribeInstances to find the lowest unused device index.
func (u *upstream) freeDevice() (int, error) {
	return upstreamAsk(u, describeInstances, false, func() (int, error) {
		used := map[int]bool{}
		for _, x := range u.n.attached {
			used[x.Device] = true
		}
		device := 0
		for used[device] {
			device++
		}
		return device, nil
	})
}

func (u *upstream) create(subnet string, count int) (*eni, error) {
	spec := keeper.CreateENI{SubnetID: subnet, IPs: count, CreatedAt: u.n.w.now()}
	if u.prefixes() {
		spec.IPs, spec.Prefixes = 0, count
	}
	made, err := upstreamAsk(u, createAction, true, func() (resync.ENI, error) { return u.n.w.ec2.createFor(u.n, spec) })
	return u.n.w.ec2.enis[made.ID], err
}

func (u *upstream) attach(id ipam.ENIID, device int) (string, error) {
	return upstreamAsk(u, attachAction, true, func() (string, error) { return u.n.w.ec2.attachFor(u.n, id, device) })
}

// endWithInstance is the ModifyNetworkInterfaceAttribute that deletes an ENI with its
// instance.
func (u *upstream) endWithInstance(x *eni) error {
	return u.change(modifyAction, func() error {
		x.DeleteOnTermination = true
		return nil
	})
}

func (u *upstream) assignCIDRs(h *held, count int) ([]netip.Prefix, error) {
	ips, prefixes := count, 0
	if u.prefixes() {
		ips, prefixes = 0, count
	}
	return upstreamAsk(u, assignAction, true, func() ([]netip.Prefix, error) { return u.n.w.ec2.assignFor(u.n, h.x.ID, ips, prefixes) })
}

// remove is DeleteNetworkInterface with its back-off.
func (u *upstream) remove(x *eni) error {
	return u.retry(upstreamTries, simpleBackoff{deleteFirst, upstreamMost, upstreamJitter}, func() error {
		err := u.change(deleteAction, func() error { return u.n.w.ec2.deleteFor(u.n, x.ID) })
		if keeper.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// candidates returns the subnets to try, the one with the most free addresses first.
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
