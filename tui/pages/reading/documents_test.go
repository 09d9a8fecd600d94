package reading

import (
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/tui/pages"
	"cnictl/tui/source"
	"cnictl/tui/source/sourcetest"
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	now := sourcetest.Start()
	c := pages.Context{Clock: now}
	d := NewDocuments("node", "a", "")
	cmd := d.Ask(c, source.WantENIs|source.WantPlan, time.Second, source.Query{})
	ask, ok := cmd().(pages.Read)
	if !ok || ask.Node != "a" || ask.Want != source.WantENIs|source.WantPlan {
		t.Fatalf("%+v", ask)
	}
	if other := NewDocuments("node", "b", ""); other.Take(pages.Loaded{ID: ask.ID, Want: ask.Want}) {
		t.Error("took another's answer")
	}
	d.Take(pages.Loaded{ID: ask.ID, Want: ask.Want, Detail: source.Detail{At: now, ENIs: []introspect.NodeENI{{ID: "eni-1"}}, Plan: &introspect.NodePlan{}}})
	if !d.Has(source.WantPlan) || len(d.Last.ENIs) != 1 {
		t.Errorf("%+v", d)
	}
	// What was read stays when a later reading fails, one error for all.
	c.Clock = now.Add(2 * time.Second)
	if d.Ask(c, ask.Want, time.Second, source.Query{}) == nil {
		t.Fatal("nothing is due after two seconds")
	}
	d.Take(pages.Loaded{ID: ask.ID, Want: ask.Want, Detail: source.Detail{At: c.Clock, Errors: map[source.Want]introspect.NodeError{ask.Want: {Reason: introspect.ReasonTimeout}}}})
	if len(d.Last.ENIs) != 1 || d.Error[source.WantPlan].Reason != introspect.ReasonTimeout || !d.Read[source.WantENIs].Equal(now) {
		t.Errorf("%+v", d)
	}
	// An answer that never comes is asked for again.
	c.Clock = c.Clock.Add(2 * time.Second)
	d.Ask(c, source.WantENIs, time.Second, source.Query{})
	c.Clock = c.Clock.Add(5 * time.Second)
	if d.Ask(c, source.WantENIs, time.Second, source.Query{}) != nil {
		t.Error("asked while the answer is awaited")
	}
	c.Clock = c.Clock.Add(lost)
	if d.Ask(c, source.WantENIs, time.Second, source.Query{}) == nil {
		t.Error("a lost answer is awaited for ever")
	}
}
