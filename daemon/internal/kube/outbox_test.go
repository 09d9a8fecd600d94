package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/notice"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func aboutPod(name string) notice.Ref {
	return notice.Ref{Kind: "Pod", Namespace: "a", Name: name, UID: "u"}
}

// taken takes everything that is to be sent, as object names.
func taken(o *outbox, now time.Time) (names []string, events []waitingEvent) {
	for {
		w, ok := o.take(now)
		if !ok {
			return names, events
		}
		names, events = append(names, w.event.About.Name), append(events, w)
	}
}

// TestOutbox: during an outage of the API server the newest event of each kind waits. A full
// queue drops the oldest about pods, and events not yet tried are sent first.
func TestOutbox(t *testing.T) {
	t.Parallel()
	o := newOutbox(notice.DefaultPolicy())
	node := notice.Ref{Kind: "Node", Name: "n"}
	o.put(noon, newEvent(node))
	if w, ok := o.take(noon); ok {
		o.putBack(noon, w)
	}
	for i := range 100 {
		o.put(noon, newEvent(aboutPod(fmt.Sprint("p", i))))
	}
	for range 2 {
		e := newEvent(aboutPod("p99"))
		e.Note = "the newest"
		o.put(noon, e)
	}
	if n := len(o.waiting); n != maxWaitingEvents {
		t.Errorf("%d events wait, want %d", n, maxWaitingEvents)
	}
	if n := o.count(); n != 101-maxWaitingEvents {
		t.Errorf("%d events were dropped, want %d", n, 101-maxWaitingEvents)
	}
	newest, ok := o.waiting[waitingEvent{event: newEvent(aboutPod("p99"))}.kind()]
	if !ok || newest.event.Note != "the newest" {
		t.Errorf("the newest is %+v", newest)
	}
	names, _ := taken(o, noon)
	if got, want := strings.Join(names, " "), "p37 p38 p39 p40 p41 p42 p43 p44 p45 n"; got != want {
		t.Errorf("sent are %s, want %s", got, want) // as many as pods may use, and the one that failed before
	}
	if n := len(o.waiting); n != 0 {
		t.Errorf("%d events wait that may not be sent", n)
	}
}

// TestOutbox_First: while the API server answers, the first event of a kind waits for its
// turn, the Node's before pods'.
func TestOutbox_First(t *testing.T) {
	t.Parallel()
	o := newOutbox(notice.DefaultPolicy())
	o.put(noon, newEvent(aboutPod("a")))
	o.put(noon, newEvent(notice.Ref{Kind: "Node", Name: "n"}))
	less := newEvent(aboutPod("a"))
	less.Note = "less is known"
	o.put(noon.Add(time.Second), less)
	names, events := taken(o, noon.Add(time.Second))
	if strings.Join(names, " ") != "n a" || events[1].event.Note == less.Note || events[1].suppressed != 0 {
		t.Errorf("sent are %q: %+v", names, events)
	}
}

// TestOutbox_OnlyNodes: events about pods make room for those about Nodes, which replace
// each other.
func TestOutbox_OnlyNodes(t *testing.T) {
	t.Parallel()
	o := newOutbox(notice.DefaultPolicy())
	for i := range maxWaitingEvents + 1 {
		o.put(noon, newEvent(notice.Ref{Kind: "Node", Name: fmt.Sprint("n", i)}))
	}
	o.put(noon, newEvent(aboutPod("p")))
	if w, ok := o.take(noon); !ok || w.event.About.Name != "n1" || len(o.waiting) != maxWaitingEvents-1 {
		t.Errorf("%d wait behind %+v", len(o.waiting), w)
	}
}

// TestOutbox_PutBack: an event that could not be sent goes behind those not yet tried, keeps
// its time and costs no token. If a newer one of its kind waits, that one stays instead.
func TestOutbox_PutBack(t *testing.T) {
	t.Parallel()
	policy := notice.DefaultPolicy()
	policy.TotalBurst, policy.ForNode = 2, 0
	o := newOutbox(policy)
	for range 10 {
		o.put(noon, newEvent(aboutPod("a")))
		w, ok := o.take(noon)
		if !ok {
			t.Fatal("what was given back is charged")
		}
		o.putBack(noon, w)
	}
	o.put(noon.Add(time.Second), newEvent(aboutPod("b")))
	w, _ := o.take(noon.Add(time.Second))
	if w.event.About.Name != "b" {
		t.Errorf("the first is %s, want the one that was not tried", w.event.About.Name)
	}
	o.put(noon.Add(2*time.Second), newEvent(aboutPod("b")))
	o.putBack(noon.Add(2*time.Second), w)
	names, events := taken(o, noon.Add(3*time.Second))
	if strings.Join(names, " ") != "b a" {
		t.Fatalf("sent are %q, want both once", names)
	}
	if b, a := events[0], events[1]; b.suppressed != 1 || !b.at.Equal(noon.Add(2*time.Second)) || a.suppressed != 9 || !a.at.Equal(noon) {
		t.Errorf("b is of %v with %d more, a of %v with %d", b.at, b.suppressed, a.at, a.suppressed)
	}
}

// TestOutbox_Old: old events are dropped.
func TestOutbox_Old(t *testing.T) {
	t.Parallel()
	o := newOutbox(notice.DefaultPolicy())
	o.put(noon, newEvent(aboutPod("a")))
	o.put(noon.Add(time.Minute), newEvent(aboutPod("b")))
	if names, _ := taken(o, noon.Add(maxEventAge+time.Second)); strings.Join(names, " ") != "b" || o.count() != 1 {
		t.Errorf("sent are %q, dropped %d", names, o.count())
	}
}
