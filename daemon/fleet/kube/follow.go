package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/kubeclient"
)

// backoff between attempts.
var backoff = kubeclient.Backoff{First: 500 * time.Millisecond, Max: 30 * time.Second}

const (
	giveUpAfter = 3 // refusals in a row if it worked before: the permission was revoked
	// reportAfter is how many failures in a row it takes to report one: a single failure, such as
	// a closed connection, is over with the next attempt, before anybody can read about it.
	reportAfter = 2
)

// follower keeps its owner in sync with the objects of a kind.
type follower[T any] struct {
	c         *Cluster
	kind      Kind
	namespace string
	selection Selection
	most      int  // objects; one more ends it, with a [kubeclient.TooManyError]. 0 = as in other lists
	cached    bool // the API server's cache will do for the first list (resourceVersion=0)
	// begin is called when a list begins, at the start and after a gap: add takes each object, and done
	// ends the list. Objects that it lacks are gone.
	begin   func() (add func(T), done func())
	set     func(T)
	unset   func(T)
	trouble func(error) // nil if unused

	troubled bool // trouble was reported
	once     bool // it was listed at least once
}

// run follows the objects until ctx ends or retrying cannot help; it then returns why.
func (f *follower[T]) run(ctx context.Context) error {
	all := func(apply func(T)) func(T) error {
		return func(item T) error { apply(item); return nil }
	}
	bounds := limits
	if f.most > 0 {
		bounds.Objects = f.most
	}
	follow := kubeclient.Follower[T]{
		Open: f.c.api.openList, Request: kubeclient.Request{Kind: f.kind, Namespace: f.namespace, Selection: f.selection},
		Limits: bounds, Backoff: backoff, Cached: f.cached,
		Begin: f.listing, Set: all(f.set), Unset: all(f.unset), Watching: f.watching,
		Failed: func(e kubeclient.Failure) error { return f.failed(ctx, e) },
	}
	return follow.Run(ctx)
}

func (f *follower[T]) listing() (add func(T), done func()) {
	add, complete := f.begin()
	return add, func() {
		f.once = true
		f.well()
		complete()
	}
}

func (f *follower[T]) watching(granted bool) {
	if granted {
		f.well()
	}
}

// well records that the request succeeded.
func (f *follower[T]) well() {
	if f.troubled {
		f.troubled = false
		f.trouble(nil)
	}
}

// failed reports a persistent failure, and gives up if retrying cannot help.
func (f *follower[T]) failed(ctx context.Context, failure kubeclient.Failure) error {
	err := &FollowError{Kind: f.kind.Plural, Err: unreadable(ctx, request(failure.Verb, f.kind, f.namespace, ""), failure.Err)}
	var many *kubeclient.TooManyError
	if f.most > 0 && errors.As(failure.Err, &many) {
		return err
	}
	if hopeless(err) && (!failure.Granted || failure.InARow >= giveUpAfter) {
		return err
	}
	if f.trouble != nil && (failure.InARow >= reportAfter || hopeless(err) || !f.once) {
		f.troubled = true
		f.trouble(err)
	}
	return nil
}

// FollowError is a failure to follow the objects of a kind; its text says in one line why, and
// what to do.
type FollowError struct {
	Kind string // nodes
	Err  error
}

func (e *FollowError) Error() string {
	return fmt.Sprintf("cannot watch %s: %v; %s", e.Kind, e.Err, Advice(e.Err))
}

func (e *FollowError) Unwrap() error { return e.Err }

// NodeReason returns the reason, for callers that know only this method.
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
