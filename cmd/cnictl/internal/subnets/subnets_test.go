package subnets

import (
	"testing"

	"cnictl/daemon/fleet/subnets"
	"cnictl/testenv/text/tour"
)

// TestMeasure: only the requested nodes of a recording count, and the playback position does
// not change.
func TestMeasure(t *testing.T) {
	t.Parallel()
	p := tour.Open(t)
	_, end := p.Range()
	p.Play(false)
	p.Seek(end)
	all := subnets.Trends{}
	full := measure(p, all, nil, nil)
	if len(full.Nodes) < 2 || len(full.Subnets) < 2 || len(all) == 0 || !p.Now().Equal(end) {
		t.Fatalf("%d nodes, %d subnets, %d of them measured, at %v", len(full.Nodes), len(full.Subnets), len(all), p.Now())
	}
	name := full.Nodes[0].Metadata.Name
	few := subnets.Trends{}
	one := measure(p, few, []string{name}, []string{name})
	if len(one.Nodes) != 1 || one.Nodes[0].Metadata.Name != name {
		t.Fatalf("%d nodes", len(one.Nodes))
	}
	var held, ofAll int
	for _, u := range one.Subnets {
		held += u.Held
		if u.Nodes > 1 {
			t.Errorf("%s is of %d nodes", u.ID, u.Nodes)
		}
	}
	for _, u := range full.Subnets {
		ofAll += u.Held
	}
	if held == 0 || held >= ofAll || len(few) > len(one.Subnets) {
		t.Errorf("one node holds %d of %d, in %d subnets, %d of them measured", held, ofAll, len(one.Subnets), len(few))
	}
}
