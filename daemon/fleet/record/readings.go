package record

import (
	"maps"
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

// readings are EC2's counts of a subnet's free addresses before an entry: those since the
// recording began and, if it continues an earlier one, those of that. Each key frame has them, so
// that a player knows the trend wherever it starts.
type readings = introspect.SubnetReadings

func readingsOf(subnet string, of store.Readings) readings {
	return introspect.ReadingsOf(subnet, func(yield func(time.Time, int) bool) {
		for _, r := range of {
			if !yield(r.At, r.Free) {
				return
			}
		}
	})
}

// upTo returns the readings that are not later than a time.
func upTo(r readings, at time.Time) (out store.Readings) {
	for when, free := range r.All() {
		if when.After(at) {
			break
		}
		out = append(out, store.Reading{At: when, Free: free})
	}
	return out
}

// Continue adds readings from before the recording, by subnet. It comes before the first sample.
func (w *Writer) Continue(earlier map[string]store.Readings, at time.Time) error {
	for id, of := range earlier {
		w.readings[id] = slices.Clip(of)
	}
	return w.writeReadings(at)
}

// hear adds what a node reports about its subnets.
func (w *Writer) hear(n document.NodeIPAM) {
	if n.Summary == nil {
		return
	}
	for _, s := range n.Summary.Subnets {
		if s.ID == "" || s.Available == nil || s.AsOf == nil || w.readings[s.ID] == nil && len(w.readings) >= maxNodes {
			continue
		}
		w.readings[s.ID] = w.readings[s.ID].Add(store.Reading{At: *s.AsOf, Free: *s.Available})
	}
}

func (w *Writer) writeReadings(at time.Time) error {
	var all []readings
	for _, id := range slices.Sorted(maps.Keys(w.readings)) {
		if of := w.readings[id]; len(of) > 0 {
			all = append(all, readingsOf(id, of))
		}
	}
	if len(all) == 0 {
		return nil
	}
	if w.names != nil {
		w.names.Learn(all)
	}
	return w.line(entry{At: stamp(at), Readings: all})
}

// Readings returns EC2's counts of the free addresses of all subnets up to the current position,
// including those before the recording. Recordings of older versions have them only in their
// samples, which it then reads.
func (p *Player) Readings() map[string]store.Readings {
	out := map[string]store.Readings{}
	if p.index.readings {
		for _, u := range p.View().Subnets {
			out[u.ID] = u.Readings
		}
		return out
	}
	s, now := store.New(), p.Now()
	p.Samples(func(one Sample) bool {
		switch {
		case one.At.After(now):
			return false
		case one.Node != nil:
			s.PutAt(*one.Node, one.At)
		}
		return true
	})
	for _, u := range s.View().Subnets {
		out[u.ID] = u.Readings
	}
	return out
}
