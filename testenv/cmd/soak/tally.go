package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/testenv/cmd/internal/frame"
)

// tally collects events from all goroutines.
type tally struct {
	mu      sync.Mutex
	times   []time.Duration // of sandboxes that came up
	refused map[string]int  // failed tries, by text
	tries   int             // all failed tries
	done    int             // pods that ran and ended
	failed  int             // pods that never came up
	found   map[string]int  // problems for which the soak fails, by text
	kills   int
}

func newTally() *tally { return &tally{refused: map[string]int{}, found: map[string]int{}} }

func (t *tally) up(took time.Duration) { t.do(func() { t.times = append(t.times, took) }) }
func (t *tally) gone()                 { t.do(func() { t.done++ }) }
func (t *tally) killed()               { t.do(func() { t.kills++ }) }

func (t *tally) retry(err error) {
	t.do(func() { t.refused[general(err.Error())]++; t.tries++ })
}

func (t *tally) never(pod string, err error) {
	t.do(func() { t.failed++; t.found[pod+": "+err.Error()]++ })
}

// mistake records a problem.
func (t *tally) mistake(format string, args ...any) {
	t.do(func() { t.found[fmt.Sprintf(format, args...)]++ })
}

func (t *tally) do(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// line returns the state of a part on one line.
func (t *tally) line(since time.Duration, of int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	took := func(q float64) time.Duration { return frame.Quantile(t.times, q).Round(time.Millisecond) }
	return fmt.Sprintf("%d/%d pods, %.1f/s, start p50 %s p99 %s, %d tries failed, %d pods failed, %d kills",
		t.done, of, float64(t.done)/max(since.Seconds(), 1), took(0.5), took(0.99), t.tries, t.failed, t.kills)
}

// counted lists texts with their counts, the most frequent first.
func (t *tally) counted(texts map[string]int) (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, text := range slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
		return cmp.Or(cmp.Compare(texts[b], texts[a]), strings.Compare(a, b))
	}) {
		out = append(out, fmt.Sprintf("%d x %s", texts[text], text))
	}
	return out
}

// particulars are the details in which errors of the same kind differ: UIDs and other IDs, links,
// addresses, pods.
var particulars = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\beni[0-9a-f]{11}\b|[0-9a-f]{12,}|\b\d+\.\d+\.\d+\.\d+\b|\bpod-\d+-\d+\b`)

func general(text string) string { return particulars.ReplaceAllString(text, "…") }
