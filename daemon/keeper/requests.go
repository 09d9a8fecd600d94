package keeper

import (
	"errors"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// A sandbox key that very old releases wrote for pods migrated from the runtime's
// records (spec/ipamd.md §2.3).
const (
	migratedNetwork = "_migrated-from-cri"
	migratedIfName  = "unknown"
)

// Add asks for an address. Reply is called exactly once, by Handle or by Step.
type Add struct {
	Request  *cniwire.AddRequest
	Arrived  time.Time
	Deadline time.Time // until when it may wait for the pool
	Reply    func(*cniwire.AddReply)
}

// Abandon ends the wait of an Add whose caller went away.
type Abandon struct{ Add *Add }

func (m Abandon) handle(k *Keeper, now time.Time) {
	if i := slices.Index(k.waiting, m.Add); i >= 0 {
		k.waiting = slices.Delete(k.waiting, i, i+1)
		k.failAdd(m.Add, now, cause.PoolDry, "the caller gave up waiting", true)
	}
}

func (r *Add) sandbox() ipam.Sandbox {
	return ipam.Sandbox{Network: r.Request.NetworkName, ContainerID: r.Request.ContainerID, IfName: r.Request.IfName}
}

func (r *Add) pod() ipam.Pod {
	return ipam.Pod{Namespace: r.Request.PodNamespace, Name: r.Request.PodName, Interfaces: 1}
}

func (r *Add) handle(k *Keeper, now time.Time) {
	s := r.sandbox()
	switch {
	case s.Network == "" || s.ContainerID == "" || s.IfName == "":
		k.failAdd(r, now, cause.InvalidRequest, "the request lacks its "+strings.Join(missing(s), " and its "), false)
	case r.Request.RequiresMultiNIC:
		k.failAdd(r, now, cause.MultiNICDisabled, "pod annotation k8s.amazonaws.com/nicConfig asks for several interfaces", false)
	case k.terminating:
		k.failAdd(r, now, cause.DaemonTerminating, cause.DaemonTerminating.Title(), true)
	case len(k.waiting) > 0 && !k.holds(s):
		k.enqueue(r, now) // first come, first served
	case k.recon.dropping[s]:
		// Its pod's link was gone and its rules are being removed: what the plugin made
		// now would go with them.
		k.failAdd(r, now, cause.Internal, "the sandbox's last network is still being removed", true)
	default:
		if err := k.assign(r, now); errors.Is(err, ipam.ErrNoAddress) {
			k.enqueue(r, now)
		}
	}
}

// missing names what a sandbox key lacks. Ids are not told: they are nobody's business.
func missing(s ipam.Sandbox) (out []string) {
	if s.Network == "" {
		out = append(out, "network name")
	}
	if s.ContainerID == "" {
		out = append(out, "container id")
	}
	if s.IfName == "" {
		out = append(out, "interface name")
	}
	return out
}

func (k *Keeper) holds(s ipam.Sandbox) bool {
	_, ok := k.book.Lookup(s)
	return ok
}

// assign gives the request an address, or returns ipam.ErrNoAddress with nothing
// changed. Any other failure is answered here.
func (k *Keeper) assign(r *Add, now time.Time) error {
	crashpoint.Here(crashpoint.BeforeBookAssign)
	ch, err := k.assignAny(r, now)
	switch {
	case errors.Is(err, ipam.ErrNoAddress):
		return err
	case err != nil:
		k.failAdd(r, now, cause.Internal, err.Error(), false)
		return nil
	}
	crashpoint.Here(crashpoint.AfterBookAssign)
	a := ch.Assigned[0]
	if k.unsettled[a.Address] && !ch.Existing {
		// The DEL of its last pod is not on disk: it may yet be taken back.
		k.apply(now, ipam.Revert{Sandbox: a.Sandbox})
		return ipam.ErrNoAddress
	}
	if a.ENI == "" {
		// Restored, kept, but nobody knows which table its traffic belongs into.
		k.failAdd(r, now, cause.Internal, "the sandbox's address "+a.Address.String()+" is on no network interface that EC2 lists for this instance", true)
		return nil
	}
	if ch.Existing {
		delete(k.recon.absent, a.Sandbox) // its link is about to be made again
	} else {
		k.ledger.put(a)
		k.changed()
	}
	if k.bugs.AnswerBeforeDurable {
		k.answerAssigned(r, a, now)
		return nil
	}
	k.answerDurably(now,
		func(now time.Time) { k.answerAssigned(r, a, now) },
		func(now time.Time, err error) {
			if !ch.Existing {
				k.revert(a, now)
			}
			k.failAdd(r, now, cause.CheckpointUnwritable, "write "+k.settings.CheckpointPath+": "+err.Error(), true)
		},
	)
	return nil
}

// answerAssigned answers an ADD whose address is on disk, if the address is still the
// sandbox's: meanwhile a DEL may have ended it, or a failed write of the ADD that this
// one repeats may have taken it back.
func (k *Keeper) answerAssigned(r *Add, a ipam.Assignment, now time.Time) {
	if have, ok := k.book.Lookup(a.Sandbox); !ok || have.Address != a.Address {
		k.failAdd(r, now, cause.PoolDry, "the sandbox's address was released before its ADD was answered", true)
		return
	}
	k.record(Event{
		Kind: AddressAssigned, At: now, Pod: r.pod(), Address: a.Address, ENI: a.ENI, Device: a.Device, Took: now.Sub(r.Arrived),
	})
	crashpoint.Here(crashpoint.BeforeAnswer)
	r.Reply(k.addReply(a))
	crashpoint.Here(crashpoint.AfterAnswer)
}

// revert takes an assignment back that was never answered, unless the sandbox's DEL
// has ended it since.
func (k *Keeper) revert(a ipam.Assignment, now time.Time) {
	if have, ok := k.book.Lookup(a.Sandbox); !ok || have.Address != a.Address {
		return
	}
	k.apply(now, ipam.Revert{Sandbox: a.Sandbox})
	k.ledger.remove(a.Sandbox)
	k.changed()
}

// assignAny tries the active kind of CIDR first and the other one after it: an
// address of a former mode that still stands is better than a failed pod.
func (k *Keeper) assignAny(r *Add, now time.Time) (ipam.Change, error) {
	ev := ipam.Assign{Sandbox: r.sandbox(), Pod: r.pod(), Family: ipam.IPv4, Kind: k.kind()}
	ch, err := k.book.Apply(now, ev)
	if errors.Is(err, ipam.ErrNoAddress) {
		ev.Kind = k.otherKind()
		if other, otherErr := k.book.Apply(now, ev); otherErr == nil {
			return other, nil
		}
	}
	return ch, err
}

func (k *Keeper) addReply(a ipam.Assignment) *cniwire.AddReply {
	reply := &cniwire.AddReply{
		Success:           true,
		Allocations:       []cniwire.Allocation{allocation(a)},
		UseExternalSNAT:   k.settings.ExternalSNAT,
		NetworkPolicyMode: k.settings.NetworkPolicyMode,
	}
	for _, c := range k.vpcCIDRs {
		reply.VPCv4CIDRs = append(reply.VPCv4CIDRs, c.String())
	}
	if !k.settings.ExternalSNAT {
		for _, c := range k.settings.ExcludeSNATCIDRs {
			reply.VPCv4CIDRs = append(reply.VPCv4CIDRs, c.String())
		}
	}
	return reply
}

func allocation(a ipam.Assignment) cniwire.Allocation {
	out := cniwire.Allocation{Device: int32(a.Device), RouteTable: int32(a.RouteTable)}
	if a.Address.Is4() {
		out.IPv4 = a.Address.String()
	} else {
		out.IPv6 = a.Address.String()
	}
	return out
}

// failAdd answers an ADD with a reason and tells it.
func (k *Keeper) failAdd(r *Add, now time.Time, code cause.Code, detail string, transient bool) {
	k.record(Event{
		Kind: AddFailed, At: now, Pod: r.pod(), Cause: code, Text: detail, Transient: transient, Took: now.Sub(r.Arrived),
	})
	r.Reply(&cniwire.AddReply{Cause: string(code), Detail: detail, Transient: transient})
}

// Del ends a sandbox's allocation. Reply is called exactly once.
type Del struct {
	Request *cniwire.DelRequest
	Reply   func(*cniwire.DelReply)
}

func (r *Del) handle(k *Keeper, now time.Time) {
	s := ipam.Sandbox{Network: r.Request.NetworkName, ContainerID: r.Request.ContainerID, IfName: r.Request.IfName}
	pod := ipam.Pod{Namespace: r.Request.PodNamespace, Name: r.Request.PodName}
	if a, ok := k.book.Lookup(s); ok && k.recon.dropping[s] {
		// The address is free when its rules are gone: Dropped sees to it.
		k.record(Event{Kind: AddressReleased, At: now, Pod: pod, Address: a.Address, ENI: a.ENI, Device: a.Device, Reason: r.Request.Reason})
		r.Reply(&cniwire.DelReply{Success: true, Allocations: []cniwire.Allocation{allocation(a)}, NetworkPolicyMode: k.settings.NetworkPolicyMode})
		return
	}
	crashpoint.Here(crashpoint.BeforeBookUnassign)
	ch, err := k.book.Apply(now, ipam.Unassign{Sandbox: s, Aliases: []ipam.Sandbox{
		{Network: migratedNetwork, ContainerID: s.ContainerID, IfName: migratedIfName},
	}})
	switch {
	case errors.Is(err, ipam.ErrUnknownSandbox):
		k.abandonWaiting(s, now)
		k.expectEnd(r.Request, now)
		k.record(Event{Kind: DelUnknown, At: now, Pod: pod, Reason: r.Request.Reason})
		r.Reply(&cniwire.DelReply{Unknown: true})
		return
	case err != nil:
		k.failDel(r, now, cause.Internal, err, err.Error())
		return
	}
	crashpoint.Here(crashpoint.AfterBookUnassign)
	a := ch.Released[0]
	k.ledger.remove(a.Sandbox)
	k.changed()
	k.unsettled[a.Address] = true
	began := now
	k.answerDurably(now,
		func(now time.Time) {
			delete(k.unsettled, a.Address)
			k.restAgain(a, now.Sub(began), now)
			k.record(Event{Kind: AddressReleased, At: now, Pod: pod, Address: a.Address, ENI: a.ENI, Device: a.Device, Reason: r.Request.Reason})
			k.expectUnrouted(now)
			crashpoint.Here(crashpoint.BeforeAnswer)
			r.Reply(&cniwire.DelReply{
				Success:           true,
				Allocations:       []cniwire.Allocation{allocation(a)},
				NetworkPolicyMode: k.settings.NetworkPolicyMode,
			})
			crashpoint.Here(crashpoint.AfterAnswer)
		},
		func(now time.Time, err error) {
			delete(k.unsettled, a.Address)
			if _, uerr := k.book.Apply(now, ipam.Reassign{Assignment: a}); uerr != nil {
				k.record(Event{Kind: BookRefused, At: now, Cause: cause.Internal, Address: a.Address, Text: "Reassign", Err: uerr})
			} else {
				k.ledger.put(a)
				k.changed()
			}
			k.failDel(r, now, cause.CheckpointUnwritable, err, "write "+k.settings.CheckpointPath+": "+err.Error())
		},
	)
}

// restAgain begins the rest of an address anew when the disk took long: the plugin
// removes the pod's rules only after the answer.
func (k *Keeper) restAgain(a ipam.Assignment, took time.Duration, now time.Time) {
	if took < slowCommit || k.holds(a.Sandbox) {
		return
	}
	k.apply(now, ipam.Reassign{Assignment: a})
	k.apply(now, ipam.Unassign{Sandbox: a.Sandbox})
}

// expectUnrouted looks at the kernel before the address has cooled: a plugin that died
// after this answer leaves the pod's route, and nobody else may get the address then.
// Without a cooldown nothing holds it that long.
func (k *Keeper) expectUnrouted(now time.Time) {
	if k.policy.Cooldown > 0 {
		k.recon.lookSoon(now.Add(k.orphanAge()))
	}
}

// orphanAge is how long after a DEL a route to the pod means that a pod lives there:
// a plugin removes it in milliseconds.
func (k *Keeper) orphanAge() time.Duration { return min(resync.OrphanAge, k.policy.Cooldown/2) }

func (k *Keeper) failDel(r *Del, now time.Time, code cause.Code, err error, detail string) {
	k.record(Event{
		Kind: DelFailed, At: now, Pod: ipam.Pod{Namespace: r.Request.PodNamespace, Name: r.Request.PodName},
		Cause: code, Text: detail, Err: err, Reason: r.Request.Reason,
	})
	r.Reply(&cniwire.DelReply{Cause: string(code), Detail: detail})
}

// expectEnd looks at the pod's link again soon if its allocation was rebuilt from the
// kernel. Nobody knows whose sandbox that is: this DEL may be a late one of an older
// sandbox of the same pod, so only the end of the link ends the allocation.
func (k *Keeper) expectEnd(req *cniwire.DelRequest, now time.Time) {
	if k.holds(resync.Recovered(netnames.HostVeth(k.settings.VethPrefix, req.PodNamespace, req.PodName, 0))) {
		k.recon.lookSoon(now.Add(linkEndDelay))
	}
}

// abandonWaiting ends the wait of an ADD whose sandbox is being deleted: nobody
// would take the address.
func (k *Keeper) abandonWaiting(s ipam.Sandbox, now time.Time) {
	k.waiting = slices.DeleteFunc(k.waiting, func(r *Add) bool {
		if r.sandbox() != s {
			return false
		}
		k.failAdd(r, now, cause.PoolDry, "the sandbox was deleted while its ADD waited", true)
		return true
	})
}
