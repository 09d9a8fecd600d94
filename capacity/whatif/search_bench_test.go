package whatif

import (
	"fmt"
	"testing"
	"time"

	"cnictl/capacity/limits"
)

func BenchmarkSearch(b *testing.B) {
	for _, count := range []int{1, 100} {
		b.Run(fmt.Sprintf("nodes=%d", count), func(b *testing.B) {
			i, _ := limits.Lookup("m5.4xlarge")
			s := Settings{Instance: i, MaxPods: 110, WarmENI: 1, WarmPrefix: 1}
			nodes := make([]Node, count)
			for n := range nodes {
				nodes[n] = Node{s, 50}
			}
			load := Load{Steps: Replacements(1, 6*time.Hour, 1), For: 6 * time.Hour, Seed: 1, Free: -1}
			candidates := Candidates(nodes, DefaultBounds(nodes))
			for b.Loop() {
				found(b, nodes, load, candidates, 0, nil)
			}
		})
	}
}
