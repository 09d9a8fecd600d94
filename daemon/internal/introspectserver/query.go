package introspectserver

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
)

// maxQuery bounds a query string in bytes.
const maxQuery = 2048

// query reads parameters one by one and keeps the first error. done refuses parameters that
// were not read: a what-if with a misspelt target would otherwise answer another question.
type query struct {
	values url.Values
	known  []string
	fault  *fault
}

func parseQuery(r *http.Request) *query {
	q := &query{}
	if len(r.URL.RawQuery) > maxQuery {
		q.fault = badParameter("the query has %d bytes; at most %d are accepted", len(r.URL.RawQuery), maxQuery)
		return q
	}
	var err error
	if q.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		q.fault = badParameter("the query cannot be read: %.100q", err)
	}
	return q
}

func (q *query) refuse(format string, args ...any) {
	if q.fault == nil {
		q.fault = badParameter(format, args...)
	}
}

// text returns a parameter of up to `most` bytes; ok reports whether it was given.
func (q *query) text(name string, most int) (value string, ok bool) {
	q.known = append(q.known, name)
	values := q.values[name]
	if len(values) == 0 {
		return "", false
	}
	if len(values) > 1 {
		q.refuse("%s is given %d times", name, len(values))
	}
	if len(values[0]) > most {
		q.refuse("%s has %d bytes; at most %d are accepted", name, len(values[0]), most)
	}
	return values[0], true
}

// integer returns a number within bounds, with otherwise as the default.
func (q *query) integer(name string, least, most, otherwise int) int {
	if n := q.optional(name, least, most); n != nil {
		return *n
	}
	return otherwise
}

func (q *query) optional(name string, least, most int) *int {
	s, ok := q.text(name, 20)
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		q.refuse("%s=%.40q: an integer from %d to %d is accepted", name, s, least, most)
		return nil
	}
	return &n
}

func (q *query) sequence(name string) *uint64 {
	s, ok := q.text(name, 20)
	if !ok {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		q.refuse("%s=%.40q: must be the \"next\" value of an earlier response", name, s)
		return nil
	}
	return &n
}

// done returns the first error, if any.
func (q *query) done() error {
	for name := range q.values {
		if q.fault == nil && !slices.Contains(q.known, name) {
			q.refuse("unknown parameter %.40q; the parameters are %s", name, strings.Join(q.known, ", "))
		}
	}
	if q.fault != nil {
		return q.fault
	}
	return nil
}

// eventQuery is a request for /v1/events.
type eventQuery struct {
	since *uint64 // the last number seen; nil = none yet
	epoch string
	wait  time.Duration
	limit int
}

func parseEventQuery(r *http.Request) (eventQuery, error) {
	q := parseQuery(r)
	out := eventQuery{since: q.sequence("since")}
	out.epoch, _ = q.text("epoch", 64)
	out.wait = time.Duration(q.integer("wait", 0, introspect.MaxEventWait, 0)) * time.Second
	out.limit = q.integer("limit", 1, introspect.MaxEvents, introspect.MaxEvents)
	return out, q.done()
}

func parsePlanQuery(r *http.Request) (introspect.PlanQuery, error) {
	q := parseQuery(r)
	var out introspect.PlanQuery
	for _, p := range out.Parameters() {
		*p.Value = q.optional(p.Name, 0, introspect.MaxTarget)
	}
	return out, q.done()
}

func parsePodQuery(r *http.Request) (introspect.PodRef, error) {
	q := parseQuery(r)
	var pod introspect.PodRef
	const longest = 253 // bytes of a Kubernetes object's name
	pod.Namespace, _ = q.text("namespace", longest)
	pod.Name, _ = q.text("name", longest)
	if pod.Namespace == "" || pod.Name == "" {
		q.refuse("namespace and name of the pod are required")
	}
	return pod, q.done()
}

func parseLogQuery(r *http.Request) (introspect.LogQuery, error) {
	q := parseQuery(r)
	out := introspect.LogQuery{Lines: q.integer("lines", 1, introspect.MaxLogLines, introspect.DefaultLogLines)}
	if level, ok := q.text("level", 10); ok {
		parsed, known := logline.ParseLevel(level)
		if !known {
			q.refuse("level=%.40q: debug, info, warn, error and fatal are accepted", level)
		}
		out.Level = parsed.String()
	}
	if since, ok := q.text("since", 40); ok {
		at, err := time.Parse(time.RFC3339Nano, since)
		if err != nil {
			q.refuse("since=%.40q: must be a time such as 2026-11-21T14:02:11Z", since)
		}
		out.Since = at
	}
	out.Match, _ = q.text("match", introspect.MaxLogMatch)
	return out, q.done()
}
