package document

import (
	"fmt"
	"time"
)

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
	Metadata   ListMeta    `json:"metadata"`                // standard Kubernetes list metadata
	Items      []Cause     `json:"items"`                   // sorted by group
	Partial    bool        `json:"partial"`                 // always false: the catalogue is part of the program
	Errors     []NodeError `json:"errors"`                  // always empty
	SampledAt  time.Time   `json:"sampledAt"`               // time of the output
}

// CauseDocument is what cnictl doctor explain shows.
type CauseDocument struct {
	APIVersion string `json:"apiVersion" null:"never"` // version of the document
	Kind       string `json:"kind" null:"never"`       // Cause
	Cause
}

// Cause is one reason why pods have no address or no network.
type Cause struct {
	Code        string           `json:"code" null:"never"`     // group/name; never renamed
	Title       string           `json:"title" null:"never"`    // what is wrong
	Severity    string           `json:"severity" null:"never"` // info, warning, error, critical
	Shows       string           `json:"shows" null:"never"`    // symptoms seen by users or in logs
	Required    []string         `json:"required"`              // sources of evidence that any conclusion needs
	Supporting  []string         `json:"supporting"`            // sources of evidence that raise the confidence of a finding
	Confidence  CauseConfidence  `json:"confidence"`            // highest possible confidence in each mode
	Check       CauseCheck       `json:"check"`                 // how to distinguish it from similar causes
	Fixes       []CauseFix       `json:"fixes"`                 // in the order to try them
	Links       []string         `json:"links"`                 // further reading
	Upstream    string           `json:"upstream"`              // affected releases of upstream's daemon; empty if all are
	Ours        string           `json:"ours"`                  // why our daemon cannot have it; empty if it can
	Explains    []string         `json:"explains"`              // causes that it can bring about on the same node
	ExplainedBy []string         `json:"explainedBy"`           // causes that can bring it about
	Always      bool             `json:"always"`                // reported even if another finding explains it
	Signatures  []CauseSignature `json:"signatures"`            // matching texts in logs, events and metrics
	DaemonCodes []string         `json:"daemonCodes"`           // cause codes of our daemon that indicate it
}

// CauseConfidence is how certain a finding can be: none, suspected, probable, confirmed.
type CauseConfidence struct {
	Node    string `json:"node" null:"never"`    // on the node
	Laptop  string `json:"laptop" null:"never"`  // through the API server, with AWS credentials
	Bundle  string `json:"bundle" null:"never"`  // from a support bundle
	Cluster string `json:"cluster" null:"never"` // through the API server alone
}

// CauseCheck is what to look at next.
type CauseCheck struct {
	Text    string `json:"text" null:"never"`    // what to look for
	Command string `json:"command" null:"never"` // command to run, with placeholders in capitals
}

// CauseFix is one way to fix a cause.
type CauseFix struct {
	Text        string `json:"text" null:"never"` // what to do
	Command     string `json:"command"`           // command to run, with placeholders in capitals; empty if none
	SideEffects string `json:"sideEffects"`       // other effects of the fix; empty if none
	Risk        string `json:"risk" null:"never"` // none, restart, disruptive, destructive
}

// CauseSignature is a text that indicates a cause.
type CauseSignature struct {
	Text    string   `json:"text" null:"never"` // fragments of a line, separated by …
	Sources []string `json:"sources"`           // where the text appears
	Note    string   `json:"note"`              // when the text alone does not prove the cause; empty if it always does
}

// CandidateList is what cnictl explain shows.
type CandidateList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // CandidateList
	Metadata   ListMeta    `json:"metadata"`                // standard Kubernetes list metadata
	Items      []Candidate `json:"items"`                   // most likely first
	Partial    bool        `json:"partial"`                 // always false: the catalogue is part of the program
	Errors     []NodeError `json:"errors"`                  // always empty
	SampledAt  time.Time   `json:"sampledAt"`               // time of the output
	PrintedBy  *Printer    `json:"printedBy"`               // what prints lines of this form; null if unknown, or if there are items
}

// Printer is a component whose lines are known by their form.
type Printer struct {
	Component string     `json:"component" null:"never"` // its name
	About     string     `json:"about"`                  // what it prints about; empty if many things
	Check     CauseCheck `json:"check"`                  // what to look at next
}

