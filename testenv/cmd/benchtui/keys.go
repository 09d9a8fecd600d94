package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"cnictl/testenv/terminal"
)

// press is one key, and a condition that the screen meets after it. The condition does not
// hold before the key, and new data cannot cause it: neither the row with the cursor nor the
// bottom line changes on its own.
type press struct {
	kind  string
	bytes string
	shows func(before, now *picture) bool
}

// picture is the part of the screen that conditions check.
type picture struct{ selected, status string }

func pictureOf(s *terminal.Screen) *picture { return &picture{selected(s), status(s)} }

const (
	kindMove   = "move"
	kindFilter = "filter"
	kindSort   = "sort"
	kindOpen   = "open and back"
)

func moves(keys ...string) []press {
	var out []press
	for _, k := range keys {
		out = append(out, press{kindMove, k, func(before, now *picture) bool {
			return now.selected != "" && now.selected != before.selected
		}})
	}
	return out
}

func shows(kind, bytes string, condition func(status string) bool) press {
	return press{kind, bytes, func(_, now *picture) bool { return condition(now.status) }}
}

func begins(with string) func(string) bool {
	return func(status string) bool { return strings.HasPrefix(status, with) }
}

func not(f func(string) bool) func(string) bool { return func(s string) bool { return !f(s) } }

func has(text string) func(string) bool {
	return func(status string) bool { return strings.Contains(status, text) }
}

// typing types a filter, letter by letter, and keeps it.
func typing(text string) []press {
	out := []press{shows(kindFilter, "/", begins(" /"))}
	for i := range text {
		out = append(out, shows(kindFilter, text[i:i+1], begins(" /"+text[:i+1])))
	}
	return append(out, shows(kindFilter, "\r", not(begins(" /"))))
}

func sorting(letter string) []press {
	return []press{shows(kindSort, "s", begins(" sort by")), shows(kindSort, letter, not(begins(" sort by")))}
}

const (
	pageDown, pageUp = "\x1b[6~", "\x1b[5~"
	halfDown, halfUp = "\x04", "\x15"
	escape           = "\x1b[27u" // sent by terminals that distinguish esc from the start of a sequence
)

// script is a user's session: up and down the list, filters, sort orders, a node.
func script() []press {
	clear := shows(kindFilter, escape, not(has("filter: ")))
	opened := shows(kindOpen, "\r", has(" › "))
	closed := shows(kindOpen, "h", not(has(" › ")))
	return slices.Concat(
		moves("j", "j", "j", "j", "j", "k", "k", "j", "j", "j"),
		moves(pageDown, pageDown, "j", "j", pageUp, pageDown, pageDown, halfDown, halfDown, halfUp),
		typing("warm>1"), moves("j", "j", "k", "G", "k", "k", "g"), []press{clear},
		sorting("i"), moves("j", "j", "G", "k", "k", "k", "g", "j"),
		[]press{opened, closed}, moves("j", "k"),
		typing("m5"), moves("j", pageDown, "j", "k"), []press{clear},
		sorting("n"), moves("G", "k", "k", pageUp, "g", "j", "j"),
		sorting("w"), moves("j", "j", "j", "k", "G", "g"),
		[]press{opened, closed},
		sorting("s"), moves("j", "G", "k", "g"),
	)
}

// keyLimit is the time after which a key counts as lost.
const keyLimit = 3 * time.Second

// typed holds how long keys took.
type typed struct {
	all    []time.Duration
	kinds  map[string][]time.Duration
	lost   int             // no picture within keyLimit, which is the time they count with
	reason string          // of the first lost key
	echoes []time.Duration // of the minimal program, one after each key
}

// typeKeys writes keys one by one. Before each key it pauses for a random time: the
// program draws at a fixed rate, so a key right after a picture would always wait for
// a whole frame, and one right before it never.
//
// After each key the same is measured with a program that only echoes, to know the
// machine's share.
func typeKeys(ctx context.Context, t *terminal.Terminal, n int) (typed, error) {
	echo, err := terminal.Start(ctx, terminal.Options{Columns: columns, Rows: rows, Raw: true}, "/bin/cat")
	if err != nil {
		return typed{}, err
	}
	defer echo.Kill()
	rnd := rand.New(rand.NewPCG(1, 2)) // the same sequence every time
	out := typed{kinds: map[string][]time.Duration{}}
	for len(out.all) < n {
		for _, p := range script() {
			if len(out.all) == n {
				break
			}
			if err := pause(ctx, time.Duration(rnd.Int64N(int64(50*time.Millisecond)))); err != nil {
				return out, err
			}
			var before *picture
			t.Find(func(s *terminal.Screen) string { before = pictureOf(s); return "" })
			took, err := t.Expect(ctx, p.bytes, keyLimit, func(s *terminal.Screen) bool { return p.shows(before, pictureOf(s)) })
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
			if err != nil {
				took = keyLimit
				if out.lost++; out.lost == 1 {
					out.reason = fmt.Sprintf("key %d, %q of %s: %v", len(out.all), p.bytes, p.kind, err)
				}
			}
			out.all = append(out.all, took)
			out.kinds[p.kind] = append(out.kinds[p.kind], took)
			_, already := echo.Counts()
			back, err := echo.AwaitBytes(ctx, "x", screenLimit, already)
			if err != nil {
				return out, err
			}
			out.echoes = append(out.echoes, back)
		}
	}
	return out, nil
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
