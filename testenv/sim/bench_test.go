package sim

import "testing"

// BenchmarkSeed plays one seed after another.
func BenchmarkSeed(b *testing.B) {
	seed := uint64(0)
	for b.Loop() {
		seed++
		Run(Options{Seed: seed%50 + 1})
	}
}
