package store

import (
	"cmp"

	"cnictl/daemon/api/introspect"
)

// TrunkState says how a node stands with security groups for pods.
type TrunkState string

// States of a node that has to do with trunk ENIs.
const (
	TrunkAttached    TrunkState = "attached"
	TrunkAwaited     TrunkState = "awaited"       // on, supported, no trunk yet
	TrunkUnsupported TrunkState = "not supported" // on, but the type cannot trunk
	TrunkOff         TrunkState = "off"           // a trunk or branch capacity is there, the setting is off
	TrunkUntold      TrunkState = "not told"      // Kubernetes shows capacity, the daemon says nothing
)

// TrunkUse is a node that has to do with trunk ENIs.
type TrunkUse struct {
	Node, Type, Zone string // type and zone "": not known
	ENI              string // the trunk, "" = none
	State            TrunkState
	Used, Limit      *int // branch ENIs in use, of those the type can have
	Advertised       *int // capacity of vpc.amazonaws.com/pod-eni on the Node object
	Stale            bool // the figures are not of a whole answer of now
}

// TrunkOf says how a node stands; ok is false of one that has nothing to do with trunks.
func TrunkOf(n *Node) (_ TrunkUse, ok bool) {
	var t *introspect.Trunk
	u := TrunkUse{Node: n.Metadata.Name, Stale: n.State != introspect.StateLive}
	if n.Summary != nil {
		t, u.Type = n.Summary.Trunk, n.Summary.InstanceType
	}
	if n.Object != nil {
		u.Type, u.Zone, u.Advertised = cmp.Or(u.Type, n.Object.InstanceType), n.Object.Zone, n.Object.BranchENIs
	}
	advertised := u.Advertised != nil && *u.Advertised > 0
	switch {
	case t == nil && !advertised, t != nil && !t.Enabled && t.ENIID == "" && !advertised:
		return u, false
	case t == nil:
		u.State, u.Limit = TrunkUntold, u.Advertised
		return u, true
	}
	u.ENI, u.Used, u.Limit = t.ENIID, t.BranchUsed, t.BranchLimit
	if u.Limit == nil {
		u.Limit = u.Advertised
	}
	switch {
	case t.ENIID != "" && t.Enabled:
		u.State = TrunkAttached
	case !t.Enabled:
		u.State = TrunkOff
	case t.Supported != nil && !*t.Supported:
		u.State = TrunkUnsupported
	default:
		u.State = TrunkAwaited
	}
	return u, true
}

// Trunks are the nodes that have to do with trunk ENIs, by name.
func (v *View) Trunks() []TrunkUse {
	var out []TrunkUse
	for _, n := range v.Nodes {
		if u, ok := TrunkOf(n); ok {
			out = append(out, u)
		}
	}
	return out
}

// Share is how much of the branch ENIs is in use; ok is false while it is not known.
func (u TrunkUse) Share() (_ float64, ok bool) {
	if u.Used == nil || u.Limit == nil || *u.Limit <= 0 {
		return 0, false
	}
	return float64(*u.Used) / float64(*u.Limit), true
}

// Left is how many branch ENIs can still be made, null while it is not known.
func (u TrunkUse) Left() *int {
	if u.Used == nil || u.Limit == nil {
		return nil
	}
	left := max(*u.Limit-*u.Used, 0)
	return &left
}

// Unclaimed is how many branch ENIs are in use beyond the pods that show one: those of
// pods that have just gone cool down, and others' annotations are on their way. The
// controller tells nobody. Null while it is not known.
func (u TrunkUse) Unclaimed(pods int) *int {
	if u.Used == nil {
		return nil
	}
	rest := max(*u.Used-pods, 0)
	return &rest
}