// Candidate is a possible cause of a text, or a symptom of several causes.
type Candidate struct {
	Code      string         `json:"code"`                 // code of the cause; empty for a symptom
	Title     string         `json:"title" null:"never"`   // of the cause or the symptom
	Severity  string         `json:"severity"`             // severity of the cause; empty for a symptom
	Meaning   string         `json:"meaning" null:"never"` // what the text means, or what the cause shows
	Causes    []string       `json:"causes"`               // a symptom's possible causes, likeliest first: codes, or group/*
	Signature CauseSignature `json:"signature"`            // the matching signature
	How       string         `json:"how" null:"never"`     // how it matches: whole, code, cut, reworded
	Line      int            `json:"line"`                 // line number in the text, from 1
	Check     CauseCheck     `json:"check"`                // what to look at next
	Component string         `json:"component"`            // program that prints the text; empty if several do
	Normal    bool           `json:"normal"`               // the text reports no fault
	Fixes     []CauseFix     `json:"fixes"`                // of the first cause, in the order to try them
}

// DoctorSchemaVersion is the version of DoctorReport. Members are only added within it.
const DoctorSchemaVersion = 1

// DoctorReport is what cnictl doctor shows.
type DoctorReport struct {
	APIVersion    string            `json:"apiVersion" null:"never"` // version of the document
	Kind          string            `json:"kind" null:"never"`       // DoctorReport
	SchemaVersion int               `json:"schemaVersion"`           // version of the format of the findings
	SampledAt     time.Time         `json:"sampledAt"`               // time of the last reading
	Mode          string            `json:"mode" null:"never"`       // node, laptop, bundle, cluster
	Verdict       string            `json:"verdict" null:"never"`    // the result in one line
	Nodes         int               `json:"nodes"`                   // number of nodes examined
	Findings      []Finding         `json:"findings"`                // root causes: most severe first, then most certain
	Explained     []Finding         `json:"explained"`               // consequences of other findings
	NotChecked    []MissingEvidence `json:"notChecked"`              // sources that could not be read
	Undecided     []string          `json:"undecided"`               // codes that could be neither confirmed nor ruled out
	NotCheckable  []string          `json:"notCheckable"`            // codes that cannot be checked with the sources available in this mode
	RuledOut      []string          `json:"ruledOut"`                // codes ruled out by the evidence
	Suppressed    []string          `json:"suppressed"`              // codes of accepted findings
	Reported      []ReportedText    `json:"reported"`                // symptoms reported by people
	Observations  []Observation     `json:"observations"`            // all that is not as it should be, in the order of the catalogue
	Checks        CheckCounts       `json:"checks"`                  // how many causes and kinds of observations were looked for
	Partial       bool              `json:"partial"`                 // some node could not be read at all
	Errors        []NodeError       `json:"errors"`                  // nodes that could not be read at all
}

// Observation is a difference between what is and what should be, from the evidence alone.
type Observation struct {
	Kind        string     `json:"kind" null:"never"`     // obs/name; never renamed
	Node        string     `json:"node"`                  // where it was read
	Subject     string     `json:"subject"`               // what it is about: a pod, an ENI, a link, a setting
	Is          string     `json:"is" null:"never"`       // what is
	Should      string     `json:"should" null:"never"`   // what should be
	Severity    string     `json:"severity" null:"never"` // by its effect: info, warning, error, critical
	Pods        []string   `json:"pods"`                  // namespace/name of the pods that it hits
	Since       *time.Time `json:"since"`                 // since when; null if unknown
	Source      string     `json:"source" null:"never"`   // source id
	ExplainedBy []string   `json:"explainedBy"`           // codes of the findings that explain it
}

// CheckCounts counts causes and kinds of observations.
type CheckCounts struct {
	Passed       int `json:"passed"`       // looked for, and not there
	Inconclusive int `json:"inconclusive"` // a source could not be read
	NotRun       int `json:"notRun"`       // the sources were not asked for, or cannot be read in this mode
}

// String is the counts in words.
func (c CheckCounts) String() string {
	checks := "checks"
	if c.Passed == 1 {
		checks = "check"
	}
	return fmt.Sprintf("%d %s passed, %d inconclusive, %d not run", c.Passed, checks, c.Inconclusive, c.NotRun)
}

