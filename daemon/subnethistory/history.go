// Package subnethistory keeps EC2's counts of the free addresses of a node's subnets: one for
// each quarter of an hour of the last 14 days (pure).
package subnethistory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
)

const (
	// Span is how far back the readings go.
	Span = 14 * 24 * time.Hour
	// Apart is the time of which one reading is kept: the first.
	Apart = 15 * time.Minute
	// Most is the number of readings that are kept of one subnet.
	Most = int(Span / Apart)
	// MostSubnets is the number of subnets whose readings are kept.
	MostSubnets = 32
	// MostBytes bounds the encoded history: 16 KiB for each subnet.
	MostBytes = MostSubnets * 16 << 10
)

// Path is the file of the history of a daemon with this checkpoint. It has a different life: a
// daemon works without it.
func Path(checkpoint string) string { return strings.TrimSuffix(checkpoint, ".json") + "-subnets.json" }

// History holds the readings of several subnets. The zero value is empty.
type History struct{ rings map[string][]reading }

// reading is 8 bytes rather than the 32 of a time and a number: a node keeps more than a thousand of
// each subnet.
type reading struct{ at, free uint32 }

func (r reading) slot() uint32 { return r.at / uint32(Apart/time.Second) }

func (r reading) time() time.Time { return time.Unix(int64(r.at), 0).UTC() }

// Note adds a reading of a subnet and reports whether it is kept. If the clock was set back, the
// readings of the time that was never there are dropped.
func (h *History) Note(at time.Time, subnet string, free int) bool {
	seconds := at.Unix()
	if subnet == "" || len(subnet) > maxID || seconds <= 0 || seconds > 1<<32-1 || free < 0 || free > maxFree {
		return false
	}
	next := reading{uint32(seconds), uint32(free)}
	ring := h.rings[subnet]
	for n := len(ring); n > 0 && ring[n-1].at > next.at; n = len(ring) {
		ring = ring[:n-1]
	}
	if n := len(ring); n > 0 && ring[n-1].slot() == next.slot() {
		h.rings[subnet] = ring
		return false
	}
	for len(ring) > 0 && ring[0].slot()+uint32(Most) <= next.slot() {
		ring = ring[1:]
	}
	if h.rings == nil {
		h.rings = map[string][]reading{}
	}
	if len(ring) == 0 && h.rings[subnet] == nil && len(h.rings) >= MostSubnets && !h.forget(next) {
		return false
	}
	if len(ring) == cap(ring) { // append would double the memory
		ring = append(make([]reading, 0, len(ring)+len(ring)/8+8), ring...)
	}
	h.rings[subnet] = append(ring, next)
	return true
}

const (
	maxID   = 64      // bytes of a subnet's ID
	maxFree = 1 << 16 // addresses of the largest subnet
)

// forget makes room for a new subnet: it drops the one that was read last the longest time ago, unless
// all are current.
func (h *History) forget(now reading) bool {
	last := func(id string) uint32 { return h.rings[id][len(h.rings[id])-1].slot() }
	oldest := slices.MinFunc(slices.Sorted(maps.Keys(h.rings)), func(a, b string) int { return cmp.Compare(last(a), last(b)) })
	if last(oldest)+1 >= now.slot() {
		return false
	}
	delete(h.rings, oldest)
	return true
}

// Since returns the time of the first reading of a subnet; false if there is none.
func (h *History) Since(subnet string) (time.Time, bool) {
	if ring := h.rings[subnet]; len(ring) > 0 {
		return ring[0].time(), true
	}
	return time.Time{}, false
}

// Of returns the readings of a subnet, oldest first.
func (h *History) Of(subnet string) iter.Seq2[time.Time, int] {
	return func(yield func(time.Time, int) bool) {
		for _, r := range h.rings[subnet] {
			if !yield(r.time(), int(r.free)) {
				return
			}
		}
	}
}

// After returns the history with all of this one's readings added to those of an earlier one, which
// must not be used afterwards.
func (h *History) After(earlier *History) *History {
	for _, id := range slices.Sorted(maps.Keys(h.rings)) {
		for at, free := range h.Of(id) {
			earlier.Note(at, id, free)
		}
	}
	return earlier
}

// Document returns the history as the daemon serves it and writes it into its file.
func (h *History) Document() introspect.NodeSubnetHistory {
	doc := introspect.NodeSubnetHistory{
		APIVersion: introspect.APIVersion, Kind: introspect.KindSubnetHistory, Items: []introspect.SubnetReadings{},
	}
	for _, id := range slices.Sorted(maps.Keys(h.rings)) {
		doc.Items = append(doc.Items, introspect.ReadingsOf(id, h.Of(id)))
	}
	return doc
}

// Decode reads the text of a document. It accepts only what this package writes, so that what it
// returns is the whole history.
func Decode(text []byte) (*History, error) {
	var doc introspect.NodeSubnetHistory
	switch err := json.Unmarshal(text, &doc); {
	case err != nil:
		return nil, err
	case doc.Kind != introspect.KindSubnetHistory || doc.APIVersion != introspect.APIVersion:
		return nil, fmt.Errorf("kind %.40q of %.40q where %s of %s was expected",
			doc.Kind, doc.APIVersion, introspect.KindSubnetHistory, introspect.APIVersion)
	case len(doc.Items) > MostSubnets:
		return nil, fmt.Errorf("%d subnets, at most %d are possible", len(doc.Items), MostSubnets)
	}
	h := &History{}
	for _, item := range doc.Items {
		if h.rings[item.Subnet] != nil {
			return nil, fmt.Errorf("subnet %.40q is there twice", item.Subnet)
		}
		kept := 0
		for at, free := range item.All() {
			if !h.Note(at, item.Subnet, free) {
				return nil, fmt.Errorf("subnet %.40q: reading %d is not after the one before it", item.Subnet, kept+1)
			}
			kept++
		}
		if kept != len(item.Free) || kept != len(h.rings[item.Subnet]) || len(item.Later) != max(kept-1, 0) {
			return nil, fmt.Errorf("subnet %.40q: %d of %d readings are possible", item.Subnet, len(h.rings[item.Subnet]), len(item.Free))
		}
	}
	return h, nil
}
