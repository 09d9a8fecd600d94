package evidence

import (
	"iter"
	"maps"
	"reflect"
	"sync"
	"time"
)

// members are the fields of a reading, embedded ones included.
var members = sync.OnceValue(func() []reflect.StructField { return reflect.VisibleFields(reflect.TypeFor[Reading]()) })

// InstallationSources returns the ids of the sources in Installation.
var InstallationSources = sync.OnceValue(func() (ids []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Installation]()) {
		ids = append(ids, f.Tag.Get("json"))
	}
	return ids
})

// sources yields all sources of a reading by id. Each value is a settable Source.
func (r *Reading) sources() iter.Seq2[string, reflect.Value] {
	return func(yield func(id string, source reflect.Value) bool) {
		v := reflect.ValueOf(r).Elem()
		for _, f := range members() {
			if id := f.Tag.Get("json"); !f.Anonymous && id != "-" && !yield(id, v.FieldByIndex(f.Index)) {
				return
			}
		}
	}
}

// Unread returns a reading with every source missing for the same reason.
func Unread(at time.Time, reason string) *Reading {
	r := &Reading{At: at}
	for _, s := range r.sources() {
		s.FieldByName("Missing").SetString(reason)
	}
	return r
}

// Missing returns the reason for each source that could not be read, by id.
func (r *Reading) Missing() map[string]string {
	out := map[string]string{}
	for id, s := range r.sources() {
		if reason := s.FieldByName("Missing").String(); reason != "" {
			out[id] = reason
		}
	}
	return out
}

// Fill copies the wanted sources that are missing from another reading.
func (r *Reading) Fill(from *Reading, wants func(id string) bool) {
	other := maps.Collect(from.sources())
	for id, s := range r.sources() {
		if s.FieldByName("Missing").String() != "" && wants(id) {
			s.Set(other[id])
		}
	}
}
