package fakeaws

import "net/netip"

// ChangeKind is the kind of a Change.
type ChangeKind string

const (
	InstanceAdded   ChangeKind = "instance-added"
	InstanceRemoved ChangeKind = "instance-removed"
	ENIAttached     ChangeKind = "eni-attached" // the attachment completed; also the primary ENI's, right after InstanceAdded
	ENIDetached     ChangeKind = "eni-detached" // the attachment ended; also the primary ENI's, right before InstanceRemoved
	CIDRsAssigned   ChangeKind = "cidrs-assigned"
	CIDRsUnassigned ChangeKind = "cidrs-unassigned"
	ENIModified     ChangeKind = "eni-modified" // source/destination check, groups, delete-on-termination

	BranchAssociated    ChangeKind = "branch-associated" // ENI is the branch, Instance that of the trunk
	BranchDisassociated ChangeKind = "branch-disassociated"
)

// Change is one step of the world.
//
// ENIAttached carries everything the ENI owns in ENI.CIDRs(). CIDRsAssigned and
// CIDRsUnassigned concern existing ENIs, attached or not: see ENI.Attachment. ENI
// is the state right after the step, except that ENIDetached still shows the
// attachment that ended.
type Change struct {
	Kind     ChangeKind
	Instance Instance // InstanceAdded and InstanceRemoved; for ENIs, the one they are attached to
	ENI      ENI
	CIDRs    []netip.Prefix // CIDRsAssigned, CIDRsUnassigned: /32, /28, /128, /80
	Branch   Association    // BranchAssociated, BranchDisassociated
}

// Subscribe calls f for every later change, in order, one at a time, before the call that
// caused the change returns. f runs outside the world's lock: it may read the world, but not
// change it.
//
// The returned function ends the subscription; once it returns, f is neither running nor
// called again. It must not be called from within f.
func (w *World) Subscribe(f func(Change)) (cancel func()) {
	w.deliverMu.Lock()
	defer w.deliverMu.Unlock()
	id := w.nextSubscriber
	w.nextSubscriber++
	w.subscribers = append(w.subscribers, subscriber{id, f})
	return func() {
		w.deliverMu.Lock()
		defer w.deliverMu.Unlock()
		for i, s := range w.subscribers {
			if s.id == id {
				w.subscribers = append(w.subscribers[:i:i], w.subscribers[i+1:]...)
				return
			}
		}
	}
}

type subscriber struct {
	id int
	f  func(Change)
}

// emit queues a change. The caller holds mu and ends with update's delivery.
func (w *World) emit(c Change) { w.pending = append(w.pending, c) }

// deliver passes queued changes to the subscribers. When it returns, all changes queued
// before the call have been delivered, by this caller or another one.
func (w *World) deliver() {
	w.deliverMu.Lock()
	defer w.deliverMu.Unlock()
	for {
		w.mu.Lock()
		batch := w.pending
		w.pending = nil
		w.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, c := range batch {
			for _, s := range w.subscribers {
				s.f(c)
			}
		}
	}
}
