package fakeaws

import (
	"slices"
	"time"
)

// view is what IMDS shows of an instance's network from a given time.
type view struct {
	from      time.Time
	enis      []ENI // attached ones, ordered by MAC
	vpc       VPC
	subnets   map[string]Subnet
	groupName map[string]string
}

// refreshENI adds a view of the instance that an ENI is attached to. The caller holds mu.
func (w *World) refreshENI(e *ENI) {
	if e.Attachment.InstanceID != "" {
		w.refreshViews(func(i *instance) bool { return i.ID == e.Attachment.InstanceID })
	}
}

func (w *World) refreshViews(of func(*instance) bool) {
	now := w.opts.Now()
	for _, i := range w.instances {
		if !of(i) {
			continue
		}
		v := view{from: now, vpc: w.vpcs[i.VPCID].clone(), subnets: make(map[string]Subnet), groupName: make(map[string]string)}
		for _, e := range w.attachedTo(i.ID) {
			if e.Attachment.Status == statusAttaching || w.trunks.veils[e.ID].metadata {
				continue
			}
			v.enis = append(v.enis, e.clone())
			v.subnets[e.SubnetID] = w.subnets[e.SubnetID].public()
			for _, g := range e.SecurityGroups {
				v.groupName[g] = w.groups[g].Name
			}
		}
		i.views = append(i.pruned(now, w.wire.metadataLag()), v)
	}
}

// pruned drops views that no later request needs.
func (i *instance) pruned(now time.Time, lag time.Duration) []view {
	k := i.current(now, lag)
	return slices.Delete(i.views, 0, max(k, 0))
}

// current is the index of the view that IMDS shows now: the last that is old enough.
func (i *instance) current(now time.Time, lag time.Duration) int {
	for k := len(i.views) - 1; k >= 0; k-- {
		if !i.views[k].from.Add(lag).After(now) {
			return k
		}
	}
	return min(0, len(i.views)-1) // the first view counts from the instance's start
}

// metadata returns what IMDS shows an instance.
func (w *World) metadata(instanceID string) (Instance, view, time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.instances[instanceID]
	if i == nil {
		return Instance{}, view{}, time.Time{}, false
	}
	return i.public(), i.views[i.current(w.opts.Now(), w.wire.metadataLag())], i.started, true
}
