package sweep

import (
	"fmt"
	"sync"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
)

const (
	progressAfter    = time.Second            // faster work shows none
	progressEvery    = 100 * time.Millisecond // on a terminal
	progressEveryLog = 10 * time.Second       // elsewhere
)

// Asking shows progress while a command asks nodes for something other than their pools. Call
// done when a node has answered, from any goroutine; erase ends the display.
func Asking(f *cli.Factory, nodes int) (done func(error), erase func()) {
	var mu sync.Mutex // guards p and the counts
	p := progress{f: f, start: f.Now()}
	at := fleet.Progress{Total: nodes}
	return func(err error) {
			mu.Lock()
			defer mu.Unlock()
			at.Done++
			if err != nil {
				at.Failed++
			} else {
				at.OK++
			}
			p.update(at)
		}, func() {
			mu.Lock()
			defer mu.Unlock()
			p.erase()
		}
}

type progress struct {
	f           *cli.Factory
	start, last time.Time
	shown       bool
}

func (p *progress) update(at fleet.Progress) {
	now := p.f.Now()
	every := progressEveryLog
	if p.f.Streams.ErrTTY {
		every = progressEvery
	}
	since := p.last
	if since.IsZero() && !p.f.Streams.ErrTTY {
		since = p.start
	}
	if now.Sub(p.start) < progressAfter || now.Sub(since) < every || at.Done == at.Total {
		return
	}
	p.last = now
	line := fmt.Sprintf("nodes %d/%d  ok %d  failed %d  %.1fs", at.Done, at.Total, at.OK, at.Failed, now.Sub(p.start).Seconds())
	if p.f.Streams.ErrTTY {
		p.shown = true
		line = "\r\x1b[K" + line
	} else {
		line += "\n"
	}
	// Failing to show progress is no failure.
	_, _ = fmt.Fprint(p.f.Streams.Err, line)
}

func (p *progress) erase() {
	if p.shown {
		_, _ = fmt.Fprint(p.f.Streams.Err, "\r\x1b[K")
	}
}
