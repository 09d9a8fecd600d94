package store

import (
	"slices"
	"time"
)

// View is the state of the fleet at one moment. It never changes.
type View struct {
	Generation uint64    // increases with every change
	At         time.Time // of the newest sample
	Nodes      []*Node   // in the order of byName
	Totals     Totals
	Subnets    []SubnetUse // by ID
}

// Least is a sum over the nodes that report its terms.
type Least struct {
	N     int
	Known bool // false if no node reports it; N is then meaningless
	Bound bool // some node does not report it: N is a lower bound
}

// Value is the sum; nil if it is not known.
func (l Least) Value() *int {
	if !l.Known {
		return nil
	}
	return &l.N
}

// Activity is what the daemons did since they started.
type Activity struct {
	Waiting   Least // ADDs that wait now
	ADDs      Least
	Failed    Least // ADDs without an address
	DELs      Least
	EC2       Least // calls
	EC2Errors Least // calls that failed

	Nodes   int  // that report any of it
	Partial bool // a node with a daemon does not report all of it
}

// Totals are sums over the fleet.
type Totals struct {
	Nodes    int
	Live     int // answered
	Partial  int // partly read, or shown with an older sample
	Down     int // could not be read, or lacks the daemon it should run
	Unasked  int // not read yet
	NoDaemon int // runs no daemon and needs none (Fargate, Windows)

	Assigned int
	Cooling  Least
	Free     int
	Held     int
	Limit    *int // nil while the limit of any node is unknown
	Room     *int // that pods could still get; nil while that of any node is unknown
	Pods     *int // max-pods of all nodes
	Pools    int  // nodes that report a pool

	Activity Activity

	ENIs     Least
	ENILimit *int
	Trunks   int
	Branches int
	BranchOf int // branch ENI limit of the nodes with a trunk

	Errors   int // nodes with a problem of severity error or critical
	Warnings int

	Complete bool // no node is missing from the sums, which are lower bounds otherwise
}

// Node returns a node by name; nil if none.
func (v *View) Node(name string) *Node {
	if i, found := find(v.Nodes, name); found {
		return v.Nodes[i]
	}
	return nil
}

// WithReadings returns a copy whose subnets have these readings, by ID.
func (v *View) WithReadings(of map[string]Readings) *View {
	out := *v
	out.Subnets = slices.Clone(v.Subnets)
	for i := range out.Subnets {
		out.Subnets[i].Readings = of[out.Subnets[i].ID]
	}
	return &out
}

// Since returns the nodes that are new or have changed since an earlier View, and the names of
// those that left. A node that left and came back is in both. Both are in the order of Nodes.
func (v *View) Since(before *View) (changed []*Node, gone []string) {
	old := before.Nodes
	for _, n := range v.Nodes {
		for len(old) > 0 && byName(old[0], n.Metadata.Name) < 0 {
			gone, old = append(gone, old[0].Metadata.Name), old[1:]
		}
		if len(old) > 0 && byName(old[0], n.Metadata.Name) == 0 {
			was := old[0]
			old = old[1:]
			if was == n {
				continue
			}
			if was.life != n.life {
				gone = append(gone, n.Metadata.Name)
			}
		}
		changed = append(changed, n)
	}
	for _, n := range old {
		gone = append(gone, n.Metadata.Name)
	}
	return changed, gone
}
