package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/internal/rpcserver"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// A sandbox key that very old releases wrote for pods migrated from the runtime's
// records (spec/ipamd.md §2.3).
const (
	migratedNetwork = "_migrated-from-cri"
	migratedIfName  = "unknown"
)

// backend is what the RPC servers call. It turns a call into a message and waits
// for the owner's answer, which always comes.
type backend struct {
	owner  *owner
	wait   time.Duration // how long an ADD may wait for the pool, CNI_ADD_WAIT
	policy rpcserver.PolicyConfig
}

// PolicyConfig is what the network policy agent asks for.
func (b *backend) PolicyConfig() rpcserver.PolicyConfig { return b.policy }

type addRequest struct {
	req      *cniwire.AddRequest
	arrived  time.Time
	deadline time.Time
	reply    chan *cniwire.AddReply // buffered: the owner never blocks on it
}

func (b *backend) Add(ctx context.Context, req *cniwire.AddRequest) *cniwire.AddReply {
	now := b.owner.now()
	r := &addRequest{req: req, arrived: now, deadline: now.Add(b.wait), reply: make(chan *cniwire.AddReply, 1)}
	if err := b.owner.post(ctx, r); err != nil {
		return refuse(cause.DaemonTerminating, "the request was given up before ipamd took it: "+err.Error(), true)
	}
	stop := context.AfterFunc(ctx, func() {
		// The caller is gone; the owner answers at once, or when the disk has.
		_ = b.owner.post(context.WithoutCancel(ctx), abandoned{r}) // fails with the owner's end, which ends the wait too
	})
	defer stop()
	if reply, ok := answered(b.owner, r.reply); ok {
		return reply
	}
	return refuse(cause.DaemonTerminating, errEnded.Error(), true)
}

// abandoned ends the wait of a request whose caller went away.
type abandoned struct{ r *addRequest }

func (m abandoned) handle(o *owner, now time.Time) {
	if i := slices.Index(o.waiting, m.r); i >= 0 {
		o.waiting = slices.Delete(o.waiting, i, i+1)
		o.failAdd(m.r, now, cause.PoolDry, "the caller gave up waiting", true)
	}
}

func refuse(code cause.Code, detail string, transient bool) *cniwire.AddReply {
	return &cniwire.AddReply{Cause: string(code), Detail: detail, Transient: transient}
}

func (r *addRequest) sandbox() ipam.Sandbox {
	return ipam.Sandbox{Network: r.req.NetworkName, ContainerID: r.req.ContainerID, IfName: r.req.IfName}
}

func (r *addRequest) handle(o *owner, now time.Time) {
	o.metrics.AddRequest()
	s := r.sandbox()
	switch {
	case s.Network == "" || s.ContainerID == "" || s.IfName == "":
		o.failAdd(r, now, cause.InvalidRequest, fmt.Sprintf(
			"network name %q, container id %q and interface name %q must all be set", s.Network, s.ContainerID, s.IfName), false)
	case r.req.RequiresMultiNIC:
		o.failAdd(r, now, cause.MultiNICDisabled, "pod annotation k8s.amazonaws.com/nicConfig asks for several interfaces", false)
	case o.terminating:
		o.failAdd(r, now, cause.DaemonTerminating, cause.DaemonTerminating.Title(), true)
	case len(o.waiting) > 0 && !o.holds(s):
		o.enqueue(r, now) // first come, first served
	default:
		if err := o.assign(r, now); errors.Is(err, ipam.ErrNoAddress) {
			o.enqueue(r, now)
		}
	}
}

func (o *owner) holds(s ipam.Sandbox) bool {
	_, ok := o.book.Lookup(s)
	return ok
}

