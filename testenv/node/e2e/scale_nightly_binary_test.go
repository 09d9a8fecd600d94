//go:build nightly

package e2e_test

import (
	"fmt"
	"testing"

	"cnictl/testenv/aws/fakeaws"
)

// TestChurn adds and deletes 500 pods, 10 and 30 at a time.
func TestChurn(t *testing.T) {
	t.Parallel()
	for _, parallel := range []int{10, 30} {
		t.Run(fmt.Sprintf("%d at a time", parallel), func(t *testing.T) {
			l := newLab(t, fakeaws.Options{})
			n := l.boot("m5.24xlarge", map[string]string{"IP_COOLDOWN_PERIOD": "1"})
			for round := range 5 {
				pods := l.mustAdd(n, fmt.Sprintf("r%d", round), 100, parallel)
				l.del(n, pods, parallel)
			}
			l.nothingLeft(n)
		})
	}
}
