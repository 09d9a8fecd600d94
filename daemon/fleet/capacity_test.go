package fleet

import (
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

func TestCapacity(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit, pods *int
		card, held  int
		want        *int
		byMaxPods   bool
		room        *int
	}{
		"no limit":                  {limit: nil, pods: new(110)},
		"no max-pods":               {limit: new(896), want: new(896), room: new(896)},
		"max-pods lower":            {limit: new(896), pods: new(110), held: 24, want: new(110), byMaxPods: true, room: new(86)},
		"the last prefix exceeds":   {limit: new(896), pods: new(110), held: 112, want: new(110), byMaxPods: true, room: new(0)},
		"far more than max-pods":    {limit: new(896), pods: new(110), held: 126, want: new(896), room: new(0)},
		"max-pods higher":           {limit: new(27), pods: new(110), held: 9, want: new(27), room: new(18)},
		"of another card its slots": {limit: new(896), pods: new(110), card: 1, want: new(896), room: new(110)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			card := introspect.CardSummary{Card: tt.card, Total: tt.held, AddressLimit: tt.limit}
			n := document.NodeIPAM{Object: &document.NodeObject{MaxPods: tt.pods}, Summary: &introspect.Summary{Cards: []introspect.CardSummary{card}}}
			if got, by := Capacity(n, card); !same(got, tt.want) || by != tt.byMaxPods {
				t.Errorf("capacity %v %v, want %v %v", text(got), by, text(tt.want), tt.byMaxPods)
			}
			if got := Room(n, card); !same(got, tt.room) {
				t.Errorf("room %v, want %v", text(got), text(tt.room))
			}
		})
	}
}

func same(a, b *int) bool { return text(a) == text(b) }

func text(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}

func TestWhatIf(t *testing.T) {
	t.Parallel()
	node := func(change func(*document.NodeIPAM)) document.NodeIPAM {
		n := document.NodeIPAM{
			Object: &document.NodeObject{InstanceType: "m5.large", MaxPods: new(29)},
			Summary: &introspect.Summary{
				Cards:   []introspect.CardSummary{{Assigned: 7, Mode: introspect.ModeSecondaryIP}},
				Targets: introspect.Targets{WarmENI: new(1), WarmIP: new(0), MinimumIP: new(0), WarmPrefix: new(0)},
			},
		}
		change(&n)
		return n
	}
	for name, tt := range map[string]struct {
		change func(*document.NodeIPAM)
		why    string
		pods   int
	}{
		"as Kubernetes describes it": {change: func(*document.NodeIPAM) {}, pods: 7},
		"more pods than it has room": {change: func(n *document.NodeIPAM) { n.Summary.Cards[0].Assigned = 1 << 30 }, pods: 27},
		"fewer than none":            {change: func(n *document.NodeIPAM) { n.Summary.Cards[0].Assigned, n.Summary.Targets.WarmIP = -1, new(-5) }, pods: 0},
		"no type":                    {change: func(n *document.NodeIPAM) { n.Object = nil }, why: "its instance type is unknown"},
		"a type that is not listed":  {change: func(n *document.NodeIPAM) { n.Summary.InstanceType = "x\x1b" }, why: "its instance type x\x1b is not in the table, and the node does not report its limits"},
		"a type newer than the table": {change: func(n *document.NodeIPAM) {
			n.Summary.InstanceType = "z9.large"
			c := &n.Summary.Cards[0]
			c.Assigned, c.ENILimit, c.SlotsPerENI = 99, new(2), new(9)
		}, pods: 18},
		"limits that nothing has": {
			change: func(n *document.NodeIPAM) {
				n.Summary.InstanceType = "z9.large"
				n.Summary.Cards[0].ENILimit, n.Summary.Cards[0].SlotsPerENI = new(1000), new(1000)
			},
			why: "its instance type z9.large is not in the table, and the node does not report its limits",
		},
		"no targets": {change: func(n *document.NodeIPAM) { n.Summary.Targets.MinimumIP = nil }, why: "neither its daemon nor its pod shows its targets"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, why := WhatIf(node(tt.change))
			if why != tt.why || got.Pods != tt.pods || got.Settings.WarmIP < 0 {
				t.Errorf("%+v, %q; want %d pods, %q", got, why, tt.pods, tt.why)
			}
		})
	}
}
