package causes

import (
	"fmt"
	"slices"
	"time"

	"cnictl/doctor/evidence"
)

// State is what the evidence says of a statement.
type State int8

// States. The zero value is Unread, so that a fact without an answer never decides.
const (
	Unread State = iota // its source is missing, or does not say
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
	Expected string    // where nothing is wrong
	At       time.Time // of the reading, or of the line
	Reason   string    // why it is unread

	lenient bool
	moot    bool // nothing follows from its not holding
}

// lenient makes a required fact one that may be unread: the finding is then probable.
func lenient(f Fact) Fact {
	f.lenient = true
	return f
}

// fact states something about a source: unread where the source is missing or the judge
// does not know, else what the judge says of its content. The value is for people.
func fact[T any](c *Case, s evidence.Source[T], id, path, expected string, judge func(T) (value any, s State)) Fact {
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

// known states what was derived from sources that were read.
func (c *Case) known(id, path, expected string, value any, yes bool) Fact {
	return Fact{State: stateOf(yes), Source: id, Path: path, Value: fmt.Sprint(value), Expected: expected, At: c.Now}
}

// unread is a fact that nothing was read about.
func (c *Case) unread(id, path, expected, reason string) Fact {
	return Fact{Source: id, Path: path, Expected: expected, At: c.Now, Reason: reason}
}

// not is the contrary of a fact. Its expectation stays, for the fact is worded as it is read.
func not(f Fact) Fact {
	switch f.State {
	case Yes:
		f.State = No
	case No:
		f.State = Yes
	}
	return f
}

// all is the weakest of several: No before Unread before Yes.
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

// both is the weaker of several facts: the first that does not hold, else the first that is
// unread, else the first.
func both(facts ...Fact) Fact { return first(facts, No, Unread) }

// either is the stronger of several facts: the first that holds, else the first that is
// unread, else the first.
func either(facts ...Fact) Fact {
	if f := first(facts, Yes); f.State == Yes {
		return f
	}
	if weighty := slices.DeleteFunc(slices.Clone(facts), func(f Fact) bool { return f.moot }); len(weighty) > 0 {
		facts = weighty
	}
	return first(facts, Unread)
}

// moot makes a fact one that counts only if it holds.
func moot(f Fact) Fact {
	f.moot = true
	return f
}

// orElse is the first fact, unless the other one holds or is all that was read.
func orElse(main, other Fact) Fact {
	if main.State != Yes && (other.State == Yes || main.State == Unread && other.State == No && !other.moot) {
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

// lasting is a fact that must hold in every reading.
func (c *Case) lasting(f func(*Case) Fact) Fact {
	if c.Earlier == nil {
		return f(c)
	}
	return both(f(c), f(c.Earlier))
}
