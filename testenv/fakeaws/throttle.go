package fakeaws

import (
	"fmt"
	"time"
)

// Bucket is a token bucket: Size requests at once, then PerSecond.
type Bucket struct {
	Size      float64 `json:"size"`
	PerSecond float64 `json:"perSecond"`
}

// Throttle holds EC2's request limits. Each action has a separate bucket, of its class's size,
// that all instances share: a world is one account in one region. An action's unfiltered calls
// have another bucket.
type Throttle struct {
	Describe   Bucket            `json:"describe"`   // non-mutating actions
	Unfiltered Bucket            `json:"unfiltered"` // non-mutating, without ids, filters or paging
	Mutating   Bucket            `json:"mutating"`
	Actions    map[string]Bucket `json:"actions,omitempty"` // figures of single actions, before the classes
}

// AccountBuckets returns the values of AWS's "Request throttling for the Amazon EC2
// API" for an account and region.
func AccountBuckets() *Throttle {
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
	if passed := now.Sub(b.at); passed > 0 { // a clock that is set back earns nothing
		b.tokens = min(b.Size, b.tokens+passed.Seconds()*b.PerSecond)
	}
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// admit takes a token for a call if limits are on.
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

// check refuses limits that cannot work.
func (t *Throttle) check() error {
	if t == nil {
		return nil
	}
	all := map[string]Bucket{"describe": t.Describe, "unfiltered": t.Unfiltered, "mutating": t.Mutating}
	for a, b := range t.Actions {
		if _, known := actions[a]; !known {
			return fmt.Errorf("bucket of %q: no such action", a)
		}
		all[a] = b
	}
	for name, b := range all {
		if !(b.Size >= 1 && b.PerSecond >= 0) {
			return fmt.Errorf("bucket of %s: a size from 1 and a refill from 0 a second are accepted", name)
		}
	}
	return nil
}
