package ec2model

import "time"

// Limit is the size of a token bucket: Size requests at once, then PerSecond.
type Limit struct {
	Size      float64
	PerSecond float64
}

// EC2's request limits for an account in a region, one bucket per action (AWS, "Request
// throttling for the Amazon EC2 API"): of actions that change something, of the others, and of
// the others' calls without ids, filters or paging.
var (
	Mutating   = Limit{50, 5}
	Describe   = Limit{100, 20}
	Unfiltered = Limit{50, 10}
)

// Bucket is a token bucket.
type Bucket struct {
	Limit
	tokens float64
	at     time.Time
}

// NewBucket returns a full bucket.
func NewBucket(l Limit, now time.Time) *Bucket { return &Bucket{l, l.Size, now} }

// Take takes a token if one is left.
func (b *Bucket) Take(now time.Time) bool {
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
