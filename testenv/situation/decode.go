package situation

import (
	"encoding"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cnictl/doctor/evidence"
)

// decoder applies a YAML node to an existing value: members that the file omits keep their value.
// This one rule implements defaults, merging nodes with the file, and edits of expected sources.
type decoder struct {
	at    time.Time // base of relative times, which count back
	edits bool      // lists may be edited: {without: …, with: …}

	signed  bool   // numbers may be negative
	growing bool   // log lines are appended to the existing ones
	node    string // default node of a pod
	subnet  string // default subnet of an interface
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	nodeType     = reflect.TypeFor[*yaml.Node]()
)

// apply decodes node onto dst, which must be settable. path names dst in errors.
func (d decoder) apply(node *yaml.Node, dst reflect.Value, path string) error {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return d.unknown(node, dst, path)
	}
	if node.Kind == yaml.ScalarNode {
		switch dst := dst.Addr().Interface().(type) {
		case *evidence.Line: // verbatim
			*dst = evidence.Line{Text: node.Value}
			return nil
		case *evidence.Address: // never assigned to a pod
			*dst = evidence.Address{}
			return d.apply(node, reflect.ValueOf(&dst.Address).Elem(), path)
		}
	}
	switch dst.Type() {
	case nodeType:
		dst.Set(reflect.ValueOf(node))
		return nil
	case timeType:
		return d.time(node, dst, path)
	case durationType:
		return d.duration(node, dst, path)
	}
	if dst.Kind() != reflect.Pointer && dst.Kind() != reflect.Slice {
		if t, ok := dst.Addr().Interface().(encoding.TextUnmarshaler); ok {
			if node.Kind != yaml.ScalarNode {
				return refuse(node, path, "want "+wanted(dst.Type()))
			}
			err := t.UnmarshalText([]byte(node.Value))
			if addr, ok := dst.Interface().(netip.Addr); err != nil || ok && addr.Zone() != "" {
				return refuse(node, path, fmt.Sprintf("want %s, not %q", wanted(dst.Type()), node.Value))
			}
			return nil
		}
	}
	switch dst.Kind() {
	case reflect.Pointer:
		return d.pointer(node, dst, path)
	case reflect.Struct:
		return d.object(node, dst, path)
	case reflect.Map:
		return d.names(node, dst, path)
	case reflect.Slice:
		return d.list(node, dst, path)
	case reflect.Interface:
		return d.free(node, dst, path)
	default:
		return d.scalar(node, dst, path)
	}
}

// unknown handles null. Types without a value for "unknown" reject it.
func (d decoder) unknown(node *yaml.Node, dst reflect.Value, path string) error {
	switch dst.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Bool, reflect.Float64:
		return refuse(node, path, "want "+wanted(dst.Type())+", not null")
	}
	dst.SetZero()
	return nil
}

func (d decoder) pointer(node *yaml.Node, dst reflect.Value, path string) error {
	value := reflect.New(dst.Type().Elem())
	if !dst.IsNil() {
		value.Elem().Set(dst.Elem())
	}
	if err := d.apply(node, value.Elem(), path); err != nil {
		return err
	}
	dst.Set(value)
	return nil
}

func (d decoder) object(node *yaml.Node, dst reflect.Value, path string) error {
	if node.Kind != yaml.MappingNode {
		return refuse(node, path, "want an object, not "+kind(node))
	}
	members := membersOf(dst.Type())
	return each(node, path, func(key string, at, value *yaml.Node) error {
		m, ok := members.find(key)
		if !ok {
			return refuse(at, path, fmt.Sprintf("unknown member %q; known: %s", key, members))
		}
		field := dst.FieldByIndex(m.index)
		d := d
		d.signed = d.signed || m.signed
		if err := d.apply(value, field, join(path, key)); err != nil {
			return err
		}
		if len(m.enum) > 0 && field.String() != "" && !slices.Contains(m.enum, field.String()) {
			return refuse(value, join(path, key), fmt.Sprintf("want one of %s, not %q", strings.Join(m.enum, ", "), field.String()))
		}
		return nil
	})
}

// names decodes a map keyed by name. null removes a name; if the values are pointers, null is kept
// as nil, and removes the name from the map that this one is merged into.
func (d decoder) names(node *yaml.Node, dst reflect.Value, path string) error {
	if node.Kind != yaml.MappingNode {
		return refuse(node, path, "want a map, not "+kind(node))
	}
	out := reflect.MakeMap(dst.Type())
	for _, k := range dst.MapKeys() {
		out.SetMapIndex(k, dst.MapIndex(k))
	}
	err := each(node, path, func(key string, _, value *yaml.Node) error {
		name := reflect.ValueOf(key).Convert(dst.Type().Key())
		item := reflect.New(dst.Type().Elem()).Elem()
		if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
			if item.Kind() != reflect.Pointer {
				item = reflect.Value{}
			}
			out.SetMapIndex(name, item)
			return nil
		}
		switch text := value.Value; { // numbers and booleans are taken as text
		case value.Kind != yaml.ScalarNode:
		case item.Kind() == reflect.String:
			item.SetString(text)
			out.SetMapIndex(name, item)
			return nil
		case item.Type() == reflect.TypeFor[*string]():
			out.SetMapIndex(name, reflect.ValueOf(&text))
			return nil
		}
		if old := out.MapIndex(name); old.IsValid() {
			item.Set(old)
		}
		if err := d.apply(value, item, join(path, key)); err != nil {
			return err
		}
		out.SetMapIndex(name, item)
		return nil
	})
	if err != nil {
		return err
	}
	dst.Set(out)
	return nil
}

