package sim

import (
	"context"
	"net/netip"
	"slices"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// Mistake is a deliberate bug that the simulation must find. It sits between a keeper and its
// outside, so that the node behaves like a daemon with that bug.
type Mistake string

const (
	answerBeforeDurable Mistake = "answer before durable" // a write is reported before it is done
	forgetOnRestart     Mistake = "forget on restart"     // a start misses an allocation
	releaseWithoutHold  Mistake = "release without hold"  // an address that pods can still get is released to EC2
	leakDetached        Mistake = "leak detached"         // a detached ENI is not deleted
	keepMissedDELs      Mistake = "keep missed DELs"      // the host's links are not compared with the book
	ignoreQuarantine    Mistake = "ignore quarantine"     // an address that EC2 does not show is dropped with its pod
	trustMetadata       Mistake = "trust metadata"        // what the metadata service does not show counts as gone
	leakFailedAttach    Mistake = "leak failed attach"    // an ENI whose attach failed is not deleted
	keepFlows           Mistake = "keep flows"            // the second pass over connection tracking is reported, not made
	doubtENIs           Mistake = "doubt ENI limit"       // EC2's limit of ENIs is not believed
	doubtAddresses      Mistake = "doubt address limit"   // EC2's limit of addresses per ENI is not believed
)

// Mistakes returns all mistakes.
func Mistakes() []Mistake {
	return []Mistake{
		answerBeforeDurable, forgetOnRestart, releaseWithoutHold, leakDetached, keepMissedDELs, ignoreQuarantine, trustMetadata, leakFailedAttach, keepFlows,
		doubtENIs, doubtAddresses,
	}
}

// Find plays seeds with the mistake until one fails. It returns the failure, or nil.
func (m Mistake) Find(start, seeds uint64) *Failure {
	for seed := start; seed < start+seeds; seed++ {
		s := ScenarioOf(seed)
		s.Mistake = m
		if f := Play(s, nil).Failure; f != nil {
			return f
		}
	}
	return nil
}

// forget removes an allocation from what a start reads.
func (m Mistake) forget(entries []checkpoint.Entry, pods []resync.PodRoute) ([]checkpoint.Entry, []resync.PodRoute) {
	if m != forgetOnRestart || len(entries) == 0 {
		return entries, pods
	}
	return entries[1:], slices.DeleteFunc(pods, func(r resync.PodRoute) bool { return r.Address == entries[0].Address() })
}

// distort falsifies what the daemon observed.
func (m Mistake) distort(msg keeper.Message, instance string) keeper.Message {
	switch done := msg.(type) {
	case keeper.AttachDone:
		if m == doubtENIs && keeper.CauseOf(done.Err) == cause.ENIAttachLimit {
			done.Err = refused("a limit")
		}
		return done
	case keeper.AssignDone:
		if m == doubtAddresses {
			done.Refused = 0
		}
		return done
	}
	v, ok := msg.(keeper.Observed)
	switch {
	case !ok:
		return msg
	case m == keepMissedDELs:
		v.Links = nil // not read, so nothing can be concluded
	case m == trustMetadata && v.AskedMetadata && v.InterfacesErr == nil:
		v.AskedEC2, v.ENIs, v.ENIsErr = true, nil, nil
		for _, f := range v.Interfaces {
			e := resync.ENI{
				ID: f.ENI, MAC: f.MAC, Card: f.Card, Device: f.Device, SubnetID: f.SubnetID, Prefixes: f.Prefixes,
				AttachmentID: "eni-attach-0", AttachmentStatus: resync.AttachmentAttached, InstanceID: instance,
			}
			if len(f.IPv4s) > 0 {
				e.PrimaryIP, e.SecondaryIPs = f.IPv4s[0], f.IPv4s[1:]
			}
			v.ENIs = append(v.ENIs, e)
		}
	}
	return v
}

// dropQuarantined drops the records of pods with quarantined addresses, as upstream does.
func (p *process) dropQuarantined() {
	for _, e := range p.keeper.ENIs() {
		for _, c := range e.CIDRs {
			if !e.Quarantined() && !c.Quarantined() {
				continue
			}
			for _, a := range p.keeper.Assignments() {
				if c.Prefix.Contains(a.Address) {
					p.post(&keeper.Del{Reply: func(*cniwire.DelReply) {}, Request: &cniwire.DelRequest{
						PodName: a.Pod.Name, PodNamespace: a.Pod.Namespace,
						ContainerID: a.Sandbox.ContainerID, IfName: a.Sandbox.IfName, NetworkName: a.Sandbox.Network,
					}})
				}
			}
		}
	}
}

// mistaken makes a task's calls, with the bug.
type mistaken struct {
	*calls
	task keeper.Task
}

// DeleteENI leaks the ENI if the mistake says so.
func (c *mistaken) DeleteENI(ctx context.Context, id ipam.ENIID) error {
	op, _ := c.task.(keeper.Operation)
	switch mistake := c.p.node.w.Scenario.Mistake; {
	case mistake == leakDetached && op.ID != 0 && op.Kind == warmpool.PendingDetach,
		mistake == leakFailedAttach && op.ID != 0 && op.Kind == warmpool.PendingAttach:
		return nil
	}
	return c.calls.DeleteENI(ctx, id)
}

// DeleteFlows leaves out the addresses that had a pass.
func (c *mistaken) DeleteFlows(ctx context.Context, of func(netip.Addr) bool) (int, error) {
	if n := c.p.node; n.w.Scenario.Mistake == keepFlows {
		return c.calls.DeleteFlows(ctx, func(a netip.Addr) bool { return n.rested[a].passes == 0 && of(a) })
	}
	return c.calls.DeleteFlows(ctx, of)
}

// Post distorts what the task reports.
func (c *mistaken) Post(m keeper.Message) {
	c.calls.Post(c.p.node.w.Scenario.Mistake.distort(m, c.p.node.instance))
}

// Unassign also releases one more address, without a hold in the book.
func (c *mistaken) Unassign(ctx context.Context, id ipam.ENIID, cidrs []netip.Prefix) error {
	if c.p.node.w.Scenario.Mistake == releaseWithoutHold {
		for _, e := range c.p.keeper.ENIs() {
			for _, more := range e.CIDRs {
				if e.ID == id && !more.Held && more.Assigned == 0 && !slices.Contains(cidrs, more.Prefix) {
					return c.calls.Unassign(ctx, id, append(slices.Clone(cidrs), more.Prefix))
				}
			}
		}
	}
	return c.calls.Unassign(ctx, id, cidrs)
}
