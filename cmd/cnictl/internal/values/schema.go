// Package values compares values of the chart, and configurationValues of the managed add-on,
// with the JSON schemas of both. It only reads which names a schema has, which may be null
// and which are text; Helm and EKS check the rest.
package values

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Schema is a JSON schema, or the part of one for a single value.
type Schema struct {
	Ref         string `json:"$ref"`
	Type        any    // a name, or several
	Const       any    // "nothing: " and why there is no such value, in the chart's schema
	Properties  map[string]*Schema
	Additional  *Schema `json:"additionalProperties"`
	Required    []string
	Definitions map[string]*Schema

	never bool    // the schema is the literal false
	to    *Schema // the schema that Ref refers to
}

// UnmarshalJSON reads a schema, which may also be true or false.
func (s *Schema) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, new(bool)); err == nil {
		s.never = bytes.Equal(data, []byte("false"))
		return nil
	}
	type plain Schema
	return json.Unmarshal(data, (*plain)(s))
}

// Parse reads a schema.
func Parse(data []byte) (*Schema, error) {
	root := &Schema{}
	if err := json.Unmarshal(data, root); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	if err := root.link(root.Definitions); err != nil {
		return nil, err
	}
	if len(root.real().Properties) == 0 {
		return nil, errors.New("the schema has no properties")
	}
	return root, nil
}

// link resolves references to definitions.
func (s *Schema) link(all map[string]*Schema) error {
	if s == nil {
		return nil
	}
	if s.Ref != "" {
		if s.to = all[strings.TrimPrefix(s.Ref, "#/definitions/")]; s.to == nil {
			return fmt.Errorf("the schema has no definition %s", s.Ref)
		}
	}
	for _, parts := range []map[string]*Schema{s.Properties, s.Definitions, {"": s.Additional}} {
		for _, part := range parts {
			if err := part.link(all); err != nil {
				return err
			}
		}
	}
	return nil
}

// real follows references. A schema that refers to itself accepts nothing.
func (s *Schema) real() *Schema {
	const most = 16
	for range most {
		if s.to == nil {
			return s
		}
		s = s.to
	}
	return &Schema{never: true}
}

// part returns the schema of a property; nil if it accepts anything.
func (s *Schema) part(name string) *Schema {
	if p := cmp.Or(s.Properties[name], s.Additional); p != nil {
		return p.real()
	}
	return nil
}

// Stray is a value that does not fit the schema.
type Stray struct{ Path, Why string }

// Fit separates the values that the schema has a place for from the others. Where the schema
// wants text, numbers, booleans and nested values become text, as the chart renders them.
func (s *Schema) Fit(values map[string]any) (held map[string]any, strays []Stray) {
	held, _ = s.real().fit(values, "", &strays).(map[string]any)
	return held, strays
}

func (s *Schema) fit(value any, at string, strays *[]Stray) any {
	all, isMap := value.(map[string]any)
	if !isMap || s.Properties == nil && s.Additional == nil {
		return s.text(value)
	}
	held := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		path := strings.TrimPrefix(at+"."+key, ".")
		switch part := s.part(key); {
		case part == nil:
			held[key] = all[key]
		case part.refuses() != "" && s.Properties[key] == nil:
			*strays = append(*strays, Stray{path, Undefined})
		case part.refuses() != "":
			*strays = append(*strays, Stray{path, part.refuses()})
		case all[key] == nil && !part.is("null"):
			*strays = append(*strays, Stray{path, Null})
		default:
			v := part.fit(all[key], path, strays)
			if rest, ok := v.(map[string]any); ok && len(rest) == 0 && !empty(all[key]) {
				continue // nothing in it fits
			}
			held[key] = v
		}
	}
	return held
}

// Reasons why a value does not fit.
const (
	Undefined = "no such value"
	Null      = "null is not allowed here"
)

// refuses returns why the schema accepts no value; "" if it accepts some.
func (s *Schema) refuses() string {
	text, _ := s.Const.(string)
	if why, ok := strings.CutPrefix(text, "nothing: "); ok {
		return why
	}
	if s.never {
		return Undefined
	}
	return ""
}

// is reports whether a type is among those of the schema. Without a type, any is.
func (s *Schema) is(name string) bool {
	several, _ := s.Type.([]any)
	return s.Type == nil || s.Type == name || slices.Contains(several, any(name))
}

func (s *Schema) text(value any) any {
	if _, is := value.(string); is || value == nil || s.Type != "string" {
		return value
	}
	line, err := json.Marshal(value)
	if err != nil {
		return value // impossible: it was read from JSON
	}
	return string(line)
}

func empty(value any) bool { all, ok := value.(map[string]any); return ok && len(all) == 0 }

// Missing lists the paths that a schema requires but the values lack.
func (s *Schema) Missing(values map[string]any) (paths []string) {
	s = s.real()
	for _, name := range s.Required {
		if _, ok := values[name]; !ok {
			paths = append(paths, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		part := s.part(name)
		if all, ok := values[name].(map[string]any); ok && part != nil {
			for _, path := range part.Missing(all) {
				paths = append(paths, name+"."+path)
			}
		}
	}
	return paths
}

// Names lists the paths of all values that have a name in the schema, which must not contain
// itself.
func (s *Schema) Names() (paths []string) {
	s = s.real()
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if part := s.part(name); part != nil && part.refuses() == "" {
			paths = append(paths, name)
			for _, path := range part.Names() {
				paths = append(paths, name+"."+path)
			}
		}
	}
	return paths
}
