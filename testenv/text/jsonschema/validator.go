package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Problems validates a document of a form against its schema.
func Problems(t *testing.T, raw json.RawMessage, body []byte, form Form) []string {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	v := validator{root: schema, form: form}
	var doc any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return []string{err.Error()}
	}
	v.check("", schema, doc)
	return v.problems
}

// validator implements the part of JSON Schema that the generator uses, and what else CRDs need. It is stricter in one
// point: a member that the schema does not define is a problem.
type validator struct {
	root     map[string]any
	problems []string
	form     Form // Printed also forbids fractions of a second, and an empty string where null is allowed
}

func (v *validator) refuse(at, format string, args ...any) {
	v.problems = append(v.problems, at+": "+fmt.Sprintf(format, args...))
}

func (v *validator) check(at string, schema map[string]any, doc any) {
	if ref, ok := schema["$ref"].(string); ok {
		target, found := v.root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		if !found {
			v.refuse(at, "%s leads nowhere", ref)
			return
		}
		v.check(at, target, doc)
		return
	}
	if either, ok := schema["anyOf"].([]any); ok {
		if doc != nil {
			v.check(at, either[0].(map[string]any), doc)
		}
		return
	}
	if want, ok := schema["const"]; ok && doc != want {
		v.refuse(at, "is %v, not %v", doc, want)
	}
	if !slices.Contains(types(schema["type"]), typeOf(doc)) {
		v.refuse(at, "is of type %s, not %v", typeOf(doc), schema["type"])
		return
	}
	v.parts(at, schema, doc)
}

func (v *validator) parts(at string, schema map[string]any, doc any) {
	switch doc := doc.(type) {
	case string:
		v.text(at, schema, doc)
	case json.Number:
		if n, err := doc.Int64(); err == nil && schema["minimum"] != nil && n < 0 {
			v.refuse(at, "%d is below the minimum", n)
		}
	case []any:
		for i, item := range doc {
			v.check(fmt.Sprintf("%s[%d]", at, i), schema["items"].(map[string]any), item)
		}
	case map[string]any:
		v.members(at, schema, doc)
	}
}

// codeWord is the form of states and statuses, which programs compare.
var codeWord = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// text validates a string. A declared setting may be set to an empty string.
func (v *validator) text(at string, schema map[string]any, doc string) {
	if v.form == Printed && doc == "" && slices.Contains(types(schema["type"]), "null") && !strings.HasSuffix(at, ".declared") {
		v.refuse(at, "is empty, and null is what is not known")
	}
	if v.form == Printed && (strings.HasSuffix(at, ".state") || strings.HasSuffix(at, ".status")) && doc != "" && !codeWord.MatchString(doc) {
		v.refuse(at, "%q is prose, and no word for programs", doc)
	}
	if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(doc) {
		v.refuse(at, "%q does not match %s", doc, pattern)
	}
	if words, ok := schema["enum"].([]any); ok && !slices.Contains(words, any(doc)) {
		v.refuse(at, "is %q, not one of %v", doc, words)
	}
	if schema["format"] != "date-time" {
		return
	}
	when, err := time.Parse(time.RFC3339Nano, doc)
	switch {
	case err != nil || !strings.HasSuffix(doc, "Z"):
		v.refuse(at, "%q is no time in UTC", doc)
	case v.form == Printed && when.Nanosecond() != 0:
		v.refuse(at, "%q is not in whole seconds", doc)
	}
}

func (v *validator) members(at string, schema, doc map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for key, value := range doc {
		next, ok := properties[key].(map[string]any)
		if !ok {
			next, ok = schema["additionalProperties"].(map[string]any)
		}
		if !ok {
			v.refuse(at+"."+key, "is not in the schema")
			continue
		}
		v.check(at+"."+key, next, value)
	}
	required, _ := schema["required"].([]any)
	for _, key := range required {
		if _, ok := doc[key.(string)]; !ok {
			v.refuse(at+"."+key.(string), "is missing")
		}
	}
}

func types(v any) []string {
	if one, ok := v.(string); ok {
		v = []any{one}
	}
	var out []string
	for _, name := range v.([]any) {
		if out = append(out, name.(string)); name == "number" {
			out = append(out, "integer")
		}
	}
	return out
}

func typeOf(doc any) string {
	switch doc := doc.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case json.Number:
		if _, err := doc.Int64(); err == nil {
			return "integer"
		}
		return "number"
	}
	return "object"
}
