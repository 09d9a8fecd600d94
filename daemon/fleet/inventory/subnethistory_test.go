package inventory

import (
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

// nodeSince is a node whose daemon has counts of subnets since these times.
func nodeSince(name string, since map[string]time.Time) document.NodeIPAM {
	free, now := 100, monday
	n := document.NodeIPAM{Summary: &introspect.Summary{}, SampledAt: &now, Source: document.SourceSummary}
	n.Metadata.Name = name
	for id, at := range since {
		s := introspect.Subnet{ID: id, CIDR: "10.0.0.0/20", Available: &free, AsOf: &now}
		if !at.IsZero() {
			s.HistorySince = &at
		}
		n.Summary.Subnets = append(n.Summary.Subnets, s)
	}
	return n
}

// TestHistorySources: of many nodes those few are read whose counts go back furthest, and none of a subnet that
// is known.
func TestHistorySources(t *testing.T) {
	t.Parallel()
	ago := func(hours int) time.Time { return monday.Add(-time.Duration(hours) * time.Hour) }
	nodes := []document.NodeIPAM{
		nodeSince("young", map[string]time.Time{"subnet-a": ago(1), "subnet-b": ago(1)}),
		nodeSince("oldest", map[string]time.Time{"subnet-a": ago(200), "subnet-b": ago(200)}),
		nodeSince("new", map[string]time.Time{"subnet-a": {}}),
		nodeSince("elsewhere", map[string]time.Time{"subnet-c": ago(3)}),
		{Metadata: document.ObjectMeta{Name: "down"}},
	}
	for i := range 500 {
		nodes = append(nodes, nodeSince("older-"+string(rune('a'+i%26))+string(rune('a'+i/26)), map[string]time.Time{"subnet-a": ago(100), "subnet-b": ago(100)}))
	}
	v := store.Of(nodes)
	if got := HistorySources(v, nil); !slices.Equal(got, []string{"elsewhere", "older-aa", "oldest"}) {
		t.Errorf("%v", got)
	}
	if got := HistorySources(v, map[string]bool{"subnet-a": true, "subnet-b": true}); !slices.Equal(got, []string{"elsewhere"}) {
		t.Errorf("once most are known: %v", got)
	}
}

// TestMergeHistories: the counts of two nodes are one trend, which ends with the newest count and has one for each
// quarter of an hour, and goes back as far as the older one.
func TestMergeHistories(t *testing.T) {
	t.Parallel()
	readings := func(first time.Duration, every time.Duration, free ...int) introspect.SubnetReadings {
		return introspect.ReadingsOf("subnet-a", func(yield func(time.Time, int) bool) {
			for i, n := range free {
				if !yield(monday.Add(-first).Add(time.Duration(i)*every), n) {
					return
				}
			}
		})
	}
	v := store.Of([]document.NodeIPAM{nodeSince("n", map[string]time.Time{"subnet-a": monday, "subnet-b": monday})})
	docs := []introspect.NodeSubnetHistory{
		{Items: []introspect.SubnetReadings{readings(2*time.Hour, 30*time.Minute, 500, 400, 300)}},
		{}, // a node that did not answer
		{Items: []introspect.SubnetReadings{
			readings(89*time.Minute, 15*time.Minute, 399, 350, 299, 250, 200, 150, 90, 80, 70), // the last are in the future
			{Subnet: "subnet-unknown", First: monday.Add(-time.Hour), Free: []int{1}},
		}},
	}
	merged := MergeHistories(v, docs)
	var got []int
	for i, r := range merged["subnet-a"] {
		got = append(got, r.Free)
		if i > 0 && !r.At.After(merged["subnet-a"][i-1].At) {
			t.Errorf("%s follows %s", r.At, merged["subnet-a"][i-1].At)
		}
	}
	if want := []int{500, 400, 350, 300, 250, 200, 150, 100}; len(merged) != 2 || !slices.Equal(got, want) {
		t.Errorf("%v, want %v; %d subnets", got, want, len(merged))
	}
	f := TrendOf(v.WithReadings(merged).Subnets[0]).Project()
	if f.Over != 2*time.Hour || f.Readings != 8 || f.Free != 100 {
		t.Errorf("%+v", f)
	}
	hostile := introspect.SubnetReadings{Subnet: "subnet-a", First: monday.AddDate(-1, 0, 0), Free: make([]int, 1e6), Later: slices.Repeat([]int64{60}, 1e6)}
	if n := len(MergeHistories(v, []introspect.NodeSubnetHistory{{Items: []introspect.SubnetReadings{hostile}}})["subnet-a"]); n > 14*96+1 {
		t.Errorf("%d readings of a hostile node", n)
	}
}
