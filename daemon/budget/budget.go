package budget

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Want says who asks.
type Want uint8

const (
	// Housekeeping can be done later: comparing with EC2, sweeping, tagging, giving
	// back.
	Housekeeping Want = iota
	// Urgent is what a pod waits for.
	Urgent
)

// Jitter returns a number in [0, n); n is positive.
type Jitter func(n time.Duration) time.Duration

// Budget paces the requests of one process.
type Budget struct {
	policy  Policy
	jitter  Jitter
	buckets map[string]*bucket // by action; only those that were asked for
}

// New makes a budget with full buckets.
func New(p Policy, jitter Jitter) *Budget {
	return &Budget{policy: p.withDefaults(), jitter: jitter, buckets: make(map[string]*bucket)}
}

// Take asks for one request of an action. Zero: it may be made now, and has been
// counted. Else nothing was counted, and it is worth asking again after the wait, or
// earlier if the budget changes.
func (b *Budget) Take(now time.Time, action string, want Want) (wait time.Duration) {
	k := b.bucket(now, action)
	k.refill(now, b.policy.Forget)
	return k.take(want, b.policy.Forget)
}

// Throttled says that EC2 refused a request that began at started. Requests that were
// under way side by side and are refused together count as one.
func (b *Budget) Throttled(started, now time.Time, action string) {
	k := b.bucket(now, action)
	k.refill(now, b.policy.Forget)
	if k.throttledEver && started.Before(k.throttled) {
		return
	}
	k.throttledEver, k.throttled = true, now
	k.rate = max(k.rate*b.policy.Shrink, min(b.policy.Floor, k.class.PerSecond))
	// EC2's bucket is empty, so what is saved here is worth nothing. The next request
	// goes after anything from nothing to twice the time that the rate asks for.
	const steps = time.Second
	k.tokens = min(k.tokens, 1-2*b.jitter(steps).Seconds())
}

// Succeeded says that EC2 served a request that began at started, with a result or
// with an error of another kind. One that began before the last throttle says nothing
// about what holds since.
func (b *Budget) Succeeded(started, now time.Time, action string) {
	k := b.bucket(now, action)
	k.refill(now, b.policy.Forget)
	if k.throttledEver && started.Before(k.throttled) {
		return
	}
	k.rate = min(k.class.PerSecond, k.rate+k.class.PerSecond*b.policy.Grow)
}

// State is what a budget has of one action.
type State struct {
	Action    string
	PerSecond float64   // now
	Share     float64   // what it is without refusals
	Saved     float64   // requests that could be made at once; negative: must be waited for
	Throttled time.Time // the last time that EC2 refused one; zero: never
}

// Slowed reports that throttles keep the action below its share.
func (s State) Slowed() bool { return s.PerSecond < s.Share }

// States lists the actions that were asked for, by name.
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

// bucket is one action's.
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

// refill adds what has come in since the last look. A clock that was set back brings
// nothing.
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

// take takes a token if one may be taken, and returns else when one can be, or
// when the last throttle is forgotten: then everything is another rate's.
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
	// Rounded up, and a little more for what refill loses by rounding.
	wait = time.Duration(math.Ceil((need-k.tokens)/k.rate*float64(time.Second))) + time.Microsecond
	if left := k.throttled.Add(forget).Sub(k.at); k.throttledEver && left > 0 {
		wait = min(wait, left)
	}
	return wait
}

// Turns, for a reserve of less than a request: whoever may take a token first takes each.
const (
	// urgentInRow is how many urgent requests go before housekeeping that waits.
	urgentInRow = 3
	// stillWaits is how long housekeeping counts as waiting after it had to wait: it asks
	// again every few seconds.
	stillWaits = 10 * time.Second
	// stepBack is what urgent requests leave in the bucket when it is not their turn.
	stepBack = 0.25
)

// need is how many tokens must be there for a request.
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

// reserve is what is kept for urgent requests. It shrinks with the rate: at the lowest a
// single token takes a minute, and a deletion that waits has but minutes in all.
func (k *bucket) reserve() float64 {
	return k.class.Reserve * k.rate / k.class.PerSecond
}
