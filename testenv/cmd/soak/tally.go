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
	failed  []string        // pods that never came up
	found   map[string]int  // problems, by text
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
	t.do(func() { t.failed = append(t.failed, pod+": "+err.Error()) })
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
		t.done, of, float64(t.done)/max(since.Seconds(), 1), took(0.5), took(0.99), t.tries, len(t.failed), t.kills)
}

// problems returns the reasons for which the soak fails.
func (t *tally) problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := slices.Clone(t.failed)
	for _, text := range slices.Sorted(maps.Keys(t.found)) {
		out = append(out, fmt.Sprintf("%s (seen %d times)", text, t.found[text]))
	}
	return out
}

// refusals returns the errors of failed attempts with their counts, the most frequent first.
func (t *tally) refusals() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	texts := slices.SortedFunc(maps.Keys(t.refused), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.refused[b], t.refused[a]), strings.Compare(a, b))
	})
	for i, text := range texts {
		texts[i] = fmt.Sprintf("%d x %s", t.refused[text], text)
	}
	return texts
}

// particulars are the details in which errors of the same kind differ.
var particulars = regexp.MustCompile(`(?P<UID>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})|(?P<LINK>\beni[0-9a-f]{11}\b)|` +
	`(?P<ID>[0-9a-f]{12,})|(?P<IP>\b\d+\.\d+\.\d+\.\d+\b)|(?P<POD>\bpod-\d+-\d+\b)`)

// general replaces the particulars in a text with placeholders.
func general(text string) string {
	return particulars.ReplaceAllStringFunc(text, func(found string) string {
		for i, group := range particulars.FindStringSubmatch(found) {
			if name := particulars.SubexpNames()[i]; name != "" && group != "" {
				return name
			}
		}
		return found
	})
}
