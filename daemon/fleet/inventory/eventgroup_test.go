package inventory

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

func TestRounded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"next attempt in 1m6.33s": "next attempt in 1m6s", "in 10.004s, then 2h3m4.5s": "in 10s, then 2h3m5s", "took 1.234s": "took 1.2s",
		"10.0.0.1 eni-1.2s": "10.0.0.1 eni-1.2s", "640ms": "640ms", "9h99999999999999.9s": "9h99999999999999.9s", "": "",
	} {
		if got := Rounded(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestGroup: one row for each cause and object, with how often and its last text; nothing is lost.
func TestGroup(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	of := func(minute int, node, what, object, cause, message string, count int) Event {
		at := start.Add(time.Duration(minute) * time.Minute)
		return Event{EventItem: document.EventItem{At: at, From: document.FromDaemon, Node: node, What: what, Object: object, Cause: cause, Message: message, Count: count}, Key: fmt.Sprint(minute, node)}
	}
	started := introspect.EventStarted
	rows := []Event{
		of(0, "a", string(started), "a", "", started.Title(), 1),
		of(1, "a", "add-failed", "shop/x", "pool-dry", "first", 1), of(2, "b", "add-failed", "shop/x", "pool-dry", "elsewhere", 1),
		of(3, "a", "add-failed", "shop/x", "throttled", "another", 1), of(4, "a", "add-failed", "shop/x", "pool-dry", "again in 1m6.33s", 3),
	}
	var got []string
	for _, r := range GroupEvents(slices.Clone(rows)) {
		got = append(got, fmt.Sprintf("%s %s %q %q %d", r.Node, r.What, r.Object, r.Message, r.Count))
	}
	if want := []string{
		`a started "" "" 1`, `b add-failed "shop/x" "elsewhere" 1`, `a add-failed "shop/x" "another" 1`, `a add-failed "shop/x" "again in 1m6s" 4`,
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
