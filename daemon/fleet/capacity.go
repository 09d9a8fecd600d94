package fleet

import "cnictl/daemon/api/introspect"

// MaxPods is kubelet's setting as the daemon reports it, else as Kubernetes does; null: not
// known.
func MaxPods(n introspect.NodeIPAM) *int {
	if n.Summary != nil && n.Summary.MaxPods != nil && n.Summary.MaxPods.Value != nil {
		return n.Summary.MaxPods.Value
	}
	if n.Object != nil {
		return n.Object.MaxPods
	}
	return nil
}

// Capacity is how many addresses of a card pods can have at most: those that it can hold, or
// max-pods where that is lower, which byMaxPods says; null: not known. Where the card already
// holds far more than max-pods, it is what the card can hold.
func Capacity(n introspect.NodeIPAM, c introspect.CardSummary) (most *int, byMaxPods bool) {
	const prefix = 16 // the last one may exceed what pods can use
	pods := MaxPods(n)
	if c.AddressLimit == nil || pods == nil || *pods <= 0 || *pods >= *c.AddressLimit || c.Total >= *pods+prefix || c.Card != 0 {
		return c.AddressLimit, false
	}
	return pods, true
}

// room is how many addresses a card could get beyond those it holds, as far as pods can use
// them; null: not known.
func room(n introspect.NodeIPAM, c introspect.CardSummary) *int {
	if c.AddressLimit == nil {
		return nil
	}
	most := *c.AddressLimit
	if pods := MaxPods(n); pods != nil && *pods > 0 {
		most = min(most, *pods)
	}
	return new(max(0, most-c.Total))
}
