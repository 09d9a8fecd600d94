package fakeaws

import "time"

// Bucket is a token bucket: Size requests at once, then PerSecond.
type Bucket struct {
	Size      float64
	PerSecond float64
}

// Throttle holds EC2's request limits. Each action has a bucket of its own, of the
// size of its class.
type Throttle struct {
	Describe   Bucket // non-mutating actions
	Unfiltered Bucket // non-mutating, without ids, filters or paging
	Mutating   Bucket
	Actions    map[string]Bucket // figures of single actions, before the classes
}

// DocumentedThrottle has the figures of AWS's "Request throttling for the Amazon EC2
// API" for an account and region.
func DocumentedThrottle() *Throttle {
	return &Throttle{Describe: Bucket{100, 20}, Unfiltered: Bucket{50, 10}, Mutating: Bucket{50, 5}}
}

func (t *Throttle) classOf(action string, mutating, unfiltered bool) (key string, b Bucket) {
	if b, ok := t.Actions[action]; ok {
		return action, b
	}
	switch {
	case mutating:
		return action, t.Mutating
	case unfiltered:
		return action + "/unfiltered", t.Unfiltered
	}
	return action, t.Describe
}

type bucket struct {
	Bucket
	tokens float64
	at     time.Time
}

func (b *bucket) take(now time.Time) bool {
	b.tokens = min(b.Size, b.tokens+now.Sub(b.at).Seconds()*b.PerSecond)
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// admit takes a token for a call, if limits are on.
func (w *World) admit(action string, mutating, unfiltered bool) error {
	return locked(&w.wire, func() error {
		t := w.wire.throttle
		if t == nil {
			return nil
		}
		now := w.opts.Now()
		key, size := t.classOf(action, mutating, unfiltered)
		b := w.wire.buckets[key]
		if b == nil {
			b = &bucket{Bucket: size, tokens: size.Size, at: now}
			w.wire.buckets[key] = b
		}
		if !b.take(now) {
			return fail(codeThrottled, "Request limit exceeded.")
		}
		return nil
	})
}
