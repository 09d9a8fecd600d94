package watch

import (
	"context"
	"time"

	"cnictl/daemon/fleet/store"
)

// Source gives the screens their data. Its methods may be called from any goroutine, and
// only Detail blocks.
type Source interface {
	// View returns the newest snapshot of the fleet; it never changes.
	View() *store.View
	// Changed fires when View has something new, at most five times a second.
	Changed() <-chan struct{}
	// Focus sets what is on the screen, so that it is read first.
	Focus(Focus)
	// Refresh reads what is on the screen now.
	Refresh()
	// Pace sets the time between two samples of what is on the screen, and whether to
	// sample at all.
	Pace(Pace)
	// Detail reads documents of one node.
	Detail(ctx context.Context, node string, want Want, q Query) Detail
	// Stats returns statistics of the sampling.
	Stats() Stats
	// Now returns the source's time: the clock, or the position in a recording.
	Now() time.Time
	// Title names the fleet: the kubeconfig's context, or a file.
	Title() string
}

// Recording is a source that plays back a recording.
type Recording interface {
	Source
	// Range returns the beginning and the end of the recording.
	Range() (from, to time.Time)
	// Seek moves to a time in that range; it may take a while.
	Seek(to time.Time)
	// Speed sets the playback speed, where 1 is real time; Rate returns it.
	Speed(factor float64)
	Rate() float64
	// Track returns what stands out on the time line.
	Track() Track
}

// Track is what stands out on the time line of a recording.
type Track struct {
	Errors []bool      // of equal parts of its range, those in which a node had an error; nil = not known yet
	Marks  []time.Time // such as the incident that it was made for
}
