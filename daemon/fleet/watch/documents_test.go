package watch

import (
	"reflect"
	"testing"
)

// TestDocuments_AreEachMemberOfDetail: each Want has its own member, and each document
// member has a Want.
func TestDocuments_AreEachMemberOfDetail(t *testing.T) {
	t.Parallel()
	named := map[string]bool{"Node": true, "At": true, "Errors": true} // not documents
	for want := range (2*WantClusterPods - 1).Each() {
		var from, into Detail
		if from.Has(want) {
			t.Errorf("%b: there although nothing is", want)
		}
		for _, field := range reflect.VisibleFields(reflect.TypeFor[Detail]()) {
			filled := from
			v := reflect.ValueOf(&filled).Elem().FieldByIndex(field.Index)
			switch v.Kind() {
			case reflect.Pointer:
				v.Set(reflect.New(field.Type.Elem()))
			case reflect.Slice:
				v.Set(reflect.MakeSlice(field.Type, 0, 0))
			}
			if filled.Has(want) {
				named[field.Name] = true
				if into.Take(want, &filled); !reflect.DeepEqual(into, filled) {
					t.Errorf("%b: took %+v of %+v", want, into, filled)
				}
			}
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Detail]()) {
		if !named[field.Name] {
			t.Errorf("no Want for %s", field.Name)
		}
	}
}
