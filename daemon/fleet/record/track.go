package record

import (
	"context"
	"time"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/watch"
)

// parts is how many equal parts a recording is divided into.
const parts = 240

// Track returns what stands out on the time line. The errors are known once Survey has ended.
func (p *Player) Track() watch.Track {
	t := watch.Track{}
	if errors := p.errors.Load(); errors != nil {
		t.Errors = *errors
	}
	if at := p.index.header.OpensAt; at != nil {
		t.Marks = []time.Time{*at}
	}
	return t
}

// Survey reads the whole recording once to find when nodes had errors.
func (p *Player) Survey(ctx context.Context) {
	found := make([]bool, parts)
	failing := map[string]bool{}
	span, done := p.index.to.Sub(p.index.from), 0
	upto := func(at time.Time) { // what failed last lasts until then
		to := parts - 1
		if span > 0 {
			to = min(max(int(float64(parts)*at.Sub(p.index.from).Seconds()/span.Seconds()), 0), parts-1)
		}
		for ; done < to; done++ {
			found[done] = found[done] || len(failing) > 0
		}
		found[done] = found[done] || len(failing) > 0
	}
	p.Samples(func(s Sample) bool {
		upto(s.At)
		delete(failing, s.Name)
		if s.Node != nil {
			for _, problem := range fleet.Problems(*s.Node) {
				if problem.Effect.Harms() {
					failing[s.Name] = true
				}
			}
		}
		upto(s.At)
		return ctx.Err() == nil
	})
	if upto(p.index.to); ctx.Err() == nil {
		p.errors.Store(&found)
	}
}
