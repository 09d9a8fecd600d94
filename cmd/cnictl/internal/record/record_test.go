package record

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/record"
)

// TestRun_AnInterruptEndsItWell: the file of a recording that the user ends is whole, only
// the user's, and is not replaced by the next.
func TestRun_AnInterruptEndsItWell(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan struct{}, 100)
	address := fleettest.ServeFunc(t, t.TempDir(), "n", func() fleettest.View {
		select {
		case asked <- struct{}{}:
		default:
		}
		return fleettest.Secondary()
	})
	file := filepath.Join(t.TempDir(), "x.cnirec")
	run := func(ctx context.Context, ticks <-chan time.Time) (string, error) {
		var out bytes.Buffer
		f := &cli.Factory{
			Streams: &cli.Streams{Out: &out, Err: new(bytes.Buffer)}, Env: func(string) (string, bool) { return "", false },
			Now: time.Now, Name: "cnictl", Version: "v1.2.3",
			LocalTarget: func(context.Context) (fleet.Target, bool) { return fleet.Target{}, false },
			Tick:        func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} },
		}
		cmd := New(f, nil)
		f.Prepare(cmd)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"--targets=n=" + address, file})
		err := cmd.ExecuteContext(ctx)
		return out.String(), err
	}
	ticks := make(chan time.Time)
	go func() {
		defer cancel()
		<-asked
		for range 3 {
			select {
			case ticks <- time.Time{}:
			case <-time.After(10 * time.Second):
				return
			}
		}
	}()
	out, err := run(ctx, ticks)
	if err != nil || !strings.Contains(out, "of 1 node over") {
		t.Errorf("%q, %v", out, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if _, err := run(t.Context(), ticks); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("a second time: %v", err)
	}
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	p, err := record.Open(opened, record.Options{})
	if err != nil || p.Info().Interrupted || p.Info().Nodes != 1 || p.Info().Title != "--targets" {
		t.Errorf("%v: %+v", err, p.Info())
	}
}
