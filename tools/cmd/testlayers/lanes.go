package main

import (
	"context"
	"slices"
	"sync"
)

// runLayers runs layers concurrently, as many at once as there are lanes, the longest first:
// layers of processes and clusters mostly wait, which leaves time for layers that compute.
// The results are in the order of the given layers.
func runLayers(ctx context.Context, o options, selected []layer, pkgs []pkg) ([]layerResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]layerResult, len(selected))
	next := make(chan int)
	var lanes sync.WaitGroup
	for range max(1, o.lanes) {
		lanes.Go(func() {
			for i := range next {
				var err error
				if results[i], err = runLayer(ctx, o, selected[i], selected[i].packages(pkgs)); err != nil {
					cancel(err) // the first error is why the others end
				}
			}
		})
	}
	for _, i := range laneOrder(selected) {
		next <- i
	}
	close(next)
	lanes.Wait()
	return results, context.Cause(ctx)
}

// laneOrder returns the indices of layers, the longest first, so that none of them runs alone
// at the end.
func laneOrder(selected []layer) []int {
	order := make([]int, len(selected))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return selected[a].rank - selected[b].rank })
	return order
}
