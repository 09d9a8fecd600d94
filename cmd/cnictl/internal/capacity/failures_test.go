package capacity

import (
	"strings"
	"testing"

	"cnictl/capacity/limits"
	"cnictl/capacity/whatif"
)

// TestFailures: the nodes on which ADDs fail, the worst first, each with the reason that the run shows.
func TestFailures(t *testing.T) {
	t.Parallel()
	m5, ok := limits.Lookup("m5.large") // addresses for 27 pods
	if !ok {
		t.Fatal("m5.large is unknown")
	}
	fits, over := whatif.Settings{Instance: m5, MaxPods: 29}, whatif.Settings{Instance: m5, MaxPods: 110}
	nodes := []whatif.Node{{Settings: fits}, {Settings: fits}, {Settings: over}, {Settings: fits}}
	got := failures(nodes, []string{"slow", "refused", "over", "well"}, whatif.Load{Free: 4}, []whatif.Result{
		{Failed: 2}, {Failed: 3, Calls: whatif.Calls{Refused: 1}}, {Failed: 9, Waiting: 1}, {},
	})
	var texts []string
	for _, f := range got {
		texts = append(texts, f.Node+": "+f.Why)
	}
	want := []string{
		"over: max-pods allows 108 pods with an address, but it has addresses for only 27",
		"refused: the subnet has only 4 free addresses",
		"slow: no address was free in time: its pool grows more slowly than pods come, or its addresses are cooling",
	}
	if strings.Join(texts, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
}
