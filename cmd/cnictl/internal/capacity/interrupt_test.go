package capacity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/document"
)

// interrupted is a context that ends after a number of calls of Err.
type interrupted struct {
	context.Context
	left atomic.Int64
}

func (c *interrupted) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestInterrupted: the results so far are printed, and the exit code shows the interrupt.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	run := func(command func(*cli.Factory) *cobra.Command, asked int64, args string) (out string, err error) {
		var stdout bytes.Buffer
		f := &cli.Factory{
			Streams: &cli.Streams{Out: &stdout, Err: &bytes.Buffer{}}, Env: func(string) (string, bool) { return "", false }, Name: "cnictl",
			Now: func() time.Time { return time.Unix(0, 0) },
		}
		f.Globals.Output = "json"
		ctx := &interrupted{Context: t.Context()}
		ctx.left.Store(asked)
		cmd := command(f)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(args))
		err = cmd.ExecuteContext(ctx)
		var coded *cli.Error
		if !errors.As(err, &coded) || coded.Code != cli.ExitInterrupted {
			t.Errorf("%s: %v", args, err)
		}
		return stdout.String(), err
	}

	var compared document.CapacityComparison
	out, err := run(comparison, 3, "m5.* --pods 500")
	if e := json.Unmarshal([]byte(out), &compared); e != nil || len(compared.Items) != 3 || !compared.Partial || err.Error() != "interrupted: 3 of 9 types are compared" {
		t.Errorf("compare: %v, %v\n%s", e, err, out)
	}

	var predicted document.CapacityWhatIfList
	out, _ = run(whatIf, 3, "--type m5.large --pods 20 --count 5 --warm-ip-target 2 --rate 20")
	if err := json.Unmarshal([]byte(out), &predicted); err != nil || len(predicted.Items) != 1 || !predicted.Partial || predicted.Items[0].Held.Avg < 100 ||
		predicted.Seconds <= 0 || predicted.Seconds >= 24*3600 {
		t.Errorf("whatif: %v\n%s", err, out)
	}

	var best document.CapacityRecommendation
	out, err = run(recommend, 40, "--type m5.large --pods 20 --count 2 --for 1h --goal fewest-addresses")
	if e := json.Unmarshal([]byte(out), &best); e != nil || len(best.Items) == 0 || best.Chosen == nil || !best.Partial || best.Tried == 0 || best.Tried >= best.Candidates {
		t.Errorf("recommend: %v\n%s", e, out)
	}
	if want := "interrupted: showing the best of "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	// Today's settings are simulated first, so there is nothing to choose from yet.
	best = document.CapacityRecommendation{}
	out, _ = run(recommend, 2, "--type m5.large --pods 20 --count 5 --rate 50")
	if err := json.Unmarshal([]byte(out), &best); err != nil || len(best.Items) > 0 || best.Chosen != nil || !best.Partial || best.Tried != 0 || best.Today.Held < 100 {
		t.Errorf("recommend: %v\n%s", err, out)
	}
}
