package list

import (
	"bytes"
	"context"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/fleettest"

	"sync/atomic"
)

// TestRun_RatesBetweenTwoReadings: a node that served six ADDs in the ten seconds between
// two readings serves 36 per minute. Meanwhile, one address left cooldown.
func TestRun_RatesBetweenTwoReadings(t *testing.T) {
	t.Parallel()
	var adds atomic.Int32
	address := fleettest.ServeFunc(t, t.TempDir(), "n", func() fleettest.View {
		v := fleettest.Secondary()
		v.Summary.ADDs.Total += int(adds.Load())
		v.Now = v.Now.Add(time.Duration(adds.Load()) * time.Second * 10 / 6)
		return v
	})
	var out bytes.Buffer
	f := &cli.Factory{
		Streams: &cli.Streams{Out: &out, Err: new(bytes.Buffer)}, Env: func(string) (string, bool) { return "", false },
		Now: fleettest.Now, Name: "cnictl",
		LocalTarget: func(context.Context) (fleet.Target, bool) { return fleet.Target{}, false },
		Tick: func(time.Duration) (<-chan time.Time, func()) {
			adds.Store(6)
			ticks := make(chan time.Time, 1)
			ticks <- time.Time{}
			return ticks, func() {}
		},
	}
	cmd := NewTop(f)
	f.Prepare(cmd)
	cmd.SetArgs([]string{"--targets=n=" + address, "-o", "csv"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "NODE,OVER SECONDS,ADD/MIN,FAIL/MIN,DEL/MIN,EC2/MIN,EC2ERR/MIN,WAITING,ASSIGNED,FREE,STATUS\nn,10,36,0,0,0,0,0,7,10,ok\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestRateText(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 0.04: "0.0", 1.25: "1.2", 9.94: "9.9", 9.96: "10", 36: "36", 1234.5: "1234"} {
		if got := rateText(&v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	if got := rateText(nil); got != "-" {
		t.Error(got)
	}
}
