package fakeaws

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// strictJSON reads exactly one JSON value without unknown members. Its errors are for the
// authors of the value: they name members, not Go types.
func strictJSON(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return jsonError(err, reflect.TypeOf(into))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

func jsonError(err error, into reflect.Type) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("it is empty: %s is wanted", jsonName(into))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("invalid JSON: it is cut off")
	case errors.As(err, &syntax):
		return fmt.Errorf("invalid JSON: %w at byte %d", err, syntax.Offset)
	case errors.As(err, &kind):
		what := fmt.Sprintf("%s is wanted, not %s", jsonName(kind.Type), jsonFound(kind.Value))
		if kind.Field == "" {
			return errors.New(what)
		}
		return fmt.Errorf("member %q: %s", kind.Field, what)
	}
	// The remaining errors are unknown members and those of our own types.
	if member, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown field %s", member)
	}
	return err
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// jsonName returns what a Go type is called in JSON.
func jsonName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer && !t.Implements(textType) {
		t = t.Elem()
	}
	switch {
	case t.Implements(textType) || reflect.PointerTo(t).Implements(textType):
		return "a string"
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map:
		return "an object"
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return "a list"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr:
		return "an integer"
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return "a number"
	}
	return "a string"
}

// jsonFound translates encoding/json's name of the value it found to JSON's, with an article.
func jsonFound(value string) string {
	switch value {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	case "string", "number":
		return "a " + value
	}
	return value // "number 1.5"
}
