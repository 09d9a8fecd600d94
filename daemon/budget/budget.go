package budget

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Want is the urgency of a request.
type Want uint8

const (
	// Housekeeping can be deferred: comparing with EC2, sweeping, tagging, releasing.
	Housekeeping Want = iota
	// Urgent requests have a pod waiting for them.
	Urgent
)

// Jitter returns a number in [0, n); n is positive.
type Jitter func(n time.Duration) time.Duration

// Budget paces the requests of one process.
type Budget struct {
	policy  Policy
	jitter  Jitter
	buckets map[string]*bucket // by action; only actions requested so far
}

// New makes a budget with full buckets.
func New(p Policy, jitter Jitter) *Budget {
	return &Budget{policy: p.withDefaults(), jitter: jitter, buckets: make(map[string]*bucket)}
}

// Take asks for one request of an action. If it returns zero, the request may be sent now
// and has been counted. Otherwise nothing was counted, and the caller should ask again
// after the wait, or earlier if the budget changes.
func (b *Budget) Take(now time.Time, action string, want Want) (wait time.Duration) {
	k := b.bucket(now, action)
	k.refill(now, b.policy.Forget)
	return k.take(want, b.policy.Forget)
}

// Throttled records that EC2 refused a request that began at started. Concurrent requests
// that are refused together count as one.
func (b *Budget) Throttled(started, now time.Time, action string) {
	k := b.bucket(now, action)
	k.refill(now, b.policy.Forget)
	if k.throttledEver && started.Before(k.throttled) {
		return
	}
	k.throttledEver, k.throttled = true, now
	k.rate = max(k.rate*b.policy.Shrink, min(b.policy.Floor, k.class.PerSecond))
	// EC2's bucket is empty, so the tokens saved here are worthless. The next request waits
	// a random time between zero and twice the interval of the rate.
	const steps = time.Second
	k.tokens = min(k.tokens, 1-2*b.jitter(steps).Seconds())
}

// Succeeded records that EC2 served a request that began at started, with a result or
// another kind of error. A request that began before the last throttle says nothing about
// the time since, and is ignored.
func (b *Budget) Succeeded(started, now time.Time, action string) {
	k := b.bucket(now, action)
	k.refill(now, b.policy.Forget)
	if k.throttledEver && started.Before(k.throttled) {
		return
	}
	k.rate = min(k.class.PerSecond, k.rate+k.class.PerSecond*b.policy.Grow)
}

// State is the state of one action's bucket.
type State struct {
	Action    string
	PerSecond float64   // now
	Share     float64   // the rate without refusals
	Saved     float64   // requests that could be made at once; if negative, the next has to wait
	Throttled time.Time // when EC2 last refused one; zero: never
}

// Slowed reports whether throttling keeps the action below its share.
func (s State) Slowed() bool { return s.PerSecond < s.Share }

// States lists the actions requested so far, by name.
func (b *Budget) States(now time.Time) []State {
	out := make([]State, 0, len(b.buckets))
	for _, action := range slices.Sorted(maps.Keys(b.buckets)) {
		k := b.buckets[action]
		k.refill(now, b.policy.Forget)
		out = append(out, State{Action: action, PerSecond: k.rate, Share: k.class.PerSecond, Saved: k.tokens, Throttled: k.throttled})
	}
	return out
}

func (b *Budget) bucket(now time.Time, action string) *bucket {
	k := b.buckets[action]
	if k == nil {
		c := b.policy.classOf(action)
		k = &bucket{class: c, rate: c.PerSecond, tokens: c.Burst, at: now}
		b.buckets[action] = k
	}
	return k
}

// bucket is the token bucket of one action.
type bucket struct {
	class         Class
	rate          float64 // tokens per second, Floor to class.PerSecond
	tokens        float64 // -1 to class.Burst
	at            time.Time
	throttled     time.Time // last
	throttledEver bool

	inRow  int       // urgent requests since the last housekeeping one
	putOff time.Time // when housekeeping last had to wait
}

// refill adds the tokens earned since the last refill. A clock that was set back earns
// none.
func (k *bucket) refill(now time.Time, forget time.Duration) {
	passed := now.Sub(k.at)
	k.at = now
	if passed <= 0 {
		return
	}
	k.tokens = min(k.class.Burst, k.tokens+passed.Seconds()*k.rate)
	if k.throttledEver && now.Sub(k.throttled) >= forget {
		k.rate = k.class.PerSecond
	}
}

// take takes a token if the request may have one. Otherwise it returns how long until it
// can, or until the last throttle is forgotten, because the rate changes then.
func (k *bucket) take(want Want, forget time.Duration) (wait time.Duration) {
	need := k.need(want)
	if k.tokens >= need {
		k.tokens--
		k.inRow++
		if want != Urgent {
			k.inRow = 0
		}
		return 0
	}
	if want != Urgent {
		k.putOff = k.at
	}
	// Rounded up, plus a margin for what refill loses by rounding.
	wait = time.Duration(math.Ceil((need-k.tokens)/k.rate*float64(time.Second))) + time.Microsecond
	if left := k.throttled.Add(forget).Sub(k.at); k.throttledEver && left > 0 {
		wait = min(wait, left)
	}
	return wait
}

// Turns apply when the reserve is less than one request: without them, whoever asks first
// would take every token.
const (
	// urgentInRow is how many urgent requests precede waiting housekeeping.
	urgentInRow = 3
	// stillWaits is how long housekeeping counts as waiting after it had to wait: it asks
	// again every few seconds.
	stillWaits = 10 * time.Second
	// stepBack is what urgent requests leave in the bucket when it is housekeeping's turn.
	stepBack = 0.25
)

// need returns how many tokens a request requires.
func (k *bucket) need(want Want) float64 {
	reserve := k.reserve()
	theirTurn := reserve < 1 && k.class.Reserve > 0 && k.inRow >= urgentInRow
	switch {
	case want != Urgent && theirTurn:
		return 1
	case want != Urgent:
		return 1 + reserve
	case theirTurn && k.at.Sub(k.putOff) < stillWaits:
		return min(1+stepBack, k.class.Burst)
	}
	return 1
}

// reserve is the part kept for urgent requests. It shrinks with the rate: at the lowest
// rate a single token takes a minute, and a waiting deletion has only minutes in all.
func (k *bucket) reserve() float64 {
	return k.class.Reserve * k.rate / k.class.PerSecond
}
