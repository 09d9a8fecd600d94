package keeper

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// Add asks for an address. Reply is called exactly once, by Handle or by Step.
type Add struct {
	Request  *cniwire.AddRequest
	Arrived  time.Time
	Deadline time.Time // end of its wait for the pool
	Reply    func(*cniwire.AddReply)

	fresh []ipam.Assignment // its new addresses, for TakeBack
}

// Abandon ends the wait of an Add whose caller went away.
type Abandon struct{ Add *Add }

func (m Abandon) handle(k *Keeper, now time.Time) {
	if i := slices.Index(k.waiting, m.Add); i >= 0 {
		k.waiting = slices.Delete(k.waiting, i, i+1)
		k.failAdd(m.Add, now, cause.PoolDry, "the caller gave up waiting", true)
	}
}

// sandbox is the key of one of the request's interfaces.
func (r *Add) sandbox(iface int) ipam.Sandbox {
	return ipam.Sandbox{Network: r.Request.NetworkName, ContainerID: r.Request.ContainerID, IfName: r.Request.IfName, Interface: iface}
}

func (r *Add) pod() ipam.Pod {
	return ipam.Pod{Namespace: r.Request.PodNamespace, Name: r.Request.PodName, Interfaces: 1}
}

func (r *Add) handle(k *Keeper, now time.Time) {
	s := r.sandbox(0)
	refused, why := k.refuseMultiNIC(r)
	switch {
	case s.Network == "" || s.ContainerID == "" || s.IfName == "":
		k.failAdd(r, now, cause.InvalidRequest, "the request lacks its "+strings.Join(missing(s), " and its "), false)
	case !plausible(r.Request):
		k.failAdd(r, now, cause.InvalidRequest, "the request has a name or ID that is not valid in Kubernetes", false)
	case refused != "":
		k.failAdd(r, now, refused, why, false)
	case k.terminating:
		k.failAdd(r, now, cause.DaemonTerminating, cause.DaemonTerminating.Title(), true)
	case len(k.waiting) > 0 && !k.holds(s):
		k.enqueue(r, now) // first come, first served
	case k.isDropping(s):
		// Its pod's link was gone and its rules are being removed: anything the plugin set up now
		// would be removed with them.
		k.failAdd(r, now, cause.Internal, "the sandbox's previous network is still being removed", true)
	default:
		if err := k.assign(r, 0, now); errors.Is(err, ipam.ErrNoAddress) {
			k.enqueue(r, now)
		}
	}
}

// maxName bounds every name and ID of a request, in bytes; pod names are the longest.
const maxName = 253

// plausible reports whether a request's names are valid: they end up in the checkpoint, in
// logs and in documents that others read. Missing names are rejected where they are needed.
func plausible(r *cniwire.AddRequest) bool {
	for _, name := range []string{r.PodName, r.PodNamespace, r.PodUID, r.ContainerID, r.IfName, r.NetworkName} {
		if len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			return false
		}
	}
	return true
}

// missing names the missing parts of a sandbox key.
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

// dropping returns the assignments of a sandbox whose rules are being removed. Dropped frees
// them once the rules are gone.
func (k *Keeper) dropping(s ipam.Sandbox) []ipam.Assignment {
	if !k.isDropping(s) {
		return nil
	}
	return slices.DeleteFunc(k.held(s), func(a ipam.Assignment) bool { return !k.recon.dropping[a.Sandbox] })
}

// isDropping reports whether the rules of a sandbox's last network are being removed.
func (k *Keeper) isDropping(s ipam.Sandbox) bool {
	return len(k.recon.dropping) > 0 && k.anyKey(s, func(key ipam.Sandbox) bool { return k.recon.dropping[key] })
}

