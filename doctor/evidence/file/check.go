package file

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// member is a member of an object, described by the tags of its Go field: json is its name, enum lists
// its values, default is its value if it is omitted, and signed allows negative numbers in it.
type member struct {
	name   string
	index  []int // of the field
	enum   []string
	def    string
	signed bool
}

var known sync.Map // reflect.Type to []member

func membersOf(t reflect.Type) []member {
	if m, ok := known.Load(t); ok {
		return m.([]member)
	}
	var out []member
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || name == "" {
			continue // an embedded struct is represented by its fields
		}
		m := member{name: name, index: f.Index, def: f.Tag.Get("default"), signed: f.Tag.Get("signed") != ""}
		if words := f.Tag.Get("enum"); words != "" {
			m.enum = strings.Split(words, ",")
		}
		out = append(out, m)
	}
	known.Store(t, out)
	return out
}

// filler sets Go values to those of a file.
type filler struct {
	old bool      // of format 1
	at  time.Time // what relative times of format 1 count back from
}

// value sets a value. null leaves it as it is.
func (l *filler) value(n *yaml.Node, v reflect.Value, path string, signed bool) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return l.value(n, v.Elem(), path, signed)
	}
	switch to := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return l.text(n, to, path)
	case json.Unmarshaler: // an object, or a text for short
		if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
			data, err := json.Marshal(n.Value)
			return errors.Join(err, to.UnmarshalJSON(data))
		}
	case *time.Duration:
		d, err := duration(n.Value)
		if *to = d; n.Kind != yaml.ScalarNode || err != nil {
			return unlike(n, v.Type(), path)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return l.object(n, v, path, signed)
	case reflect.Map:
		return l.names(n, v, path, signed)
	case reflect.Slice:
		return l.list(n, v, path, signed)
	}
	return scalarInto(n, v, path, signed)
}

// unlike refuses a value that is not of a type.
func unlike(n *yaml.Node, t reflect.Type, path string) error {
	return refuse(n, path, "want "+wanted(t)+", not "+kind(n))
}

// text sets what its type reads from a text: times, addresses.
func (l *filler) text(n *yaml.Node, to encoding.TextUnmarshaler, path string) error {
	ok := n.Kind == yaml.ScalarNode
	if at, isTime := to.(*time.Time); isTime {
		if ago, relative := strings.CutPrefix(n.Value, "-"); relative && l.old && !l.at.IsZero() {
			span, err := duration(ago)
			*at, ok = l.at.Add(-span), ok && err == nil
		} else {
			ok = ok && at.UnmarshalText([]byte(n.Value)) == nil
		}
		*at = at.UTC()
		ok = ok && at.Year() >= 0 && at.Year() <= 9999
	} else {
		ok = ok && to.UnmarshalText([]byte(n.Value)) == nil
	}
	if a, isAddress := to.(*netip.Addr); !ok || isAddress && a.Zone() != "" {
		return unlike(n, reflect.TypeOf(to).Elem(), path)
	}
	return nil
}

func (l *filler) object(n *yaml.Node, v reflect.Value, path string, signed bool) error {
	if n.Kind != yaml.MappingNode {
		return refuse(n, path, "want an object, not "+kind(n))
	}
	members := membersOf(v.Type())
	err := each(n, path, func(key string, at, value *yaml.Node) error {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == key })
		if i < 0 {
			var names []string
			for _, m := range members {
				names = append(names, m.name)
			}
			return refuse(at, path, fmt.Sprintf("unknown member %q; known: %s", short(key), strings.Join(names, ", ")))
		}
		m := members[i]
		if len(m.enum) > 0 && value.Value != "" && value.Tag != "!!null" && !slices.Contains(m.enum, value.Value) {
			return refuse(value, join(path, key), fmt.Sprintf("want one of %s, not %s", strings.Join(m.enum, ", "), kind(value)))
		}
		return l.value(value, v.FieldByIndex(m.index), join(path, key), signed || m.signed)
	})
	for _, m := range members {
		if err != nil || m.def == "" || find(n, m.name) >= 0 {
			continue
		}
		if field := v.FieldByIndex(m.index); field.Kind() == reflect.String {
			field.SetString(m.def)
		} else {
			err = json.Unmarshal([]byte(m.def), field.Addr().Interface())
		}
	}
	return err
}

func (l *filler) names(n *yaml.Node, v reflect.Value, path string, signed bool) error {
	if n.Kind != yaml.MappingNode {
		return refuse(n, path, "want a map, not "+kind(n))
	}
	of := v.Type()
	v.Set(reflect.MakeMapWithSize(of, len(n.Content)/2))
	return each(n, path, func(key string, _, value *yaml.Node) error {
		item := reflect.New(of.Elem()).Elem()
		if value.Kind == yaml.ScalarNode && item.Kind() == reflect.String { // numbers are taken as texts
			item.SetString(value.Value)
		} else if err := l.value(value, item, join(path, short(key)), signed); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(key).Convert(of.Key()), item)
		return nil
	})
}

func (l *filler) list(n *yaml.Node, v reflect.Value, path string, signed bool) error {
	if n.Kind != yaml.SequenceNode {
		return refuse(n, path, "want a list, not "+kind(n))
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		if err := l.value(item, v.Index(i), path+"["+strconv.Itoa(i)+"]", signed); err != nil {
			return err
		}
	}
	return nil
}

func scalarInto(n *yaml.Node, v reflect.Value, path string, signed bool) error {
	ok := n.Kind == yaml.ScalarNode
	switch v.Kind() {
	case reflect.String:
		ok = ok && n.Tag == "!!str"
		v.SetString(n.Value)
	case reflect.Bool:
		value, err := strconv.ParseBool(n.Value)
		ok = ok && n.Tag == "!!bool" && err == nil
		v.SetBool(value)
	case reflect.Float32, reflect.Float64:
		value, err := strconv.ParseFloat(n.Value, 64)
		ok = ok && (n.Tag == "!!int" || n.Tag == "!!float") && err == nil && (signed || value >= 0) && !math.IsInf(value, 0)
		v.SetFloat(value)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		value, err := strconv.ParseInt(n.Value, 0, 64)
		ok = ok && n.Tag == "!!int" && err == nil && value >= 0 && !v.OverflowUint(uint64(value))
		v.SetUint(uint64(value))
	default:
		value, err := strconv.ParseInt(n.Value, 0, 64)
		ok = ok && n.Tag == "!!int" && err == nil && (signed || value >= 0) && !v.OverflowInt(value)
		v.SetInt(value)
	}
	if !ok {
		return unlike(n, v.Type(), path)
	}
	return nil
}

// wanted describes a type, for errors.
func wanted(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Time]():
		return "a time, such as 2026-11-21T14:02:11Z"
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[text]():
		return "a duration, such as 1h30m"
	case reflect.TypeFor[netip.Addr]():
		return "an IP address"
	case reflect.TypeFor[netip.Prefix]():
		return "a CIDR"
	}
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number ≥ 0"
	case reflect.Struct:
		return "an object"
	}
	return "an integer ≥ 0"
}

// duration reads a duration that is not negative. Files of format 1 may have days.
func duration(value string) (time.Duration, error) {
	if days, rest, ok := strings.Cut(value, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration", short(value))
		}
		value = strconv.FormatFloat(24*n, 'f', -1, 64) + "h" + rest
	}
	d, err := time.ParseDuration(value)
	if err == nil && d < 0 {
		err = fmt.Errorf("%s is negative", value)
	}
	return d, err
}
