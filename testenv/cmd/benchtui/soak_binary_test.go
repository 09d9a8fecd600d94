package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"cnictl/testenv/terminal"
)

// What paused screens may keep, whatever the fleet: the cached streams and the watches.
const (
	restGoroutines = 100
	restSockets    = 24
)

// TestSoak_Settles: after rounds of keys with 500 changing nodes, some of them dead, a paused
// program keeps no more than with any other fleet.
func TestSoak_Settles(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s := &session{options: options{bin: built(t)}, dir: t.TempDir()}
	f, err := s.living(ctx, 500)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.close(); err != nil {
			t.Error(err)
		}
	}()
	x, err := s.tui(ctx, f.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, picture := range []func(*terminal.Screen) bool{hasAll(f.nodes), isSwept} {
		if err := x.Await(ctx, sweepLimit, picture); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		typed, err := typeKeys(ctx, x, soakKeys)
		if err != nil {
			t.Fatal(err)
		}
		if typed.lost > 0 {
			t.Errorf("%d keys of %d were lost; %s", typed.lost, len(typed.all), typed.reason)
		}
	}
	paused := func(s *terminal.Screen) bool { return strings.Contains(s.Line(0), "PAUSED") }
	if _, err := x.Expect(ctx, "p", screenLimit, paused); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(2 * time.Minute); ; {
		v, err := readVitals(ctx, x)
		if err != nil {
			t.Fatal(err)
		}
		if v.goroutines <= restGoroutines && v.sockets <= restSockets {
			t.Logf("%+v", v)
			return
		}
		if time.Now().After(late) {
			t.Fatalf("a paused program still holds %+v", v)
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}