// assign gives the request its address, or returns ipam.ErrNoAddress with nothing changed.
// Any other failure is answered here. On each card it leaves the addresses that are owed to
// older waiting requests for one of every card.
func (k *Keeper) assign(r *Add, owed int, now time.Time) error {
	if err := k.LinkTaken(k.podOf(r)); err != nil {
		k.failAdd(r, now, cause.LinkConflict, err.Error(), false)
		return nil
	}
	crashpoint.Here(crashpoint.BeforeBookAssign)
	got, err := k.takeAddresses(r, owed, now)
	switch {
	case errors.Is(err, ipam.ErrNoAddress):
		return err
	case err != nil:
		k.failAdd(r, now, cause.Internal, err.Error(), false)
		return nil
	}
	crashpoint.Here(crashpoint.AfterBookAssign)
	if i := slices.IndexFunc(got.all, func(a ipam.Assignment) bool { return a.ENI == "" }); i >= 0 {
		// Restored and kept, but the route table for its traffic is unknown.
		k.giveUp(got.fresh, now)
		k.failAdd(r, now, cause.Internal, "the sandbox's address "+got.all[i].Address.String()+" is not on any network interface that EC2 lists for this instance", true)
		return nil
	}
	k.keep(got)
	r.fresh = got.fresh
	k.answerDurably(now,
		func(now time.Time) { k.answerAssigned(r, got.all, now) },
		func(now time.Time, err error) {
			k.revert(got.fresh, now)
			k.failAdd(r, now, cause.CheckpointUnwritable, "write "+k.settings.CheckpointPath+": "+err.Error(), true)
		},
	)
	return nil
}

// answerAssigned answers an ADD whose addresses are on disk, if the sandbox still has them.
func (k *Keeper) answerAssigned(r *Add, all []ipam.Assignment, now time.Time) {
	if !k.holdsAll(all) {
		k.failAdd(r, now, cause.PoolDry, "the sandbox's address was released before its ADD was answered", true)
		return
	}
	for _, a := range all {
		k.record(now, AddressAssigned{Assignment: a, Took: now.Sub(r.Arrived)})
	}
	crashpoint.Here(crashpoint.BeforeAnswer)
	r.Reply(k.addReply(all))
	crashpoint.Here(crashpoint.AfterAnswer)
}

// LinkTaken returns an error if another pod with an address of the pool has one of a pod's host
// links: the plugin would delete it as that of an older sandbox of the pod. A link's name has 44
// bits of a hash, so a pod's name can be chosen to get the link of another.
func (k *Keeper) LinkTaken(p ipam.Pod) error {
	other, hash, taken := k.ledger.links.holder(p)
	if !taken || p.Name == "" {
		return nil
	}
	return LinkTakenError(hash, other.Namespace, other.Name)
}

// LinkTakenError is the error of a pod whose host link another pod has.
func LinkTakenError(hash, namespace, name string) error {
	return fmt.Errorf("its host link would have the same name, ending in %s, as that of pod %s/%s: "+
		"the end is a hash of the pod's namespace and name; give one of the two pods another name", hash, namespace, name)
}

func (k *Keeper) addReply(all []ipam.Assignment) *cniwire.AddReply {
	reply := &cniwire.AddReply{Success: true, Allocations: allocations(all), NetworkPolicyMode: k.settings.NetworkPolicyMode}
	cidrs := prefixTexts(k.vpcCIDRs)
	if k.settings.IPv6 {
		reply.VPCv6CIDRs = cidrs
		return reply
	}
	reply.UseExternalSNAT = k.settings.ExternalSNAT
	if !k.settings.ExternalSNAT {
		cidrs = append(cidrs, prefixTexts(k.settings.ExcludeSNATCIDRs)...)
	}
	reply.VPCv4CIDRs = cidrs
	return reply
}

func prefixTexts(all []netip.Prefix) []string {
	out := make([]string, 0, len(all))
	for _, p := range all {
		out = append(out, p.String())
	}
	return out
}

