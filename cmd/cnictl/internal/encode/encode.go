// Package encode writes documents as JSON and YAML, with fields in their order and null for
// unknown values. Characters that could act on a terminal are escaped; both formats read them
// back unchanged. It is pure.
package encode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"cnictl/daemon/fleet/document"
)

// JSON returns an indented document with a final newline.
func JSON(doc any) ([]byte, error) {
	return encodeJSON(doc, "    ")
}

// JSONLine returns a document on one line, for streams.
func JSONLine(doc any) ([]byte, error) {
	return encodeJSON(doc, "")
}

func encodeJSON(doc any, indent string) ([]byte, error) {
	compact, err := document.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(json.RawMessage(compact)); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return escape(b.Bytes()), nil
}

// escape writes unprintable characters as \u. In JSON they can only occur within a string,
// except for the blanks that the encoder itself writes.
func escape(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for len(doc) > 0 {
		r, size := utf8.DecodeRune(doc)
		if r == '\n' || strconv.IsPrint(r) {
			out = append(out, doc[:size]...)
		} else {
			units := utf16.AppendRune(nil, r)
			for _, u := range units {
				out = fmt.Appendf(out, `\u%04x`, u)
			}
		}
		doc = doc[size:]
	}
	return out
}
