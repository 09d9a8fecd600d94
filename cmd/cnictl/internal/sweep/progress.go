package sweep

import (
	"fmt"
	"sync"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
)

// Asking shows progress while a command asks nodes for something other than their pools. Call
// done when a node has answered, from any goroutine; erase ends the display.
func Asking(f *cli.Factory, nodes int) (done func(error), erase func()) {
	var mu sync.Mutex // guards p and the counts
	p := newProgress(f)
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
			p.Erase()
		}
}

// progress is a line about nodes that are read.
type progress struct{ *cli.Progress }

func newProgress(f *cli.Factory) progress { return progress{cli.NewProgress(f.Streams, f.Now)} }

func (p progress) update(at fleet.Progress) {
	if at.Done == at.Total {
		return
	}
	p.Say(func() string {
		return fmt.Sprintf("nodes %d/%d  ok %d  failed %d  %.1fs", at.Done, at.Total, at.OK, at.Failed, p.Took().Seconds())
	})
}
