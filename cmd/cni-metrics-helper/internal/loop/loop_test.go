package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/cmd/cni-metrics-helper/internal/jsonlog"
	"cnictl/cmd/cni-metrics-helper/internal/publish"
	"cnictl/cmd/cni-metrics-helper/internal/scrape"
)

func names(pods []scrape.Pod) (out string) {
	for _, p := range pods {
		out += p.Name
	}
	return out
}

func podsOf(names string) []scrape.Pod {
	var out []scrape.Pod
	for _, n := range names {
		out = append(out, scrape.Pod{Name: string(n), UID: "uid-" + string(n)})
	}
	return out
}

func newTestPoller(t *testing.T) (*poller, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	return newPoller(Deps{Exposition: publish.NewExposition(nil), Log: jsonlog.New(log, "info")}), log
}

// TestGrace: work in progress when the process is asked to stop gets its grace period and
// no more.
func TestGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		longer, cancel := grace(ctx)
		defer cancel()
		end()
		<-time.After(lastSend - time.Nanosecond)
		synctest.Wait()
		if longer.Err() != nil {
			t.Error("it ended too early")
		}
		<-longer.Done()
	})
	longer, cancel := grace(t.Context())
	cancel()
	if longer.Err() == nil {
		t.Error("it was not cancelled")
	}
}

// TestTurn: even if polls end too early, every pod gets its turn.
func TestTurn(t *testing.T) {
	t.Parallel()
	p, _ := newTestPoller(t)
	p.turn(nil)
	var got []string
	for range 4 {
		pods := podsOf("abcde")
		p.turn(pods)
		got = append(got, names(pods))
		var skipped []scrape.Skip
		for _, late := range pods[2:] {
			skipped = append(skipped, scrape.Skip{Pod: late.Name, Reason: scrape.NotReached, Err: errors.New("late")})
		}
		p.account(t.Context(), pods, skipped)
	}
	if want := []string{"abcde", "cdeab", "eabcd", "bcdea"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAccount_LogsChanges: a problem is logged when it begins, changes and ends.
func TestAccount_LogsChanges(t *testing.T) {
	t.Parallel()
	p, log := newTestPoller(t)
	skip := func(pod string, r scrape.Reason) scrape.Skip {
		return scrape.Skip{Pod: pod, Reason: r, Err: fmt.Errorf("%s of %s", r, pod)}
	}
	one := []scrape.Skip{skip("b", scrape.TimedOut)}
	two := []scrape.Skip{skip("b", scrape.TimedOut), skip("a", scrape.TimedOut), skip("c", scrape.Malformed)}
	for _, skipped := range [][]scrape.Skip{nil, one, one, one, two, two, nil, nil} {
		p.account(t.Context(), podsOf("abc"), skipped)
	}
	p.complain(t.Context(), noList, "no answer")
	p.complain(t.Context(), noList, "no answer")
	p.account(t.Context(), podsOf("abc"), nil)
	wants := []string{`"reason":"timeout: 1"`, "2 timeout, such as a: timeout of a; 1 malformed, such as c", "All pods can be read again", "Unable to list", "All pods can be read again"}
	lines := slices.Collect(strings.Lines(log.String()))
	if len(lines) != len(wants) {
		t.Fatalf("%d lines:\n%s", len(lines), log)
	}
	for i, want := range wants {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %s\nhas no %s", i+1, lines[i], want)
		}
	}
}
