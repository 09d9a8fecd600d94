package document

import "time"

// LogList is what cnictl logs shows.
type LogList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // LogList
	Metadata   ListMeta    `json:"metadata"`                // as lists of Kubernetes have
	Items      []LogItem   `json:"items"`                   // oldest first
	Partial    bool        `json:"partial"`                 // some node could not be read
	Errors     []NodeError `json:"errors"`                  // of the nodes that could not be read
	SampledAt  time.Time   `json:"sampledAt"`               // end of the reading
}

// LogItem is one line of a node's log. Fields that the line does not have are null.
type LogItem struct {
	Node    string     `json:"node" null:"never"`    // the node of the log
	At      *time.Time `json:"at"`                   // null: not in the line
	Level   string     `json:"level"`                // debug, info, warn, error, fatal; empty: not in the line
	Message string     `json:"message" null:"never"` // the line's own; the whole line where it has no form
	Line    string     `json:"line" null:"never"`    // verbatim

	Pod       string `json:"pod"`       // name of the pod
	Namespace string `json:"namespace"` // of the pod
	IP        string `json:"ip"`        // an address of a pod
	ENIID     string `json:"eniId"`     // network interface
}

// EventList is what cnictl events shows.
type EventList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // EventList
	Metadata   ListMeta    `json:"metadata"`                // as lists of Kubernetes have
	Items      []EventItem `json:"items"`                   // oldest first
	Partial    bool        `json:"partial"`                 // some node, or Kubernetes, could not be read
	Errors     []NodeError `json:"errors"`                  // what could not be read
	SampledAt  time.Time   `json:"sampledAt"`               // end of the reading
}

// EventItem is one event of a daemon or of Kubernetes.
type EventItem struct {
	At        time.Time `json:"at"`                   // when; of repeated ones the last time
	From      string    `json:"from" null:"never"`    // daemon or kubernetes
	Node      string    `json:"node"`                 // empty: unknown
	What      string    `json:"what" null:"never"`    // kind of the daemon's event, or reason of Kubernetes'
	Object    string    `json:"object"`               // what it is about: namespace/name of a pod, an ENI, a node
	Message   string    `json:"message" null:"never"` // one sentence
	Cause     string    `json:"cause"`                // a code of daemon/api/cause; empty: none
	Count     int       `json:"count"`                // of the times that it happened
	Warning   bool      `json:"warning"`              // something went wrong
	Component string    `json:"component"`            // that reported it: ipamd, kubelet, …
}

// RateList is what cnictl top shows: what each node does per minute.
type RateList struct {
	APIVersion string      `json:"apiVersion" null:"never"` // version of the document
	Kind       string      `json:"kind" null:"never"`       // RateList
	Metadata   ListMeta    `json:"metadata"`                // as lists of Kubernetes have
	Items      []RateItem  `json:"items"`                   // by node
	Partial    bool        `json:"partial"`                 // some node could not be read
	Errors     []NodeError `json:"errors"`                  // of the nodes that could not be read
	SampledAt  time.Time   `json:"sampledAt"`               // of the later sample
}

// RateItem is what a node does per minute; null means unknown.
type RateItem struct {
	Node               string   `json:"node" null:"never"`       // whose rates they are
	OverSeconds        *float64 `json:"overSeconds"`             // between the two samples
	ADDsPerMinute      *float64 `json:"addsPerMinute"`           // requests of pods
	FailedPerMinute    *float64 `json:"failedPerMinute"`         // ADDs without an address
	DELsPerMinute      *float64 `json:"delsPerMinute"`           // requests of pods that end
	EC2PerMinute       *float64 `json:"ec2PerMinute"`            // EC2 calls
	EC2ErrorsPerMinute *float64 `json:"ec2ErrorsPerMinute"`      // EC2 calls that failed
	Waiting            *int     `json:"waiting"`                 // ADDs that wait now
	Assigned           *int     `json:"assigned"`                // addresses now
	Free               *int     `json:"free"`                    // addresses now
	State              State    `json:"state" null:"never"`      // as of NodeIPAM
	Status             string   `json:"status" null:"never"`     // as of NodeIPAM
	StatusText         string   `json:"statusText" null:"never"` // as STATUS of nodes, for people
}

// Recording is what cnictl record and replay report about a file.
type Recording struct {
	APIVersion  string     `json:"apiVersion" null:"never"` // version of the document
	Kind        string     `json:"kind" null:"never"`       // Recording
	File        string     `json:"file" null:"never"`       // its name
	Title       string     `json:"title"`                   // of the fleet that was recorded
	From        *time.Time `json:"from"`                    // of the first sample; null: there is none
	To          *time.Time `json:"to"`                      // of the last sample
	Nodes       int        `json:"nodes"`                   // that have a sample
	Samples     int        `json:"samples"`                 // in it
	Interrupted bool       `json:"interrupted"`             // the file ends in the middle of a line
}
