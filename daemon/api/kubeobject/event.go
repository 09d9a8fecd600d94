package kubeobject

import (
	"cmp"
	"time"
)

// Event is a v1 Event, of either API that wrote it.
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

// Object is what the event is about: namespace/name, or a name of the cluster. An event of a
// node may have a namespace all the same.
func (e *Event) Object() string {
	if e.InvolvedObject.Namespace != "" && e.InvolvedObject.Kind != "Node" {
		return e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
	}
	return e.InvolvedObject.Name
}

// Node is the node that the event is about or comes from, where it says one.
func (e *Event) Node() string {
	if e.InvolvedObject.Kind == "Node" || e.InvolvedObject.Kind == "CNINode" {
		return e.InvolvedObject.Name
	}
	return e.Source.Host
}

// Component wrote the event.
func (e *Event) Component() string { return cmp.Or(e.Source.Component, e.ReportingComponent) }

// Times are those of the first and the last time that it happened, and how often it did.
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
