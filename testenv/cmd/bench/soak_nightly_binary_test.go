//go:build nightly

package main

import (
	"io"
	"strings"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/text/terminal"
)

// TestSoak_Settles: after rounds of keys with 1,000 changing nodes, some of them dead, a paused
// program keeps no more than with any other fleet: the cached streams and the watches.
func TestSoak_Settles(t *testing.T) {
	const mostGoroutines, mostSockets = 100, 24
	r := &run{options: options{bin: built(), quick: true}, ctx: testenv.Context(t), dir: t.TempDir(), progress: io.Discard}
	err := r.scope(func() {
		x := r.tui(r.living(r.largest()))
		check(x.Await(r.ctx, sweepLimit, hasAll(r.largest())))
		check(x.Await(r.ctx, sweepLimit, isSwept))
		if typed := r.typeKeys(x, 2*soakKeys); typed.lost > 0 {
			t.Errorf("%d keys were lost; %s", typed.lost, typed.reason)
		}
		must(x.Expect(r.ctx, "p", screenLimit, func(s *terminal.Screen) bool { return strings.Contains(s.Line(0), "PAUSED") }))
		testenv.Eventually(t, "a paused program to hold little", func() bool {
			v := r.readVitals(x)
			return v.goroutines <= mostGoroutines && v.sockets <= mostSockets
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}
