package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/testenv/cmd/internal/figure"
	"cnictl/testenv/terminal"
)

// Bounds of a long watch.
const (
	soakMemory = 250 // MB
	soakKey    = 50  // ms, p99 of key to frame
	soakKeys   = 100 // per round: the script once
	soakRest   = 10 * time.Second
)

// vitals are a program's resources at one moment.
type vitals struct {
	goroutines, tunnels int // from its diagnostics
	sockets             int
	memory              float64 // resident bytes
}

// soak watches a changing fleet for a long time: rounds of keys and pauses, reading the vitals
// after each. They must stay within bounds and must not grow.
func (s *session) soak(ctx context.Context, f *fleet) (err error) {
	t, err := s.tui(ctx, f.kubeconfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := t.Await(ctx, sweepLimit, hasAll(f.nodes)); err != nil {
		return err
	}
	if err := t.Await(ctx, sweepLimit, isSwept); err != nil {
		return err
	}
	var keys []time.Duration
	var seen []vitals
	for end := time.Now().Add(s.lasts); len(seen) < 3 || time.Now().Before(end); {
		typed, err := typeKeys(ctx, t, soakKeys)
		if err != nil {
			return err
		}
		v, err := readVitals(ctx, t)
		if err != nil {
			return err
		}
		keys, seen = append(keys, typed.all...), append(seen, v)
		s.say("soak %4.0f s: %d goroutines, %d tunnels, %d sockets, %.0f MB, key to frame p99 %.0f ms", time.Since(t.Started).Seconds(),
			v.goroutines, v.tunnels, v.sockets, v.memory/1e6, figure.Milliseconds(figure.Quantile(typed.all, 0.99)))
		if err := pause(ctx, soakRest); err != nil {
			return err
		}
	}
	s.soaked(f.nodes, keys, seen)
	return nil
}

// soaked adds the rows.
func (s *session) soaked(nodes int, keys []time.Duration, seen []vitals) {
	first, last, memory := growth(seen)
	s.add(fmt.Sprintf("soak, %d nodes, %d rounds of %d keys: most resident memory", nodes, len(seen), soakKeys), "MB", memory/1e6).must(soakMemory)
	s.add("the same, most goroutines in the first third", "", float64(first.goroutines))
	s.add("the same, most goroutines in the last third", "", float64(last.goroutines)).must(float64(first.goroutines + slack(first.goroutines)))
	s.add("the same, most sockets in the last third", "", float64(last.sockets)).must(float64(first.sockets + slack(first.sockets)))
	s.add("the same, key to frame, p99", "ms", figure.Milliseconds(figure.Quantile(keys, 0.99))).must(soakKey)
}

// growth returns the maximum of each count in the first and in the last third, and the maximum
// memory. It needs at least three vitals.
func growth(seen []vitals) (first, last vitals, memory float64) {
	most := func(of []vitals) (m vitals) {
		for _, v := range of {
			m.goroutines, m.tunnels, m.sockets = max(m.goroutines, v.goroutines), max(m.tunnels, v.tunnels), max(m.sockets, v.sockets)
			m.memory = max(m.memory, v.memory)
		}
		return m
	}
	third := len(seen) / 3
	return most(seen[:third]), most(seen[len(seen)-third:]), most(seen).memory
}

// slack is how much a stable count may vary: streams come and go, and those of a closed
// tunnel linger for seconds.
func slack(count int) int { return 32 + count/4 }

const ctrlG = "\x07"

// readVitals opens the diagnostics, reads them and closes them.
func readVitals(ctx context.Context, t *terminal.Terminal) (v vitals, err error) {
	var seen *vitals
	_, err = t.Expect(ctx, ctrlG, keyLimit, func(s *terminal.Screen) bool {
		seen = diagnosed(s)
		return seen != nil
	})
	if err != nil {
		return v, err
	}
	v = *seen
	if _, err = t.Expect(ctx, "h", keyLimit, func(s *terminal.Screen) bool { return diagnosed(s) == nil && hasRows(s) }); err != nil {
		return v, err
	}
	pid := t.Process().Pid
	if v.sockets, err = sockets(pid); err != nil {
		return v, err
	}
	v.memory, err = held(pid, "VmRSS:")
	return v, err
}

// diagnosed parses "tunnels 16 … goroutines 142" from the screen. It returns nil if they are not
// shown.
func diagnosed(s *terminal.Screen) *vitals {
	var words []string
	for y := range s.Height() {
		words = append(words, strings.Fields(s.Line(y))...)
	}
	number := func(name string) (int, bool) {
		at := slices.Index(words, name)
		if at < 0 || at+1 == len(words) {
			return 0, false
		}
		n, err := strconv.Atoi(strings.ReplaceAll(words[at+1], ",", ""))
		return n, err == nil
	}
	goroutines, ok := number("goroutines")
	tunnels, also := number("tunnels")
	if !ok || !also {
		return nil
	}
	return &vitals{goroutines: goroutines, tunnels: tunnels}
}
