package logs

import (
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/pages"
)

// tail is what has been read from one node: its daemon's log and state changes, its
// Kubernetes events, and the container's log if the daemon does not serve its own.
type tail struct {
	docs      pages.Documents
	after     watch.EventsAfter
	log       mark
	container mark
	kube      map[string]time.Time // last time of each returned event, by UID
	kubeSince time.Time
	silent    string // why there is no log
}

func newTail(node, of string) *tail {
	return &tail{docs: pages.NewDocuments("logs", node, of), log: newMark(), container: newMark(), kube: map[string]time.Time{}}
}

// mark is the position in a log. The next reading repeats the lines of the last second
// read.
type mark struct {
	since time.Time
	seen  map[string]bool // lines of that second
}

func newMark() mark { return mark{seen: map[string]bool{}} }

// fresh reports whether a line is new, and remembers it.
func (m *mark) fresh(at time.Time, text string) bool {
	if at.Before(m.since) || m.seen[text] {
		return false
	}
	if second := at.Truncate(time.Second); second.After(m.since) {
		m.since = second
		clear(m.seen)
	}
	if len(m.seen) < introspect.MaxLogLines {
		m.seen[text] = true
	}
	return true
}

// take returns the new lines in a reading.
func (t *tail) take(d watch.Detail) []line {
	out := t.events(d.Events)
	if d.Logs != nil {
		last := t.log.since
		for _, text := range d.Logs.Lines {
			l := parse(t.docs.Node, text, last)
			if t.log.fresh(l.At, text) {
				last = l.At
				out = append(out, l)
			}
		}
	}
	if d.ContainerLog != nil {
		last := t.container.since
		for _, c := range d.ContainerLog.Lines {
			if !c.At.IsZero() {
				last = c.At
			}
			l := parse(t.docs.Node, c.Text, last)
			l.From = fromContainer
			if t.container.fresh(l.At, c.Text) {
				last = l.At
				out = append(out, l)
			}
		}
	}
	for _, e := range d.KubeEvents {
		if at, seen := t.kube[e.UID]; seen && !e.At.After(at) {
			continue
		}
		if len(t.kube) >= maxLines {
			clear(t.kube)
		}
		t.kube[e.UID] = e.At
		if e.At.After(t.kubeSince) {
			t.kubeSince = e.At
		}
		out = append(out, kubeEvent(t.docs.Node, e))
	}
	return out
}

// events returns the daemon's new state changes.
func (t *tail) events(doc *introspect.NodeEvents) []line {
	if doc == nil {
		return nil
	}
	var out []line
	same := doc.Epoch == t.after.Epoch
	for _, item := range doc.Items {
		if !same || item.Seq > t.after.Next || item.Kind == introspect.EventGap {
			out = append(out, event(t.docs.Node, doc.Epoch, item))
		}
	}
	t.after = watch.EventsAfter{Epoch: doc.Epoch, Next: doc.Next}
	return out
}

// query asks for what follows what was read.
func (t *tail) query() watch.Query {
	q := watch.Query{
		Events: t.after, KubeEventsSince: t.kubeSince,
		Logs:      introspect.LogQuery{Lines: firstRead},
		Container: watch.ContainerLogQuery{Lines: firstRead},
	}
	if !t.log.since.IsZero() {
		q.Logs = introspect.LogQuery{Lines: introspect.MaxLogLines, Since: t.log.since}
	}
	if !t.container.since.IsZero() {
		q.Container = watch.ContainerLogQuery{Lines: introspect.MaxLogLines, Since: t.container.since}
	}
	return q
}

// why returns the reason why there is no log, "" if there is one or no reading failed.
func (t *tail) why() string {
	if t.docs.Last.ContainerLog != nil && len(t.docs.Last.ContainerLog.Lines) > 0 {
		return ""
	}
	for _, w := range []watch.Want{watch.WantLogs, watch.WantContainerLog} {
		if e, failed := t.docs.Error[w]; failed {
			return pages.Reason(e)
		}
	}
	return ""
}
