package subnets

import (
	"testing"

	"cnictl/daemon/fleet/subnets"
	"cnictl/testenv/tour"
)

// TestMeasure: of a recording the nodes asked for count alone, and it is left where it stood.
func TestMeasure(t *testing.T) {
	t.Parallel()
	p := tour.Open(t)
	_, end := p.Range()
	p.Play(false)
	p.Seek(end)
	all := subnets.Trends{}
	whole := measure(p, all, nil, nil)
	if len(whole.Nodes) < 2 || len(whole.Subnets) < 2 || len(all) == 0 || !p.Now().Equal(end) {
		t.Fatalf("%d nodes, %d subnets, %d of them measured, at %v", len(whole.Nodes), len(whole.Subnets), len(all), p.Now())
	}
	name := whole.Nodes[0].Metadata.Name
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
	for _, u := range whole.Subnets {
		ofAll += u.Held
	}
	if held == 0 || held >= ofAll || len(few) > len(one.Subnets) {
		t.Errorf("one node holds %d of %d, in %d subnets of which %d are measured", held, ofAll, len(one.Subnets), len(few))
	}
}
