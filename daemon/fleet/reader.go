package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet/document"
)

// RequestTimeout limits one request, from the moment it has a connection; client.DialTimeout
// limits connecting; Options.NodeTimeout limits both together. A NodeTimeout above the default
// raises both limits: on a busy node, starting a program in a container is slow.
const RequestTimeout = 2 * time.Second

// lateMetrics limits reading the metrics of a node that did not answer in time. The same
// process serves them and is probably just as silent there, and a sweep would wait twice.
const lateMetrics = time.Second

// ReaderOptions configure a Reader. Now is required.
type ReaderOptions struct {
	NodeTimeout time.Duration // for all requests of one Read; 0 = DefaultNodeTimeout
	UserAgent   string
	Now         func() time.Time
}

// Reader reads one target any number of times, and remembers what it learned about it. Only
// one goroutine at a time may call Read; the other methods may run concurrently with it.
type Reader struct {
	target   Target
	opts     ReaderOptions
	client   *client.Client // nil if the target is absent
	upstream atomic.Bool    // the node has no summary
	// Upstream's settings, which it takes from its environment when it starts. They are read
	// only once, as upstream logs every request. Only Read's goroutine uses them.
	env      *client.IPAMEnv // nil if the node has none or was not asked yet
	envAsked bool
}

// NewReader builds a reader; it does not connect.
func NewReader(t Target, opts ReaderOptions) (*Reader, error) {
	if opts.NodeTimeout == 0 {
		opts.NodeTimeout = DefaultNodeTimeout
	}
	r := &Reader{target: t, opts: opts}
	if t.Absent != nil {
		return r, nil
	}
	o := client.Options{Address: t.Address, UserAgent: opts.UserAgent, Now: opts.Now}
	if t.Dial != nil {
		o.Dial = func(ctx context.Context) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(bare{ctx}, max(client.DialTimeout, opts.NodeTimeout-RequestTimeout))
			defer cancel()
			// The client dials in a separate goroutine.
			return Recover(func() (net.Conn, error) { return t.Dial(ctx) })
		}
	}
	c, err := client.New(o)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.Name, err)
	}
	r.client = c
	return r, nil
}

// bare is a context without its values. Connecting to a node may take further requests, made
// in another goroutine. They must stay hidden from the trace of the request to the node,
// which would mistake their connection for the node's.
type bare struct{ context.Context }

func (bare) Value(any) any { return nil }

// Target returns the reader's target.
func (r *Reader) Target() Target { return r.target }

// Client returns the client for single documents; nil while the target is absent.
func (r *Reader) Client() *client.Client { return r.client }

// Upstream reports that the node turned out to have no summary.
func (r *Reader) Upstream() bool { return r.upstream.Load() }

// Close ends idle connections. The reader can be used again.
func (r *Reader) Close() {
	if r.client != nil {
		r.client.Close()
	}
}

// Ask calls ask to read one document, within the time of one request, and retries once if
// the connection was lost. It may run concurrently with Read.
func Ask[T any](ctx context.Context, r *Reader, ask func(context.Context, *client.Client) (T, error)) (T, error) {
	if r.client == nil {
		var none T
		return none, r.absence()
	}
	return retry(ctx, func(ctx context.Context) (T, error) {
		return inTime(ctx, max(RequestTimeout, r.opts.NodeTimeout-client.DialTimeout), func(ctx context.Context) (T, error) {
			return Recover(func() (T, error) { return ask(ctx, r.client) })
		})
	})
}

// absence returns why an absent target is not asked.
func (r *Reader) absence() error {
	return &client.Error{Address: r.target.Name, Reason: r.target.Absent.Reason, Err: errors.New(r.target.Absent.Message)}
}

// Read returns the best that the node offers: its summary, else upstream's documents, else
// its metrics. It adds what Kubernetes knows, which also fills the gaps in any summary that
// is not ours. If an answer makes this program panic, that is an error of the node.
func (r *Reader) Read(ctx context.Context, q Query) document.NodeIPAM {
	out, err := Recover(func() (document.NodeIPAM, error) { return r.read(ctx, q), nil })
	if err != nil {
		return Broken(r.target, err)
	}
	return out
}

// Broken returns a node about which only an error is known.
func Broken(t Target, err error) document.NodeIPAM {
	out := Unread(t)
	out.State, out.Error = document.StateUnreachable, ErrorOf(err)
	return out
}

