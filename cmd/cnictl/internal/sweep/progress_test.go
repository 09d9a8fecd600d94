package sweep

import (
	"bytes"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	now := start
	for _, tt := range []struct {
		tty  bool
		want string
	}{
		{true, "\r\x1b[Knodes 2/9  ok 1  failed 1  1.0s\r\x1b[Knodes 4/9  ok 3  failed 1  11.0s\r\x1b[K"},
		{false, "nodes 4/9  ok 3  failed 1  11.0s\n"},
	} {
		var b bytes.Buffer
		now = start
		p := newProgress(&cli.Factory{Streams: &cli.Streams{Err: &b, ErrTTY: tt.tty}, Now: func() time.Time { return now }})
		for _, step := range []struct {
			after time.Duration
			at    fleet.Progress
		}{
			{900 * time.Millisecond, fleet.Progress{Done: 1, OK: 1, Total: 9}},
			{time.Second, fleet.Progress{Done: 2, OK: 1, Failed: 1, Total: 9}},
			{time.Second + 50*time.Millisecond, fleet.Progress{Done: 3, OK: 2, Failed: 1, Total: 9}},
			{11 * time.Second, fleet.Progress{Done: 4, OK: 3, Failed: 1, Total: 9}},
			{12 * time.Second, fleet.Progress{Done: 9, OK: 8, Failed: 1, Total: 9}},
		} {
			now = start.Add(step.after)
			p.update(step.at)
		}
		p.Erase()
		if b.String() != tt.want {
			t.Errorf("tty %v: %q", tt.tty, b.String())
		}
	}
}
