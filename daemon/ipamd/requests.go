package ipamd

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/cluster"
	"cnictl/daemon/internal/rpcserver"
	"cnictl/daemon/keeper"
)

// backend serves the RPC servers. It turns a call into a message and waits for the answer,
// which always comes.
type backend struct {
	owner  *owner
	log    *slog.Logger
	wait   time.Duration // how long an ADD may wait for the pool, CNI_ADD_WAIT
	policy rpcserver.PolicyConfig

	kubernetes *kubernetes // nil if there is no API server
	branches   *branches   // nil if pods have no branch ENIs
	policies   *policies   // nil if there is no policy agent
	annotate   bool        // ANNOTATE_POD_IP
	// asserter restores what plugins set up; nil if there is none.
	asserter *asserter
	// beside runs work that answers hardly wait for; see withdraw.
	beside      func(func(context.Context))
	withdrawals chan struct{} // limits the withdrawals in progress
	// onEnd calls a function when the daemon begins to end, unless stopped before.
	onEnd func(func()) (stop func() bool)
}

// PolicyConfig is what the network policy agent requests.
func (b *backend) PolicyConfig() rpcserver.PolicyConfig { return b.policy }

// askLeast is the minimum time that an ADD may query the API server, whatever CNI_ADD_WAIT is:
// 0 means not to wait for the pool, not that nothing can be read.
const askLeast = 3 * time.Second

// Add answers an ADD. All its waits share one deadline; only the annotation comes after it, so
// that the answer comes within CNI_ADD_WAIT plus annotateLimit: at most 65 s, less than the
// plugin waits.
func (b *backend) Add(ctx context.Context, req *cniwire.AddRequest) *cniwire.AddReply {
	reply := b.add(ctx, req)
	if reply.Success && b.asserter != nil {
		b.asserter.added(req, b.owner.now())
	}
	return reply
}

func (b *backend) add(ctx context.Context, req *cniwire.AddRequest) *cniwire.AddReply {
	b.owner.metrics.AddRequest()
	began := b.owner.now()
	pool := began.Add(b.wait)
	if !b.needsPod() {
		if err := b.linkFree(ctx, req, cluster.Pod{}); err != nil {
			return b.failLink(req, err, cause.PodUnknown, began)
		}
		reply, _ := b.addPooled(ctx, req, pool)
		return reply
	}
	waiting, cancel := b.waiting(ctx, max(b.wait, askLeast))
	defer cancel()
	pod, err := b.pod(waiting, req)
	if err != nil {
		return b.failPod(req, unlessEnding(waiting, cause.PodUnknown), "Send AddNetworkReply: "+textNoPod, err, b.owner.now().Sub(began))
	}
	if err := b.awaitAPIServer(waiting); err != nil {
		return b.failPod(req, unlessEnding(waiting, cause.PodAnnotation), textAnnotationFailed, err, b.owner.now().Sub(began))
	}
	var reply *cniwire.AddReply
	var add *keeper.Add // nil if the address is not from the pool
	if b.branches != nil && pod.BranchENI {
		reply = b.branches.add(waiting, req, pod)
	} else {
		if err := untilRead(waiting, func() error { return b.linkFree(waiting, req, pod) }); err != nil {
			return b.failLink(req, err, unlessEnding(waiting, cause.PodUnknown), began)
		}
		reply, add = b.addPooled(ctx, req, pool)
	}
	if b.annotate && reply.Success {
		return b.annotateAddress(ctx, req, pod, reply, add)
	}
	return reply
}

// errEnding is why a request stops waiting when the daemon begins to end.
var errEnding = errors.New(cause.DaemonTerminating.Title())

// waiting bounds how long a request waits for the API server. The wait ends early when the
// daemon does: waiting requests would delay the shutdown.
func (b *backend) waiting(ctx context.Context, limit time.Duration) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	stop := b.onEnd(func() { end(errEnding) })
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, func() {
		cancel()
		stop()
		end(nil)
	}
}

// unlessEnding returns code, or DaemonTerminating if the daemon's end cut the wait short.
func unlessEnding(waiting context.Context, code cause.Code) cause.Code {
	if errors.Is(context.Cause(waiting), errEnding) {
		return cause.DaemonTerminating
	}
	return code
}

// addPooled answers an ADD from the pool, waiting for it until the deadline. It also returns
// the request to the keeper.
func (b *backend) addPooled(ctx context.Context, req *cniwire.AddRequest, deadline time.Time) (*cniwire.AddReply, *keeper.Add) {
	reply := make(chan *cniwire.AddReply, 1) // buffered: the owner never blocks on it
	add := &keeper.Add{
		Request: req, Arrived: b.owner.now(), Deadline: deadline,
		Reply: func(r *cniwire.AddReply) { reply <- r },
	}
	if err := b.owner.post(ctx, add); err != nil {
		return refuse("the request was canceled before ipamd accepted it: " + err.Error()), add
	}
	stop := context.AfterFunc(ctx, func() {
		// The caller is gone; the owner answers at once, or when the disk write has ended.
		b.owner.deliver(keeper.Abandon{Add: add})
	})
	defer stop()
	if r, ok := answered(b.owner, reply); ok {
		return r, add
	}
	return refuse(errEnded.Error()), add
}

func refuse(detail string) *cniwire.AddReply {
	return &cniwire.AddReply{Cause: string(cause.DaemonTerminating), Detail: detail, Transient: true}
}

func (b *backend) Del(ctx context.Context, req *cniwire.DelRequest) *cniwire.DelReply {
	b.owner.metrics.DelRequest(req.Reason)
	if b.asserter != nil {
		b.asserter.released(req, b.owner.now())
	}
	reply := make(chan *cniwire.DelReply, 1)
	del := &keeper.Del{Request: req, Reply: func(r *cniwire.DelReply) { reply <- r }}
	if err := b.owner.post(ctx, del); err != nil {
		return &cniwire.DelReply{Cause: string(cause.DaemonTerminating), Detail: err.Error()}
	}
	if r, ok := answered(b.owner, reply); ok {
		return b.afterDel(ctx, req, r)
	}
	return &cniwire.DelReply{Cause: string(cause.DaemonTerminating), Detail: errEnded.Error()}
}

// afterDel does the part of a DEL that needs the API server.
func (b *backend) afterDel(ctx context.Context, req *cniwire.DelRequest, r *cniwire.DelReply) *cniwire.DelReply {
	if r.Unknown && b.branches != nil {
		if found, ok := b.branches.del(ctx, req); ok {
			r = found
		}
	}
	if b.annotate && r.Success {
		b.withdrawInBackground(ctx, req, r)
	}
	return r
}
