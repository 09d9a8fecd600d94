package encode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"cnictl/daemon/lazy"
)

// YAML returns a document in block style. Strings that are not plain words are double-quoted
// with JSON's escapes, which are valid in YAML.
func YAML(doc any) ([]byte, error) {
	b, err := JSONLine(doc)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	w := yamlWriter{dec: dec}
	if err := w.value(0, atTop); err != nil {
		return nil, fmt.Errorf("encode YAML: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("encode YAML: more than one value")
	}
	return w.out.Bytes(), nil
}

type yamlWriter struct {
	dec *json.Decoder
	out bytes.Buffer
}

// place is what precedes a value on its line.
type place int

const (
	atTop place = iota
	afterKey
	afterDash
)

// value writes the next value.
func (w *yamlWriter) value(indent int, at place) error {
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return w.object(indent, at)
	case json.Delim('['):
		return w.array(indent, at)
	}
	if at != atTop {
		w.out.WriteByte(' ')
	}
	w.scalar(token)
	w.out.WriteByte('\n')
	return nil
}

func (w *yamlWriter) object(indent int, at place) error {
	if !w.dec.More() {
		return w.empty("{}", at)
	}
	if at != atTop {
		w.out.WriteByte('\n')
	}
	for w.dec.More() {
		if err := w.member(indent); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

// member writes one key and its value.
func (w *yamlWriter) member(indent int) error {
	w.blank(indent)
	key, err := w.dec.Token()
	if err != nil {
		return err
	}
	w.scalar(key)
	w.out.WriteByte(':')
	return w.value(indent+2, afterKey)
}

func (w *yamlWriter) array(indent int, at place) error {
	if !w.dec.More() {
		return w.empty("[]", at)
	}
	if at != atTop {
		w.out.WriteByte('\n')
	}
	if at == afterKey {
		indent -= 2 // like kubectl, do not indent items under their key
	}
	for w.dec.More() {
		w.blank(indent)
		w.out.WriteByte('-')
		if err := w.item(indent + 2); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

// item writes the value after a dash: the first field of an object goes on the same line.
func (w *yamlWriter) item(indent int) error {
	start := w.out.Len()
	if err := w.value(indent, afterDash); err != nil {
		return err
	}
	written := w.out.Bytes()[start:]
	if len(written) > indent+1 && written[0] == '\n' {
		// "-\n    key:" becomes "- key:".
		rest := bytes.Clone(written[1+indent:])
		w.out.Truncate(start)
		w.out.WriteByte(' ')
		w.out.Write(rest)
	}
	return nil
}

func (w *yamlWriter) empty(s string, at place) error {
	if at != atTop {
		w.out.WriteByte(' ')
	}
	w.out.WriteString(s)
	w.out.WriteByte('\n')
	_, err := w.dec.Token()
	return err
}

func (w *yamlWriter) blank(n int) { w.out.WriteString(strings.Repeat(" ", n)) }

// plainWord matches strings that every YAML reader takes as strings, except for
// wordsWithMeaning.
var (
	plainWord        = lazy.Regexp(`^[A-Za-z][A-Za-z0-9_./-]*$`)
	wordsWithMeaning = lazy.Regexp(`^(?i:true|false|null|yes|no|on|off|y|n|nan|inf)$`)
)

func (w *yamlWriter) scalar(token json.Token) {
	switch v := token.(type) {
	case nil:
		w.out.WriteString("null")
	case bool:
		fmt.Fprintf(&w.out, "%t", v)
	case json.Number:
		w.out.WriteString(v.String())
	case string:
		if plainWord().MatchString(v) && !wordsWithMeaning().MatchString(v) {
			w.out.WriteString(v)
			return
		}
		quoted, err := JSONLine(v)
		if err == nil { // encoding a string cannot fail
			w.out.Write(bytes.TrimSuffix(quoted, []byte("\n")))
		}
	}
}
