package situation

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// member is a member of an object of the file, described by the tags of its Go field: json is its
// name, enum lists its values, default is its value in list entries that omit it, key merges
// entries with the same value, and signed allows negative numbers in it.
type member struct {
	name  string
	index []int
	enum  []string
	def   string
	key   bool

	signed bool
}

type members struct{ list []member }

func (m members) find(name string) (member, bool) {
	i := slices.IndexFunc(m.list, func(m member) bool { return m.name == name })
	if i < 0 {
		return member{}, false
	}
	return m.list[i], true
}

// String lists the names, for errors.
func (m members) String() string {
	names := make([]string, len(m.list))
	for i, m := range m.list {
		names[i] = m.name
	}
	return strings.Join(names, ", ")
}

var known sync.Map // reflect.Type to members

func membersOf(t reflect.Type) members {
	if m, ok := known.Load(t); ok {
		return m.(members)
	}
	var out members
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || name == "" {
			continue // an embedded struct is represented by its fields
		}
		m := member{name: name, index: f.Index, def: f.Tag.Get("default"), key: f.Tag.Get("key") != "", signed: f.Tag.Get("signed") != ""}
		if words := f.Tag.Get("enum"); words != "" {
			m.enum = strings.Split(words, ",")
		}
		out.list = append(out.list, m)
	}
	known.Store(t, out)
	return out
}

// defaults sets the members of a list entry that the file may omit.
func defaults(item reflect.Value) {
	if item.Kind() != reflect.Struct || item.Type() == timeType {
		return
	}
	for _, m := range membersOf(item.Type()).list {
		if m.def == "" {
			continue
		}
		switch field := item.FieldByIndex(m.index); field.Kind() {
		case reflect.String:
			field.SetString(m.def)
		case reflect.Bool:
			field.SetBool(m.def == "true")
		case reflect.Int:
			n, _ := strconv.Atoi(m.def) // from our own tags; TestDefaults covers them all
			field.SetInt(int64(n))
		}
	}
}
