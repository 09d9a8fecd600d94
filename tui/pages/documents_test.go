package pages

import (
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	c := Context{Clock: now}
	d := NewDocuments("node", "a", "")
	cmd := d.Ask(c, watch.WantENIs|watch.WantPlan, time.Second, watch.Query{})
	ask, ok := cmd().(Read)
	if !ok || ask.Node != "a" || ask.Want != watch.WantENIs|watch.WantPlan {
		t.Fatalf("%+v", ask)
	}
	if other := NewDocuments("node", "b", ""); other.Take(Loaded{ID: ask.ID, Want: ask.Want}) {
		t.Error("took another's answer")
	}
	d.Take(Loaded{ID: ask.ID, Want: ask.Want, Detail: watch.Detail{At: now, ENIs: []introspect.NodeENI{{ID: "eni-1"}}, Plan: &introspect.NodePlan{}}})
	if !d.Has(watch.WantPlan) || len(d.Last.ENIs) != 1 {
		t.Errorf("%+v", d)
	}
	// Earlier results stay when a later reading fails, with one error for all.
	c.Clock = now.Add(2 * time.Second)
	if d.Ask(c, ask.Want, time.Second, watch.Query{}) == nil {
		t.Fatal("nothing is due after two seconds")
	}
	d.Take(Loaded{ID: ask.ID, Want: ask.Want, Detail: watch.Detail{At: c.Clock, Errors: map[watch.Want]document.NodeError{ask.Want: {Reason: introspect.ReasonTimeout}}}})
	if len(d.Last.ENIs) != 1 || d.Error[watch.WantPlan].Reason != introspect.ReasonTimeout || !d.Read[watch.WantENIs].Equal(now) {
		t.Errorf("%+v", d)
	}
	// A request that is never answered is repeated.
	c.Clock = c.Clock.Add(2 * time.Second)
	d.Ask(c, watch.WantENIs, time.Second, watch.Query{})
	c.Clock = c.Clock.Add(5 * time.Second)
	if d.Ask(c, watch.WantENIs, time.Second, watch.Query{}) != nil {
		t.Error("asked while the answer is awaited")
	}
	c.Clock = c.Clock.Add(answerTimeout)
	if d.Ask(c, watch.WantENIs, time.Second, watch.Query{}) == nil {
		t.Error("a lost answer is awaited for ever")
	}
}
