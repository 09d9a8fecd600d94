package notice

import "time"

// Policy limits events.
type Policy struct {
	// Spacing is the minimum time between two events of one kind (reason and action) about
	// one object.
	Spacing time.Duration
	// Burst and Refill form a token bucket per object: Burst events at once, then one per
	// Refill.
	Burst  int
	Refill time.Duration
	// TotalBurst and TotalRefill form one over all objects. A failure on one node often
	// hits a whole fleet at once, and the API server receives the sum.
	TotalBurst  int
	TotalRefill time.Duration
	// ForNode is the part of TotalBurst that only events about a Node may use: a problem of
	// the node must not be drowned by the pods that suffer from it.
	ForNode int
	// Objects is how many objects are remembered.
	Objects int
}

// DefaultPolicy is client-go's bucket per object, with a spacing per kind, and few enough
// events per node that a thousand nodes together cause no storm.
func DefaultPolicy() Policy {
	return Policy{
		Spacing: 5 * time.Minute, Burst: 25, Refill: 5 * time.Minute,
		TotalBurst: 12, TotalRefill: 30 * time.Second, ForNode: 3, Objects: 1024,
	}
}

// Limiter decides which events are sent. It is not safe for concurrent use.
type Limiter struct {
	policy  Policy
	all     bucket
	objects map[Ref]*object
}

// object is the history of one object.
type object struct {
	tokens bucket
	used   time.Time
	kinds  map[kind]sent
}

// kind identifies repeated events. The action is part of it: a role that lacks two
// permissions has two problems to fix.
type kind struct{ reason, action string }

func kindOf(e Event) kind { return kind{e.Reason, e.Action} }

type sent struct {
	at         time.Time
	suppressed int
}

// maxKinds bounds the kinds remembered per object, in case a caller invents them.
const maxKinds = 64

// NewLimiter returns a limiter without history.
func NewLimiter(p Policy) *Limiter {
	return &Limiter{policy: p, objects: map[Ref]*object{}}
}

// Allow reports whether an event may be sent at now and, if so, how many of its kind were
// suppressed since the last one.
func (l *Limiter) Allow(now time.Time, e Event) (suppressed int, ok bool) {
	o := l.object(now, e.About)
	last, known := o.kinds[kindOf(e)]
	if !known && len(o.kinds) >= maxKinds {
		return 0, false
	}
	spaced := last.at.IsZero() || now.Sub(last.at) >= l.policy.Spacing
	if !spaced || !o.tokens.has(now, l.policy.Burst, l.policy.Refill) || !l.all.has(now, l.share(e.About), l.policy.TotalRefill) {
		last.suppressed++
		o.kinds[kindOf(e)] = last
		return 0, false
	}
	o.tokens.spent++
	l.all.spent++
	o.kinds[kindOf(e)] = sent{at: now}
	return last.suppressed, true
}

// GiveBack undoes an Allow whose event could not be sent; suppressed is Allow's result.
func (l *Limiter) GiveBack(e Event, suppressed int) {
	l.all.giveBack()
	if o := l.objects[e.About]; o != nil {
		o.tokens.giveBack()
		if last, known := o.kinds[kindOf(e)]; known {
			o.kinds[kindOf(e)] = sent{suppressed: last.suppressed + suppressed}
		}
	}
}

// Suppress counts an event as suppressed without a call of Allow: a newer one of its kind
// replaced it.
func (l *Limiter) Suppress(now time.Time, e Event) {
	o := l.object(now, e.About)
	if last, known := o.kinds[kindOf(e)]; known || len(o.kinds) < maxKinds {
		last.suppressed++
		o.kinds[kindOf(e)] = last
	}
}

// share returns how much of the total bucket an event about an object may use.
func (l *Limiter) share(about Ref) int {
	if about.OfNode() {
		return l.policy.TotalBurst
	}
	return l.policy.TotalBurst - l.policy.ForNode
}

// object returns the history of an object. If there is no room for a new object, the one
// that was used least recently is dropped.
func (l *Limiter) object(now time.Time, about Ref) *object {
	o := l.objects[about]
	if o == nil {
		if len(l.objects) >= max(l.policy.Objects, 1) {
			l.forgetOldest()
		}
		o = &object{kinds: map[kind]sent{}}
		l.objects[about] = o
	}
	o.used = now
	return o
}

func (l *Limiter) forgetOldest() {
	var oldest Ref
	var at time.Time
	for about, o := range l.objects {
		// Names break ties, so that a run can be reproduced.
		if at.IsZero() || o.used.Before(at) || o.used.Equal(at) && less(about, oldest) {
			oldest, at = about, o.used
		}
	}
	delete(l.objects, oldest)
}

func less(a, b Ref) bool {
	for _, pair := range [][2]string{{a.Kind, b.Kind}, {a.Namespace, b.Namespace}, {a.Name, b.Name}, {a.UID, b.UID}} {
		if pair[0] != pair[1] {
			return pair[0] < pair[1]
		}
	}
	return false
}

// bucket is a token bucket that counts the tokens taken. The zero value is full.
type bucket struct {
	spent int
	since time.Time // start of the refill period
}

// has reports whether a token is left. A clock that goes back refills nothing.
func (b *bucket) has(now time.Time, burst int, refill time.Duration) bool {
	if b.spent == 0 || b.since.IsZero() {
		b.since = now
	}
	if refill > 0 {
		if n := int(now.Sub(b.since) / refill); n > 0 {
			b.spent = max(b.spent-n, 0)
			b.since = b.since.Add(time.Duration(n) * refill)
		}
	}
	return b.spent < burst
}

func (b *bucket) giveBack() { b.spent = max(b.spent-1, 0) }
