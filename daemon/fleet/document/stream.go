package document

import "time"

// LogList is what cnictl logs shows.
type LogList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // LogList
	Metadata   ListMeta    `json:"metadata"`                // standard Kubernetes list metadata
	Items      []LogItem   `json:"items"`                   // oldest first
	Partial    bool        `json:"partial"`                 // some node could not be read
	Errors     []NodeError `json:"errors"`                  // nodes that could not be read
	SampledAt  time.Time   `json:"sampledAt"`               // end of the reading
}

// LogItem is one line of a node's log. Fields missing from the line are null.
type LogItem struct {
	Node    string     `json:"node" null:"never"`    // node whose log it is
	At      *time.Time `json:"at"`                   // time of the line; null if it has none
	Level   string     `json:"level"`                // debug, info, warn, error, fatal; empty if the line has none
	Message string     `json:"message" null:"never"` // message with its fields; the whole line if it cannot be parsed
	Line    string     `json:"line" null:"never"`    // the line verbatim

	Pod       string `json:"pod"`       // pod named in the line
	Namespace string `json:"namespace"` // namespace of the pod
	IP        string `json:"ip"`        // pod address named in the line
	ENIID     string `json:"eniId"`     // network interface named in the line
}

// EventList is what cnictl events shows.
type EventList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // EventList
	Metadata   ListMeta    `json:"metadata"`                // standard Kubernetes list metadata
	Items      []EventItem `json:"items"`                   // oldest first
	Partial    bool        `json:"partial"`                 // some node, or Kubernetes, could not be read
	Errors     []NodeError `json:"errors"`                  // what could not be read
	SampledAt  time.Time   `json:"sampledAt"`               // end of the reading
}

// EventItem is one event of a daemon or of Kubernetes.
type EventItem struct {
	At        time.Time `json:"at"`                   // time of the event; of the last one if repeated
	From      string    `json:"from" null:"never"`    // daemon or kubernetes
	Node      string    `json:"node"`                 // node of the event; empty if unknown
	What      string    `json:"what" null:"never"`    // kind of the daemon's event, or reason of the Kubernetes event
	Object    string    `json:"object"`               // what the event concerns: namespace/name of a pod, an ENI, a node
	Message   string    `json:"message" null:"never"` // one sentence
	Cause     string    `json:"cause"`                // a code of daemon/api/cause; empty if none
	Count     int       `json:"count"`                // number of occurrences
	Warning   bool      `json:"warning"`              // something went wrong
	Component string    `json:"component"`            // source of the event: ipamd, kubelet, …
}

// RateList is what cnictl top shows: what each node does per minute.
type RateList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // RateList
	Metadata   ListMeta    `json:"metadata"`                // standard Kubernetes list metadata
	Items      []RateItem  `json:"items"`                   // sorted by node
	Partial    bool        `json:"partial"`                 // some node could not be read
	Errors     []NodeError `json:"errors"`                  // nodes that could not be read
	SampledAt  time.Time   `json:"sampledAt"`               // time of the later sample
}

// RateItem is what a node does per minute; null means unknown.
type RateItem struct {
	Node               string   `json:"node" null:"never"`       // node name
	OverSeconds        *float64 `json:"overSeconds"`             // time between the two samples
	ADDsPerMinute      *float64 `json:"addsPerMinute"`           // CNI ADD requests
	FailedPerMinute    *float64 `json:"failedPerMinute"`         // ADDs that got no address
	DELsPerMinute      *float64 `json:"delsPerMinute"`           // CNI DEL requests
	EC2PerMinute       *float64 `json:"ec2PerMinute"`            // calls to EC2
	EC2ErrorsPerMinute *float64 `json:"ec2ErrorsPerMinute"`      // calls to EC2 that failed
	Waiting            *int     `json:"waiting"`                 // ADDs waiting now
	Assigned           *int     `json:"assigned"`                // addresses assigned now
	Free               *int     `json:"free"`                    // addresses free now
	State              State    `json:"state" null:"never"`      // as in NodeIPAM
	Status             string   `json:"status" null:"never"`     // status as a code, as in NodeIPAM
	StatusText         string   `json:"statusText" null:"never"` // status for people, as in the STATUS column of cnictl nodes
}

// Recording is what cnictl record and replay report about a file.
type Recording struct {
	APIVersion  string     `json:"apiVersion" null:"never"` // version of the document
	Kind        string     `json:"kind" null:"never"`       // Recording
	File        string     `json:"file" null:"never"`       // file name
	Title       string     `json:"title"`                   // title of the recorded fleet
	From        *time.Time `json:"from"`                    // time of the first sample; null if there are no samples
	To          *time.Time `json:"to"`                      // time of the last sample; null if there are no samples
	Nodes       int        `json:"nodes"`                   // number of nodes with samples
	Samples     int        `json:"samples"`                 // number of samples
	Interrupted bool       `json:"interrupted"`             // the file ends in the middle of a line
}
