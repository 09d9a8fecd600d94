package file

import (
	"encoding"
	"encoding/json"
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
	of     reflect.Type
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
		m := member{name: name, of: f.Type, def: f.Tag.Get("default"), signed: f.Tag.Get("signed") != ""}
		if words := f.Tag.Get("enum"); words != "" {
			m.enum = strings.Split(words, ",")
		}
		out = append(out, m)
	}
	known.Store(t, out)
	return out
}

// writer turns YAML into JSON for a Go type.
type writer struct {
	json []byte
	old  bool      // of format 1
	at   time.Time // what relative times of format 1 count back from
}

// write returns the JSON for what to points to, until the next call.
func (w *writer) write(n *yaml.Node, to any, path string) ([]byte, error) {
	w.json = w.json[:0]
	err := w.value(n, reflect.TypeOf(to).Elem(), path, false)
	return w.json, err
}

var (
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonType     = reflect.TypeFor[json.Unmarshaler]()
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

func (w *writer) value(n *yaml.Node, t reflect.Type, path string, signed bool) error {
	pointer := reflect.PointerTo(t)
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		w.json = append(w.json, "null"...)
		return nil
	case t.Kind() == reflect.Pointer:
		return w.value(n, t.Elem(), path, signed)
	case pointer.Implements(textType):
		return w.text(n, t, path)
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && pointer.Implements(jsonType):
		return w.append(n.Value)
	case t == durationType:
		d, err := duration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			return refuse(n, path, "want "+wanted(t)+", not "+kind(n))
		}
		return w.append(d)
	}
	switch t.Kind() {
	case reflect.Struct:
		return w.object(n, t, path, signed)
	case reflect.Map:
		return w.names(n, t, path, signed)
	case reflect.Slice:
		return w.list(n, t, path, signed)
	case reflect.Interface:
		var free any
		if err := n.Decode(&free); err != nil {
			return refuse(n, path, err.Error())
		}
		return w.append(free)
	}
	return w.scalar(n, t, path, signed)
}

func (w *writer) append(value any) error {
	if s, ok := value.(string); ok && simple(s) {
		w.json = append(append(append(w.json, '"'), s...), '"')
		return nil
	}
	text, err := json.Marshal(value)
	w.json = append(w.json, text...)
	if err != nil {
		return fmt.Errorf("read evidence: %w", err)
	}
	return nil
}

// simple reports whether a text is the same in JSON.
func simple(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// text checks what its type reads from a text: times, addresses.
func (w *writer) text(n *yaml.Node, t reflect.Type, path string) error {
	bad := refuse(n, path, "want "+wanted(t)+", not "+kind(n))
	if n.Kind != yaml.ScalarNode {
		return bad
	}
	if ago, ok := strings.CutPrefix(n.Value, "-"); ok && t == timeType && w.old && !w.at.IsZero() {
		span, err := duration(ago)
		if err != nil {
			return bad
		}
		return w.append(w.at.Add(-span))
	}
	v := reflect.New(t)
	if err := v.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
		return bad
	}
	switch v := v.Interface().(type) {
	case *netip.Addr:
		if v.Zone() != "" {
			return bad
		}
	case *time.Time:
		if w.append(v.UTC()) != nil {
			return bad
		}
		return nil
	}
	return w.append(n.Value)
}

func (w *writer) object(n *yaml.Node, t reflect.Type, path string, signed bool) error {
	if n.Kind != yaml.MappingNode {
		return refuse(n, path, "want an object, not "+kind(n))
	}
	members, comma := membersOf(t), byte('{')
	name := func(m member) {
		w.json = append(w.json, comma, '"')
		w.json = append(append(w.json, m.name...), '"', ':')
		comma = ','
	}
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
		name(m)
		if len(m.enum) > 0 && value.Value != "" && value.Tag != "!!null" && !slices.Contains(m.enum, value.Value) {
			return refuse(value, join(path, key), fmt.Sprintf("want one of %s, not %s", strings.Join(m.enum, ", "), kind(value)))
		}
		return w.value(value, m.of, join(path, key), signed || m.signed)
	})
	for _, m := range members {
		if m.def == "" || find(n, m.name) >= 0 {
			continue
		}
		if name(m); m.of.Kind() == reflect.String {
			w.json = strconv.AppendQuote(w.json, m.def)
		} else {
			w.json = append(w.json, m.def...)
		}
	}
	if comma == '{' {
		w.json = append(w.json, '{')
	}
	w.json = append(w.json, '}')
	return err
}

func (w *writer) names(n *yaml.Node, t reflect.Type, path string, signed bool) error {
	if n.Kind != yaml.MappingNode {
		return refuse(n, path, "want a map, not "+kind(n))
	}
	w.json = append(w.json, '{')
	err := each(n, path, func(key string, _, value *yaml.Node) error {
		if w.json[len(w.json)-1] != '{' {
			w.json = append(w.json, ',')
		}
		if err := w.append(key); err != nil {
			return err
		}
		w.json = append(w.json, ':')
		if value.Kind == yaml.ScalarNode && t.Elem().Kind() == reflect.String { // numbers are taken as texts
			return w.append(value.Value)
		}
		return w.value(value, t.Elem(), join(path, short(key)), signed)
	})
	w.json = append(w.json, '}')
	return err
}

func (w *writer) list(n *yaml.Node, t reflect.Type, path string, signed bool) error {
	if n.Kind != yaml.SequenceNode {
		return refuse(n, path, "want a list, not "+kind(n))
	}
	w.json = append(w.json, '[')
	for i, item := range n.Content {
		if i > 0 {
			w.json = append(w.json, ',')
		}
		if err := w.value(item, t.Elem(), path+"["+strconv.Itoa(i)+"]", signed); err != nil {
			return err
		}
	}
	w.json = append(w.json, ']')
	return nil
}

func (w *writer) scalar(n *yaml.Node, t reflect.Type, path string, signed bool) error {
	ok := n.Kind == yaml.ScalarNode
	switch t.Kind() {
	case reflect.String:
		if ok = ok && n.Tag == "!!str"; ok {
			return w.append(n.Value)
		}
	case reflect.Bool:
		value, err := strconv.ParseBool(n.Value)
		ok = ok && n.Tag == "!!bool" && err == nil
		w.json = strconv.AppendBool(w.json, value)
	case reflect.Float32, reflect.Float64:
		value, err := strconv.ParseFloat(n.Value, 64)
		if ok = ok && (n.Tag == "!!int" || n.Tag == "!!float") && err == nil && (signed || value >= 0) && !math.IsInf(value, 0); ok {
			return w.append(value)
		}
	default:
		value, err := strconv.ParseInt(n.Value, 0, 64)
		ok = ok && n.Tag == "!!int" && err == nil && (signed || value >= 0)
		w.json = strconv.AppendInt(w.json, value, 10)
	}
	if !ok {
		return refuse(n, path, "want "+wanted(t)+", not "+kind(n))
	}
	return nil
}

// wanted describes a type, for errors.
func wanted(t reflect.Type) string {
	switch t {
	case timeType:
		return "a time, such as 2026-11-21T14:02:11Z"
	case durationType, reflect.TypeFor[text]():
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
