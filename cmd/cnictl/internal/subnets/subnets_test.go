package subnets

import (
	"slices"
	"testing"
	"time"

	"cnictl/daemon/fleet/store"
	"cnictl/testenv/text/tour"
)

// TestRecorded: only the requested nodes of a recording count, but the readings of subnets are those
// of all.
func TestRecorded(t *testing.T) {
	t.Parallel()
	p := tour.Open(t)
	full := recorded(p, nil, nil)
	if len(full.Nodes) < 2 || len(full.Subnets) < 2 {
		t.Fatalf("%d nodes, %d subnets", len(full.Nodes), len(full.Subnets))
	}
	name := full.Nodes[0].Metadata.Name
	one := recorded(p, []string{name}, []string{name})
	if len(one.Nodes) != 1 || one.Nodes[0].Metadata.Name != name {
		t.Fatalf("%d nodes", len(one.Nodes))
	}
	var held, ofAll int
	for _, u := range one.Subnets {
		held += u.Held
		if u.Nodes > 1 {
			t.Errorf("%s is of %d nodes", u.ID, u.Nodes)
		}
		if i := slices.IndexFunc(full.Subnets, func(f store.SubnetUse) bool { return f.ID == u.ID }); i < 0 || !slices.Equal(u.Readings, full.Subnets[i].Readings) {
			t.Errorf("%s has %d readings", u.ID, len(u.Readings))
		}
	}
	for _, u := range full.Subnets {
		ofAll += u.Held
		if over := u.Readings[len(u.Readings)-1].At.Sub(u.Readings[0].At); over < 47*time.Hour {
			t.Errorf("%s was measured for %s", u.ID, over)
		}
	}
	if held == 0 || held >= ofAll {
		t.Errorf("one node holds %d of %d", held, ofAll)
	}
}
