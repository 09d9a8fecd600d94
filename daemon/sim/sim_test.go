package sim

import (
	"strings"
	"testing"
)

func TestSeeds(t *testing.T) {
	t.Parallel()
	var all Stats
	for seed := uint64(1); seed <= 60; seed++ {
		res := Run(Options{Seed: seed})
		all.Add(res.Stats)
		if res.Failure != nil {
			var b strings.Builder
			_, _ = res.Failure.WriteTo(&b)
			t.Fatal(b.String())
		}
	}
	t.Logf("\n%s", all)
}