// assign gives the request an address, or returns ipam.ErrNoAddress with nothing
// changed. Any other failure is answered here.
func (o *owner) assign(r *addRequest, now time.Time) error {
	ch, err := o.assignAny(r, now)
	switch {
	case errors.Is(err, ipam.ErrNoAddress):
		return err
	case err != nil:
		o.failAdd(r, now, cause.Internal, err.Error(), false)
		return nil
	}
	a := ch.Assigned[0]
	if a.ENI == "" {
		// Restored, kept, but nobody knows which table its traffic belongs into.
		o.failAdd(r, now, cause.Internal, "the sandbox's address "+a.Address.String()+" is on no network interface that EC2 lists for this instance", true)
		return nil
	}
	if !ch.Existing {
		o.ledger.put(a)
		o.changed()
	}
	o.answerDurably(
		func() { o.answerAssigned(r, a) },
		func(now time.Time, err error) {
			if !ch.Existing {
				o.revert(a, now)
			}
			o.failAdd(r, now, cause.CheckpointUnwritable, "write "+o.node.checkpointPath+": "+err.Error(), true)
		},
	)
	return nil
}

// answerAssigned answers an ADD whose address is on disk, if the address is still the
// sandbox's: meanwhile a DEL may have ended it, or a failed write of the ADD that this
// one repeats may have taken it back.
func (o *owner) answerAssigned(r *addRequest, a ipam.Assignment) {
	now := o.now()
	if have, ok := o.book.Lookup(a.Sandbox); !ok || have.Address != a.Address {
		o.failAdd(r, now, cause.PoolDry, "the sandbox's address was released before its ADD was answered", true)
		return
	}
	waited := now.Sub(r.arrived)
	o.metrics.AddWaited(waited)
	o.log.Info("address assigned", slog.String(logline.KeyIP, a.Address.String()), slog.String(logline.KeyENI, string(a.ENI)),
		slog.String(logline.KeyPod, r.req.PodName), slog.String(logline.KeyNamespace, r.req.PodNamespace), slog.Duration(logline.KeyDuration, waited))
	o.history.added()
	r.reply <- o.addReply(a)
}

// revert takes an assignment back that was never answered, unless the sandbox's DEL
// has ended it since.
func (o *owner) revert(a ipam.Assignment, now time.Time) {
	if have, ok := o.book.Lookup(a.Sandbox); !ok || have.Address != a.Address {
		return
	}
	o.apply(now, ipam.Revert{Sandbox: a.Sandbox})
	delete(o.restored, a.Sandbox)
	o.ledger.remove(a.Sandbox)
	o.changed()
}

// assignAny tries the active kind of CIDR first and the other one after it: an
// address of a former mode that still stands is better than a failed pod.
func (o *owner) assignAny(r *addRequest, now time.Time) (ipam.Change, error) {
	pod := ipam.Pod{Namespace: r.req.PodNamespace, Name: r.req.PodName, Interfaces: 1}
	ev := ipam.Assign{Sandbox: r.sandbox(), Pod: pod, Family: ipam.IPv4, Kind: o.node.kind()}
	ch, err := o.book.Apply(now, ev)
	if errors.Is(err, ipam.ErrNoAddress) {
		ev.Kind = o.node.otherKind()
		if other, otherErr := o.book.Apply(now, ev); otherErr == nil {
			return other, nil
		}
	}
	return ch, err
}

