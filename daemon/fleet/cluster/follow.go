package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"cnictl/daemon/api/introspect"
)

// follower keeps its owner in step with the objects of a kind.
type follower[T any] struct {
	c         *Cluster
	kind      Kind
	namespace string
	query     query
	key       func(*T) string
	replace   func([]T) // all there are, at the start and after a gap
	set       func(T)
	unset     func(key string)
	trouble   func(error) // nil: nobody wants to know

	troubled bool   // trouble was told of
	lasted   bool   // the last watch did well for a while: what follows is a first failure
	version  string // last one seen
	listed   bool
	once     bool // it was listed at some time
	watched  bool // a watch was granted at some time
	failures int
}

// run follows until ctx ends or there is no hope; its error is then why.
func (f *follower[T]) run(ctx context.Context) error {
	for {
		err := f.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			f.failures = 0
			f.well()
			continue
		}
		if f.lasted {
			f.failures, f.lasted = 0, false
		}
		granted := f.once && (f.watched || !f.listed)
		if f.failures++; hopeless(err) && (!granted || f.failures >= giveUpAfter) {
			return f.followError(err)
		}
		f.tell(err)
		if isGone(err) {
			f.listed = false
		}
		if !pause(ctx, f.failures) {
			return nil
		}
	}
}

// tellAfter is how many failures in a row are told of: one is mended by asking again, as
// at the end of a connection, before anybody has read of it.
const tellAfter = 2

func (f *follower[T]) tell(err error) {
	if f.trouble != nil && (f.failures >= tellAfter || hopeless(err) || !f.once) {
		f.troubled = true
		f.trouble(f.followError(err))
	}
}

// well notes that what was asked for is granted.
func (f *follower[T]) well() {
	if f.troubled {
		f.troubled = false
		f.trouble(nil)
	}
}

// followError is what, why and what to do.
func (f *follower[T]) followError(err error) error {
	return &FollowError{Kind: f.kind.Plural, Err: err}
}

// FollowError tells in one line that objects of a kind cannot be followed, why, and what
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

// goneError: the version to go on from is forgotten.
type goneError struct{ message string }

func (e *goneError) Error() string { return e.message }

func isGone(err error) bool {
	var gone *goneError
	var refused *Error
	return errors.As(err, &gone) || errors.As(err, &refused) && refused.Code == http.StatusGone
}

// pause waits the longer the more often it failed, each time by another measure.
func pause(ctx context.Context, failures int) bool {
	wait := min(firstPause<<min(failures-1, 10), longPause)
	timer := time.NewTimer(wait/2 + rand.N(wait/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// step lists or watches; nil means to go on at once.
func (f *follower[T]) step(ctx context.Context) error {
	if f.listed {
		return f.watch(ctx)
	}
	var all []T
	version, err := list(ctx, f.c.api, f.kind, f.namespace, f.query, func(item T) { all = append(all, item) })
	if err != nil {
		return err
	}
	f.version, f.listed, f.once = version, true, true
	f.replace(all)
	return nil
}

// event is one change of a watch.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// watch applies what changes until the watch ends.
func (f *follower[T]) watch(ctx context.Context) error {
	seconds := int(watchPeriod.Seconds()) + rand.N(int(watchPeriod.Seconds()))
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+watchSlack)
	defer cancel()
	ask := query{"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": f.version, "timeoutSeconds": strconv.Itoa(seconds)}
	maps.Copy(ask, f.query)
	r := f.kind.request("watch", f.namespace, "")
	body, err := f.c.api.open(ctx, http.MethodGet, r, f.kind.path(f.namespace), ask, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	f.watched = true
	f.well()
	s, began := newStream(body), time.Now()
	for {
		var e event
		if err := s.next(&e); err != nil {
			// One that ends at once whatever it told would otherwise be asked for as fast
			// as it is answered.
			if f.lasted = time.Since(began) > longPause; f.lasted && errors.Is(err, io.EOF) {
				return nil // the ordinary end
			}
			return unreadable(ctx, r, err)
		}
		if err := f.apply(e); err != nil {
			return err
		}
	}
}

func (f *follower[T]) apply(e event) error {
	if e.Type == "ERROR" {
		var s struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(e.Object, &s); err == nil && s.Code == http.StatusGone {
			return &goneError{s.Message}
		}
		return fmt.Errorf("the watch of %s ended: %.200s", f.kind.Plural, s.Message)
	}
	var head struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(e.Object, &head); err != nil || head.Metadata.ResourceVersion == "" {
		return fmt.Errorf("%w: an event without a version", errForm)
	}
	if e.Type != "BOOKMARK" {
		var item T
		if err := json.Unmarshal(e.Object, &item); err != nil {
			return fmt.Errorf("%w: %w", errForm, err)
		}
		if e.Type == "DELETED" {
			f.unset(f.key(&item))
		} else {
			f.set(item)
		}
	}
	f.version = head.Metadata.ResourceVersion
	return nil
}
