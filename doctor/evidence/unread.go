package evidence

import (
	"reflect"
	"time"
)

// Unread is a reading of which every source is missing, for the same reason.
func Unread(at time.Time, reason string) *Reading {
	r := &Reading{At: at}
	v := reflect.ValueOf(r).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if missing := v.FieldByIndex(f.Index); missing.Kind() == reflect.Struct {
			if field := missing.FieldByName("Missing"); field.IsValid() {
				field.SetString(reason)
			}
		}
	}
	return r
}
