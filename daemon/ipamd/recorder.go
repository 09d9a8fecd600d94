package ipamd

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/keeper"
	"cnictl/daemon/warmpool"
)

// recorder turns the keeper's events into log lines, metrics, the feed, the last failures and
// Kubernetes events. Only the owner's goroutine uses it.
type recorder struct {
	ctx      context.Context //nolint:containedctx // of the log, which uses none
	log      *slog.Logger
	metrics  *metrics.Metrics
	feed     *introspectserver.Feed
	failures *introspectserver.FailureLog
	running  map[keeper.OpID]func() // ends an action's part of the gauge
	history  history
	lines    poolLines
	kube     *kubernetes    // nil if there is no API server
	subnets  *subnetHistory // nil if none is kept
}

func newRecorder(ctx context.Context, log *slog.Logger, met *metrics.Metrics, feed *introspectserver.Feed, policy warmpool.Policy) *recorder {
	return &recorder{
		ctx: ctx, lines: newPoolLines(ctx, log, policy),
		log: log, metrics: met, feed: feed, failures: introspectserver.NewFailureLog(),
		running: make(map[keeper.OpID]func()), history: newHistory(),
	}
}

// started records the first event of a run, which shows readers of the events where a new
// daemon began.
func (r *recorder) started(at time.Time, version string) {
	r.feed.Append(introspect.Event{At: at.UTC(), Kind: introspect.EventStarted, Message: version})
}

func (r *recorder) record(at time.Time, e keeper.Event) {
	if t, ok := e.(keeper.TargetsChanged); ok {
		t.Is.Set(&r.lines.policy)
	}
	r.publish(at, reportOf(e, at, r.lines.policy))
	if back, ok := e.(keeper.AddressReleased); ok && back.Reason == metrics.ReasonSetupNSFailed {
		r.publish(at, addressReturned(back))
	}
}

func (r *recorder) publish(at time.Time, p report) {
	if p.count != nil {
		p.count(r)
	}
	if p.err.operation != "" {
		r.history.note(at, p.err.operation, p.err.code, p.err.text)
	}
	if p.failure.Cause != "" {
		p.failure.At = at
		r.failures.Append(p.failure)
	}
	if p.journal.Kind != "" {
		p.journal.At = at
		r.feed.Append(p.journal)
	}
	for _, l := range []line{p.log, p.debug} {
		if l.text != "" {
			r.log.LogAttrs(r.ctx, l.level, l.text, l.attrs...) //nolint:sloglint // the texts are those of reportOf
		}
	}
	r.lines.note(p.pool, p.cools, at)
	if r.kube == nil || p.notice.Reason == "" {
		return
	}
	if p.notice.About == thisNode {
		p.notice.About = r.kube.OwnNode()
	}
	if p.notice.About.Name != "" { // otherwise it is unknown
		r.kube.EmitLater(p.notice)
	}
}

// actionEnded ends an action's part of the gauge.
func (r *recorder) actionEnded(id keeper.OpID, waited time.Duration, err error) {
	if done := r.running[id]; done != nil {
		done()
		delete(r.running, id)
	}
	if waited > 0 {
		r.metrics.APILatency(metrics.APIWaitForENI, waited, vpcapi.Code(err), err)
	}
}

// history is kept for users: counters since the start and the last failures, with repeated
// ones merged.
type history struct {
	adds, dels introspect.RequestCounts
	errors     []introspect.LastError // newest first
}

func newHistory() history {
	return history{
		errors: []introspect.LastError{},
		adds:   introspect.RequestCounts{Failed: new(0), Causes: map[string]int{}},
		dels:   introspect.RequestCounts{Failed: new(0), Causes: map[string]int{}},
	}
}

// failed counts a request that failed.
func failed(c introspect.RequestCounts, code cause.Code) {
	*c.Failed++
	c.Causes[string(code)]++
}

// clone returns a copy that the owner's goroutine no longer changes.
func (h *history) clone() history {
	out := *h
	out.errors = slices.Clone(h.errors)
	out.adds.Failed, out.dels.Failed = new(*h.adds.Failed), new(*h.dels.Failed)
	out.adds.Causes, out.dels.Causes = maps.Clone(h.adds.Causes), maps.Clone(h.dels.Causes)
	return out
}

// note puts an error first; one with the same operation and cause moves up and is counted.
func (h *history) note(at time.Time, operation string, code cause.Code, text string) {
	e := introspect.LastError{At: at.UTC(), Operation: operation, Cause: string(code), Message: bounded(text), Count: 1}
	same := func(o introspect.LastError) bool { return o.Operation == e.Operation && o.Cause == e.Cause }
	if i := slices.IndexFunc(h.errors, same); i >= 0 {
		e.Count += h.errors[i].Count
		h.errors = slices.Delete(h.errors, i, i+1)
	}
	h.errors = slices.Insert(h.errors, 0, e)
	h.errors = h.errors[:min(len(h.errors), introspect.MaxLastErrors)]
}

// bounded cuts an external message to a readable length.
func bounded(message string) string {
	const limit = 300
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit], "") + "…"
}
