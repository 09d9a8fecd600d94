package introspect

import (
	"iter"
	"time"
)

// NodeSubnetHistory answers /v1/subnet-history: EC2's earlier counts of the free addresses of the
// subnets in which this node may create ENIs.
type NodeSubnetHistory struct {
	APIVersion string           `json:"apiVersion" null:"never"` // version of the document
	Kind       string           `json:"kind" null:"never"`       // NodeSubnetHistory
	Items      []SubnetReadings `json:"items"`                   // by subnet
}

// SubnetReadings are EC2's counts of the free addresses of one subnet, oldest first. They are the
// same in documents, in the daemon's file and in recordings.
type SubnetReadings struct {
	Subnet string    `json:"subnet" null:"never"` // subnet-…
	First  time.Time `json:"first"`               // time of the first count
	Later  []int64   `json:"later"`               // seconds from each count to the next, one fewer than there are counts
	Free   []int     `json:"free"`                // the counts
}

// Bounds of what SubnetReadings.All returns.
const (
	longestLater = 10 * 365 * 24 * 3600 // seconds between two counts
	mostFree     = maxSmall             // addresses
)

// ReadingsOf encodes the readings of a subnet, oldest first.
func ReadingsOf(subnet string, all iter.Seq2[time.Time, int]) SubnetReadings {
	out := SubnetReadings{Subnet: subnet, Later: []int64{}, Free: []int{}}
	var last time.Time
	for at, free := range all {
		if len(out.Free) == 0 {
			out.First = at.UTC()
		} else {
			out.Later = append(out.Later, at.Unix()-last.Unix())
		}
		out.Free, last = append(out.Free, free), at
	}
	return out
}

// All returns the readings, oldest first. It ends at the first that is malformed.
func (r SubnetReadings) All() iter.Seq2[time.Time, int] {
	return func(yield func(time.Time, int) bool) {
		at := r.First
		for i, free := range r.Free {
			if i > 0 {
				if i > len(r.Later) || r.Later[i-1] < 0 || r.Later[i-1] > longestLater {
					return
				}
				at = at.Add(time.Duration(r.Later[i-1]) * time.Second)
			}
			if free < 0 || free > mostFree || !yield(at, free) {
				return
			}
		}
	}
}