func allocations(all []ipam.Assignment) []cniwire.Allocation {
	out := make([]cniwire.Allocation, len(all))
	for i, a := range all {
		out[i] = allocation(a)
	}
	return out
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

// failAdd answers an ADD with a reason and records it.
func (k *Keeper) failAdd(r *Add, now time.Time, code cause.Code, detail string, transient bool) {
	k.record(now, AddFailed{
		Pod: r.pod(), PodUID: r.Request.PodUID, Cause: code, Detail: detail, Transient: transient, Took: now.Sub(r.Arrived),
	})
	r.Reply(&cniwire.AddReply{Cause: string(code), Detail: detail, Transient: transient})
}

// Del ends a sandbox's allocation. Reply is called exactly once.
type Del struct {
	Request *cniwire.DelRequest
	Reply   func(*cniwire.DelReply)

	dropped []ipam.Assignment // assignments whose rules were being removed when it arrived
}

func (r *Del) sandbox() ipam.Sandbox {
	return ipam.Sandbox{Network: r.Request.NetworkName, ContainerID: r.Request.ContainerID, IfName: r.Request.IfName}
}

func (r *Del) handle(k *Keeper, now time.Time) {
	s := r.sandbox()
	k.abandonWaiting(s, now)
	if going := k.dropping(s); len(going) > 0 {
		// They stay in the book and in the file until Dropped, which handles this DEL again.
		r.dropped = going
		k.awaitDrop = append(k.awaitDrop, r)
		return
	}
	dropped := slices.DeleteFunc(slices.Clone(r.dropped), func(a ipam.Assignment) bool { return has(k.ledger.home, a.Sandbox) })
	crashpoint.Here(crashpoint.BeforeBookUnassign)
	released, err := k.unassign(s, now)
	freed := inOrder(dropped, released)
	switch {
	case err != nil:
		k.failDel(r, now, cause.Internal, err, err.Error())
		return
	case len(freed) == 0:
		k.answerUnknown(r, now)
		return
	}
	crashpoint.Here(crashpoint.AfterBookUnassign)
	for _, a := range released {
		k.ledger.remove(a.Sandbox)
		k.changed()
		k.unsettled[a.Address], k.leaving[a.Sandbox] = true, a.Address
	}
	began := now
	k.answerDurably(now,
		func(now time.Time) {
			for _, a := range released {
				k.settle(a)
				k.restartCooldown(a, now.Sub(began), now)
			}
			k.flows.look = now
			k.expectUnrouted(now)
			crashpoint.Here(crashpoint.BeforeAnswer)
			k.answerReleased(r, freed, now)
			crashpoint.Here(crashpoint.AfterAnswer)
		},
		func(now time.Time, err error) {
			k.reassign(released, now)
			k.failDel(r, now, cause.CheckpointUnwritable, err, "write "+k.settings.CheckpointPath+": "+err.Error())
		},
	)
}

// ofPod returns the assignments of a pod, whatever its sandbox. A recreated StatefulSet pod
// has the name and links of its predecessor, and may have its address. An assignment that was
// rebuilt from the kernel is identified by its link alone.
func (k *Keeper) ofPod(p ipam.Pod) (out []ipam.Assignment) {
	if p.Name == "" {
		return nil
	}
	var links []string
	for i := range k.cards() {
		links = append(links, netnames.HostVeth(k.settings.VethPrefix, p.Namespace, p.Name, i))
	}
	for a := range k.book.Assignments() {
		recovered := a.Sandbox.Network == netnames.RecoveredNetwork && slices.Contains(links, a.Sandbox.ContainerID)
		if recovered || a.Pod.Namespace == p.Namespace && a.Pod.Name == p.Name {
			out = append(out, a)
		}
	}
	return out
}

// answerUnknown answers a DEL of a sandbox that has no address. While an earlier DEL of the
// sandbox waits for the disk, this one waits as well: if that fails, there is an address again.
func (k *Keeper) answerUnknown(r *Del, now time.Time) {
	k.expectEnd(r.Request, now)
	done := func(now time.Time) {
		k.record(now, DelUnknown{Pod: r.pod()})
		r.Reply(&cniwire.DelReply{Unknown: true, Allocations: allocations(k.ofPod(r.pod())), NetworkPolicyMode: k.settings.NetworkPolicyMode})
	}
	if !k.anyKey(r.sandbox(), func(key ipam.Sandbox) bool { return has(k.leaving, key) }) {
		done(now)
		return
	}
	k.answerDurably(now, done, func(now time.Time, err error) {
		k.failDel(r, now, cause.CheckpointUnwritable, err, "write "+k.settings.CheckpointPath+": "+err.Error())
	})
}

func (r *Del) pod() ipam.Pod {
	return ipam.Pod{Namespace: r.Request.PodNamespace, Name: r.Request.PodName}
}

func (k *Keeper) answerReleased(r *Del, all []ipam.Assignment, now time.Time) {
	for _, a := range all {
		a.Pod = r.pod()
		k.record(now, AddressReleased{Assignment: a, Reason: r.Request.Reason})
	}
	r.Reply(&cniwire.DelReply{Success: true, Allocations: allocations(all), NetworkPolicyMode: k.settings.NetworkPolicyMode})
}

// inOrder merges assignments of one sandbox, sorted by interface.
func inOrder(a, b []ipam.Assignment) []ipam.Assignment {
	if len(a) == 0 {
		return b
	}
	return slices.SortedFunc(slices.Values(slices.Concat(a, b)), func(a, b ipam.Assignment) int { return a.Sandbox.Interface - b.Sandbox.Interface })
}

// unassign ends all assignments of a sandbox.
func (k *Keeper) unassign(s ipam.Sandbox, now time.Time) (released []ipam.Assignment, err error) {
	migrated := ipam.Sandbox{Network: netnames.MigratedNetwork, ContainerID: s.ContainerID, IfName: netnames.MigratedIfName}
	for _, card := range k.ledger.cards {
		s.Interface = card
		ev := ipam.Unassign{Sandbox: s}
		if card == 0 {
			ev.Aliases = []ipam.Sandbox{migrated}
		}
		ch, err := k.book.Apply(now, ev)
		if errors.Is(err, ipam.ErrUnknownSandbox) {
			continue
		}
		if err != nil {
			k.reassign(released, now)
			return nil, err
		}
		released = append(released, ch.Released...)
	}
	return released, nil
}

// reassign reverts a DEL that was not answered.
func (k *Keeper) reassign(released []ipam.Assignment, now time.Time) {
	for _, a := range released {
		k.settle(a)
		if _, err := k.try(now, ipam.Reassign{Assignment: a}); err != nil {
			continue
		}
		k.ledger.put(a)
		k.changed()
	}
}

// settle ends a DEL's wait for the disk.
func (k *Keeper) settle(a ipam.Assignment) {
	delete(k.unsettled, a.Address)
	if k.leaving[a.Sandbox] == a.Address {
		delete(k.leaving, a.Sandbox)
	}
}

// restartCooldown restarts the cooldown of an address if the disk was slow: the plugin removes
// the pod's rules only after the answer.
func (k *Keeper) restartCooldown(a ipam.Assignment, took time.Duration, now time.Time) {
	if took < slowCommit || has(k.ledger.home, a.Sandbox) {
		return
	}
	k.apply(now, ipam.Reassign{Assignment: a})
	k.apply(now, ipam.Unassign{Sandbox: a.Sandbox})
}

// expectUnrouted schedules a read of the kernel before the address has cooled: a plugin that
// died after this answer leaves the pod's route behind, and then no other pod may get the
// address. Without a cooldown nothing holds the address that long.
func (k *Keeper) expectUnrouted(now time.Time) {
	if k.policy.Cooldown > 0 {
		k.recon.observeSoon(now.Add(k.orphanAge()))
	}
}

// orphanAge is how long after a DEL a remaining route means that the pod still runs: a plugin
// removes the route within milliseconds.
func (k *Keeper) orphanAge() time.Duration { return min(resync.OrphanAge, k.policy.Cooldown/2) }

func (k *Keeper) failDel(r *Del, now time.Time, code cause.Code, err error, detail string) {
	k.record(now, DelFailed{Pod: r.pod(), Reason: r.Request.Reason, Cause: code, Detail: detail, Err: err})
	r.Reply(&cniwire.DelReply{Cause: string(code), Detail: detail})
}

// expectEnd schedules an early read of the links if the pod's allocation was rebuilt from the
// kernel. Its sandbox is unknown: this DEL may be a late one of an older sandbox of the same
// pod, so only the end of the link ends the allocation.
func (k *Keeper) expectEnd(req *cniwire.DelRequest, now time.Time) {
	if k.holds(resync.Recovered(netnames.HostVeth(k.settings.VethPrefix, req.PodNamespace, req.PodName, 0))) {
		k.recon.observeSoon(now.Add(linkEndDelay))
	}
}

// abandonWaiting ends the wait of an ADD whose sandbox is being deleted.
func (k *Keeper) abandonWaiting(s ipam.Sandbox, now time.Time) {
	k.waiting = slices.DeleteFunc(k.waiting, func(r *Add) bool {
		if r.sandbox(0) != s {
			return false
		}
		k.failAdd(r, now, cause.PoolDry, "the sandbox was deleted while its ADD waited", true)
		return true
	})
}
