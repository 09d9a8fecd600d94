package fakeaws

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// metadataAction is the action name of requests to the metadata service.
const metadataAction = "IMDS"

const everyAction = "*"

// Rule is a fault and the calls that it applies to: those of Action that match Params or
// Path, have a number from First to Last and are drawn by Probability. Calls are numbered
// from 1 since the rule was added, separately for each action (metadata path); calls that
// meet another fault are numbered too.
type Rule struct {
	ID     string `json:"id,omitempty"` // default: counted, "fault-1"
	Action string `json:"action"`       // an EC2 action, "*" for every one, "IMDS" for metadata requests

	// Path is the metadata path below /latest, without trailing slash, that the rule
	// is limited to; with a * at its end all that begin so. "": every path.
	Path string `json:"path,omitempty"`
	// Params limits the rule to EC2 calls with these parameters, as
	// {"NetworkInterfaceId": "eni-…"}.
	Params map[string]string `json:"params,omitempty"`

	First int `json:"first,omitempty"` // number of the first call; 0: 1
	Last  int `json:"last,omitempty"`  // number of the last call; 0: no end

	// Probability of each call, in (0, 1]; 0 means 1. What becomes of a call depends
	// on Seed, its action (path) and its number alone.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`

	Fault
}

const maxRules = 1000 // a control client that loops must not fill memory

func (r *Rule) check() error {
	if _, known := actions[r.Action]; !known && r.Action != everyAction && r.Action != metadataAction {
		return fmt.Errorf("action %q: an EC2 action, %q or %q is accepted", r.Action, everyAction, metadataAction)
	}
	switch {
	case r.First < 0 || r.Last < 0 || r.Last != 0 && r.Last < r.First:
		return fmt.Errorf("calls %d to %d: numbers from 1, in order, are accepted", r.First, r.Last)
	case !(r.Probability >= 0 && r.Probability <= 1):
		return fmt.Errorf("probability %v: 0 to 1 is accepted", r.Probability)
	case r.Path != "" && r.Action != metadataAction:
		return fmt.Errorf("path %q: only with action %q", r.Path, metadataAction)
	case len(r.Params) > 0 && r.Action == metadataAction:
		return fmt.Errorf("params with action %q: path is accepted", metadataAction)
	}
	return r.Fault.check(r.Action)
}

// rule is a Rule with the calls it has counted.
type rule struct {
	Rule
	seen map[string]int // by action or path
}

func (r *rule) fits(action string, params map[string]string) bool {
	if r.Action != action && !(r.Action == everyAction && action != metadataAction) {
		return false
	}
	for k, v := range r.Params {
		if have, there := params[k]; !there || have != v {
			return false
		}
	}
	return true
}

func (r *rule) fitsPath(path string) bool {
	if start, open := strings.CutSuffix(r.Path, "*"); open {
		return strings.HasPrefix(path, start)
	}
	return r.Path == "" || r.Path == path
}

// next numbers a call and reports whether it meets the fault.
func (r *rule) next(name string) bool {
	r.seen[name]++
	n := r.seen[name]
	if n < r.First || r.Last != 0 && n > r.Last {
		return false
	}
	return r.Probability == 0 || chance(r.Seed, name, n) < r.Probability
}

// AddFault appends a rule and returns its id. If a call meets several rules, the oldest
// applies.
func (w *World) AddFault(r Rule) (id string, err error) {
	if err := r.check(); err != nil {
		return "", fmt.Errorf("add fault: %w", err)
	}
	w.wire.do(func() {
		if r.ID == "" {
			r.ID = w.wire.freeRuleID()
		}
		switch {
		case w.wire.ruleAt(r.ID) >= 0:
			err = fmt.Errorf("add fault: there is a fault %q already", r.ID)
		case len(w.wire.rules) >= maxRules:
			err = fmt.Errorf("add fault: there are %d faults already", maxRules)
		default:
			r.Params = maps.Clone(r.Params)
			w.wire.rules = append(w.wire.rules, &rule{r, make(map[string]int)})
		}
	})
	return r.ID, err
}

// RemoveFaults removes all rules and the functions set by SetFaults and SetIMDSFaults.
func (w *World) RemoveFaults() {
	w.wire.do(func() { w.wire.rules, w.wire.fault, w.wire.imdsFault = nil, nil, nil })
}

// Faults lists the rules in the order they were added.
func (w *World) Faults() []Rule {
	return locked(&w.wire, func() []Rule {
		out := make([]Rule, 0, len(w.wire.rules))
		for _, r := range w.wire.rules {
			c := r.Rule
			c.Params = maps.Clone(c.Params)
			out = append(out, c)
		}
		return out
	})
}

func (l *wire) ruleAt(id string) int {
	return slices.IndexFunc(l.rules, func(r *rule) bool { return r.ID == id })
}

func (l *wire) freeRuleID() string {
	for {
		l.lastRule++
		if id := fmt.Sprintf("fault-%d", l.lastRule); l.ruleAt(id) < 0 {
			return id
		}
	}
}

// faultFor numbers a call and returns its fault, or nil.
func (w *World) faultFor(name string, nth int, params map[string]string) *Fault {
	return locked(&w.wire, func() *Fault {
		var met *Fault
		if w.wire.fault != nil {
			met = w.wire.fault(name, nth)
		}
		for _, r := range w.wire.rules {
			if r.fits(name, params) && r.next(name) && met == nil {
				f := r.Fault
				met = &f
			}
		}
		return met
	})
}

// imdsFaultFor numbers a metadata request and returns its fault, which may be zero.
func (w *World) imdsFaultFor(path string) Fault {
	return locked(&w.wire, func() Fault {
		w.wire.imdsCounts[path]++
		var met Fault
		if w.wire.imdsFault != nil {
			met.Status = w.wire.imdsFault(path, w.wire.imdsCounts[path])
		}
		for _, r := range w.wire.rules {
			if r.fits(metadataAction, nil) && r.fitsPath(path) && r.next(path) && met == (Fault{}) {
				met = r.Fault
			}
		}
		return met
	})
}
