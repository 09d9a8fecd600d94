package document

import "time"

// Kinds of documents of the doctor's catalogue.
const (
	KindCauseList     = "CauseList"
	KindCause         = "Cause"
	KindCandidateList = "CandidateList"
	KindDoctorReport  = "DoctorReport"
	KindMigration     = "MigrationCheck"
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
	Check       CauseCheck       `json:"check"`                 // how to distinguish it from similar causes
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

// DoctorSchemaVersion is the version of DoctorReport. Members are only added within it.
const DoctorSchemaVersion = 1

// DoctorReport is what cnictl doctor shows.
type DoctorReport struct {
	APIVersion    string            `json:"apiVersion" null:"never"` // version of the document
	Kind          string            `json:"kind" null:"never"`       // DoctorReport
	SchemaVersion int               `json:"schemaVersion"`           // of the findings
	SampledAt     time.Time         `json:"sampledAt"`               // of the last reading
	Mode          string            `json:"mode" null:"never"`       // node, laptop, bundle, cluster
	Verdict       string            `json:"verdict" null:"never"`    // the result in one line
	Nodes         int               `json:"nodes"`                   // that were examined
	Findings      []Finding         `json:"findings"`                // root causes: the worst first, then the surest
	Explained     []Finding         `json:"explained"`               // consequences of findings
	NotChecked    []MissingEvidence `json:"notChecked"`              // sources that could not be read
	Undecided     []string          `json:"undecided"`               // codes that could be neither found nor ruled out
	NotCheckable  []string          `json:"notCheckable"`            // codes that what can be read from here does not show
	RuledOut      []string          `json:"ruledOut"`                // codes that the evidence rules out
	Suppressed    []string          `json:"suppressed"`              // codes of accepted findings
	Reported      []ReportedText    `json:"reported"`                // what people say is wrong
	Partial       bool              `json:"partial"`                 // some node could not be read at all
	Errors        []NodeError       `json:"errors"`                  // of these nodes
}

// Finding is one cause that the evidence shows.
type Finding struct {
	Code       string            `json:"code" null:"never"`       // group/name of the cause
	Title      string            `json:"title" null:"never"`      // what is wrong
	Severity   string            `json:"severity" null:"never"`   // info, warning, error, critical
	Confidence string            `json:"confidence" null:"never"` // suspected, probable, confirmed
	Scope      FindingScope      `json:"scope"`                   // where
	Nodes      []string          `json:"nodes"`                   // on which it was found; empty: it concerns the cluster
	Summary    string            `json:"summary" null:"never"`    // what was found, with figures
	Evidence   []FindingEvidence `json:"evidence"`                // what was read, the telling facts first
	Missing    []MissingEvidence `json:"missingEvidence"`         // what would make it surer
	Explains   []string          `json:"explains"`                // codes of findings that follow from it
	Causes     []string          `json:"explainedBy"`             // codes of findings that it follows from
	Check      CauseCheck        `json:"check"`                   // what to look at next
	Fix        []CauseFix        `json:"fix"`                     // in the order to try them
	Links      []string          `json:"links"`                   // to read on
	Versions   FindingVersions   `json:"versions"`                // of the daemon
}

// FindingScope is where a cause is. Members that do not apply are empty.
type FindingScope struct {
	Node    string `json:"node"`    // its name
	Pod     string `json:"pod"`     // namespace/name
	ENI     string `json:"eni"`     // eni-…
	Subnet  string `json:"subnet"`  // subnet-…
	Cluster bool   `json:"cluster"` // it concerns all nodes
}

// FindingEvidence is one fact.
type FindingEvidence struct {
	Source     string    `json:"source" null:"never"` // id of the source
	ObservedAt time.Time `json:"observedAt"`          // of the reading, or of the line
	Path       string    `json:"path"`                // within the source
	Value      string    `json:"value"`               // as read
	Expected   string    `json:"expected"`            // where nothing is wrong
	Holds      bool      `json:"holds"`               // it supports the finding
}

// MissingEvidence is a source that could not be read.
type MissingEvidence struct {
	Source      string   `json:"source" null:"never"` // id of the source
	Reason      string   `json:"reason" null:"never"` // why
	WouldDecide string   `json:"wouldDecide"`         // what it would show
	Nodes       []string `json:"nodes"`               // where; empty: the finding's
}

// FindingVersions are releases of the daemon.
type FindingVersions struct {
	Detected []string `json:"detected"` // on the nodes
	Affected string   `json:"affected"` // of upstream; empty: all
}

// ReportedText is what a person reported, looked up as cnictl explain does.
type ReportedText struct {
	Text   string   `json:"text" null:"never"` // as it was written
	Causes []string `json:"causes"`            // codes it may come from
}

// MigrationCheck is what cnictl migrate check shows.
type MigrationCheck struct {
	APIVersion    string            `json:"apiVersion" null:"never"` // version of the document
	Kind          string            `json:"kind" null:"never"`       // MigrationCheck
	SchemaVersion int               `json:"schemaVersion"`           // of the findings, as in DoctorReport
	SampledAt     time.Time         `json:"sampledAt"`               // of the last reading
	Mode          string            `json:"mode" null:"never"`       // node, laptop, bundle, cluster
	From          string            `json:"from"`                    // the daemon that runs: upstream, ours; empty: not known
	Release       string            `json:"release"`                 // of that daemon; empty: not known
	Verdict       string            `json:"verdict" null:"never"`    // the result in one line
	Nodes         int               `json:"nodes"`                   // that were examined
	Blocks        int               `json:"blocks"`                  // checks whose result is block
	Warnings      int               `json:"warnings"`                // checks whose result is warn
	Undecided     int               `json:"undecided"`               // checks whose result is undecided
	Checks        []MigrationRow    `json:"checks"`                  // all of them, in the order of the catalogue
	NotChecked    []MissingEvidence `json:"notChecked"`              // sources that could not be read
	Partial       bool              `json:"partial"`                 // some node could not be read at all
	Errors        []NodeError       `json:"errors"`                  // of these nodes
}

// MigrationRow is one check before a move from the daemon that runs to the other one.
type MigrationRow struct {
	Code      string   `json:"code" null:"never"`      // migrate/name; never renamed
	Title     string   `json:"title" null:"never"`     // what would be wrong
	Condition string   `json:"condition" null:"never"` // when it fires, and why that matters
	Result    string   `json:"result" null:"never"`    // block, warn, info, accepted, pass, undecided (a source could not be read), unread (needs what is not read from here)
	Finding   *Finding `json:"finding"`                // what was found, with the nodes; null: nothing
}
