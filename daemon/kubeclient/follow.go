package kubeclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Durations of a watch.
const (
	// The API server ends a watch after one to two of these periods, so that connections
	// spread over its replicas again (as client-go requests).
	watchPeriod = 5 * time.Minute
	// steady is how long a watch must have lasted to count as a success even without a
	// change.
	steady = 10 * time.Second
	// staleAfter is how long the API server may be unavailable before the follower lists
	// instead of watching from the last version: the server may return with older data,
	// from a backup, and a watch from a version in the future shows nothing.
	staleAfter = time.Minute
)

// Backoff computes the pauses after failures: they double, and each is random between half
// and the whole of its step, so that a fleet does not return all at once.
type Backoff struct {
	First, Max time.Duration
	Jitter     func(n time.Duration) time.Duration // in [0, n); nil = random
}

// Jittered returns a random part of a duration.
func (b Backoff) Jittered(n time.Duration) time.Duration {
	if b.Jitter != nil {
		return b.Jitter(n)
	}
	return rand.N(n)
}

// After returns the pause after the given number of failures in a row, counted from 1.
func (b Backoff) After(failures int) time.Duration {
	step := b.First
	for i := 1; i < failures && step < b.Max; i++ {
		step *= 2
	}
	step = min(step, b.Max)
	return step/2 + b.Jittered(step/2+1)
}

// Follower keeps its owner's view of the objects of a kind up to date.
type Follower[T any] struct {
	Open    Open
	Request Request
	Limits  Limits
	Backoff Backoff
	// Cached allows lists as old as the API server's cache, but no older than what was
	// already seen. A consistent list costs a large cluster more.
	Cached bool
	// Back is closed when the API server is back, which ends a pause; nil if the caller
	// cannot tell.
	Back func() <-chan struct{}

	// Begin starts a list: add is called with each object, and done when the list is
	// complete, which an interrupted list never is. Objects that the list lacks are gone.
	Begin      func() (add func(T), done func())
	Set, Unset func(T) error // an object changed or was deleted; an error ends the watch
	Watching   func(bool)    // a watch was granted or ended
	// Failed handles a failure before the follower tries again. An error ends Run with it.
	Failed func(Failure) error

	version  string // last version seen; "" = none
	listed   bool   // the owner's objects match version
	once     bool   // a list has succeeded before
	watched  bool   // a watch was granted before
	fresh    bool   // list with a consistent read: the last version is gone
	failures int
	lastGood time.Time // when the API server last listed, showed something or kept a watch open
}

// Failure is a failed list or watch.
type Failure struct {
	Err     error
	Verb    string
	InARow  int
	Granted bool // the API server has granted the same before
}

// Run follows until ctx ends, which is not an error, or Failed returns an error.
func (f *Follower[T]) Run(ctx context.Context) error {
	for {
		var back <-chan struct{}
		if f.Back != nil {
			back = f.Back()
		}
		verb, err := f.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			f.lastGood = time.Now()
			continue
		}
		f.failures++
		granted := f.once && (f.watched || verb == VerbList)
		if err := f.Failed(Failure{Err: err, Verb: verb, InARow: f.failures, Granted: granted}); err != nil {
			return err
		}
		f.plan(err)
		if !f.wait(ctx, back) {
			return nil
		}
	}
}

// step lists or watches. Unless it fails, the next step follows at once.
func (f *Follower[T]) step(ctx context.Context) (verb string, _ error) {
	if f.listed {
		return VerbWatch, f.watch(ctx)
	}
	return VerbList, f.list(ctx)
}

// plan decides how to continue after an error.
func (f *Follower[T]) plan(err error) {
	switch {
	case !Gone(err):
		if !f.lastGood.IsZero() && time.Since(f.lastGood) > staleAfter {
			f.listed = false
		}
	case f.listed: // the version of the watch is gone: a list at no older version will do
		f.listed = false
	default: // the version of the list is gone as well
		f.fresh = true
	}
}

// Gone reports whether the API server cannot serve from the requested version, because it
// has dropped it or does not know it yet. An error without a Status may have a method Gone.
func Gone(err error) bool {
	var other interface{ Gone() bool }
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) || errors.As(err, &other) && other.Gone()
}

