package keeper

import (
	"context"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// Task is work to be done outside, concurrently with the Keeper. The set is closed.
type Task interface {
	run(ctx context.Context, c Calls)
}

// Urgent reports whether pods wait for a task: its calls take precedence.
func Urgent(t Task) bool {
	switch t := t.(type) {
	case Operation:
		return Grows(t) && urgent(t.Reason)
	case AdoptTask, SubnetsTask:
		return true
	}
	return false
}

// Grows reports whether a task adds to the pool. Even if begun for a reserve, it is urgent as
// soon as a pod waits: what it brings is the next address that the pod can get.
func Grows(t Task) bool {
	op, ok := t.(Operation)
	return ok && (op.Kind == warmpool.PendingAttach || op.Kind == warmpool.PendingAssign)
}

// urgent reports whether the reason to grow is a pod rather than a warm target.
func urgent(why warmpool.Reason) bool {
	switch why {
	case warmpool.WaitingPods, warmpool.ExpectedPods, warmpool.PoolEmpty:
		return true
	}
	return false
}

// Run carries out a task. It blocks for as long as the calls do.
func Run(ctx context.Context, c Calls, t Task) { t.run(ctx, c) }

// runAttach creates and attaches an ENI, and cleans up after a failure.
func runAttach(ctx context.Context, c Calls, op Operation) {
	res := attachENI(ctx, c, op)
	c.Post(res)
	if res.Err == nil || res.ENI.ID == "" {
		return
	}
	// The pool already knows of the failure and grows elsewhere, so this may take time.
	if res.Attached {
		failed := resync.Attached{ENI: res.ENI, CIDRs: res.CIDRs, AttachmentID: res.Attachment}
		if err := detachENI(ctx, c, resync.Attached{ENI: res.ENI, AttachmentID: res.Attachment}); err != nil {
			note(c, FailedAttachAttached, res.ENI.ID, err)
			AdoptTask{Attached: failed, Ours: true}.run(ctx, c)
			return
		}
		c.Post(Gone{res.ENI})
	}
	if err := deleteENI(ctx, c, res.ENI.ID); err != nil {
		note(c, FailedAttachKept, res.ENI.ID, err)
	}
}

// AdoptTask sets up an attached ENI that could not be set up before.
type AdoptTask struct {
	Attached resync.Attached
	Before   []ipam.ENI // the same ENI before it moved: torn down first
	Ours     bool       // created by this node's daemon: deleted if found detached
}

func (t AdoptTask) run(ctx context.Context, c Calls) {
	TearDownTask{t.Before}.run(ctx, c)
	id := t.Attached.ENI.ID
	adopted, ended := adoptENI(ctx, c, t.Attached.ENI)
	switch {
	case adopted:
		c.Post(Adopted{t.Attached})
	case ended:
		c.Post(Gone{t.Attached.ENI})
		if t.Ours {
			DeleteTask{[]ipam.ENIID{id}}.run(ctx, c)
		}
	}
}

// DeleteTask deletes ENIs of this node once they are not attached.
type DeleteTask struct{ ENIs []ipam.ENIID }

func (t DeleteTask) run(ctx context.Context, c Calls) {
	for _, id := range t.ENIs {
		if err := deleteENI(ctx, c, id); err != nil {
			note(c, DetachedKept, id, err)
			continue
		}
		note(c, ENIFreed, id, nil)
	}
}

// Notes of tasks.
const (
	ENIFreed         Note = "ENI freed" // deleted
	DetachedKept     Note = "ENI detached but not deleted"
	FailedAttachKept Note = "ENI of a failed attach not deleted"
	// FailedAttachAttached: the cleanup failed, so the ENI is kept.
	FailedAttachAttached Note = "could not detach the ENI of a failed attach; using it instead"
)

// SubnetsTask reads the subnets.
type SubnetsTask struct{}

func (SubnetsTask) run(ctx context.Context, c Calls) {
	subnets, err := c.DescribeSubnets(ctx)
	c.Post(SubnetsRead{subnets, err})
}

// ObserveTask reads what the outside shows.
type ObserveTask struct {
	Metadata bool
	EC2      bool
}

func (t ObserveTask) run(ctx context.Context, c Calls) {
	c.Post(observe(ctx, c, t.Metadata, t.EC2))
}

// DropTask removes the rules of pods that are gone.
type DropTask struct{ Gone []ipam.Assignment }

func (t DropTask) run(ctx context.Context, c Calls) {
	c.Post(Dropped{t.Gone, dropPods(ctx, c, t.Gone)})
}

// TearDownTask removes the rules of ENIs that are gone.
type TearDownTask struct{ ENIs []ipam.ENI }

func (t TearDownTask) run(ctx context.Context, c Calls) {
	for _, e := range t.ENIs {
		if err := c.TeardownENI(ctx, e.PrimaryIP); err != nil {
			note(c, RulesKept, e.ID, err)
		}
	}
}

// SweepTask deletes leaked ENIs.
type SweepTask struct{ In resync.LeakInput }

func (t SweepTask) run(ctx context.Context, c Calls) {
	c.Post(sweepLeaked(ctx, c, t.In))
}

// TagTask adds missing tags to ENIs.
type TagTask struct{ ENIs []resync.ENI }

func (t TagTask) run(ctx context.Context, c Calls) {
	tagENIs(ctx, c, t.ENIs)
}
