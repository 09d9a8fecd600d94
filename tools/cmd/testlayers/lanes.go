package main

import (
	"context"
	"slices"
	"sync"
)

// runLayers runs layers side by side, as many at once as there are lanes, the longest
// first: those of processes and clusters mostly wait, and leave time to those that compute.
// The results are in the order of the layers given.
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
					cancel(err) // the first is why the others end
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

// laneOrder gives the indices of layers, those that take longest first, so that none of
// them is left alone at the end.
func laneOrder(selected []layer) []int {
	order := make([]int, len(selected))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return selected[a].rank - selected[b].rank })
	return order
}
