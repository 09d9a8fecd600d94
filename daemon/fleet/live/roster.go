package live

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// Roster reports the existing nodes: those of a cluster, or of a given list.
type Roster interface {
	// Watch puts every target, and puts it again when it changes, until ctx ends or the list is
	// no longer available. It calls listed when it has put all targets that there are. While it
	// retries it calls trouble with the reason, and with nil once it works again. It makes its
	// calls one at a time.
	Watch(ctx context.Context, put func(fleet.Target), listed func(), remove func(name string), trouble func(error)) error
}

// Static returns a roster that never changes.
func Static(targets []fleet.Target) Roster { return static(slices.Clone(targets)) }

type static []fleet.Target

func (s static) Watch(ctx context.Context, put func(fleet.Target), listed func(), _ func(string), _ func(error)) error {
	for _, t := range s {
		put(t)
	}
	listed()
	<-ctx.Done()
	return nil
}

// How long to wait before retrying a failed roster.
const (
	rosterRetry    = time.Second
	rosterRetryMax = 30 * time.Second
)

// watch follows the roster. Known nodes are still sampled while the roster fails.
func (l *Live) watch(ctx context.Context) {
	failed := false
	for wait := rosterRetry; ; wait = min(2*wait, rosterRetryMax) {
		put := func(t fleet.Target) {
			if wait = rosterRetry; failed {
				failed = false
				l.trouble(nil)
			}
			l.join(t)
		}
		_, err := fleet.Recover(func() (struct{}, error) {
			return struct{}{}, l.opts.Roster.Watch(ctx, put, l.complete, l.leave, l.trouble)
		})
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errRosterEnded
		}
		l.trouble(err)
		failed = true
		if !pause(ctx, wait) {
			return
		}
	}
}

var errRosterEnded = errors.New("the node list ended; retrying")

// trouble records why the roster cannot be followed; nil if it can.
func (l *Live) trouble(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.problem, l.problemAt = "", time.Time{}
		l.answers(l.opts.Now())
		return
	}
	if l.problem == "" {
		l.problemAt = l.opts.Now()
	}
	l.problem = err.Error()
	if why, ok := unreachable(err); ok {
		l.outage.failed(l.opts.Now(), why)
	}
}

// join adds a target, or updates it.
func (l *Live) join(t fleet.Target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed { // else it is not read yet
		defer l.poke()
	}
	m := l.members[t.Name]
	if m != nil && m.same(t) {
		news := !reflect.DeepEqual(m.target.Object, t.Object) || !reflect.DeepEqual(m.target.Absent, t.Absent) || m.target.State != t.State
		m.target = t
		if news {
			l.put(m, m.news(t))
		}
		return
	}
	if m != nil {
		l.stop(m)
		l.plan.Remove(t.Name)
	}
	m = &member{target: t, object: t.Object}
	l.members[t.Name] = m
	row := fleet.Unread(t)
	reader, err := fleet.NewReader(m.recordUnreachable(t),
		fleet.ReaderOptions{NodeTimeout: l.opts.NodeTimeout, UserAgent: l.opts.UserAgent, Now: l.opts.Now})
	switch {
	case err != nil:
		row.State, row.Error = document.StateUnreachable, &document.NodeError{Reason: introspect.ReasonUnresolved, Message: err.Error()}
	case t.Absent == nil:
		l.plan.Put(t.Name)
		fallthrough
	default:
		m.reader = reader
	}
	l.put(m, row)
}

// complete records that the roster has named all nodes. If all have been read by then, no further sample would report the end
// of the sweep.
func (l *Live) complete() {
	l.mu.Lock()
	before := l.listed
	l.listed = true
	l.plan.Listed()
	l.mu.Unlock()
	l.poke()
	if !before {
		l.notify()
	}
}

// news returns a row with new details from Kubernetes. A node that was never read keeps the
// reason until the next read.
func (m *member) news(t fleet.Target) document.NodeIPAM {
	row := fleet.Unread(t)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.object = t.Object; t.Absent == nil && !m.known && m.state != "" {
		row.State, row.Error = m.state, m.why
	}
	return row
}

// leave removes a node.
func (l *Live) leave(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.poke()
	m := l.members[name]
	if m == nil {
		return
	}
	l.stop(m)
	l.plan.Remove(name)
	delete(l.members, name)
	if !l.opts.unstored {
		l.opts.Store.Remove(name)
	}
	if l.opts.Removed != nil {
		l.sampled.Lock()
		defer l.sampled.Unlock()
		l.opts.Removed(name)
	}
}

// stop cancels all work on a node and prevents further rows. The caller holds l.mu.
func (l *Live) stop(m *member) {
	if m.cancel != nil {
		m.cancel()
	}
	if m.reader != nil {
		m.reader.Close()
	}
	m.mu.Lock()
	m.gone = true
	m.mu.Unlock()
}
