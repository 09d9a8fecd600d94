package evidence

import (
	"iter"
	"reflect"
	"strings"
	"sync"
	"time"
)

// AnySource is a source of any content.
type AnySource interface {
	Value() any          // pointer to the content
	Reason() string      // why it is missing; empty if it was read
	Lack(reason string)  // makes it missing
	Set(other AnySource) // makes it the same as another of its type
}

// Value returns a pointer to the content.
func (s *Source[T]) Value() any { return &s.Content }

// Reason says why the source is missing. It is empty if the source was read.
func (s *Source[T]) Reason() string { return s.Missing }

// Lack makes the source missing.
func (s *Source[T]) Lack(reason string) { *s = Lacking[T](reason) }

// Set makes the source the same as another one with the same id.
func (s *Source[T]) Set(other AnySource) { *s = *other.(*Source[T]) }

// members are the sources of a reading, embedded ones included: the id of each and where it is.
var members = sync.OnceValue(func() (out []reflect.StructField) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Reading]()) {
		if !f.Anonymous && f.Tag.Get("json") != "-" {
			out = append(out, f)
		}
	}
	return out
})

// InstallationSources returns the ids of the sources in Installation.
var InstallationSources = sync.OnceValue(func() (ids []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Installation]()) {
		ids = append(ids, f.Tag.Get("json"))
	}
	return ids
})

// Sources yields all sources of a reading by id, in the order of the documentation.
func (r *Reading) Sources() iter.Seq2[string, AnySource] {
	return func(yield func(id string, source AnySource) bool) {
		v := reflect.ValueOf(r).Elem()
		for _, f := range members() {
			if !yield(f.Tag.Get("json"), v.FieldByIndex(f.Index).Addr().Interface().(AnySource)) {
				return
			}
		}
	}
}

// places are where the sources are, by id.
var places = sync.OnceValue(func() map[string][]int {
	out := map[string][]int{}
	for _, f := range members() {
		out[f.Tag.Get("json")] = f.Index
	}
	return out
})

// Source returns the source with an id.
func (r *Reading) Source(id string) (AnySource, bool) {
	at, ok := places()[id]
	if !ok {
		return nil, false
	}
	return reflect.ValueOf(r).Elem().FieldByIndex(at).Addr().Interface().(AnySource), true
}

// Unread returns a reading with every source missing for the same reason.
func Unread(at time.Time, reason string) *Reading {
	r := &Reading{At: at}
	for _, s := range r.Sources() {
		s.Lack(reason)
	}
	return r
}

// Missing returns the reason for each source that could not be read, by id.
func (r *Reading) Missing() map[string]string {
	out := map[string]string{}
	for id, s := range r.Sources() {
		if reason := s.Reason(); reason != "" {
			out[id] = reason
		}
	}
	return out
}

// Unread returns why neither the daemon's documents nor its metrics could be read. It is empty if any of them
// was read, or if none was requested.
func (r *Reading) Unread() (why string) {
	for id, s := range r.Sources() {
		daemons := id == sourceMetrics || strings.HasPrefix(id, familyDaemon)
		switch reason := s.Reason(); {
		case daemons && reason == "":
			return ""
		case daemons && why == "" && reason != MissingDisabled && !Untried(reason):
			why = reason
		}
	}
	return why
}

// Ids of what a daemon reports.
const (
	familyDaemon  = "intro."
	sourceMetrics = "metrics"
)

// Fill copies the wanted sources that are missing from another reading.
func (r *Reading) Fill(from *Reading, wants func(id string) bool) {
	for id, s := range r.Sources() {
		if other, _ := from.Source(id); s.Reason() != "" && wants(id) {
			s.Set(other)
		}
	}
}
