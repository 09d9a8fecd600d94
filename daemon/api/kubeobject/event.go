package kubeobject

import (
	"cmp"
	"time"
)

// Event is a v1 Event, written through either API.
type Event struct {
	Metadata       Meta `json:"metadata"`
	InvolvedObject struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"involvedObject"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Type    string `json:"type"`
	Action  string `json:"action"`
	Count   int    `json:"count"`
	Source  struct {
		Component string `json:"component"`
		Host      string `json:"host"`
	} `json:"source"`
	ReportingComponent string     `json:"reportingComponent"`
	FirstTimestamp     *time.Time `json:"firstTimestamp"`
	LastTimestamp      *time.Time `json:"lastTimestamp"`
	EventTime          *time.Time `json:"eventTime"`
	Series             *struct {
		Count            int        `json:"count"`
		LastObservedTime *time.Time `json:"lastObservedTime"`
	} `json:"series"`
}

// Object returns the object that the event refers to: namespace/name, or the name alone if
// it is cluster-scoped. An event of a node may carry a namespace all the same.
func (e *Event) Object() string {
	if e.InvolvedObject.Namespace != "" && e.InvolvedObject.Kind != "Node" {
		return e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
	}
	return e.InvolvedObject.Name
}

// Node returns the node that the event refers to or comes from, "" if unknown.
func (e *Event) Node() string {
	if e.InvolvedObject.Kind == "Node" || e.InvolvedObject.Kind == "CNINode" {
		return e.InvolvedObject.Name
	}
	return e.Source.Host
}

// Component returns the component that wrote the event.
func (e *Event) Component() string { return cmp.Or(e.Source.Component, e.ReportingComponent) }

// Times returns when the event first and last happened, and how often.
func (e *Event) Times() (first, last time.Time, count int) {
	count = max(e.Count, 1)
	times := []*time.Time{e.FirstTimestamp, e.EventTime, e.LastTimestamp}
	if e.Series != nil {
		count = max(count, e.Series.Count)
		times = append(times, e.Series.LastObservedTime)
	}
	for _, t := range times {
		if t == nil || t.IsZero() {
			continue
		}
		if first.IsZero() || t.Before(first) {
			first = t.UTC()
		}
		if t.After(last) {
			last = t.UTC()
		}
	}
	if t := e.Metadata.CreationTimestamp; last.IsZero() && t != nil {
		first, last = t.UTC(), t.UTC()
	}
	return first, last, count
}
