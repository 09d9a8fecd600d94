package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/kubeclient"
)

// backoff between attempts.
var backoff = kubeclient.Backoff{First: 500 * time.Millisecond, Most: 30 * time.Second}

const (
	giveUpAfter = 3 // refusals in a row, where it worked before: a right is gone
	// reportAfter is how many failures in a row are reported: one is over with the next
	// attempt, as at the end of a connection, before anybody has read of it.
	reportAfter = 2
)

// follower keeps its owner in step with the objects of a kind.
type follower[T any] struct {
	c         *Cluster
	kind      Kind
	namespace string
	selection Selection
	replace   func([]T) // all there are, at the start and after a gap
	set       func(T)
	unset     func(T)
	trouble   func(error) // nil: it is of no interest

	troubled bool // trouble was reported
	once     bool // it was listed at some time
}

// run follows until ctx ends or waiting cannot help; its error is then why.
func (f *follower[T]) run(ctx context.Context) error {
	all := func(apply func(T)) func(T) error {
		return func(item T) error { apply(item); return nil }
	}
	follow := kubeclient.Follower[T]{
		Open: f.c.api.openList, Request: kubeclient.Request{Kind: f.kind, Namespace: f.namespace, Selection: f.selection},
		Limits: limits, Backoff: backoff,
		Begin: f.begin, Set: all(f.set), Unset: all(f.unset), Watching: f.watching,
		Failed: func(e kubeclient.Failure) error { return f.failed(ctx, e) },
	}
	return follow.Run(ctx)
}

func (f *follower[T]) begin() (add func(T), done func()) {
	var all []T
	return func(item T) { all = append(all, item) }, func() {
		f.once = true
		f.well()
		f.replace(all)
	}
}

func (f *follower[T]) watching(granted bool) {
	if granted {
		f.well()
	}
}

// well notes that what was asked for is granted.
func (f *follower[T]) well() {
	if f.troubled {
		f.troubled = false
		f.trouble(nil)
	}
}

// failed reports a failure that goes on, and gives up where waiting cannot help.
func (f *follower[T]) failed(ctx context.Context, failure kubeclient.Failure) error {
	err := &FollowError{Kind: f.kind.Plural, Err: unreadable(ctx, request(failure.Verb, f.kind, f.namespace, ""), failure.Err)}
	if hopeless(err) && (!failure.Granted || failure.InARow >= giveUpAfter) {
		return err
	}
	if f.trouble != nil && (failure.InARow >= reportAfter || hopeless(err) || !f.once) {
		f.troubled = true
		f.trouble(err)
	}
	return nil
}

// FollowError says in one line that objects of a kind cannot be followed, why, and what
// to do.
type FollowError struct {
	Kind string // nodes
	Err  error
}

func (e *FollowError) Error() string {
	return fmt.Sprintf("cannot watch %s: %v; %s", e.Kind, e.Err, Advice(e.Err))
}

func (e *FollowError) Unwrap() error { return e.Err }

// NodeReason is the reason, for those who know the method alone.
func (e *FollowError) NodeReason() introspect.Reason {
	var known interface{ NodeReason() introspect.Reason }
	if errors.As(e.Err, &known) {
		return known.NodeReason()
	}
	return introspect.ReasonTransport
}

func hopeless(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Hopeless()
}
