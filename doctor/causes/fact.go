package causes

import (
	"fmt"
	"slices"
	"time"

	"cnictl/doctor/evidence"
)

// State is what the evidence says about a statement.
type State int8

// States. The zero value is Unread, so a fact without an answer never decides.
const (
	Unread State = iota // its source is missing or does not say
	No
	Yes
)

func stateOf(yes bool) State {
	if yes {
		return Yes
	}
	return No
}

// Fact is a statement about one value of one source.
type Fact struct {
	State    State
	Source   string    // id
	Path     string    // within the source
	Value    string    // as read
	Expected string    // if nothing is wrong
	At       time.Time // of the reading, or of the line
	Reason   string    // why it is unread

	onlyIfTrue bool // if it does not hold, nothing follows
}

// On states something about a source. It is unread if the source is missing or the judge does
// not know, otherwise what the judge says about the content. The value is for display.
func On[T any](c *Case, s evidence.Source[T], id, path, expected string, judge func(T) (value any, s State)) Fact {
	f := Fact{Source: id, Path: path, Expected: expected, At: c.Now}
	if !s.OK() {
		f.Reason = s.Missing
		return f
	}
	value, state := judge(s.Content)
	if f.State = state; state == Unread {
		f.Reason = "not in what was read"
		return f
	}
	f.Value = fmt.Sprint(value)
	return f
}

// Known states something derived from sources that were read.
func (c *Case) Known(id, path, expected string, value any, yes bool) Fact {
	return Fact{State: stateOf(yes), Source: id, Path: path, Value: fmt.Sprint(value), Expected: expected, At: c.Now}
}

// Unread returns a fact about which nothing was read.
func (c *Case) Unread(id, path, expected, reason string) Fact {
	return Fact{Source: id, Path: path, Expected: expected, At: c.Now, Reason: reason}
}

// Not negates a fact. It keeps Expected, which describes the value as read.
func Not(f Fact) Fact {
	switch f.State {
	case Yes:
		f.State = No
	case No:
		f.State = Yes
	}
	return f
}

// all returns the weakest of several states: No before Unread before Yes.
func all(facts ...Fact) State {
	out := Yes
	for _, f := range facts {
		switch f.State {
		case No:
			return No
		case Unread:
			out = Unread
		}
	}
	return out
}

// Both returns the weaker of several facts: the first that does not hold, else the first unread
// one, else the first.
func Both(facts ...Fact) Fact { return first(facts, No, Unread) }

// Either returns the stronger of several facts: the first that holds, else the first unread one,
// else the first.
func Either(facts ...Fact) Fact {
	if f := first(facts, Yes); f.State == Yes {
		return f
	}
	if weighty := slices.DeleteFunc(slices.Clone(facts), func(f Fact) bool { return f.onlyIfTrue }); len(weighty) > 0 {
		facts = weighty
	}
	return first(facts, Unread)
}

// onlyIfTrue makes a fact count only if it holds.
func onlyIfTrue(f Fact) Fact {
	f.onlyIfTrue = true
	return f
}

// orElse returns main, unless other holds or is the only one that was read.
func orElse(main, other Fact) Fact {
	if main.State != Yes && (other.State == Yes || main.State == Unread && other.State == No && !other.onlyIfTrue) {
		return other
	}
	return main
}

func first(facts []Fact, wanted ...State) Fact {
	for _, state := range wanted {
		if at := slices.IndexFunc(facts, func(f Fact) bool { return f.State == state }); at >= 0 {
			return facts[at]
		}
	}
	return facts[0]
}

// lasting returns a fact that must hold in every reading.
func (c *Case) lasting(f func(*Case) Fact) Fact {
	if c.Earlier == nil {
		return f(c)
	}
	return Both(f(c), f(c.Earlier))
}
