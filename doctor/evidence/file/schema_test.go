package file_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
	"cnictl/testenv/situation"
	"cnictl/testenv/text/golden"
)

//go:generate go test -run ^TestSchema$ -count=1 . -update

const published = "../../../docs/evidence.schema.json"

// everySituation is set at night.
var everySituation bool

// TestSchema: the published schema matches the types. It accepts the evidence of the tests'
// situations as saved, and refuses unknown members.
func TestSchema(t *testing.T) {
	t.Parallel()
	text, err := schemaOf()
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, published, text)
	content, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("evidence.json", content); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("evidence.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text []byte) error {
		var value any
		if err := yaml.Unmarshal(text, &value); err != nil {
			return err
		}
		b, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(b)); err != nil {
			return err
		}
		return schema.Validate(value)
	}
	paths, err := filepath.Glob("../../causes/testdata/*/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no situations", err)
	}
	for _, path := range paths {
		if !everySituation && strings.ContainsAny(strings.TrimSuffix(filepath.Base(path), ".yaml"), "@.") {
			continue // one for each code is enough
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := situation.Load(text)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		saved, err := file.Save(ev)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(saved); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	const start = "schemaVersion: 2\nat: 2026-11-21T14:02:11Z\n"
	if err := validate([]byte(start)); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		"at: 2026-11-21T14:02:11Z", start + "worlds: {}", start + "world: {}", start + "sources: {kern.rule: [{prio: 1}]}", start + "mode: moon",
	} {
		if validate([]byte(text)) == nil {
			t.Errorf("accepts %q", text)
		}
	}
}

// keywords are the keywords of a schema.
type keywords = map[string]any

// schemaOf returns the JSON Schema of evidence files. It accepts more than Load, which also checks
// what a schema cannot express.
func schemaOf() ([]byte, error) {
	s := schema{defs: keywords{}}
	reading := keywords{}
	for id, source := range new(evidence.Reading).Sources() {
		reading[id] = keywords{"anyOf": []any{s.of(reflect.TypeOf(source.Value()).Elem()), missing}}
	}
	s.defs["sources"] = keywords{"type": "object", "properties": reading, "additionalProperties": false}
	sources := keywords{"$ref": "#/$defs/sources"}
	later := keywords{"type": "object", "properties": keywords{"sources": sources}, "additionalProperties": false}
	node := keywords{
		"type": "object", "required": []string{"node"}, "additionalProperties": false,
		"properties": keywords{"node": keywords{"type": "string"}, "sources": sources, "later": later},
	}
	top := keywords{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Evidence for cnictl doctor", "$defs": s.defs,
		"type": "object", "required": []string{"schemaVersion", "at"}, "additionalProperties": false,
		"properties": keywords{
			"schemaVersion": keywords{"const": evidence.SchemaVersion}, "at": s.of(reflect.TypeFor[time.Time]()),
			"mode": keywords{"enum": []string{"node", "laptop", "bundle", "cluster"}}, "interval": s.of(reflect.TypeFor[time.Duration]()),
			"once": keywords{"type": "boolean"}, "scope": s.of(reflect.TypeFor[evidence.Scope]()),
			"report":  keywords{"type": "array", "items": keywords{"type": "string"}},
			"sources": sources, "later": later, "nodes": keywords{"type": "array", "items": node, "minItems": 1},
		},
	}
	b, err := json.MarshalIndent(top, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	return append(b, '\n'), nil
}

var missing = keywords{
	"type": "object", "properties": keywords{"missing": keywords{"type": "string", "minLength": 1}},
	"required": []string{"missing"}, "additionalProperties": false,
}

type schema struct{ defs keywords }

// of returns the schema of a type. Structs are defined once, by name.
func (s schema) of(t reflect.Type) keywords {
	switch t {
	case reflect.TypeFor[time.Time]():
		return keywords{"type": []string{"string", "null"}, "description": "RFC 3339"}
	case reflect.TypeFor[time.Duration]():
		return keywords{"type": "string", "description": "12s, 1h30m"}
	case reflect.TypeFor[netip.Addr](), reflect.TypeFor[netip.Prefix]():
		return keywords{"type": []string{"string", "null"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return keywords{"anyOf": []any{s.of(t.Elem()), keywords{"type": "null"}}}
	case reflect.Struct:
		return s.object(t)
	case reflect.Map:
		return keywords{"type": []string{"object", "null"}, "additionalProperties": s.of(t.Elem())}
	case reflect.Slice:
		items := s.of(t.Elem())
		if t.Elem() == reflect.TypeFor[evidence.Line]() { // a raw line
			items = keywords{"anyOf": []any{items, keywords{"type": "string"}}}
		}
		return keywords{"type": []string{"array", "null"}, "items": items}
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
	name := strings.ReplaceAll(strings.TrimPrefix(t.PkgPath(), "cnictl/"), "/", ".") + "." + t.Name() // references would escape slashes
	if _, done := s.defs[name]; !done {
		s.defs[name] = nil // it may contain itself
		properties := keywords{}
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "" || name == "-" {
				continue // an embedded struct is represented by its fields
			}
			property := s.of(f.Type)
			if enum := f.Tag.Get("enum"); enum != "" {
				property = keywords{"enum": strings.Split(enum, ",")}
			}
			if f.Tag.Get("signed") != "" {
				delete(property, "minimum")
				if f.Type.Kind() == reflect.Map {
					property["additionalProperties"] = keywords{"type": "number"}
				}
			}
			properties[name] = property
		}
		s.defs[name] = keywords{"type": "object", "properties": properties, "additionalProperties": false}
	}
	return keywords{"$ref": "#/$defs/" + name}
}
