package cli

import (
	"fmt"
	"time"
)

// Progress is a line on standard error about work that takes long: over a second. On a terminal,
// each line replaces the last.
type Progress struct {
	Every    time.Duration // between two lines on a terminal
	EveryLog time.Duration // elsewhere

	streams     *Streams
	clock       func() time.Time
	start, last time.Time
	shown       bool
}

// NewProgress starts to time the work by a clock.
func NewProgress(s *Streams, clock func() time.Time) *Progress {
	now := clock()
	return &Progress{Every: 100 * time.Millisecond, EveryLog: 10 * time.Second, streams: s, clock: clock, start: now, last: now}
}

// Took returns how long the work has taken so far.
func (p *Progress) Took() time.Duration { return p.clock().Sub(p.start) }

// Say shows a line, if it is time for one.
func (p *Progress) Say(line func() string) {
	now, every := p.clock(), p.EveryLog
	if p.streams.ErrTTY {
		every = p.Every
	}
	if now.Sub(p.start) < time.Second || now.Sub(p.last) < every {
		return
	}
	p.last = now
	text := line()
	if p.streams.ErrTTY {
		p.shown, text = true, "\r\x1b[K"+text
	} else {
		text += "\n"
	}
	_, _ = fmt.Fprint(p.streams.Err, text) // failing to show progress is no failure
}

// Erase ends the display.
func (p *Progress) Erase() {
	if p.shown {
		p.shown = false
		_, _ = fmt.Fprint(p.streams.Err, "\r\x1b[K")
	}
}
