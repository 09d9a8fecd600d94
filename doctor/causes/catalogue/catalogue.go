// Package catalogue describes every cause that the doctor knows: what it is, what it looks like,
// how to fix it, and how it relates to others. It reads them from the pages in docs/doctor, and holds
// look-ups, no rules.
//
// Codes are never renamed or reused. doctor list, doctor explain, explain and completion print from
// here.
package catalogue

//go:generate go test -run ^(TestDocumentation|TestTexts)$ -count=1 . -update

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/api/cause"
)

// Severity ranks the harm that a cause does to pods.
type Severity int

// Severities, mildest first.
const (
	Info     Severity = iota
	Warning           // will cause trouble
	Error             // some pods cannot start or communicate
	Critical          // pods on several nodes, or every new pod of a node, fail now
)

var severities = []string{"info", "warning", "error", "critical"}

func (s Severity) String() string { return severities[s] }

// Confidence ranks how certain a finding is.
type Confidence int

// Confidences, weakest first.
const (
	None      Confidence = iota // nothing can be said
	Suspected                   // only the symptom and its context
	Probable                    // the decisive fact, but not all others
	Confirmed                   // everything that the cause requires
)

var confidences = []string{"none", "suspected", "probable", "confirmed"}

func (c Confidence) String() string { return confidences[c] }

// Risk ranks what applying a fix may do.
type Risk int

// Risks, smallest first.
const (
	NoRisk      Risk = iota
	Restart          // restarts daemons; running pods keep their network
	Disruptive       // replaces pods or nodes
	Destructive      // deletes what cannot be brought back
)

var risks = []string{"none", "restart", "disruptive", "destructive"}

func (r Risk) String() string { return risks[r] }

// Modes returns the modes of reading a node, named as in package evidence.
func Modes() []string { return []string{"node", "laptop", "bundle", "cluster"} }

// Ceilings are the highest confidences that the modes can reach, in their order.
type Ceilings [4]Confidence

// Of returns the ceiling of a mode, None if the mode does not exist.
func (c Ceilings) Of(mode string) Confidence {
	if at := slices.Index(Modes(), mode); at >= 0 {
		return c[at]
	}
	return None
}

// Entry is one cause.
type Entry struct {
	Code     string // group/name
	Title    string
	Severity Severity
	Shows    string // what users or logs show

	Required   []string // sources without which "no finding" is inconclusive
	Supporting []string // sources that make a finding surer
	Ceiling    Ceilings

	Check Check // how to distinguish it from similar causes
	Fixes []Fix
	Links []string

	Upstream string // affected releases of upstream's daemon; all if empty
	Ours     string // why our daemon cannot have it; empty if it can

	Explains []string // causes that are consequences of this one on the same node
	Always   bool     // reported even if another cause explains it

	Signatures []Signature
	Daemon     []cause.Code // codes of our daemon that point here
}

// SandboxTime is how long a pod normally waits for an address: an interface may have to be attached.
const SandboxTime = 10 * time.Second

// BranchTime is how long the resource controller normally takes for the annotation of a pod.
const BranchTime = time.Minute

// Check is what to look at next.
type Check struct {
	Text    string
	Command string
}

// Fix is one remedy.
type Fix struct {
	Text       string
	Command    string // empty if there is none
	SideEffect string
	Risk       Risk
}

// Signature is a text that a log, an event or an error shows.
type Signature struct {
	Text  string   // parts of a line; "…" separates them
	Where []string // sources
	Note  string   // when the text alone does not mean this cause
	Fix   string   // the fix that the text calls for, as fixNamed takes it; the first of the cause if empty
}

// Symptom is a text or daemon code that many causes share, or that is normal.
type Symptom struct {
	Title      string
	Meaning    string
	Check      Check
	Fixes      []Fix    // nil if those of the cause apply
	Causes     []string // codes, or group/*
	Signatures []Signature
	Daemon     []cause.Code

	Component string // that prints it; empty if several do
	Normal    bool   // reports no fault
	wraps     bool   // says nothing beside what it wraps
	foreign   bool   // the CNI has no part in it
	exact     []Signature
	ours      []Signature // which anybody says: only in lines of the CNI's programs
}

// Group holds the causes whose codes share the first part.
type Group struct {
	Name    string
	Title   string
	Entries []Entry
}

// GroupMigrate is the group that only cnictl migrate check examines.
const GroupMigrate = "migrate"

// GroupObserved holds the kinds of observations: what differs from what should be, whatever the cause.
// A kind is reported under its own code if no cause explains it.
const GroupObserved = "obs"

// Groups returns the groups in the order of the documentation.
func Groups() []Group { return groups() }

var groups = sync.OnceValue(func() (out []Group) {
	for _, name := range []string{
		"ip", "cap", "config", "eni", "cfgnet", "aws", "boot", "sgp", "net", "np", GroupObserved, GroupMigrate,
	} {
		out = append(out, groupNamed(name))
	}
	return out
})

// All yields the entries in the order of the groups.
func All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, g := range Groups() {
			for i := range g.Entries {
				if !yield(&g.Entries[i]) {
					return
				}
			}
		}
	}
}

// Lookup finds an entry by its code.
func Lookup(code string) (*Entry, bool) {
	for e := range All() {
		if e.Code == code {
			return e, true
		}
	}
	return nil, false
}

// Codes returns the codes of all entries.
func Codes() []string {
	var codes []string
	for e := range All() {
		codes = append(codes, e.Code)
	}
	return codes
}

// fixNamed returns a fix by the code of its cause and its number there, from 1: "boot/cni-config 2".
func fixNamed(name string) (Fix, bool) {
	code, number, _ := strings.Cut(name, " ")
	n, err := strconv.Atoi(number)
	e, ok := Lookup(code)
	if err != nil || !ok || n < 1 || n > len(e.Fixes) {
		return Fix{}, false
	}
	return e.Fixes[n-1], true
}

// Group returns the first part of the code.
func (e *Entry) Group() string {
	group, _, _ := strings.Cut(e.Code, "/")
	return group
}

// ExplainedBy returns the codes of the causes that can have this one as a consequence.
func (e *Entry) ExplainedBy() []string {
	var codes []string
	for root := range All() {
		if slices.Contains(root.Explains, e.Code) {
			codes = append(codes, root.Code)
		}
	}
	return codes
}
