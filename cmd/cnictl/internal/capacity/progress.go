package capacity

import (
	"context"
	"fmt"
	"time"

	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/cli"
)

const (
	progressAfter    = time.Second            // faster work shows none
	progressEvery    = 100 * time.Millisecond // on a terminal
	progressEveryLog = 10 * time.Second       // elsewhere
)

// progress is a line on standard error about slow work.
type progress struct {
	ctx         context.Context
	f           *cli.Factory
	clock       func() time.Time
	start, last time.Time
	shown       bool
}

func newProgress(ctx context.Context, f *cli.Factory) *progress {
	p := &progress{ctx: ctx, f: f, clock: time.Now}
	if f.Clock != nil {
		p.clock = f.Clock
	}
	p.start = p.clock()
	p.last = p.start
	return p
}

// at shows how far a simulation is, and reports whether to continue.
func (p *progress) at(name string, r *whatif.Run) bool {
	return p.say(func() string { return fmt.Sprintf("%s: simulated %s", name, r.Elapsed().Truncate(time.Minute)) })
}

// say shows a line, and reports whether to continue.
func (p *progress) say(line func() string) bool {
	now, every := p.clock(), progressEveryLog
	if p.f.Streams.ErrTTY {
		every = progressEvery
	}
	if now.Sub(p.start) >= progressAfter && now.Sub(p.last) >= every {
		p.last = now
		text := line() + "\n"
		if p.f.Streams.ErrTTY {
			p.shown, text = true, "\r\x1b[K"+line()
		}
		_, _ = fmt.Fprint(p.f.Streams.Err, text) // failing to show progress is no failure
	}
	return p.ctx.Err() == nil
}

func (p *progress) erase() {
	if p.shown {
		p.shown = false
		_, _ = fmt.Fprint(p.f.Streams.Err, "\r\x1b[K")
	}
}
