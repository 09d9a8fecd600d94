package capacity

import (
	"context"
	"fmt"
	"time"

	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/cli"
)

// progress is a line about slow work that a user can end.
type progress struct {
	*cli.Progress
	ctx context.Context
}

func newProgress(ctx context.Context, f *cli.Factory) progress {
	clock := f.Clock
	if clock == nil {
		clock = time.Now
	}
	return progress{cli.NewProgress(f.Streams, clock), ctx}
}

// at shows how far a simulation is, and reports whether to continue.
func (p progress) at(name string, r *whatif.Run) bool {
	return p.say(func() string { return fmt.Sprintf("%s: simulated %s", name, r.Elapsed().Truncate(time.Minute)) })
}

// say shows a line, and reports whether to continue.
func (p progress) say(line func() string) bool {
	p.Say(line)
	return p.ctx.Err() == nil
}