// Finding is one cause supported by the evidence.
type Finding struct {
	Code       string            `json:"code" null:"never"`       // group/name of the cause
	Title      string            `json:"title" null:"never"`      // what is wrong
	Severity   string            `json:"severity" null:"never"`   // info, warning, error, critical
	Confidence string            `json:"confidence" null:"never"` // suspected, probable, confirmed
	Scope      FindingScope      `json:"scope"`                   // where the cause is
	Nodes      []string          `json:"nodes"`                   // affected nodes; empty if the whole cluster is affected
	Summary    string            `json:"summary" null:"never"`    // what was found, with figures
	PerNode    []FindingOnNode   `json:"perNode"`                 // the same for each node, where they differ; else empty
	Evidence   []FindingEvidence `json:"evidence"`                // what was read, most significant facts first
	Missing    []MissingEvidence `json:"missingEvidence"`         // sources that would raise the confidence
	Explains   []string          `json:"explains"`                // codes of findings that result from it
	Causes     []string          `json:"explainedBy"`             // codes of findings that it results from
	Check      CauseCheck        `json:"check"`                   // what to look at next
	Fix        []CauseFix        `json:"fix"`                     // in the order to try them
	Links      []string          `json:"links"`                   // further reading
	Versions   FindingVersions   `json:"versions"`                // releases of the daemon
}

// FindingScope says where a cause is. Members that do not apply are null.
type FindingScope struct {
	Node    string `json:"node"`    // node name
	Pod     string `json:"pod"`     // namespace/name
	ENI     string `json:"eni"`     // eni-…
	Subnet  string `json:"subnet"`  // subnet-…
	Cluster bool   `json:"cluster"` // it affects all nodes
}

// FindingOnNode is what was found on one of several nodes.
type FindingOnNode struct {
	Node    string `json:"node"`                 // node name
	Summary string `json:"summary" null:"never"` // what was found, with figures
}

// FindingEvidence is one fact.
type FindingEvidence struct {
	Source     string    `json:"source" null:"never"` // source id
	ObservedAt time.Time `json:"observedAt"`          // time of the reading, or of the log line
	Path       string    `json:"path"`                // position within the source
	Value      string    `json:"value"`               // as read
	Expected   string    `json:"expected"`            // value on a healthy node
	Holds      bool      `json:"holds"`               // the fact supports the finding
}

// MissingEvidence is a source that could not be read.
type MissingEvidence struct {
	Source      string   `json:"source" null:"never"` // source id
	Reason      string   `json:"reason" null:"never"` // why it could not be read
	WouldDecide string   `json:"wouldDecide"`         // what it would show
	Nodes       []string `json:"nodes"`               // where it is missing; empty if on the finding's nodes
}

// FindingVersions are releases of the daemon.
type FindingVersions struct {
	Detected []string `json:"detected"` // releases found on the nodes
	Affected string   `json:"affected"` // affected releases of upstream; empty if all are
}

// ReportedText is a symptom that a person reported, looked up as by cnictl explain.
type ReportedText struct {
	Text   string   `json:"text" null:"never"` // verbatim
	Causes []string `json:"causes"`            // codes of possible causes
}

// MigrationCheck is what cnictl migrate check shows.
type MigrationCheck struct {
	APIVersion    string            `json:"apiVersion" null:"never"` // version of the document
	Kind          string            `json:"kind" null:"never"`       // MigrationCheck
	SchemaVersion int               `json:"schemaVersion"`           // version of the format of the findings, as in DoctorReport
	SampledAt     time.Time         `json:"sampledAt"`               // time of the last reading
	Mode          string            `json:"mode" null:"never"`       // node, laptop, bundle, cluster
	From          string            `json:"from"`                    // the installed daemon: upstream, ours; empty if unknown
	Release       string            `json:"release"`                 // release of that daemon; empty if unknown
	Verdict       string            `json:"verdict" null:"never"`    // the result in one line
	Nodes         int               `json:"nodes"`                   // number of nodes examined
	Blocks        int               `json:"blocks"`                  // number of checks whose result is block
	Warnings      int               `json:"warnings"`                // number of checks whose result is warn
	Undecided     int               `json:"undecided"`               // number of checks whose result is undecided
	Checks        []MigrationRow    `json:"checks"`                  // all checks, in the order of the catalogue
	NotChecked    []MissingEvidence `json:"notChecked"`              // sources that could not be read
	Partial       bool              `json:"partial"`                 // some node could not be read at all
	Errors        []NodeError       `json:"errors"`                  // nodes that could not be read at all
}

// MigrationRow is one check before a migration from the installed daemon to the other one.
type MigrationRow struct {
	Code      string   `json:"code" null:"never"`      // migrate/name; never renamed
	Title     string   `json:"title" null:"never"`     // the problem that it looks for
	Condition string   `json:"condition" null:"never"` // when it fires, and why that matters
	Result    string   `json:"result" null:"never"`    // block, warn, info, accepted, pass, undecided (a source could not be read), unread (the source cannot be read in this mode)
	Finding   *Finding `json:"finding"`                // what was found, with the nodes; null if nothing
}
