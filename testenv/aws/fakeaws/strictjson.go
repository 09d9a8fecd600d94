package fakeaws

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// strictJSON reads exactly one JSON value without unknown members.
func strictJSON(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}
