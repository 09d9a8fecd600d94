package pages

import (
	"cmp"

	"cnictl/tui/keymap"
)

// Object is what is under the cursor of a page, or what the page is about.
type Object struct {
	Node   string
	ENI    string
	Pod    string // namespace/name
	IP     string
	Subnet string

	// Set is of lists of nodes: their doctor and what-if are about these nodes, or else about those that
	// the filter selects, not about the one under the cursor.
	Set    bool
	Nodes  string // comma-separated names; "" = all
	Filter string
}

// Pointing is a page with an object from which the app's keys lead to other screens. At returns false
// if there is none.
type Pointing interface {
	At(Context) (Object, bool)
}

// Jump returns the screen to which the key of an action leads from a page. It returns false for other
// actions, and if the page has no such object or is that screen.
func Jump(p Page, c Context, action string) (Open, bool) {
	from, ok := p.(Pointing)
	if !ok || !leads(action) {
		return Open{}, false
	}
	at, ok := from.At(c)
	if !ok {
		return Open{}, false
	}
	to, ok := at.open(action)
	return to, ok && to.Screen != p.Name()
}

// leads reports whether an action opens a screen of an object.
func leads(action string) bool {
	switch action {
	case keymap.ToNode, keymap.ToENI, keymap.Subnets, keymap.Trunks, keymap.Logs, keymap.WhatIf, keymap.Doctor:
		return true
	}
	return false
}

// open returns the screen of the object that an action opens.
func (o Object) open(action string) (Open, bool) {
	switch action {
	case keymap.ToNode:
		return Open{Screen: "node", Node: o.Node}, o.Node != ""
	case keymap.ToENI:
		return Open{Screen: "eni", Node: o.Node, ENI: o.ENI, IP: o.IP}, o.ENI != ""
	case keymap.Subnets:
		return Open{Screen: "subnets", Node: o.Node, Subnet: o.Subnet}, true
	case keymap.Trunks:
		return Open{Screen: "trunks", Node: o.Node}, true
	case keymap.Logs:
		return o.logs(), !o.Set || o.Node != ""
	}
	to := Open{Screen: "whatif", Node: o.Node}
	if action == keymap.Doctor {
		to = Open{Screen: "doctor", Node: o.Node, Pod: o.Pod}
	}
	if o.Set {
		to = Open{Screen: to.Screen, Nodes: o.Nodes, Filter: o.Filter}
	}
	return to, true
}

// logs returns the lines about the narrowest that is known: a pod, else an address, else an ENI.
func (o Object) logs() Open {
	to := Open{Screen: "logs", Node: o.Node}
	switch cmp.Or(o.Pod, o.IP, o.ENI) {
	case "":
	case o.Pod:
		to.Pod = o.Pod
	case o.IP:
		to.IP = o.IP
	default:
		to.ENI = o.ENI
	}
	return to
}
