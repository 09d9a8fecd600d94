package evidence

import (
	"testing"
	"time"
)

func TestUnread(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	r := Unread(at, MissingNotAsked)
	if r.At != at {
		t.Errorf("At = %v", r.At)
	}
	for _, got := range []string{r.ENIs.Missing, r.Summary.Missing, r.IPTables.Missing, r.DaemonSet.Missing, r.Probes.Missing} {
		if got != MissingNotAsked {
			t.Errorf("missing because of %q", got)
		}
	}
}