func (o *owner) addReply(a ipam.Assignment) *cniwire.AddReply {
	reply := &cniwire.AddReply{
		Success:           true,
		Allocations:       []cniwire.Allocation{allocation(a)},
		UseExternalSNAT:   o.node.config.ExternalSNAT,
		NetworkPolicyMode: o.node.config.NetworkPolicyMode,
	}
	for _, c := range o.node.vpcCIDRs {
		reply.VPCv4CIDRs = append(reply.VPCv4CIDRs, c.String())
	}
	if !o.node.config.ExternalSNAT {
		for _, c := range o.node.config.ExcludeSNATCIDRs {
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

// failAdd answers an ADD with a reason and records it.
func (o *owner) failAdd(r *addRequest, now time.Time, code cause.Code, detail string, transient bool) {
	o.metrics.AddFailed(code)
	o.history.addFailed(now, code, detail)
	o.log.Error(textNoAddress, slog.String(logline.KeyCause, string(code)), slog.String(logline.KeyDetail, detail),
		slog.String(logline.KeyPod, r.req.PodName), slog.String(logline.KeyNamespace, r.req.PodNamespace),
		slog.Duration(logline.KeyDuration, now.Sub(r.arrived)))
	r.reply <- refuse(code, detail, transient)
}

type delRequest struct {
	req   *cniwire.DelRequest
	reply chan *cniwire.DelReply
}

func (b *backend) Del(ctx context.Context, req *cniwire.DelRequest) *cniwire.DelReply {
	r := &delRequest{req: req, reply: make(chan *cniwire.DelReply, 1)}
	if err := b.owner.post(ctx, r); err != nil {
		return &cniwire.DelReply{Cause: string(cause.DaemonTerminating), Detail: err.Error()}
	}
	if reply, ok := answered(b.owner, r.reply); ok {
		return reply
	}
	return &cniwire.DelReply{Cause: string(cause.DaemonTerminating), Detail: errEnded.Error()}
}

func (r *delRequest) handle(o *owner, now time.Time) {
	o.metrics.DelRequest(r.req.Reason)
	s := ipam.Sandbox{Network: r.req.NetworkName, ContainerID: r.req.ContainerID, IfName: r.req.IfName}
	ch, err := o.book.Apply(now, ipam.Unassign{Sandbox: s, Aliases: []ipam.Sandbox{
		{Network: migratedNetwork, ContainerID: s.ContainerID, IfName: migratedIfName},
	}})
	switch {
	case errors.Is(err, ipam.ErrUnknownSandbox):
		o.abandonWaiting(s, now)
		o.expectEnd(r.req)
		o.log.Info(textUnknownSandbox, slog.String(logline.KeyPod, r.req.PodName), slog.String(logline.KeyNamespace, r.req.PodNamespace))
		r.reply <- &cniwire.DelReply{Unknown: true}
		return
	case err != nil:
		o.history.delFailed(now, cause.Internal, err.Error())
		r.reply <- &cniwire.DelReply{Cause: string(cause.Internal), Detail: err.Error()}
		return
	}
	a := ch.Released[0]
	o.ledger.remove(a.Sandbox)
	o.changed()
	o.answerDurably(
		func() {
			o.log.Info("address released", slog.String(logline.KeyIP, a.Address.String()), slog.String(logline.KeyENI, string(a.ENI)),
				slog.String(logline.KeyPod, r.req.PodName), slog.String(logline.KeyNamespace, r.req.PodNamespace), slog.String(logline.KeyReason, r.req.Reason))
			o.history.deleted()
			r.reply <- &cniwire.DelReply{
				Success:           true,
				Allocations:       []cniwire.Allocation{allocation(a)},
				NetworkPolicyMode: o.node.config.NetworkPolicyMode,
			}
		},
		func(now time.Time, err error) {
			if _, uerr := o.book.Apply(now, ipam.Reassign{Assignment: a}); uerr != nil {
				o.log.Error("assignment not taken back", slog.String(logline.KeyIP, a.Address.String()), slog.Any(logline.KeyError, uerr))
			} else {
				o.ledger.put(a)
				o.changed()
			}
			o.history.delFailed(now, cause.CheckpointUnwritable, err.Error())
			r.reply <- &cniwire.DelReply{Cause: string(cause.CheckpointUnwritable), Detail: "write " + o.node.checkpointPath + ": " + err.Error()}
		},
	)
}

// expectEnd looks at the pod's link again soon if its allocation was rebuilt from the
// kernel. Nobody knows whose sandbox that is: this DEL may be a late one of an older
// sandbox of the same pod, so only the end of the link ends the allocation.
func (o *owner) expectEnd(req *cniwire.DelRequest) {
	if o.holds(resync.Recovered(netnames.HostVeth(o.node.config.VethPrefix, req.PodNamespace, req.PodName, 0))) {
		o.exec.readLinks(linkEndDelay)
	}
}

// abandonWaiting ends the wait of an ADD whose sandbox is being deleted: nobody
// would take the address.
func (o *owner) abandonWaiting(s ipam.Sandbox, now time.Time) {
	o.waiting = slices.DeleteFunc(o.waiting, func(r *addRequest) bool {
		if r.sandbox() != s {
			return false
		}
		o.failAdd(r, now, cause.PoolDry, "the sandbox was deleted while its ADD waited", true)
		return true
	})
}

// cidrTexts prints prefixes for a log line.
func cidrTexts(ps []netip.Prefix) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.String()
	}
	return out
}
