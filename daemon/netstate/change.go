package netstate

import "slices"

// Action is what a [Change] does.
type Action uint8

const (
	SetUp      Action = iota + 1 // Link, by its index
	SetMTU                       // Link gets its MTU
	SetMAC                       // Link gets its MAC
	AddVLAN                      // Link is a VLAN device over its Parent
	DelLink                      // Link, by its index, or by its name if that is 0
	AddAddress                   // Address
	DelAddress                   //
	AddRoute                     // Route, unless one to that destination exists
	PutRoute                     // Route, replacing others to its destination
	DelRoute                     //
	AddRule                      // Rule
	DelRule                      //
)

// Change is one step from the kernel's state to the wanted one. It also counts as done if
// another program did it meanwhile.
type Change struct {
	Do      Action
	Link    Link // for an address or route: its link, for messages
	Address Address
	Route   Route
	Rule    Rule
}

// String says what differed from the wanted state.
func (c Change) String() string {
	switch c.Do {
	case SetUp:
		return "link " + c.Link.Name + " was down"
	case SetMTU:
		return "link " + c.Link.Name + " had another MTU"
	case SetMAC:
		return "link " + c.Link.Name + " had another MAC address"
	}
	was := " was missing"
	switch c.Do {
	case DelLink, DelAddress, DelRoute, DelRule:
		was = " was in the way"
	}
	return c.Object() + was
}

// Object names what is added or removed.
func (c Change) Object() string {
	switch c.Do {
	case AddAddress, DelAddress:
		return "address " + c.Address.Prefix.String() + " of link " + c.Link.Name
	case AddRoute, PutRoute, DelRoute:
		return "route " + c.Route.Over(c.Link.Name)
	case AddRule, DelRule:
		return "rule " + c.Rule.String()
	}
	return "link " + c.Link.Name
}

// Undo returns the change that reverts one that added something; false for others.
func (c Change) Undo() (Change, bool) {
	switch c.Do {
	case AddVLAN:
		c.Do, c.Link.Index = DelLink, 0
	case AddAddress:
		c.Do = DelAddress
	case AddRoute, PutRoute:
		c.Do = DelRoute
	case AddRule:
		c.Do = DelRule
	default:
		return Change{}, false
	}
	return c, true
}

// DiffRules returns the changes from the current policy rules to the wanted ones, additions
// first. It deletes only rules of ours: unwanted ones and duplicates.
func DiffRules(current, want []Rule, ours func(Rule) bool) (out []Change) {
	for _, r := range want {
		if !slices.Contains(current, r) {
			out = append(out, Change{Do: AddRule, Rule: r})
		}
	}
	kept := map[Rule]bool{}
	for _, r := range current {
		if !ours(r) {
			continue
		}
		if slices.Contains(want, r) && !kept[r] {
			kept[r] = true
			continue
		}
		out = append(out, Change{Do: DelRule, Rule: r})
	}
	return out
}