func (d decoder) list(node *yaml.Node, dst reflect.Value, path string) error {
	switch {
	case node.Kind == yaml.SequenceNode:
		out := reflect.MakeSlice(dst.Type(), 0, len(node.Content))
		if _, lines := dst.Interface().([]evidence.Line); lines && d.growing {
			out = reflect.AppendSlice(out, dst)
		}
		for i, n := range node.Content {
			item, err := d.item(n, dst.Type().Elem(), fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return err
			}
			out = reflect.Append(out, item)
		}
		dst.Set(out)
		return nil
	case node.Kind == yaml.MappingNode && d.edits:
		return d.edit(node, dst, path)
	}
	return refuse(node, path, "want a list, not "+kind(node))
}

// item decodes an entry of a list onto the defaults of its type.
func (d decoder) item(node *yaml.Node, t reflect.Type, path string) (reflect.Value, error) {
	item := reflect.New(t).Elem()
	defaults(item)
	switch entry := item.Addr().Interface().(type) {
	case *evidence.KubePod:
		*entry = newPod(d.node, d.at)
	case *worldPod:
		entry.KubePod = newPod(d.node, d.at)
	case *evidence.Interface:
		entry.Subnet = d.subnet
	}
	return item, d.apply(node, item, path)
}

// edit changes an expected list in the order of the members: `without` removes matching entries,
// `with` merges entries into those with the same key or appends them.
func (d decoder) edit(node *yaml.Node, dst reflect.Value, path string) error {
	return each(node, path, func(key string, at, value *yaml.Node) error {
		if key != "without" && key != "with" {
			return refuse(at, path, "want a list, or an edit of the expected one: {without: […], with: […]}")
		}
		if value.Kind != yaml.SequenceNode {
			return refuse(value, join(path, key), "want a list, not "+kind(value))
		}
		for i, n := range value.Content {
			where := fmt.Sprintf("%s.%s[%d]", path, key, i)
			var err error
			if key == "without" {
				err = d.without(n, dst, where)
			} else {
				err = d.with(n, dst, where)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// without removes every entry that matches the node.
func (d decoder) without(node *yaml.Node, dst reflect.Value, path string) error {
	if drop := interfaceList(dst); drop != nil {
		return d.withoutInterface(node, drop, path)
	}
	out := reflect.MakeSlice(dst.Type(), 0, dst.Len())
	for i := range dst.Len() {
		same, err := d.matches(node, dst.Index(i), path)
		if err != nil {
			return err
		}
		if !same {
			out = reflect.Append(out, dst.Index(i))
		}
	}
	if out.Len() == dst.Len() {
		return refuse(node, path, "no entry matches")
	}
	dst.Set(out)
	return nil
}

// matches reports whether applying the node to the entry changes nothing.
func (d decoder) matches(node *yaml.Node, entry reflect.Value, path string) (bool, error) {
	probe := reflect.New(entry.Type()).Elem()
	probe.Set(entry)
	if err := d.apply(node, probe, path); err != nil {
		return false, err
	}
	return reflect.DeepEqual(probe.Interface(), entry.Interface()), nil
}

// with merges the node into the entry with its key, or appends it.
func (d decoder) with(node *yaml.Node, dst reflect.Value, path string) error {
	item, err := d.item(node, dst.Type().Elem(), path)
	if err != nil {
		return err
	}
	if i := sameKey(dst, item); i >= 0 {
		old := dst.Index(i)
		had := addressesOf(old)
		if err := d.apply(node, old, path); err != nil {
			return err
		}
		had.keep(old)
		return nil
	}
	dst.Set(reflect.Append(dst, item))
	return nil
}

// sameKey returns the index of the entry that shares a key with item; -1 if none.
func sameKey(list, item reflect.Value) int {
	if item.Kind() != reflect.Struct {
		return -1
	}
	for _, m := range membersOf(item.Type()).list {
		key := item.FieldByIndex(m.index)
		if !m.key || key.IsZero() {
			continue
		}
		for i := range list.Len() {
			if reflect.DeepEqual(list.Index(i).FieldByIndex(m.index).Interface(), key.Interface()) {
				return i
			}
		}
	}
	return -1
}

// free decodes untyped values: settings documents.
func (d decoder) free(node *yaml.Node, dst reflect.Value, path string) error {
	var value any
	if err := node.Decode(&value); err != nil {
		return refuse(node, path, err.Error())
	}
	dst.Set(reflect.ValueOf(value))
	return nil
}

func (d decoder) scalar(node *yaml.Node, dst reflect.Value, path string) error {
	bad := func() error {
		return refuse(node, path, fmt.Sprintf("want %s, not %s", wanted(dst.Type()), kind(node)))
	}
	if node.Kind != yaml.ScalarNode {
		return bad()
	}
	switch dst.Kind() {
	case reflect.String:
		if node.Tag != "!!str" {
			return bad()
		}
		dst.SetString(node.Value)
	case reflect.Bool:
		b, err := strconv.ParseBool(node.Value)
		if node.Tag != "!!bool" || err != nil {
			return bad()
		}
		dst.SetBool(b)
	case reflect.Float64:
		f, err := strconv.ParseFloat(node.Value, 64)
		if node.Tag != "!!int" && node.Tag != "!!float" || err != nil || f < 0 && !d.signed || math.IsInf(f, 0) || math.IsNaN(f) {
			return bad()
		}
		dst.SetFloat(f)
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(node.Value, 0, dst.Type().Bits())
		if node.Tag != "!!int" || err != nil || n < 0 && !d.signed {
			return bad()
		}
		dst.SetInt(n)
	case reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(node.Value, 0, dst.Type().Bits())
		if node.Tag != "!!int" || err != nil {
			return bad()
		}
		dst.SetUint(n)
	default:
		return bad()
	}
	return nil
}
