package ipamd

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/policyagent"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// Bounds of deletions that did not reach the agent. An agent that is unreachable for
// longer was most likely removed from the node; what it keeps of a pod until its own
// restart costs memory, not connectivity.
const (
	deletionFirst, deletionMost = 500 * time.Millisecond, 30 * time.Second
	deletionPatience            = 10 * time.Minute
	deletionsMost               = 1024 // above the max-pods of every instance type
	// liveMost is how many pods are remembered before those whose DEL never came are
	// looked for.
	liveMost = 4 * deletionsMost
)

// podName is what the agent knows a pod by. Another sandbox, and another pod after the
// first, has the same.
type podName struct{ namespace, name string }

// deletion is a pod that the agent is to forget.
type deletion struct {
	pod    podName
	since  time.Time
	unsure bool          // another sandbox may live: nothing is remembered of the pod
	after  time.Time     // when it may be sent
	ended  chan struct{} // closed when the call that is under way has ended
}

// policies notifies the network policy agent of pods that start and end. An ADD waits for its
// answer; a DEL does not, because a pod must be able to end while the agent is unreachable.
type policies struct {
	agent   *policyagent.Client
	owner   *owner
	log     *slog.Logger
	metrics *metrics.Metrics
	mode    string // NETWORK_POLICY_ENFORCING_MODE
	links   hostLinks

	wake chan struct{} // something is due sooner than thought

	mu      sync.Mutex         // guards what follows
	live    map[podName]string // the sandbox that was enforced last, or is being
	most    int                // of live, before the ended are looked for
	waiting []*deletion        // the oldest first
	sending *deletion          // nil: no call is under way
	clock   keeper.Clock       // of an agent that is away
	closed  bool               // nothing more is sent
}

// policyOn reports that the agent is notified of pods in that mode. In the mode "none" no
// agent enforces anything: one that is enabled does not start.
func policyOn(mode string) bool { return mode != "" && !strings.EqualFold(mode, "none") }

func newPolicies(agent *policyagent.Client, o *owner, log *slog.Logger, met *metrics.Metrics, mode string, links hostLinks) *policies {
	return &policies{
		agent: agent, owner: o, log: log, metrics: met, mode: mode, links: links, wake: make(chan struct{}, 1), live: map[podName]string{}, most: liveMost,
	}
}

// Policy notifies the agent of a pod.
func (b *backend) Policy(ctx context.Context, req *cniwire.PolicyRequest) *cniwire.PolicyReply {
	switch {
	case b.policies == nil:
		return &cniwire.PolicyReply{Success: true} // the mode was changed after the pod's ADD
	case req.Delete:
		return b.policies.forget(ctx, req)
	}
	return b.policies.enforce(ctx, req)
}

// enforce has the agent attach a pod's policies, and returns when it has.
func (p *policies) enforce(ctx context.Context, req *cniwire.PolicyRequest) *cniwire.PolicyReply {
	began := time.Now()
	pod := podName{req.PodNamespace, req.PodName}
	if earlier := p.lives(ctx, pod, req.ContainerID); earlier != nil {
		select { // its end would undo what is made now
		case <-earlier.ended:
		case <-ctx.Done():
		}
	}
	err := p.agent.Enforce(ctx, req.PodNamespace, req.PodName, cmp.Or(req.Mode, p.mode), req.Interfaces)
	p.metrics.AgentCall(metrics.CallEnforce, resultOf(err))
	if !policyagent.Unreachable(err) {
		p.answers()
	}
	if err == nil {
		return &cniwire.PolicyReply{Success: true}
	}
	code := policyagent.Cause(err)
	p.log.Error("network policy agent did not accept a pod, so its ADD fails", slog.String(logline.KeyCause, string(code)), slog.Any(logline.KeyError, err),
		slog.String(logline.KeyPod, req.PodName), slog.String(logline.KeyNamespace, req.PodNamespace))
	p.owner.deliver(keeper.BranchFailed{
		Pod: ipam.Pod{Namespace: req.PodNamespace, Name: req.PodName}, Cause: code, Text: err.Error(), Took: time.Since(began),
	})
	return &cniwire.PolicyReply{Cause: string(code), Detail: code.Title() + ": " + err.Error()}
}

func resultOf(err error) string {
	switch {
	case err == nil:
		return metrics.ResultSuccess
	case policyagent.Unreachable(err):
		return metrics.ResultUnreachable
	}
	return metrics.ResultRefused
}

