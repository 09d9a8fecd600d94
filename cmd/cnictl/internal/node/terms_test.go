package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/tui/show"
)

// TestTerms_AllHaveWords: every term of the computation has a text.
func TestTerms_AllHaveWords(t *testing.T) {
	t.Parallel()
	for _, in := range fleettest.MaxPodsInputs() {
		for _, term := range maxpods.Compute(in).Terms() {
			if show.Term(term.Name) == "" {
				t.Errorf("%s: term %q has no long name", in.InstanceType, term.Name)
			}
		}
	}
	if introspect.MaxPodsUnlimited != maxpods.Unlimited {
		t.Error("unlimited is another number")
	}
}

func TestTermLines(t *testing.T) {
	t.Parallel()
	got := termLines([]introspect.MaxPodsTerm{{Name: "E", Value: 3}, {Name: "ip", Value: introspect.MaxPodsUnlimited}, {Name: "later\x1b", Value: 12}})
	want := []string{"        3  ENIs the network card supports", "unlimited  addresses for pods", "       12  later\x1b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
