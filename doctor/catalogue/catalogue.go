// Package catalogue describes every cause that the doctor knows: what it is, what it looks
// like, how to fix it, and how it relates to others. It is data with look-ups and holds no
// rule; package causes decides which cause a node has.
//
// Codes are never renamed and never reused. `doctor list`, `doctor explain`, `explain`,
// completion, docs/doctor and the screens all print from here.
package catalogue

import (
	"cnictl/daemon/api/cause"
	"cnictl/doctor/evidence"
)

// Severity ranks what a cause does to pods.
type Severity int

// Severities, the mildest first.
const (
	Info     Severity = iota
	Warning           // will cause trouble
	Error             // some pods cannot start or communicate
	Critical          // pods on several nodes, or every new pod of a node, fail now
)

// Confidence ranks how sure a finding is.
type Confidence int

// Confidences, the weakest first.
const (
	None      Confidence = iota // the mode can say nothing
	Suspected                   // only symptom and context
	Probable                    // the telling fact, but not all others
	Confirmed                   // everything the cause requires
)

// Risk is what applying a fix may do.
type Risk int

// Risks, the smallest first.
const (
	NoRisk      Risk = iota
	Restart          // restarts daemons; running pods keep their network
	Disruptive       // replaces pods or nodes
	Destructive      // deletes what cannot be brought back
)

// Entry is one cause.
type Entry struct {
	Code     string // group/name
	Title    string
	Severity Severity
	Shows    string // what a user or a log shows

	Required   []string                     // sources without which "no finding" is inconclusive
	Supporting []string                     // sources that make a finding surer
	Ceiling    map[evidence.Mode]Confidence // how sure each mode can be; a mode that is left out: Confirmed

	Fixes []Fix
	Links []string

	Upstream string // affected releases of upstream's daemon; empty: all
	Ours     string // why ours cannot have it; empty: it can

	Explains []string // causes that are consequences of this one on the same node
	Shown    bool     // never suppressed, whatever explains it

	Signatures []Signature
	Daemon     []cause.Code // codes of our daemon that point here
}

// Fix is one way out.
type Fix struct {
	Text       string
	Command    string // empty: nothing to type
	SideEffect string
	Risk       Risk
}

// Signature is a text that a log, an event or an error shows.
type Signature struct {
	Text  string   // an exact part of the line
	Where []string // sources
	Note  string   // when the text alone does not mean this cause
}
