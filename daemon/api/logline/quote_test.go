package logline

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

var quoteSeeds = []string{
	"", "plain", "\"\\/\n\r\t\b\f\x00\x1f\x7f", "<&>", "é世\u2028\u2029 😀", "\xff\xc3(", "a\xe2\x80", "\ufffd",
}

// FuzzAppendQuotedJSON compares it with encoding/json's default.
func FuzzAppendQuotedJSON(f *testing.F) {
	for _, s := range quoteSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendQuotedJSON([]byte("> "), s); string(got) != "> "+string(want) {
			t.Errorf("%q: got %s, want > %s", s, got, want)
		}
	})
}

// FuzzAppendQuoted compares it with encoding/json without HTML escapes, except where
// upstream's log encoder differs.
func FuzzAppendQuoted(f *testing.F) {
	for _, s := range quoteSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		// These characters stand in for what differs. Texts that already contain them are
		// skipped.
		if strings.ContainsAny(s, "\ue000\ue001\ue002\ue003") {
			t.Skip("stand-ins in the text")
		}
		in := strings.NewReplacer("\b", "\ue000", "\f", "\ue001", "\u2028", "\ue002", "\u2029", "\ue003").Replace(s)
		if err := enc.Encode(in); err != nil {
			t.Fatal(err)
		}
		expected := strings.NewReplacer("\ue000", `\u0008`, "\ue001", `\u000c`, "\ue002", "\u2028", "\ue003", "\u2029").
			Replace(strings.TrimSuffix(want.String(), "\n"))
		got := AppendQuoted([]byte("> "), s)
		if string(got) != "> "+expected || !utf8.Valid(got) {
			t.Errorf("%q: got %s, want > %s", s, got, expected)
		}
	})
}
