package fakeaws

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"cnictl/testenv/aws/ec2model"
)

// Snapshot is a copy of the world as plain values, ordered by id. It holds no times, so
// snapshots of the same state are equal under go-cmp with cmp.Comparer for netip types
// (cmpopts.EquateComparable).
type Snapshot struct {
	VPCs           []VPC
	Subnets        []Subnet
	SecurityGroups []SecurityGroup
	Instances      []Instance
	ENIs           []ENI
}

// Snapshot returns a snapshot of the world.
func (w *World) Snapshot() Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	var s Snapshot
	for _, id := range slices.Sorted(maps.Keys(w.vpcs)) {
		s.VPCs = append(s.VPCs, w.vpcs[id].clone())
	}
	for _, id := range slices.Sorted(maps.Keys(w.subnets)) {
		s.Subnets = append(s.Subnets, w.subnets[id].public())
	}
	for _, id := range slices.Sorted(maps.Keys(w.groups)) {
		s.SecurityGroups = append(s.SecurityGroups, *w.groups[id])
	}
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		s.Instances = append(s.Instances, w.instances[id].public())
	}
	for _, id := range slices.Sorted(maps.Keys(w.enis)) {
		s.ENIs = append(s.ENIs, w.enis[id].clone())
	}
	return s
}

// ENIs lists all network interfaces by id.
func (w *World) ENIs() []ENI { return w.Snapshot().ENIs }

// ENI looks up one network interface.
func (w *World) ENI(id string) (ENI, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.enis[id]; e != nil {
		return e.clone(), true
	}
	return ENI{}, false
}

// ENIsOf lists an instance's interfaces by card and device, whatever the state of
// their attachment.
func (w *World) ENIsOf(instanceID string) []ENI {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []ENI
	for _, e := range w.attachedTo(instanceID) {
		out = append(out, e.clone())
	}
	return out
}

// Instance looks up one instance.
func (w *World) Instance(id string) (Instance, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := w.instances[id]; i != nil {
		return i.public(), true
	}
	return Instance{}, false
}

// Subnet looks up one subnet.
func (w *World) Subnet(id string) (Subnet, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.subnets[id]; s != nil {
		return s.public(), true
	}
	return Subnet{}, false
}

// OwnerOf finds the ENI that owns an address, single or in a prefix.
func (w *World) OwnerOf(a netip.Addr) (ENI, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, bits := range []int{a.BitLen(), 28, 80} {
		c, err := a.Prefix(bits)
		if err != nil {
			continue
		}
		if e := w.enis[w.owners[c]]; e != nil {
			return e.clone(), true
		}
	}
	return ENI{}, false
}

// Check verifies the world's invariants. Tests call it last.
func (w *World) Check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.checkOwners(), w.checkFree(), w.checkLimits())
}

func (w *World) checkOwners() error {
	var errs []error
	seen := 0
	for _, e := range w.enis {
		for _, c := range e.CIDRs() {
			seen++
			if w.owners[c] != e.ID {
				errs = append(errs, fmt.Errorf("%s lists %s, which %q owns", e.ID, c, w.owners[c]))
			}
		}
	}
	if seen != len(w.owners) {
		errs = append(errs, fmt.Errorf("%d CIDRs listed by ENIs, %d owned", seen, len(w.owners)))
	}
	all := slices.SortedFunc(maps.Keys(w.owners), func(a, b netip.Prefix) int { return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits()) })
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.Overlaps(b) && w.enis[w.owners[a]].VPCID == w.enis[w.owners[b]].VPCID {
			errs = append(errs, fmt.Errorf("%s of %s overlaps %s of %s", a, w.owners[a], b, w.owners[b]))
		}
	}
	return errors.Join(errs...)
}

func (w *World) checkFree() error {
	var errs []error
	for _, s := range w.subnets {
		if !s.CIDR.IsValid() {
			continue // IPv6-only
		}
		want := 1<<(32-s.CIDR.Bits()) - ec2model.Reserved - len(s.occupied)
		for c, id := range w.owners {
			if c.Addr().Is4() && w.enis[id] != nil && w.enis[id].SubnetID == s.ID {
				want -= 1 << (32 - c.Bits())
			}
		}
		if s.pool.Free() != want {
			errs = append(errs, fmt.Errorf("%s counts %d free addresses, %d are", s.ID, s.pool.Free(), want))
		}
	}
	return errors.Join(errs...)
}

func (w *World) checkLimits() error {
	var errs []error
	for _, i := range w.instances {
		type slot struct{ card, device int }
		perCard, taken := map[int]int{}, map[slot]string{}
		for _, e := range w.attachedTo(i.ID) {
			at := slot{e.Attachment.Card, e.Attachment.Device}
			if other := taken[at]; other != "" {
				errs = append(errs, fmt.Errorf("%s: %s and %s both at card %d device %d", i.ID, other, e.ID, at.card, at.device))
			}
			taken[at] = e.ID
			perCard[at.card]++
			if e.slots() > i.limits.IPv4PerENI {
				errs = append(errs, fmt.Errorf("%s: %s holds %d addresses, limit %d", i.ID, e.ID, e.slots(), i.limits.IPv4PerENI))
			}
		}
		for card, n := range perCard {
			if room, _ := cardLimit(i.limits, card); n > room {
				errs = append(errs, fmt.Errorf("%s: %d ENIs on card %d, limit %d", i.ID, n, card, room))
			}
		}
	}
	return errors.Join(errs...)
}
