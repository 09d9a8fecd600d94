package netstate

import "slices"

// State is the state of a network namespace, or a part of it: of one family or both, with
// routes of all tables.
type State struct {
	Links     []Link
	Addresses []Address
	Routes    []Route
	Rules     []Rule
}

// Link finds a link by its index.
func (s *State) Link(index int32) (Link, bool) {
	i := slices.IndexFunc(s.Links, func(l Link) bool { return l.Index == index })
	if i < 0 {
		return Link{}, false
	}
	return s.Links[i], true
}
