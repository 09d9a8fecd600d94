package ipamd

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/backoff"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/policyagent"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// Bounds of deletions that the agent could not be told of. An agent that is away for
// longer was most likely taken off the node; what one keeps of a pod until its own
// restart costs memory, not connectivity.
const (
	deletionFirst, deletionMost = 500 * time.Millisecond, 30 * time.Second
	deletionPatience            = 10 * time.Minute
	deletionsMost               = 1024 // above the max-pods of every instance type
	// liveMost bounds what is remembered of pods whose DEL never comes.
	liveMost = 4 * deletionsMost
)

// podName is what the agent knows a pod by. Another sandbox, and another pod after the
// first, has the same.
type podName struct{ namespace, name string }

// deletion is a pod that the agent is to forget.
type deletion struct {
	pod   podName
	since time.Time
	ended chan struct{} // closed when the call that is under way has ended
}

// policies tells the network policy agent what becomes of pods. An ADD waits for its
// answer; a DEL does not, because a pod must be able to go while the agent is away.
type policies struct {
	agent   *policyagent.Client
	owner   *owner
	log     *slog.Logger
	metrics *metrics.Metrics
	mode    string // NETWORK_POLICY_ENFORCING_MODE

	wake chan struct{} // something is due sooner than thought

	mu      sync.Mutex         // guards what follows
	live    map[podName]string // the sandbox that was enforced last, or is being
	waiting []*deletion        // the oldest first
	telling *deletion          // nil: no call is under way
	clock   backoff.Clock      // of an agent that is away
	closed  bool               // nobody tells the agent of what waits
}

// policyOn reports that the agent is told of pods in that mode. In the mode "none" no
// agent enforces anything: one that is enabled does not start.
func policyOn(mode string) bool { return mode != "" && !strings.EqualFold(mode, "none") }

func newPolicies(agent *policyagent.Client, o *owner, log *slog.Logger, met *metrics.Metrics, mode string) *policies {
	return &policies{agent: agent, owner: o, log: log, metrics: met, mode: mode, wake: make(chan struct{}, 1), live: map[podName]string{}}
}

// Policy has the agent told of a pod.
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
	if earlier := p.lives(pod, req.ContainerID); earlier != nil {
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
	p.log.Error("network policy agent did not take a pod, whose ADD fails", slog.String(logline.KeyCause, string(code)), slog.Any(logline.KeyError, err),
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
func (p *policies) lives(pod podName, sandbox string) *deletion {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.live) >= liveMost {
		clear(p.live) // the address book knows sandboxes too
	}
	p.live[pod] = sandbox
	p.waiting = slices.DeleteFunc(p.waiting, func(d *deletion) bool { return d.pod == pod })
	p.count()
	if p.telling != nil && p.telling.pod == pod {
		return p.telling
	}
	return nil
}

// forget lets the agent be told that a pod is gone, unless another sandbox of its name
// lives: the agent knows no sandboxes, and would take the policies from that one.
func (p *policies) forget(ctx context.Context, req *cniwire.PolicyRequest) *cniwire.PolicyReply {
	pod := podName{req.PodNamespace, req.PodName}
	done := &cniwire.PolicyReply{Success: true}
	if p.assignedElsewhere(pod, req.ContainerID) {
		return done
	}
	d := &deletion{pod: pod, since: p.owner.now(), ended: make(chan struct{})}
	p.mu.Lock()
	if sandbox, lives := p.live[pod]; lives && sandbox != req.ContainerID {
		p.mu.Unlock()
		return done
	}
	delete(p.live, pod)
	known := p.telling != nil && p.telling.pod == pod || slices.ContainsFunc(p.waiting, func(w *deletion) bool { return w.pod == pod })
	full, closed := len(p.waiting) >= deletionsMost, p.closed
	if !known && !full && !closed {
		p.waiting = append(p.waiting, d)
		p.count()
	}
	p.mu.Unlock()
	switch {
	case known:
	case closed: // the daemon ends: this is the last chance
		p.delete(ctx, d)
	case full:
		p.giveUp(d, "too many wait for it")
	default:
		p.stir()
	}
	return done
}

// assignedElsewhere reports that a newer sandbox of the pod has an address. After a
// restart only the address book knows.
func (p *policies) assignedElsewhere(pod podName, sandbox string) bool {
	elsewhere, _ := ask(p.owner, func(k *keeper.Keeper, _ time.Time) bool {
		return slices.ContainsFunc(k.Assignments(), func(a ipam.Assignment) bool {
			return a.Pod.Name == pod.name && a.Pod.Namespace == pod.namespace && a.Sandbox.ContainerID != sandbox
		})
	})
	return elsewhere
}

// stir lets tell look again.
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
	p.clock = backoff.Clock{}
	p.mu.Unlock()
	p.stir()
}

// tell tells the agent of deletions, each until it answers, is no use any more or has
// waited for too long. When the daemon ends it tells the rest to an agent that is there;
// ctx ends later.
func (p *policies) tell(ctx, ending context.Context) {
	for {
		d, wait := p.next(ending.Err() != nil)
		if d == nil {
			if p.closed { // only this goroutine writes it
				return
			}
			p.rest(ending, wait)
			continue
		}
		err := p.delete(ctx, d)
		p.ended(d, err)
	}
}

// next takes the deletion that is due, or says when to look again; 0: when there is one.
func (p *policies) next(ending bool) (*deletion, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.owner.now()
	switch {
	case ending && (len(p.waiting) == 0 || p.clock.Running(now)):
		p.closed = true
		for _, d := range p.waiting {
			p.giveUp(d, "it is away and ipamd ends")
		}
		p.waiting = nil
		p.count()
		return nil, 0
	case len(p.waiting) == 0:
		return nil, 0
	case p.clock.Running(now):
		return nil, p.clock.Until.Sub(now)
	}
	d := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	p.telling = d
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

// delete makes one call.
func (p *policies) delete(ctx context.Context, d *deletion) error {
	err := p.agent.Delete(ctx, d.pod.namespace, d.pod.name)
	p.metrics.AgentCall(metrics.CallDelete, resultOf(err))
	if err != nil {
		// As in the original, an agent that does not want to know is not asked again.
		p.log.Warn("network policy agent not told that a pod is gone", slog.String(logline.KeyCause, string(policyagent.Cause(err))),
			slog.String(logline.KeyPod, d.pod.name), slog.String(logline.KeyNamespace, d.pod.namespace), slog.Any(logline.KeyError, err))
	}
	return err
}

// ended takes a deletion back whose call did not reach the agent, if it is of use still.
func (p *policies) ended(d *deletion, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.count()
	p.telling = nil
	close(d.ended)
	if !policyagent.Unreachable(err) {
		p.clock = backoff.Clock{}
		return
	}
	now := p.owner.now()
	p.clock.Fail(now, now, cause.PolicyAgentUnreachable, deletionFirst, deletionMost, chance)
	switch _, lives := p.live[d.pod]; {
	case lives: // a newer sandbox has the name
	case now.Sub(d.since) >= deletionPatience:
		p.giveUp(d, "it is away for too long")
	default:
		p.waiting = slices.Insert(p.waiting, 0, &deletion{pod: d.pod, since: d.since, ended: make(chan struct{})})
	}
}

func (p *policies) giveUp(d *deletion, why string) {
	p.metrics.AgentCall(metrics.CallDelete, metrics.ResultGivenUp)
	p.log.Warn("network policy agent will not be told that a pod is gone", slog.String(logline.KeyReason, why),
		slog.String(logline.KeyPod, d.pod.name), slog.String(logline.KeyNamespace, d.pod.namespace))
}
