package introspect

import "time"

// Kinds of documents of the doctor's catalogue.
const (
	KindCauseList     = "CauseList"
	KindCause         = "Cause"
	KindCandidateList = "CandidateList"
)

// CauseList is what cnictl doctor list shows.
type CauseList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // CauseList
	Metadata   ListMeta    `json:"metadata"`                // as lists of Kubernetes have
	Items      []Cause     `json:"items"`                   // by group
	Partial    bool        `json:"partial"`                 // always false: the catalogue is part of the program
	Errors     []NodeError `json:"errors"`                  // always empty
	SampledAt  time.Time   `json:"sampledAt"`               // when it was printed
}

// CauseDocument is what cnictl doctor explain shows.
type CauseDocument struct {
	APIVersion string `json:"apiVersion" null:"never"` // version of the document
	Kind       string `json:"kind" null:"never"`       // Cause
	Cause
}

// Cause is one cause of pods without an address or a network.
type Cause struct {
	Code        string           `json:"code" null:"never"`     // group/name; never renamed
	Title       string           `json:"title" null:"never"`    // what is wrong
	Severity    string           `json:"severity" null:"never"` // info, warning, error, critical
	Shows       string           `json:"shows" null:"never"`    // what a user or a log shows
	Required    []string         `json:"required"`              // sources of evidence without which nothing can be concluded
	Supporting  []string         `json:"supporting"`            // sources of evidence that make a finding surer
	Confidence  CauseConfidence  `json:"confidence"`            // the highest that each mode can reach
	Check       CauseCheck       `json:"check"`                 // how to tell it from its look-alikes
	Fixes       []CauseFix       `json:"fixes"`                 // in the order to try them
	Links       []string         `json:"links"`                 // to read on
	Upstream    string           `json:"upstream"`              // affected releases of upstream's daemon; empty: all
	Ours        string           `json:"ours"`                  // why our daemon cannot have it; empty: it can
	Explains    []string         `json:"explains"`              // causes that are its consequences on the same node
	ExplainedBy []string         `json:"explainedBy"`           // causes that it can be a consequence of
	Always      bool             `json:"always"`                // reported whatever explains it
	Signatures  []CauseSignature `json:"signatures"`            // texts of logs, events and metrics
	DaemonCodes []string         `json:"daemonCodes"`           // codes of our daemon that point to it
}

// CauseConfidence is how sure a finding can be: none, suspected, probable, confirmed.
type CauseConfidence struct {
	Node    string `json:"node" null:"never"`    // on the node
	Laptop  string `json:"laptop" null:"never"`  // through the API server, with AWS credentials
	Bundle  string `json:"bundle" null:"never"`  // from a support bundle
	Cluster string `json:"cluster" null:"never"` // through the API server alone
}

// CauseCheck is what to look at next.
type CauseCheck struct {
	Text    string `json:"text" null:"never"`    // what to look for
	Command string `json:"command" null:"never"` // placeholders are in capitals
}

// CauseFix is one way out.
type CauseFix struct {
	Text        string `json:"text" null:"never"` // what to do
	Command     string `json:"command"`           // placeholders are in capitals; empty: nothing to type
	SideEffects string `json:"sideEffects"`       // what it does besides; empty: nothing
	Risk        string `json:"risk" null:"never"` // none, restart, disruptive, destructive
}

// CauseSignature is a text that shows a cause.
type CauseSignature struct {
	Text    string   `json:"text" null:"never"` // parts of a line, with … between them
	Sources []string `json:"sources"`           // where it is found
	Note    string   `json:"note"`              // when the text alone does not mean the cause; empty: it does
}

// CandidateList is what cnictl explain shows.
type CandidateList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // CandidateList
	Metadata   ListMeta    `json:"metadata"`                // as lists of Kubernetes have
	Items      []Candidate `json:"items"`                   // the likeliest first
	Partial    bool        `json:"partial"`                 // always false: the catalogue is part of the program
	Errors     []NodeError `json:"errors"`                  // always empty
	SampledAt  time.Time   `json:"sampledAt"`               // when it was printed
}

// Candidate is a cause that a text may come from, or a symptom of several.
type Candidate struct {
	Code      string         `json:"code"`                 // of the cause; empty: a symptom
	Title     string         `json:"title" null:"never"`   // of the cause or the symptom
	Severity  string         `json:"severity"`             // of the cause; empty: a symptom
	Meaning   string         `json:"meaning" null:"never"` // what a cause shows, or what the symptom means
	Causes    []string       `json:"causes"`               // of a symptom: codes, or group/*
	Signature CauseSignature `json:"signature"`            // that matches
	How       string         `json:"how" null:"never"`     // whole, code, cut, reworded
	Line      int            `json:"line"`                 // of the text, from 1
	Check     CauseCheck     `json:"check"`                // what to look at next
}
