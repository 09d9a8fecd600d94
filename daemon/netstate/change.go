package netstate

import "slices"

// Action is what a [Change] does.
type Action uint8

const (
	SetUp      Action = iota + 1 // Link, by its index
	SetMTU                       // Link has the MTU that it gets
	SetMAC                       // Link has the MAC that it gets
	AddVLAN                      // Link is a VLAN device over its Parent
	DelLink                      // Link, by its index, or by its name if that is 0
	AddAddress                   // Address
	DelAddress                   //
	AddRoute                     // Route, unless there is one to that destination
	PutRoute                     // Route, in place of others to its destination
	DelRoute                     //
	AddRule                      // Rule
	DelRule                      //
)

// Change is one step from what the kernel has to what is wanted. It is done too when
// somebody else did it meanwhile.
type Change struct {
	Do      Action
	Link    Link // of an address or route: the link that it is on, for people
	Address Address
	Route   Route
	Rule    Rule
}

// String says what was not as wanted.
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

// Object names what is made or removed.
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

// Undo is the change that takes one back which made something; false for others.
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

// DiffRules leads from the current policy rules to the wanted ones, additions first. Only
// rules of ours go: those that are not wanted, and what is there twice.
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
