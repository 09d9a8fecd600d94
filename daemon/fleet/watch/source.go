package watch

import (
	"context"
	"time"

	"cnictl/daemon/fleet/store"
)

// Source gives the screens their data. Its methods may be called from any goroutine, and
// only Detail blocks.
type Source interface {
	// View is the newest picture of the fleet; it never changes.
	View() *store.View
	// Changed fires when View has something new, at most five times a second.
	Changed() <-chan struct{}
	// Focus names what is on the screen, so that it is read first.
	Focus(Focus)
	// Refresh reads what is on the screen now.
	Refresh()
	// Pace sets the time between two samples of what is on the screen, and whether to
	// sample at all.
	Pace(Pace)
	// Detail reads documents of one node.
	Detail(ctx context.Context, node string, want Want, q Query) Detail
	// Stats reports how the reading goes.
	Stats() Stats
	// Now is the source's time: the clock, or the position in a recording.
	Now() time.Time
	// Title names the fleet: the kubeconfig's context, a file.
	Title() string
}

// Recording is a source that plays what was recorded.
type Recording interface {
	Source
	// Range is the time from its beginning to its end.
	Range() (from, to time.Time)
	// Seek goes to a time within it; it may take a while.
	Seek(to time.Time)
	// Speed sets the playback speed, 1 is as recorded, and Rate reports it.
	Speed(factor float64)
	Rate() float64
}
