package file

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"time"

	"cnictl/doctor/evidence"
)

//go:generate go test -run ^TestSchema$ -count=1 . -update

// keywords are the keywords of a schema.
type keywords = map[string]any

// Schema returns the JSON Schema of evidence files. It accepts more than Load, which also checks
// what a schema cannot express.
func Schema() ([]byte, error) {
	s := schema{defs: keywords{}}
	world, reading := s.of(reflect.TypeFor[world]()), keywords{}
	for _, m := range membersOf(reflect.TypeFor[evidence.Reading]()).list {
		content := reflect.TypeFor[evidence.Reading]().FieldByIndex(m.index).Type.Field(0).Type
		reading[m.name] = keywords{"anyOf": []any{s.of(content), keywords{"const": "expected"}, missing}}
	}
	for _, name := range groups {
		reading[name] = keywords{"anyOf": []any{keywords{"const": "expected"}, missing}}
	}
	s.defs["sources"] = keywords{"type": "object", "properties": reading, "additionalProperties": false}
	part := func(more keywords) keywords {
		members := keywords{"world": world, "sources": keywords{"$ref": "#/$defs/sources"}}
		for name, value := range more {
			members[name] = value
		}
		return keywords{"type": "object", "properties": members, "additionalProperties": false}
	}
	later := part(nil)
	top := part(keywords{
		"schemaVersion": keywords{"const": evidence.SchemaVersion}, "at": s.of(reflect.TypeFor[time.Time]()),
		"mode": keywords{"enum": []string{"node", "laptop", "bundle", "cluster"}}, "base": keywords{"enum": []string{"healthy", "none"}},
		"interval": s.of(reflect.TypeFor[time.Duration]()), "once": keywords{"type": "boolean"},
		"scope": s.of(reflect.TypeFor[evidence.Scope]()), "report": keywords{"type": "array", "items": keywords{"type": "string"}},
		"later": later, "nodes": keywords{"type": "array", "items": part(keywords{"later": later, "count": keywords{"type": "integer", "minimum": 0}})},
	})
	top["$schema"], top["title"] = "https://json-schema.org/draft/2020-12/schema", "Evidence for cnictl doctor"
	top["required"], top["$defs"] = []string{"schemaVersion", "at"}, s.defs
	b, err := json.MarshalIndent(top, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	return append(b, '\n'), nil
}

var missing = keywords{
	"type": "object", "properties": keywords{"missing": keywords{"type": "string", "minLength": 1}}, "required": []string{"missing"}, "additionalProperties": false,
}

type schema struct{ defs keywords }

// of returns the schema of a type. Structs are defined once, by name.
func (s schema) of(t reflect.Type) keywords {
	switch t {
	case reflect.TypeFor[time.Time]():
		return keywords{"type": []string{"string", "null"}, "description": "RFC 3339, or a duration back from the reading: -40s"}
	case reflect.TypeFor[time.Duration]():
		return keywords{"type": "string", "description": "12s, 1h30m, 9d"}
	case reflect.TypeFor[netip.Addr](), reflect.TypeFor[netip.Prefix]():
		return keywords{"type": []string{"string", "null"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return keywords{"anyOf": []any{s.of(t.Elem()), keywords{"type": "null"}}}
	case reflect.Struct:
		return s.object(t)
	case reflect.Map:
		return keywords{"type": []string{"object", "null"}, "additionalProperties": keywords{"anyOf": []any{s.of(t.Elem()), keywords{"type": []string{"number", "boolean", "null"}}}}}
	case reflect.Slice:
		items := s.of(t.Elem())
		if _, text := reflect.PointerTo(t.Elem()).MethodByName("FromText"); text {
			items = keywords{"anyOf": []any{items, keywords{"type": "string"}}}
		}
		list := keywords{"type": "array", "items": items}
		edit := keywords{"type": "object", "properties": keywords{"without": keywords{"type": "array"}, "with": keywords{"type": "array"}}, "additionalProperties": false}
		return keywords{"anyOf": []any{list, edit, keywords{"type": "null"}}}
	case reflect.String:
		return keywords{"type": []string{"string", "number", "boolean", "null"}}
	case reflect.Bool:
		return keywords{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return keywords{"type": "number", "minimum": 0}
	case reflect.Interface:
		return keywords{}
	}
	return keywords{"type": "integer", "minimum": 0}
}

func (s schema) object(t reflect.Type) keywords {
	if _, text := reflect.PointerTo(t).MethodByName("UnmarshalText"); text {
		return keywords{"type": "string"}
	}
	name := t.PkgPath()[len("cnictl/"):] + "." + t.Name()
	name = schemaName(name)
	if _, done := s.defs[name]; !done {
		s.defs[name] = nil // it may contain itself
		properties := keywords{}
		for _, m := range membersOf(t).list {
			property := s.of(t.FieldByIndex(m.index).Type)
			if len(m.enum) > 0 {
				property = keywords{"enum": m.enum}
			}
			if m.signed {
				delete(property, "minimum")
			}
			properties[m.name] = property
		}
		s.defs[name] = keywords{"type": "object", "properties": properties, "additionalProperties": false}
	}
	return keywords{"$ref": "#/$defs/" + name}
}

// schemaName replaces slashes, which would have to be escaped in references.
func schemaName(path string) string {
	out := []byte(path)
	for i, c := range out {
		if c == '/' {
			out[i] = '.'
		}
	}
	return string(out)
}
