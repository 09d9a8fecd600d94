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

// Bounds of deletions that did not reach the agent. An agent that is unreachable for longer
// was most likely removed from the node. What it keeps about a pod until it restarts costs
// memory, not connectivity.
const (
	deletionFirst, deletionMost = 500 * time.Millisecond, 30 * time.Second
	deletionPatience            = 10 * time.Minute
	deletionsMost               = 1024 // above the max-pods of every instance type
	// liveMost is how many pods are remembered before the daemon looks for pods whose DEL
	// never came.
	liveMost = 4 * deletionsMost
)

// podName is how the agent identifies a pod. Another sandbox of the pod, or a later pod of
// the same name, has the same podName.
type podName struct{ namespace, name string }

// deletion is a pod that the agent must forget.
type deletion struct {
	pod    podName
	since  time.Time
	unsure bool          // no sandbox is remembered for the pod, so another one may still run
	after  time.Time     // earliest time to send it
	ended  chan struct{} // closed when the call in progress has ended
}

// policies notifies the network policy agent when pods start and end. An ADD waits for the
// agent's answer; a DEL does not, because a pod must be able to end while the agent is
// unreachable.
type policies struct {
	agent   *policyagent.Client
	owner   *owner
	log     *slog.Logger
	metrics *metrics.Metrics
	mode    string // NETWORK_POLICY_ENFORCING_MODE
	links   hostLinks

	wake chan struct{} // something is due sooner than planned

	mu      sync.Mutex          // guards the fields below
	live    map[podName]string  // the sandbox that was last enforced or is being enforced
	most    int                 // size of live at which ended pods are looked for
	waiting []*deletion         // oldest first
	sending *deletion           // nil if no call is in progress
	clock   keeper.BackoffTimer // back-off while the agent is unreachable
	closed  bool                // nothing more will be sent
}

// policyOn reports whether the agent is notified of pods in that mode. In mode "none" no
// agent enforces anything: an enabled agent does not start.
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

// enforce asks the agent to attach a pod's policies, and returns when that is done.
func (p *policies) enforce(ctx context.Context, req *cniwire.PolicyRequest) *cniwire.PolicyReply {
	began := time.Now()
	pod := podName{req.PodNamespace, req.PodName}
	if earlier := p.markLive(ctx, pod, req.ContainerID); earlier != nil {
		select { // when it ends it would undo what enforce does now
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

// markLive records the sandbox of a pod that is about to be enforced. It cancels a waiting
// deletion of that name, and returns one that is in progress.
func (p *policies) markLive(ctx context.Context, pod podName, sandbox string) *deletion {
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

// forgetEnded forgets pods without a link: their DEL never came. The caller holds p.mu.
func (p *policies) forgetEnded(ctx context.Context) {
	if there, err := p.links.pods(ctx); err == nil {
		maps.DeleteFunc(p.live, func(pod podName, _ string) bool { return !there.has(pod) })
	}
	p.most = max(liveMost, 2*len(p.live))
}

// forget queues the notification that a pod is gone, unless another sandbox of the same name
// is running: the agent does not know sandboxes, and would remove the policies of that one.
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
	case closed && !queued: // the daemon is ending: this is the last chance
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

// queued reports whether d is already being sent, or is covered by a waiting deletion. The
// caller holds p.mu.
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

// assignedElsewhere reports whether a newer sandbox of the pod has an address. Pods with a
// branch ENI are not in the address book.
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

// count updates the metric of waiting deletions. The caller holds p.mu.
func (p *policies) count() { p.metrics.DeletionsWaiting(len(p.waiting)) }

// answers records that the agent responds.
func (p *policies) answers() {
	p.mu.Lock()
	p.clock = keeper.BackoffTimer{}
	p.mu.Unlock()
	p.stir()
}

// sendDeletions notifies the agent of deletions. Each is retried until the agent answers, it
// becomes void, or it has waited too long. When the daemon ends it sends the rest if the agent
// responds; ctx ends later.
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

// mayLive reports whether a pod of that name may be running although none is remembered, as
// after a restart: the host has a link of that name. A pod that ended has no link, or not for
// long, since the link goes with its namespace. The kernel shows every sandbox, including a
// second one of the same pod, and unlike the API server it is always available. A pod that
// arrives after this check waits in enforce for the call that is sent now.
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

// later postpones a deletion because a pod of that name may be running. A pod that keeps
// running is not the deleted one, and will have its own DEL.
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

// next takes a deletion that is due, or returns the time until one is; 0 if unknown.
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

// rest waits until something is due; with wait 0, until it is woken.
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

// void reports whether the name has a newer sandbox by now, or a newer deletion is waiting.
// The caller holds p.mu.
func (p *policies) void(d *deletion) bool {
	_, lives := p.live[d.pod]
	return lives || slices.ContainsFunc(p.waiting, func(w *deletion) bool { return w.pod == d.pod })
}

// delete makes one call.
func (p *policies) delete(ctx context.Context, d *deletion) error {
	err := p.agent.Delete(ctx, d.pod.namespace, d.pod.name)
	p.metrics.AgentCall(metrics.CallDelete, resultOf(err))
	if err != nil {
		// As in upstream, a call that the agent rejects is not repeated.
		p.log.Warn("could not notify the network policy agent of a deleted pod", slog.String(logline.KeyCause, string(policyagent.Cause(err))),
			slog.String(logline.KeyPod, d.pod.name), slog.String(logline.KeyNamespace, d.pod.namespace), slog.Any(logline.KeyError, err))
	}
	return err
}

// ended requeues a deletion whose call did not reach the agent, if it is still needed.
func (p *policies) ended(d *deletion, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.count()
	p.sending = nil
	close(d.ended)
	if !policyagent.Unreachable(err) {
		p.clock = keeper.BackoffTimer{}
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
