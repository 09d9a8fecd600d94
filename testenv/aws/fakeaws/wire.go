package fakeaws

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"cnictl/testenv/aws/ec2model"
)

// wire is the part of a world that its two servers need: latencies, limits, faults and logs.
type wire struct {
	mu          *sync.Mutex // guards everything below
	rand        *rand.Rand
	latency     map[string]time.Duration
	attach      time.Duration
	detach      time.Duration
	lag         time.Duration
	describeLag time.Duration
	allow       []string // nil: all
	asValue     bool
	throttle    *Throttle
	buckets     map[string]*ec2model.Bucket
	fault       FaultFunc
	imdsFault   IMDSFaultFunc
	rules       []*rule        // oldest first
	lastRule    int            // number of the last generated rule id
	counts      map[string]int // calls by action, failed ones too
	imdsCounts  map[string]int // requests by path
	calls       []Call
	imdsCalls   []IMDSCall
	violations  []string
	tokens      map[string]token // IMDS session tokens
	iam         iam
}

func newWire(o Options, r *rand.Rand) wire {
	l := maps.Clone(o.Latency)
	if l == nil {
		l = make(map[string]time.Duration)
	}
	return wire{mu: new(sync.Mutex), rand: r, latency: l, attach: o.AttachDelay, detach: o.DetachDelay, lag: o.MetadataLag,
		allow: slices.Clone(o.Allow), asValue: o.ExhaustedAsValue, throttle: o.Throttle, buckets: make(map[string]*ec2model.Bucket),
		counts: make(map[string]int), imdsCounts: make(map[string]int), tokens: make(map[string]token), iam: newIAM()}
}

// locked calls f with the wire locked.
func locked[T any](l *wire, f func() T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return f()
}

func (l *wire) attachDelay() time.Duration {
	return locked(l, func() time.Duration { return l.attach })
}
func (l *wire) detachDelay() time.Duration {
	return locked(l, func() time.Duration { return l.detach })
}
func (l *wire) metadataLag() time.Duration { return locked(l, func() time.Duration { return l.lag }) }
func (l *wire) describeDelay() time.Duration {
	return locked(l, func() time.Duration { return l.describeLag })
}
func (l *wire) exhaustedAsValue() bool { return locked(l, func() bool { return l.asValue }) }

func (l *wire) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// SetLatency sets how long an action takes from now on; "IMDS" is every metadata
// request. The effect comes at the end of the wait.
func (w *World) SetLatency(action string, d time.Duration) {
	w.wire.do(func() { w.wire.latency[action] = d })
}

// SetMetadataLag replaces Options.MetadataLag. Views that are already outdated under the
// previous lag do not reappear.
func (w *World) SetMetadataLag(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, before := w.opts.Now(), w.wire.metadataLag()
	for _, i := range w.instances {
		i.views = i.pruned(now, before)
	}
	w.wire.do(func() { w.wire.lag = d })
}

// Allow limits the caller's role to some actions; without arguments, to none.
func (w *World) Allow(actions ...string) {
	w.wire.do(func() { w.wire.allow = append([]string{}, actions...) })
}

// AllowAll removes the limit set by Allow or Options.Allow.
func (w *World) AllowAll() { w.wire.do(func() { w.wire.allow = nil }) }

// setThrottle enables request limits, with full buckets; nil disables them.
func (w *World) setThrottle(t *Throttle) {
	w.wire.do(func() { w.wire.throttle, w.wire.buckets = t, make(map[string]*ec2model.Bucket) })
}

// Call is one served EC2 request. A fault may have spoilt its answer.
type Call struct {
	Action string            `json:"action"`
	Caller string            `json:"caller,omitempty"` // instance id, "" if unknown
	Params map[string]string `json:"params,omitempty"` // without Action and Version
	Start  time.Time         `json:"time"`
	Took   time.Duration     `json:"tookNs"`
	Code   string            `json:"code,omitempty"`  // error code of the answer, "" for success
	Fault  string            `json:"fault,omitempty"` // the fault that the call met, see Fault.String; "" if none
}

// IMDSCall is one served metadata request. A fault may have spoilt its answer.
type IMDSCall struct {
	Method, Path string
	InstanceID   string
	Status       int
	Start        time.Time
	Took         time.Duration
	Fault        string // the fault that the request met; "" if none
}

// Calls lists the EC2 requests so far, ordered by their answers.
func (w *World) Calls() []Call {
	return locked(&w.wire, func() []Call { return slices.Clone(w.wire.calls) })
}

// CallCounts counts successful and failed EC2 requests by action.
func (w *World) CallCounts() map[string]int {
	out := make(map[string]int)
	for _, c := range w.Calls() {
		out[c.Action]++
	}
	return out
}

// IMDSCalls lists the metadata requests so far, ordered by their answers.
func (w *World) IMDSCalls() []IMDSCall {
	return locked(&w.wire, func() []IMDSCall { return slices.Clone(w.wire.imdsCalls) })
}

// ResetCalls empties both call logs. The call numbers that fault functions get continue.
func (w *World) ResetCalls() { w.wire.do(func() { w.wire.calls, w.wire.imdsCalls = nil, nil }) }

// Violations lists what clients sent that the servers do not know: actions,
// parameters, filters, metadata paths. A test that uses the world ends by checking that it
// is empty.
func (w *World) Violations() []string {
	return locked(&w.wire, func() []string { return slices.Clone(w.wire.violations) })
}

const maxViolations = 1000 // a looping client must not fill memory

func (w *World) violate(format string, args ...any) {
	w.wire.do(func() {
		if len(w.wire.violations) < maxViolations {
			w.wire.violations = append(w.wire.violations, fmt.Sprintf(format, args...))
		}
	})
}

// pause waits for an action's latency. A client that hangs up does not shorten it:
// EC2 carries on without it.
func (w *World) pause(action string) {
	d := locked(&w.wire, func() time.Duration { return w.wire.latency[action] })
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.done:
	}
}

// uuid returns a request id or token.
func (w *World) uuid() string {
	return locked(&w.wire, func() string {
		a, b := w.wire.rand.Uint64(), w.wire.rand.Uint64()
		return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", uint32(a>>32), uint16(a>>16), uint16(a)&0xfff, uint16(b>>48)&0x3fff|0x8000, b&0xffffffffffff)
	})
}