// lives notes the sandbox of a pod that is to be enforced. A deletion of that name that
// waits is void; one that is under way is returned.
func (p *policies) lives(ctx context.Context, pod podName, sandbox string) *deletion {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.live) >= p.most {
		p.forgetEnded(ctx)
	}
	p.live[pod] = sandbox
	p.waiting = slices.DeleteFunc(p.waiting, func(d *deletion) bool { return d.pod == pod })
	p.count()
	if p.sending != nil && p.sending.pod == pod {
		return p.sending
	}
	return nil
}

// forgetEnded forgets pods whose DEL never came: those without a link. p.mu is held.
func (p *policies) forgetEnded(ctx context.Context) {
	if there, err := p.links.pods(ctx); err == nil {
		maps.DeleteFunc(p.live, func(pod podName, _ string) bool { return !there.has(pod) })
	}
	p.most = max(liveMost, 2*len(p.live))
}

// forget queues the notification that a pod is gone, unless another sandbox of its name
// runs: the agent knows no sandboxes, and would remove the policies of that one.
func (p *policies) forget(ctx context.Context, req *cniwire.PolicyRequest) *cniwire.PolicyReply {
	pod := podName{req.PodNamespace, req.PodName}
	done := &cniwire.PolicyReply{Success: true}
	if p.assignedElsewhere(pod, req.ContainerID) {
		return done
	}
	d := &deletion{pod: pod, since: p.owner.now(), ended: make(chan struct{})}
	p.mu.Lock()
	sandbox, known := p.live[pod]
	if known && sandbox != req.ContainerID {
		p.mu.Unlock()
		return done
	}
	d.unsure = !known
	delete(p.live, pod)
	queued := p.queued(d)
	full, closed := len(p.waiting) >= deletionsMost, p.closed
	if !queued && !full && !closed {
		p.waiting = append(p.waiting, d)
		p.count()
	}
	p.mu.Unlock()
	switch {
	case closed && !queued: // the daemon ends: this is the last chance
		if !p.mayLive(ctx, d) {
			p.delete(ctx, d)
		}
	case full && !queued:
		p.giveUp(d, "too many notifications are pending")
	default:
		p.stir()
	}
	return done
}

// queued reports whether d is being sent already, or a waiting deletion covers it. p.mu is
// held.
func (p *policies) queued(d *deletion) bool {
	if p.sending != nil && p.sending.pod == d.pod && (!p.sending.unsure || d.unsure) {
		return true
	}
	for _, w := range p.waiting {
		if w.pod == d.pod {
			if !d.unsure {
				w.unsure, w.after = false, time.Time{}
			}
			return true
		}
	}
	return false
}

// assignedElsewhere reports that a newer sandbox of the pod has an address. Of pods that
// have a branch ENI the address book knows nothing.
func (p *policies) assignedElsewhere(pod podName, sandbox string) bool {
	elsewhere, _ := ask(p.owner, func(k *keeper.Keeper, _ time.Time) bool {
		return slices.ContainsFunc(k.Assignments(), func(a ipam.Assignment) bool {
			return a.Pod.Name == pod.name && a.Pod.Namespace == pod.namespace && a.Sandbox.ContainerID != sandbox
		})
	})
	return elsewhere
}

// stir wakes sendDeletions.
func (p *policies) stir() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// count shows how many deletions wait. p.mu is held.
func (p *policies) count() { p.metrics.DeletionsWaiting(len(p.waiting)) }

// answers notes that the agent is there.
func (p *policies) answers() {
	p.mu.Lock()
	p.clock = keeper.Clock{}
	p.mu.Unlock()
	p.stir()
}

// sendDeletions notifies the agent of deletions: each is retried until the agent answers, it
// is void, or it has waited for too long. When the daemon ends it sends the rest if the agent
// answers; ctx ends later.
func (p *policies) sendDeletions(ctx, ending context.Context) {
	for {
		d, wait := p.next(ending.Err() != nil)
		if d == nil {
			if p.closed { // only this goroutine writes it
				return
			}
			p.rest(ending, wait)
			continue
		}
		if p.mayLive(ctx, d) {
			p.later(d)
			continue
		}
		err := p.delete(ctx, d)
		p.ended(d, err)
	}
}

