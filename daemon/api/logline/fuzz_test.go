package logline

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzLine: any record becomes one JSON object on one line, with unchanged content and its
// members in upstream's order.
func FuzzLine(f *testing.F) {
	data, err := os.ReadFile("testdata/recorded.log")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var in struct{ Level, TS, Caller, Msg string }
		if err := json.Unmarshal([]byte(line), &in); err != nil {
			f.Fatal(err)
		}
		level, _ := ParseLevel(in.Level)
		at, err := time.Parse(timeFormat, in.TS)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(int8(level), at.UnixMilli(), in.Caller, in.Msg, KeyENI, "eni-0a", int64(3))
	}
	f.Add(int8(9), int64(-1), "", "a\nb\x00\xff\u2028\"}", "k\"", "\x1b[31m", int64(-1<<63))
	f.Fuzz(func(t *testing.T, level int8, ms int64, caller, msg, key, value string, n int64) {
		// RFC 3339 only has years of four digits.
		at := time.UnixMilli(ms % (200 * 365 * 86_400_000)).UTC()
		b := Append(nil, Level(level), at, caller, msg)
		b = AppendString(b, "text", value)
		b = AppendInt(b, "n", n)
		b = AppendUint(b, "u", uint64(n))
		b = AppendBool(b, "yes", n > 0)
		b = AppendDuration(b, KeyDuration, time.Duration(n))
		b = AppendTime(b, KeyUntil, at)
		b = End(AppendString(b, key, value))
		if !utf8.Valid(b) || bytes.IndexByte(b, '\n') != len(b)-1 || bytes.ContainsFunc(b[:len(b)-1], func(r rune) bool { return r < ' ' }) {
			t.Fatalf("not one line of text: %q", b)
		}
		var all map[string]any
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		want := []any{json.Delim('{'), "level", Level(level).String(), "ts", at.Format(timeFormat)}
		if caller != "" {
			want = append(want, "caller", valid(caller))
		}
		want = append(want, "msg", valid(msg), "text", valid(value))
		for _, w := range want {
			if got, err := d.Token(); err != nil || got != w {
				t.Fatalf("have %v, %v, want %v in %s", got, err, w, b)
			}
		}
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Token(); err != nil || got.(json.Number).String() != strconv.FormatInt(n, 10) {
			t.Errorf("number %v, %v, want %d", got, err, n)
		}
	})
}

// valid replaces each byte that is not UTF-8.
func valid(s string) string { return string([]rune(s)) }
