package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Marshal returns a document as compact JSON, with its members in order. It writes structs member
// by member, whatever MarshalJSON they have.
func Marshal(doc any) ([]byte, error) {
	e := encoder{types: map[reflect.Type][]field{}}
	e.leaves = json.NewEncoder(&e.out)
	e.leaves.SetEscapeHTML(false)
	if err := e.value(reflect.ValueOf(doc), asIs); err != nil {
		return nil, fmt.Errorf("encode document: %w", err)
	}
	return e.out.Bytes(), nil
}

// rule says which value of a member means unknown.
type rule int

const (
	asIs      rule = iota // none
	emptyNull             // an empty string
	zeroNull              // 0
)

// field is a member of a struct.
type field struct {
	index []int  // of the field, including embedded structs
	key   []byte // its quoted name and the colon
	rule  rule
	omit  bool // if it is empty
}

type encoder struct {
	out    bytes.Buffer
	leaves *json.Encoder // writes to out
	types  map[reflect.Type][]field
}

func (e *encoder) value(v reflect.Value, r rule) error {
	if !v.IsValid() || nothing(v, r) {
		e.out.WriteString("null")
		return nil
	}
	switch it := v.Interface().(type) {
	case time.Time:
		return e.leaf(it.UTC().Truncate(time.Second))
	case netip.Addr, netip.Prefix, json.RawMessage:
		return e.leaf(it)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return e.value(v.Elem(), asIs)
	case reflect.Struct:
		return e.object(v)
	case reflect.Slice:
		return e.list(v)
	case reflect.Map:
		return e.mapped(v)
	default:
		return e.leaf(v.Interface())
	}
}

// nothing reports whether a value means unknown.
func nothing(v reflect.Value, r rule) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		return v.IsNil()
	case reflect.Struct:
		switch it := v.Interface().(type) {
		case time.Time:
			return it.IsZero()
		case netip.Addr:
			return !it.IsValid()
		case netip.Prefix:
			return !it.IsValid()
		}
		return false
	case reflect.String:
		return r == emptyNull && v.Len() == 0
	default:
		return r == zeroNull && v.IsZero()
	}
}

// leaf writes a value as encoding/json does.
func (e *encoder) leaf(v any) error {
	if err := e.leaves.Encode(v); err != nil {
		return err
	}
	e.out.Truncate(e.out.Len() - 1) // the encoder ends with a newline
	return nil
}

func (e *encoder) list(v reflect.Value) error {
	e.out.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			e.out.WriteByte(',')
		}
		if err := e.value(v.Index(i), asIs); err != nil {
			return err
		}
	}
	e.out.WriteByte(']')
	return nil
}

// mapped writes a map with string keys, sorted by key.
func (e *encoder) mapped(v reflect.Value) error {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	e.out.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			e.out.WriteByte(',')
		}
		if err := e.leaf(key.String()); err != nil {
			return err
		}
		e.out.WriteByte(':')
		if err := e.value(v.MapIndex(key), asIs); err != nil {
			return err
		}
	}
	e.out.WriteByte('}')
	return nil
}

func (e *encoder) object(v reflect.Value) error {
	fields, ok := e.types[v.Type()]
	if !ok {
		fields = fieldsOf(v.Type(), nil)
		e.types[v.Type()] = fields
	}
	e.out.WriteByte('{')
	first := true
	for _, f := range fields {
		member := v.FieldByIndex(f.index)
		if f.omit && empty(member) {
			continue
		}
		if !first {
			e.out.WriteByte(',')
		}
		first = false
		e.out.Write(f.key)
		if err := e.value(member, f.rule); err != nil {
			return err
		}
	}
	e.out.WriteByte('}')
	return nil
}

// empty reports whether omitempty applies to a value.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// fieldsOf lists the members of a struct, including those of embedded structs. at is the index
// path of the struct.
func fieldsOf(t reflect.Type, at []int) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			out = append(out, fieldsOf(f.Type, index)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		out = append(out, field{index: index, key: fmt.Appendf(nil, "%q:", name), rule: ruleOf(f), omit: options != ""})
	}
	return out
}

func ruleOf(f reflect.StructField) rule {
	switch tag := f.Tag.Get("null"); {
	case tag == "zero":
		return zeroNull
	case tag == "never":
		return asIs
	case f.Type.Kind() == reflect.String:
		return emptyNull
	}
	return asIs
}
