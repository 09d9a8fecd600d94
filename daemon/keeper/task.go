package keeper

import (
	"context"
	"net/netip"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// Task is something to be done outside, beside the Keeper. The set is closed.
type Task interface {
	carry(ctx context.Context, c Calls, post func(Message))
}

// Urgent reports that pods wait for a task: its calls go before others.
func Urgent(t Task) bool {
	switch t := t.(type) {
	case AttachTask:
		return t.Urgent
	case AssignTask:
		return t.Urgent
	case AdoptTask, SubnetsTask:
		return true
	}
	return false
}

// Grows reports that a task adds to the pool. Begun for a reserve, it is as urgent as
// any as soon as a pod waits: what it brings is the next that the pod can get.
func Grows(t Task) bool {
	switch t.(type) {
	case AttachTask, AssignTask:
		return true
	}
	return false
}

// urgent reports that a reason to grow is a pod's and not a warm target's.
func urgent(why warmpool.Reason) bool {
	switch why {
	case warmpool.WaitingPods, warmpool.ExpectedPods, warmpool.PoolEmpty:
		return true
	}
	return false
}

// Carry carries out a task and posts what came of it. It blocks for as long as the
// calls do.
func Carry(ctx context.Context, c Calls, t Task, post func(Message)) { t.carry(ctx, c, post) }

// AttachTask makes an ENI.
type AttachTask struct {
	ID     OpID
	Urgent bool // pods wait for it
	Plan   AttachPlan
}

func (t AttachTask) carry(ctx context.Context, c Calls, post func(Message)) {
	res := attachENI(ctx, c, t.Plan,
		func(id ipam.ENIID) { post(ENICreated{t.ID, id}) },
		func(id ipam.ENIID) { post(AttachAccepted{t.ID, id}) })
	post(AttachDone{t.ID, res})
	if res.Err == nil || res.ENI.ID == "" {
		return
	}
	// The failure is known by now and the pool looks elsewhere: what was made is put
	// away, however long that takes.
	if res.Attached {
		if err := detachENI(ctx, c, res.ENI, nil, res.Attachment); err != nil {
			c.Note(FailedAttachAttached, res.ENI.ID, err)
			AdoptTask{
				Attached: resync.Attached{ENI: res.ENI, CIDRs: res.CIDRs, AttachmentID: res.Attachment}, Ours: true, EndWithInstance: true,
			}.carry(ctx, c, post)
			return
		}
		post(Gone{res.ENI})
	}
	if err := deleteENI(ctx, c, res.ENI.ID); err != nil {
		c.Note(FailedAttachKept, res.ENI.ID, err)
	}
}

// AdoptTask sets up an attached ENI that could not be set up before.
type AdoptTask struct {
	Attached        resync.Attached
	Before          []ipam.ENI // what the same ENI was before it moved: torn down first
	Ours            bool       // made by this node's daemon: deleted when it is found detached
	EndWithInstance bool       // it is not marked yet to end with the instance
}

func (t AdoptTask) carry(ctx context.Context, c Calls, post func(Message)) {
	TearDownTask{t.Before}.carry(ctx, c, post)
	id := t.Attached.ENI.ID
	var adopted, ended bool
	err := c.Both(
		func() error {
			if !t.EndWithInstance {
				return nil
			}
			return endWithInstance(ctx, c, id, t.Attached.AttachmentID)
		},
		func() error { adopted, ended = adoptENI(ctx, c, t.Attached.ENI); return nil },
	)
	if err != nil {
		c.Note("ENI may outlive its instance", id, err)
	}
	switch {
	case adopted:
		post(Adopted{t.Attached})
	case ended:
		post(Gone{t.Attached.ENI})
		if t.Ours {
			DeleteTask{[]ipam.ENIID{id}}.carry(ctx, c, post)
		}
	}
}

// AssignTask asks for addresses or prefixes.
type AssignTask struct {
	ID            OpID
	ENI           ipam.ENIID
	IPs, Prefixes int
	IPv6          bool // a /80
	Urgent        bool // pods wait for it
}

func (t AssignTask) carry(ctx context.Context, c Calls, post func(Message)) {
	post(AssignDone{t.ID, assignAddresses(ctx, c, t.ENI, t.IPs, t.Prefixes, t.IPv6)})
}

// ReleaseTask gives CIDRs back.
type ReleaseTask struct {
	ID    OpID
	ENI   ipam.ENIID
	CIDRs []netip.Prefix
}

func (t ReleaseTask) carry(ctx context.Context, c Calls, post func(Message)) {
	post(ReleaseDone{t.ID, releaseCIDRs(ctx, c, t.ENI, t.CIDRs)})
}

// DetachTask takes an ENI off the instance and deletes it.
type DetachTask struct {
	ID         OpID
	ENI        ipam.ENI
	CIDRs      []netip.Prefix // that it has by the book
	Attachment string
}

func (t DetachTask) carry(ctx context.Context, c Calls, post func(Message)) {
	err := detachENI(ctx, c, t.ENI, t.CIDRs, t.Attachment)
	post(DetachDone{t.ID, err})
	if err == nil {
		DeleteTask{[]ipam.ENIID{t.ENI.ID}}.carry(ctx, c, post)
	}
}

// DeleteTask deletes ENIs of this node as soon as they are attached nowhere.
type DeleteTask struct{ ENIs []ipam.ENIID }

func (t DeleteTask) carry(ctx context.Context, c Calls, _ func(Message)) {
	for _, id := range t.ENIs {
		if err := deleteENI(ctx, c, id); err != nil {
			c.Note(DetachedKept, id, err)
			continue
		}
		c.Note(ENIFreed, id, nil)
	}
}

// Notes of tasks.
const (
	ENIFreed         Note = "ENI freed" // deleted
	DetachedKept     Note = "ENI detached but not deleted"
	FailedAttachKept Note = "ENI of a failed attach not deleted"
	// FailedAttachAttached: its cleanup failed, the ENI is kept.
	FailedAttachAttached Note = "ENI of a failed attach not detached, it is set up after all"
)

// SubnetsTask reads the subnets.
type SubnetsTask struct{}

func (SubnetsTask) carry(ctx context.Context, c Calls, post func(Message)) {
	subnets, err := c.DescribeSubnets(ctx)
	post(SubnetsRead{subnets, err})
}

// LookTask reads what the outside shows.
type LookTask struct {
	Metadata bool
	EC2      bool
}

func (t LookTask) carry(ctx context.Context, c Calls, post func(Message)) {
	post(Looked{observe(ctx, c, t.Metadata, t.EC2)})
}

// DropTask removes the rules of pods that are gone.
type DropTask struct{ Gone []ipam.Assignment }

func (t DropTask) carry(ctx context.Context, c Calls, post func(Message)) {
	post(Dropped{t.Gone, dropPods(ctx, c, t.Gone)})
}

// TearDownTask removes the rules of ENIs that are gone.
type TearDownTask struct{ ENIs []ipam.ENI }

func (t TearDownTask) carry(ctx context.Context, c Calls, _ func(Message)) {
	for _, e := range t.ENIs {
		if err := c.TeardownENI(ctx, e.PrimaryIP); err != nil {
			c.Note(RulesKept, e.ID, err)
		}
	}
}

// SweepTask looks for leaked ENIs.
type SweepTask struct{ In resync.LeakInput }

func (t SweepTask) carry(ctx context.Context, c Calls, post func(Message)) {
	post(Swept{sweepLeaked(ctx, c, t.In)})
}

// TagTask writes the tags that ENIs lack and lets them end with their instance.
type TagTask struct{ ENIs []resync.ENI }

func (t TagTask) carry(ctx context.Context, c Calls, _ func(Message)) {
	tagENIs(ctx, c, t.ENIs)
}
