package testenv

import (
	"context"
	"time"
)

// Poll calls ok until it returns true or the context ends, and reports which. It polls less
// often the longer it waits, every 5 to 200 ms: many conditions run programs on a node, and a
// test that only waits must leave the CPU to others.
func Poll(ctx context.Context, ok func() bool) bool {
	for began := time.Now(); !ok(); {
		pause := min(max(time.Since(began)/10, 5*time.Millisecond), 200*time.Millisecond)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
	return true
}