func (r *Reader) read(ctx context.Context, q Query) document.NodeIPAM {
	ctx, cancel := context.WithTimeout(ctx, r.opts.NodeTimeout)
	defer cancel()
	out := Unread(r.target)
	if r.client == nil {
		if r.target.Sample != nil && q.ENIs && out.ENIs == nil && out.Error == nil {
			out.Error = &document.NodeError{Reason: introspect.ReasonNotServed, Message: "the recording does not include its addresses at that time"}
		}
		return out
	}
	start := r.opts.Now()
	err := r.fill(ctx, q, &out)
	if err != nil {
		out.Error = ErrorOf(err)
		if r.target.Key == "" {
			r.upstream.Store(false) // another daemon may have replaced it
			r.env, r.envAsked = nil, false
		}
		if out.Summary == nil && r.target.Metrics != nil && ctx.Err() == nil {
			r.fillMetrics(ctx, &out)
		}
	}
	if out.Summary != nil {
		took := r.opts.Now().Sub(start).Round(time.Microsecond).Seconds()
		out.LatencySeconds = &took
		out.Via = r.via(out.Source)
	}
	out.State = stateOf(out)
	return out
}

// Unread returns a node as known before any request to it.
func Unread(t Target) document.NodeIPAM {
	if t.Sample != nil {
		return *t.Sample
	}
	out := document.NodeIPAM{
		APIVersion: introspect.APIVersion, Kind: document.KindNode,
		Metadata: document.ObjectMeta{Name: t.Name}, State: document.StateAPIOnly, Object: t.Object,
	}
	if a := t.Absent; a != nil {
		out.State = document.StateUnreachable
		if t.State != "" {
			out.State = t.State
		}
		reason := *a
		reason.Node = ""
		out.Error = &reason
	}
	return out
}

func (r *Reader) via(source string) string {
	switch {
	case source == document.SourceMetrics:
		return document.ViaProxy
	case r.target.Via != "":
		return r.target.Via
	}
	return document.ViaDirect
}

func stateOf(n document.NodeIPAM) document.State {
	switch {
	case n.Source == document.SourceMetrics:
		return document.StateMetricsOnly
	case n.Summary != nil:
		return document.StateLive
	case n.Error == nil:
		return document.StateAPIOnly
	}
	switch n.Error.Reason {
	case introspect.ReasonForbidden:
		return document.StateForbidden
	case introspect.ReasonOff, introspect.ReasonNoPod, introspect.ReasonPodNotRunning, introspect.ReasonCancelled:
		// There is nothing to ask, or the read was cancelled: the Node object, if present, is
		// all that is known.
		if n.Object != nil {
			return document.StateAPIOnly
		}
	}
	return document.StateUnreachable
}

// ErrorOf returns a node's error with its reason.
func ErrorOf(err error) *document.NodeError {
	var e *client.Error
	if errors.As(err, &e) {
		return &document.NodeError{Reason: e.Reason, Message: e.Err.Error()}
	}
	var other interface{ NodeReason() introspect.Reason }
	switch {
	case errors.As(err, &other):
		return &document.NodeError{Reason: other.NodeReason(), Message: err.Error()}
	case errors.Is(err, context.Canceled):
		return &document.NodeError{Reason: introspect.ReasonCancelled, Message: "cancelled"}
	case errors.Is(err, context.DeadlineExceeded):
		return &document.NodeError{Reason: introspect.ReasonTimeout, Message: noAnswer}
	}
	return &document.NodeError{Reason: introspect.ReasonTransport, Message: err.Error()}
}

// fill reads the documents. An error after the summary leaves the summary in place.
func (r *Reader) fill(ctx context.Context, q Query, out *document.NodeIPAM) error {
	if !r.upstream.Load() {
		answer, err := Ask(ctx, r, func(ctx context.Context, c *client.Client) (summary, error) {
			s, at, err := c.Summary(ctx)
			return summary{s, at}, err
		})
		if client.ReasonOf(err) != introspect.ReasonNoEndpoint {
			if err != nil {
				return err
			}
			out.Source, out.Summary, out.SampledAt = document.SourceSummary, &answer.doc, &answer.at
			if !q.ENIs {
				return nil
			}
			pool, err := r.enis(ctx, cooldownOf(&answer.doc))
			if err == nil {
				out.ENIs = pool.doc.ENIs
			}
			return err
		}
	}
	return r.fillV1(ctx, q, out)
}

type summary struct {
	doc introspect.Summary
	at  time.Time
}

type pool struct {
	doc *introspect.Pool
	at  time.Time
}

