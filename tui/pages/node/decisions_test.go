package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
)

// TestDecisions: an action and its outcome are one line. An action of a previous daemon never ends.
func TestDecisions(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	event := func(kind introspect.EventKind, eni, message string, more func(*introspect.Event)) introspect.Event {
		e := introspect.Event{At: at, Kind: kind, ENIID: eni, Reason: "warm-ip-target", Message: message}
		if more != nil {
			more(&e)
		}
		return e
	}
	got := decisionsOf([]introspect.Event{
		event(introspect.EventActionStarted, "eni-9", "assign 1 secondary IP", nil),
		{At: at, Kind: introspect.EventStarted},
		event(introspect.EventActionDone, "eni-9", "", nil), // of no action that began here
		event(introspect.EventActionStarted, "eni-1", "assign 2 secondary IPs to eni-1: warm-ip-target", nil),
		event(introspect.EventActionStarted, "", "attach an ENI", nil),
		{At: at, Kind: introspect.EventAddressAssigned, ENIID: "eni-1"},
		event(introspect.EventActionDone, "eni-1", "", func(e *introspect.Event) { e.DurationMS = new(int64(1700)) }),
		event(introspect.EventActionFailed, "", "no room", func(e *introspect.Event) { e.Cause = "subnet-exhausted" }),
		event(introspect.EventActionStarted, "eni-1", "assign 1 secondary IP\x1b[2J", nil),
	})
	var texts []string
	for _, d := range got {
		texts = append(texts, d.Kind+"|"+d.Text+"|"+d.End)
	}
	want := []string{
		"|assign 1 secondary IP on eni-9: warm-ip-target|in progress",
		"|daemon started|",
		"action-done|eni-9 warm-ip-target|",
		"|assign 2 secondary IPs to eni-1: warm-ip-target|done 1.7s",
		"|attach an ENI: warm-ip-target|failed: subnet-exhausted: no room",
		"|assign 1 secondary IP\x1b[2J on eni-1: warm-ip-target|in progress",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}