// wait pauses, or returns earlier when the API server is back. It returns false when ctx
// ends.
func (f *Follower[T]) wait(ctx context.Context, back <-chan struct{}) bool {
	timer := time.NewTimer(f.Backoff.After(f.failures))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-back:
		f.failures = 0
	case <-ctx.Done():
		return false
	}
	return true
}

// list reads all objects.
func (f *Follower[T]) list(ctx context.Context) error {
	add, done := f.Begin()
	version, err := list(ctx, f.Open, f.Request, f.first(), f.Limits, func(item T) error { add(item); return nil })
	if err == nil && version == "" {
		err = fmt.Errorf("%w: the list has no resourceVersion", ErrFormat)
	}
	if err != nil {
		return err
	}
	f.version, f.listed, f.once, f.fresh = version, true, true, false
	done()
	return nil
}

// first returns the query of a list's first page.
func (f *Follower[T]) first() url.Values {
	q := paged()
	switch {
	case !f.Cached || f.fresh:
	case f.version == "":
		q.Set("resourceVersion", "0")
	default:
		// Without a limit, which would send the API server to etcd for all of the cluster's
		// objects: its cache has an index for this query.
		q = url.Values{"resourceVersion": {f.version}}
	}
	return q
}

// errShort: a watch ended too soon to be repeated at once.
var errShort = errors.New("the watch ended at once")

// watch applies changes until the watch ends.
func (f *Follower[T]) watch(ctx context.Context) error {
	period := (watchPeriod + f.Backoff.Jittered(watchPeriod)).Truncate(time.Second)
	// The API server ends the watch; the timeout covers the case that it does not.
	ctx, cancel := context.WithTimeout(ctx, period+f.Limits.Within)
	defer cancel()
	body, err := f.open(ctx, cancel, period)
	if err != nil {
		return err
	}
	defer body.Close()
	f.watched = true
	f.Watching(true)
	defer f.Watching(false)
	began := time.Now()
	shown, err := f.apply(newStream(body))
	lasted := time.Since(began) > steady
	if shown || lasted {
		f.failures, f.lastGood = 0, time.Now()
	}
	switch {
	case errors.Is(err, io.EOF) && lasted:
		return nil
	case errors.Is(err, io.EOF):
		// Otherwise the follower would repeat the watch as fast as the server answers.
		return errShort
	}
	return err
}

// open requests a watch. The time limit applies only until the response's header arrives.
func (f *Follower[T]) open(ctx context.Context, cancel context.CancelFunc, period time.Duration) (io.ReadCloser, error) {
	late := time.AfterFunc(f.Limits.Within, cancel)
	body, err := f.Open(ctx, VerbWatch, f.Request, f.Request.with(url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"},
		"resourceVersion": {f.version}, "timeoutSeconds": {strconv.Itoa(int(period.Seconds()))},
	}))
	if late.Stop() {
		return body, err
	}
	if err == nil {
		_ = body.Close()
	}
	return nil, fmt.Errorf("no response within %v: %w", f.Limits.Within, context.DeadlineExceeded)
}

// apply reads frames until the stream ends, and reports whether they contained a change.
func (f *Follower[T]) apply(s stream) (shown bool, err error) {
	for {
		event, err := s.readFrame()
		if errors.Is(err, io.EOF) {
			return shown, err
		}
		if err == nil {
			err = f.applyFrame(event)
		}
		if err != nil {
			return shown, fmt.Errorf("read response: %w", err)
		}
		shown = shown || event.Type != bookmark
	}
}

func (f *Follower[T]) applyFrame(event frame) error {
	var head struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(event.Object, &head); err != nil || head.Metadata.ResourceVersion == "" {
		return fmt.Errorf("%w: an event has no resourceVersion", ErrFormat)
	}
	if event.Type != bookmark {
		var item T
		if err := json.Unmarshal(event.Object, &item); err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		apply := f.Set
		if event.Type == deleted {
			apply = f.Unset
		}
		if err := apply(item); err != nil {
			return err
		}
	}
	f.version, f.lastGood = head.Metadata.ResourceVersion, time.Now()
	return nil
}
