package kubeclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	low, high := Backoff{First: time.Second, Max: 30 * time.Second}, Backoff{First: time.Second, Max: 30 * time.Second}
	low.Jitter, high.Jitter = func(time.Duration) time.Duration { return 0 }, func(n time.Duration) time.Duration { return n - 1 }
	for failures, want := range map[int]time.Duration{1: low.First, 2: 2 * low.First, 3: 4 * low.First, 6: low.Max, 1_000_000: low.Max} {
		if a, b := low.After(failures), high.After(failures); a != want/2 || b != want {
			t.Errorf("after %d failures: %v to %v, want %v to %v", failures, a, b, want/2, want)
		}
	}
}

// TestFollower_Failed: a failure has the verb, the number of failures in a row and whether
// the verb was granted before; an error ends the follower.
func TestFollower_Failed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		answers := []string{ // to lists and watches, alternately
			`{"metadata":{},"items":[]}`, // no resourceVersion
			`{"metadata":{"resourceVersion":"5"},"items":[]}`,
			"",
			`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}`,
			`{"metadata":{"resourceVersion":"6"},"items":[]}`,
			`{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}`,
			`{"type":"ADDED","object":{}}`,
		}
		want := []Failure{
			{Verb: VerbList, InARow: 1},
			{Verb: VerbWatch, InARow: 2, Granted: true}, // granted, but ended at once
			{Verb: VerbWatch, InARow: 3, Granted: true},
			{Verb: VerbWatch, InARow: 1, Granted: true}, // it delivered an event
			{Verb: VerbWatch, InARow: 2, Granted: true}, // an event without a resourceVersion
		}
		texts := []string{"no resourceVersion", "ended at once", "Expired", "ended at once", "no resourceVersion"}
		nothing := func(json.RawMessage) error { return nil }
		f := Follower[json.RawMessage]{
			Open: func(context.Context, string, Request, url.Values) (io.ReadCloser, error) {
				text := answers[0]
				answers = answers[1:]
				return io.NopCloser(strings.NewReader(text)), nil
			},
			Request: Request{Kind: Pods}, Limits: Limits{Objects: 9, Within: time.Second},
			Backoff: Backoff{First: time.Second, Max: time.Minute},
			Begin:   func() (func(json.RawMessage), func()) { return func(json.RawMessage) {}, func() {} },
			Set:     nothing, Unset: nothing, Watching: func(bool) {},
		}
		f.Failed = func(got Failure) error {
			if !strings.Contains(got.Err.Error(), texts[0]) && !(texts[0] == "Expired" && Gone(got.Err)) {
				t.Errorf("error %v, want %s", got.Err, texts[0])
			}
			got.Err = nil
			if got != want[0] {
				t.Errorf("%+v, want %+v", got, want[0])
			}
			if want, texts = want[1:], texts[1:]; len(want) == 0 {
				return enough
			}
			return nil
		}
		if err := f.Run(t.Context()); !errors.Is(err, enough) || len(answers) != 0 {
			t.Errorf("error %v, %d answers left", err, len(answers))
		}
	})
}

// TestFollower_SilentWatch: an unanswered watch ends at its limit, as a timeout.
func TestFollower_SilentWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := Follower[json.RawMessage]{
			Open: func(ctx context.Context, _ string, _ Request, _ url.Values) (io.ReadCloser, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			Limits: Limits{Within: time.Second}, listed: true,
			Failed: func(f Failure) error { return f.Err },
		}
		if err := f.Run(t.Context()); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no response within 1s") {
			t.Errorf("error %v", err)
		}
	})
}
