package fakeaws

import "time"

// listing is what DescribeNetworkInterfaces and DescribeInstances show of the network
// interfaces from a moment on, while they are late.
type listing struct {
	from time.Time
	enis map[string]*ENI // copies
}

// SetDescribeLag replaces Options.DescribeLag. A lag begins with what is there now.
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

// list remembers the network interfaces as they are now, if answers are late. The
// caller holds mu.
func (w *World) list() {
	lag := w.wire.describeDelay()
	if lag <= 0 {
		return
	}
	now := w.opts.Now()
	// What no answer can want any more goes.
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

// listAtOnce makes an ENI known to late answers too: an instance's primary one is
// there when the instance is. The caller holds mu.
func (w *World) listAtOnce(e *ENI) {
	for _, l := range w.listings {
		c := e.clone()
		l.enis[e.ID] = &c
	}
}

// listed are the network interfaces that EC2 shows now. The caller holds mu and
// changes nothing in it.
func (w *World) listed() map[string]*ENI {
	lag := w.wire.describeDelay()
	if lag <= 0 {
		return w.unveiled(w.enis)
	}
	return w.unveiled(w.listings[w.currentListing(w.opts.Now(), lag)].enis)
}

// currentListing is the index of the last listing that is old enough, else of the
// first.
func (w *World) currentListing(now time.Time, lag time.Duration) int {
	for k := len(w.listings) - 1; k > 0; k-- {
		if !w.listings[k].from.Add(lag).After(now) {
			return k
		}
	}
	return 0
}