// mayLive reports that a pod of the name may run though none is remembered, as after a
// restart: the host has a link of that name. A pod that ended has none, or not for long:
// its namespace takes the link along. The kernel shows every sandbox, also a second one of
// the same pod, and can always be asked, unlike the API server. A pod that comes after this
// check waits in enforce for what is sent now.
func (p *policies) mayLive(ctx context.Context, d *deletion) bool {
	if !d.unsure {
		return false
	}
	there, err := p.links.pods(ctx)
	if err != nil {
		p.log.Warn("could not list pod links: notifying the network policy agent of a deleted pod later, because a pod of that name may be running",
			slog.String(logline.KeyPod, d.pod.name), slog.String(logline.KeyNamespace, d.pod.namespace), slog.Any(logline.KeyError, err))
	}
	return err != nil || there.has(d.pod)
}

// later puts off a deletion of a pod whose name may live. One that does for long is not
// the one that was deleted, and will have a DEL of its own.
func (p *policies) later(d *deletion) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.count()
	p.sending = nil
	close(d.ended)
	now := p.owner.now()
	age := now.Sub(d.since)
	if p.void(d) || age >= deletionPatience {
		return
	}
	p.waiting = append(p.waiting, &deletion{
		pod: d.pod, since: d.since, unsure: true, after: now.Add(min(max(age, deletionFirst), deletionMost)), ended: make(chan struct{}),
	})
}

// next takes the deletion that is due, or says when the next one is; 0: not known.
func (p *policies) next(ending bool) (*deletion, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.owner.now()
	var wait time.Duration
	due := slices.IndexFunc(p.waiting, func(d *deletion) bool { return !d.after.After(now) })
	switch {
	case len(p.waiting) > 0 && due < 0:
		wait = slices.MinFunc(p.waiting, func(a, b *deletion) int { return a.after.Compare(b.after) }).after.Sub(now)
	case due >= 0 && p.clock.Running(now):
		due, wait = -1, p.clock.Until.Sub(now)
	}
	switch {
	case due < 0 && ending:
		p.closed = true
		for _, d := range p.waiting {
			p.giveUp(d, "ipamd is shutting down; the agent is unreachable, or a pod of that name may still be running")
		}
		p.waiting = nil
		p.count()
		return nil, 0
	case due < 0:
		return nil, wait
	}
	d := p.waiting[due]
	p.waiting = slices.Delete(p.waiting, due, due+1)
	p.sending = d
	return d, 0
}

// rest waits for something to be due. 0: for as long as nothing is.
func (p *policies) rest(ending context.Context, wait time.Duration) {
	var due <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-due:
	case <-p.wake:
	case <-ending.Done():
	}
}

// void reports that a newer sandbox has the name by now, or that a newer deletion waits.
// p.mu is held.
func (p *policies) void(d *deletion) bool {
	_, lives := p.live[d.pod]
	return lives || slices.ContainsFunc(p.waiting, func(w *deletion) bool { return w.pod == d.pod })
}

// delete makes one call.
func (p *policies) delete(ctx context.Context, d *deletion) error {
	err := p.agent.Delete(ctx, d.pod.namespace, d.pod.name)
	p.metrics.AgentCall(metrics.CallDelete, resultOf(err))
	if err != nil {
		// As in upstream, a call that the agent refuses is not repeated.
		p.log.Warn("could not notify the network policy agent of a deleted pod", slog.String(logline.KeyCause, string(policyagent.Cause(err))),
			slog.String(logline.KeyPod, d.pod.name), slog.String(logline.KeyNamespace, d.pod.namespace), slog.Any(logline.KeyError, err))
	}
	return err
}

// ended takes a deletion back whose call did not reach the agent, if it is of use still.
func (p *policies) ended(d *deletion, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.count()
	p.sending = nil
	close(d.ended)
	if !policyagent.Unreachable(err) {
		p.clock = keeper.Clock{}
		return
	}
	now := p.owner.now()
	p.clock.Fail(now, now, cause.PolicyAgentUnreachable, deletionFirst, deletionMost, jitter)
	switch {
	case p.void(d):
	case now.Sub(d.since) >= deletionPatience:
		p.giveUp(d, "the agent was unreachable for too long")
	default:
		p.waiting = slices.Insert(p.waiting, 0, &deletion{pod: d.pod, since: d.since, unsure: d.unsure, ended: make(chan struct{})})
	}
}

func (p *policies) giveUp(d *deletion, why string) {
	p.metrics.AgentCall(metrics.CallDelete, metrics.ResultGivenUp)
	p.log.Warn("gave up notifying the network policy agent of a deleted pod", slog.String(logline.KeyReason, why),
		slog.String(logline.KeyPod, d.pod.name), slog.String(logline.KeyNamespace, d.pod.namespace))
}
