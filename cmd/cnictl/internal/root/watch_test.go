package root

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv"
)

// watching runs a command with --watch. It sends a tick after each reading, calls between, and
// interrupts after the last reading.
func watching(t *testing.T, args string, tty bool, address string, readings int, between func(reading int)) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errOut bytes.Buffer
	ticks := make(chan time.Time)
	f := &cli.Factory{
		Streams: &cli.Streams{Out: &out, Err: &errOut, OutTTY: tty, Size: func() (int, int) { return 80, 24 }},
		Env: func(name string) (string, bool) {
			return map[string]string{"NO_COLOR": "1", "LANG": "C.UTF-8"}[name], true
		},
		Now: fleettest.Now, Name: "cnictl", Version: "v1.2.3",
		Tick: func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} },
	}
	done := make(chan int, 1)
	go func() { done <- Main(ctx, f, append(strings.Fields(args), "--targets=n="+address)) }()
	tick := func() { // received once the previous reading is drawn
		t.Helper()
		testenv.Eventually(t, "the command waits for a tick", func() bool {
			select {
			case ticks <- time.Time{}:
				return true
			default:
				return false
			}
		})
	}
	for reading := 1; reading < readings; reading++ {
		between(reading)
		tick()
	}
	// The command takes one more tick only after it drew the last reading. The reading which that
	// tick starts sees the interrupt.
	tick()
	cancel()
	code = <-done
	return out.String(), errOut.String(), code
}

// moving is a node whose free addresses the test changes.
type moving struct{ free atomic.Int32 }

func (m *moving) serve(t *testing.T) string {
	return fleettest.ServeFunc(t, t.TempDir(), "n", func() fleettest.View {
		v := fleettest.Secondary()
		v.Summary.ADDs.Total = int(m.free.Load())
		v.Book.ENIs[0].CIDRs = v.Book.ENIs[0].CIDRs[:5+m.free.Load()]
		return v
	})
}

func TestWatch_StatusRedrawsInPlace(t *testing.T) {
	t.Parallel()
	var m moving
	m.free.Store(1)
	out, errOut, code := watching(t, "status -w", true, m.serve(t), 2, func(int) {})
	if code != 0 || errOut != "" {
		t.Errorf("exit %d, %q", code, errOut)
	}
	frames := strings.Split(out, "\x1b[?2026h")[1:]
	if len(frames) < 2 {
		t.Fatalf("%d frames in %q", len(frames), out)
	}
	lines := strings.Count(frames[0], "\n")
	if !strings.HasPrefix(frames[1], "\x1b["+strconv.Itoa(lines)+"A\r") {
		t.Errorf("the second frame does not start where the first did (%d lines): %q", lines, frames[1][:20])
	}
	if strings.Contains(out, "\x1b[?1049h") {
		t.Error("alternate screen")
	}
}

func TestWatch_NodesPrintsRowsThatChanged(t *testing.T) {
	t.Parallel()
	var m moving
	m.free.Store(1)
	out, _, code := watching(t, "nodes -w", false, m.serve(t), 4, func(reading int) {
		if reading == 3 {
			m.free.Store(2)
		}
	})
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if code != 0 || len(lines) != 3 || !strings.HasPrefix(lines[0], "NODE") {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	if len(lines[1]) != len(lines[2]) || lines[1] == lines[2] {
		t.Errorf("rows do not line up or are the same:\n%s", out)
	}
}

func TestWatch_JSONIsAStreamOfLines(t *testing.T) {
	t.Parallel()
	var m moving
	for args, kind := range map[string]string{"status -w -o json": document.KindFleet, "nodes -w -o json": document.KindNode} {
		out, _, code := watching(t, args, true, m.serve(t), 2, func(int) {})
		for line := range strings.Lines(out) {
			var doc struct{ Kind string }
			if err := json.Unmarshal([]byte(line), &doc); err != nil || doc.Kind != kind {
				t.Errorf("%s: %q: %v", args, line, err)
			}
		}
		if code != 0 || out == "" {
			t.Errorf("%s: exit %d, %q", args, code, out)
		}
	}
}

func TestInterrupt_OneShotPrintsWhatItHas(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	f := &cli.Factory{
		Streams: &cli.Streams{Out: &out, Err: new(bytes.Buffer)}, Env: func(string) (string, bool) { return "", false }, Now: fleettest.Now, Name: "cnictl",
	}
	var m moving
	if code := Main(ctx, f, []string{"nodes", "-o", "json", "--targets=n=" + m.serve(t)}); code != cli.ExitInterrupted {
		t.Errorf("exit %d", code)
	}
	var list document.NodeIPAMList
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || !list.Partial || len(list.Items) != 1 {
		t.Errorf("%v: %s", err, out.String())
	}
}
