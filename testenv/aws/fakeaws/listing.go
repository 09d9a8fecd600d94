package fakeaws

import "time"

// listing is what DescribeNetworkInterfaces and DescribeInstances show of the network
// interfaces from a given time, while answers lag.
type listing struct {
	from time.Time
	enis map[string]*ENI // copies
}

// SetDescribeLag replaces Options.DescribeLag. The lag starts with the current state.
func (w *World) SetDescribeLag(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wire.do(func() { w.wire.describeLag = d })
	switch {
	case d <= 0:
		w.listings = nil
	case w.listings == nil:
		w.listings = []listing{{enis: w.copyENIs()}}
	}
}

// list records the current network interfaces if answers lag. The caller holds mu.
func (w *World) list() {
	lag := w.wire.describeDelay()
	if lag <= 0 {
		return
	}
	now := w.opts.Now()
	// Drop listings that no later answer needs.
	w.listings = append(w.listings[w.currentListing(now, lag):], listing{now, w.copyENIs()})
}

func (w *World) copyENIs() map[string]*ENI {
	out := make(map[string]*ENI, len(w.enis))
	for id, e := range w.enis {
		c := e.clone()
		out[id] = &c
	}
	return out
}

// listAtOnce adds an ENI to all listings: an instance's primary one appears together with the
// instance. The caller holds mu.
func (w *World) listAtOnce(e *ENI) {
	for _, l := range w.listings {
		c := e.clone()
		l.enis[e.ID] = &c
	}
}

// listed returns the network interfaces that EC2 shows now. The caller holds mu and
// must not change them.
func (w *World) listed() map[string]*ENI {
	lag := w.wire.describeDelay()
	if lag <= 0 {
		return w.unveiled(w.enis)
	}
	return w.unveiled(w.listings[w.currentListing(w.opts.Now(), lag)].enis)
}

// currentListing is the index of the last listing that is old enough, or of the first.
func (w *World) currentListing(now time.Time, lag time.Duration) int {
	for k := len(w.listings) - 1; k > 0; k-- {
		if !w.listings[k].from.Add(lag).After(now) {
			return k
		}
	}
	return 0
}
