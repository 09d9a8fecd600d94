package fleet

import (
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// TestProblems_ShortWait: an ADD that waits while an interface is attached is no problem yet, as for the doctor.
func TestProblems_ShortWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	for wait, want := range map[time.Duration]document.Severity{9 * time.Second: document.SeverityInfo, 10 * time.Second: document.SeverityError} {
		since := now.Add(-wait)
		n := document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{WaitingADDs: new(1), WaitingSince: &since}}
		got := Problems(n)
		if len(got) != 1 || got[0].Severity != want || got[0].Effect.Rank() > want.Rank() {
			t.Errorf("after %s: %+v, want %s", wait, got, want)
		}
	}
}
