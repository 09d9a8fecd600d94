package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
)

// node is one target with its client and what was learned of it. One goroutine
// reads it at a time.
type node struct {
	target   Target
	client   *client.Client
	now      func() time.Time
	original bool // it has no summary; asked again after a failure
}

// read asks for the summary, or where the node has none for the original's
// documents.
func (n *node) read(ctx context.Context, q Query) introspect.NodeIPAM {
	out := introspect.NodeIPAM{
		APIVersion: introspect.APIVersion, Kind: introspect.KindNode,
		Metadata: introspect.ObjectMeta{Name: n.target.Name},
	}
	start := n.now()
	err := n.fill(ctx, q, &out)
	if took := n.now().Sub(start).Round(time.Microsecond).Seconds(); out.Summary != nil {
		out.LatencySeconds = &took
	}
	if err != nil {
		n.original = false
		out.Error = nodeError(err)
	}
	out.State = stateOf(out)
	return out
}

func stateOf(n introspect.NodeIPAM) introspect.State {
	switch {
	case n.Summary != nil:
		return introspect.StateLive
	case n.Error != nil && n.Error.Reason == introspect.ReasonForbidden:
		return introspect.StateForbidden
	}
	return introspect.StateUnreachable
}

func nodeError(err error) *introspect.NodeError {
	var e *client.Error
	if errors.As(err, &e) {
		return &introspect.NodeError{Reason: e.Reason, Message: e.Err.Error()}
	}
	return &introspect.NodeError{Reason: introspect.ReasonTransport, Message: err.Error()}
}

// fill reads the documents. An error after the summary leaves the summary in place.
func (n *node) fill(ctx context.Context, q Query, out *introspect.NodeIPAM) error {
	if !n.original {
		answer, err := retry(ctx, func(ctx context.Context) (summary, error) {
			s, at, err := n.client.Summary(ctx)
			return summary{s, at}, err
		})
		if client.ReasonOf(err) != introspect.ReasonNoEndpoint {
			if err != nil {
				return err
			}
			out.Source, out.Summary, out.SampledAt = introspect.SourceSummary, &answer.doc, &answer.at
			if !q.ENIs {
				return nil
			}
			pool, err := n.enis(ctx, cooldownOf(answer.doc))
			if err == nil {
				out.ENIs = pool.doc.ENIs
			}
			return err
		}
	}
	return n.fillV1(ctx, q, out)
}

type summary struct {
	doc introspect.Summary
	at  time.Time
}

type pool struct {
	doc *introspect.Pool
	at  time.Time
}

func (n *node) enis(ctx context.Context, cooldown time.Duration) (pool, error) {
	return retry(ctx, func(ctx context.Context) (pool, error) {
		p, at, err := n.client.ENIs(ctx, cooldown)
		if p != nil && p.ENIs == nil {
			p.ENIs = []introspect.NodeENI{}
		}
		return pool{p, at}, err
	})
}

// fillV1 makes a summary of what the original tells. Its settings are asked for
// too; a node that has none of them is shown without.
func (n *node) fillV1(ctx context.Context, q Query, out *introspect.NodeIPAM) error {
	p, err := n.enis(ctx, client.DefaultCooldown)
	if err != nil {
		return err
	}
	env, envErr := retry(ctx, n.client.IPAMEnv)
	s := summaryOfV1(p.doc, nil)
	if envErr == nil {
		s = summaryOfV1(p.doc, &env)
		n.original = true
	}
	out.Source, out.Summary, out.SampledAt = introspect.SourceV1, &s, &p.at
	if q.ENIs {
		out.ENIs = p.doc.ENIs
	}
	if client.ReasonOf(envErr) == introspect.ReasonNoEndpoint {
		return nil
	}
	return envErr
}

// cooldownOf trusts a node's cooldown only within reason.
func cooldownOf(s introspect.Summary) time.Duration {
	if s.CooldownSeconds == nil || *s.CooldownSeconds < 0 || *s.CooldownSeconds > 86400 {
		return client.DefaultCooldown
	}
	return time.Duration(*s.CooldownSeconds * float64(time.Second))
}

// retryWithin bounds the wait before the one further try.
const retryWithin = 100 * time.Millisecond

// retry tries once more when the connection was lost.
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