// ENIs reads /v1/enis and counts with the cooldown of the summary, which may be nil.
func (r *Reader) ENIs(ctx context.Context, s *introspect.Summary) ([]introspect.NodeENI, time.Time, error) {
	p, err := r.enis(ctx, cooldownOf(s))
	if err != nil {
		return nil, time.Time{}, err
	}
	return p.doc.ENIs, p.at, nil
}

func (r *Reader) enis(ctx context.Context, cooldown time.Duration) (pool, error) {
	return Ask(ctx, r, func(ctx context.Context, c *client.Client) (pool, error) {
		p, at, err := c.ENIs(ctx, cooldown)
		if p != nil && p.ENIs == nil {
			p.ENIs = []introspect.NodeENI{}
		}
		return pool{p, at}, err
	})
}

// fillV1 makes a summary from upstream's documents. It also reads upstream's settings, once;
// a node that serves none is shown without them.
func (r *Reader) fillV1(ctx context.Context, q Query, out *document.NodeIPAM) error {
	cooldown := client.DefaultCooldown
	if c, known := r.target.settings(); known {
		cooldown = c.Cooldown
	}
	p, err := r.enis(ctx, cooldown)
	if err != nil {
		return err
	}
	var envErr error
	if !r.envAsked {
		var env client.IPAMEnv
		if env, envErr = Ask(ctx, r,
			func(ctx context.Context, c *client.Client) (client.IPAMEnv, error) { return c.IPAMEnv(ctx) }); envErr == nil {
			r.env = &env
		}
		r.envAsked = envErr == nil || client.ReasonOf(envErr) == introspect.ReasonNoEndpoint
	}
	s := summaryOfV1(p.doc, r.env)
	r.target.complete(&s, p.doc.ENIs)
	if envErr == nil || client.ReasonOf(envErr) == introspect.ReasonNoEndpoint {
		r.upstream.Store(true)
	}
	out.Source, out.Summary, out.SampledAt = document.SourceV1, &s, &p.at
	if q.ENIs {
		out.ENIs = p.doc.ENIs
	}
	if client.ReasonOf(envErr) == introspect.ReasonNoEndpoint {
		return nil
	}
	return envErr
}

// fillMetrics makes a summary from the node's metrics. The error that led here stays: it
// explains why there is nothing better.
func (r *Reader) fillMetrics(ctx context.Context, out *document.NodeIPAM) {
	if out.Error.Reason == introspect.ReasonTimeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lateMetrics)
		defer cancel()
	}
	text, err := r.target.Metrics(ctx)
	if err != nil {
		return
	}
	s, err := SummaryOfMetrics(text)
	if err != nil {
		return
	}
	r.target.complete(&s, nil)
	at := r.opts.Now().UTC()
	out.Source, out.Summary, out.SampledAt = document.SourceMetrics, &s, &at
}

// Cooldown returns how long a node keeps a released address from other pods; false if it is
// unreported or not within 0–24 hours.
func Cooldown(s *introspect.Summary) (time.Duration, bool) {
	if s == nil || s.CooldownSeconds == nil || *s.CooldownSeconds < 0 || *s.CooldownSeconds > 86400 {
		return 0, false
	}
	return time.Duration(*s.CooldownSeconds * float64(time.Second)), true
}

// cooldownOf returns the cooldown for counting addresses: the default if unknown.
func cooldownOf(s *introspect.Summary) time.Duration {
	if cooldown, ok := Cooldown(s); ok {
		return cooldown
	}
	return client.DefaultCooldown
}

// noAnswer is the message for a node that was too slow.
const noAnswer = "no complete answer in time"

var errSlow = errors.New(noAnswer)

// inTime limits a request from the moment it has its connection.
func inTime[T any](ctx context.Context, limit time.Duration, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var timer *time.Timer // GotConn runs in this goroutine, so no lock
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	v, err := ask(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if timer == nil {
			timer = time.AfterFunc(limit, func() { cancel(errSlow) })
		}
	}}))
	var e *client.Error
	if errors.As(err, &e) && errors.Is(context.Cause(ctx), errSlow) {
		return v, &client.Error{Address: e.Address, Path: e.Path, Reason: introspect.ReasonTimeout, Err: errSlow}
	}
	return v, err
}

// retryWithin limits the wait before the retry.
const retryWithin = 100 * time.Millisecond

// retry repeats a request once if the connection was lost.
func retry[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	v, err := ask(ctx)
	if !client.Temporary(err) {
		return v, err
	}
	timer := time.NewTimer(rand.N(retryWithin))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return v, err
	case <-timer.C:
		return ask(ctx)
	}
}
