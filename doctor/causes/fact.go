package causes

import (
	"fmt"
	"time"

	"cnictl/doctor/evidence"
)

// State is what the evidence says of a statement.
type State int8

// States. The zero value is "unread", so that a forgotten fact never decides.
const (
	Unread State = iota // its source is missing, or does not say
	No
	Yes
)

// Fact is a statement about one value of one source.
type Fact struct {
	State    State     `json:"-"`
	Source   string    `json:"source"`
	Path     string    `json:"path"`
	Value    string    `json:"value"`
	Expected string    `json:"expected"`         // what a healthy node shows
	At       time.Time `json:"observedAt"`       // of the reading, or of the line
	Reason   string    `json:"reason,omitempty"` // why it is unread
}

// read states a fact of a source: unread where the source is missing, else what judge says.
// judge fills in what it looked at.
func read[T any](s evidence.Source[T], id string, at time.Time, judge func(content T, f *Fact)) Fact {
	f := Fact{Source: id, At: at}
	if !s.OK() {
		f.Reason = s.Missing
		return f
	}
	judge(s.Content, &f)
	return f
}

// holds sets the state of a fact.
func (f *Fact) holds(yes bool) {
	f.State = No
	if yes {
		f.State = Yes
	}
}

// is sets value, expectation and state at once.
func (f *Fact) is(yes bool, value any, expected string) {
	f.Value, f.Expected = fmt.Sprint(value), expected
	f.holds(yes)
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

// either is the first fact that holds, else the first that is unread, else the first.
func either(facts ...Fact) Fact {
	for _, want := range []State{Yes, Unread} {
		for _, f := range facts {
			if f.State == want {
				return f
			}
		}
	}
	return facts[0]
}
