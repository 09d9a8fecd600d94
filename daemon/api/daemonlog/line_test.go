package daemonlog

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 14, 1, 11, 0, time.UTC)
	for text, want := range map[string]Line{
		`{"level":"warn","ts":"2026-11-21T14:01:11.000Z","caller":"a.go:1","msg":"ADD failed","n":3,"who":"a b","deep":{"x":[1]},"none":null}`: {
			At: at, Level: "warn", Message: "ADD failed", Known: true, HasMessage: true, Members: []Member{{"n", "3"}, {"who", "a b"}, {"deep", `{"x":[1]}`}, {"none", "null"}},
		},
		`{"ts":"2026-11-21T16:01:11.000+0200","msg":"m"}`:                             {At: at, Message: "m", Known: true, HasMessage: true},
		`{"ts":"2026-11-21T16:01:11.000+02:00","msg":"m"}`:                            {At: at, Message: "m", Known: true, HasMessage: true},
		` {"level":"WARNING","msg":""}`:                                               {Level: "warn", Known: true, HasMessage: true},
		`{"level":"panic","msg":"m"}`:                                                 {Level: "fatal", Message: "m", Known: true, HasMessage: true},
		`{"level":"loud","msg":"a","msg":"b"}`:                                        {Level: "info", Message: "b", Known: true, HasMessage: true},
		`{"level":3,"msg":null}`:                                                      {Message: `{"level":3,"msg":null}`, Known: true},
		`{"ts":"nonsense"}`:                                                           {Message: `{"ts":"nonsense"}`, Known: true},
		`{"ts":"0001-01-01T00:00:00Z","msg":4}`:                                       {Message: "4", Known: true, HasMessage: true},
		`{"msg":"m"} and more`:                                                        {Message: `{"msg":"m"} and more`},
		`{"msg":"m"`:                                                                  {Message: `{"msg":"m"`},
		`{"level":"error","ts":"2026-11-21T14:01:11.000Z","msg":"cut o`:               {At: at, Level: "error", Message: `{"level":"error","ts":"2026-11-21T14:01:11.000Z","msg":"cut o`},
		`2026-11-22T00:00:00Z {"ts":"2026-11-21T14:01:11Z","msg":"\x1b"}`:             {At: at, Message: `{"ts":"2026-11-21T14:01:11Z","msg":"\x1b"}`},
		`{"msg":"it said {\"level\":\"fatal\",\"ts\":\"2026-11-21T14:01:11Z\"}`:       {Message: `{"msg":"it said {\"level\":\"fatal\",\"ts\":\"2026-11-21T14:01:11Z\"}`},
		`text "ts":"2026-11-21T14:01:11Z"`:                                            {Message: `text "ts":"2026-11-21T14:01:11Z"`},
		`[{"msg":"m"}]`:                                                               {Message: `[{"msg":"m"}]`},
		"2026-11-21T14:01:11Z starting":                                               {At: at, Message: "starting"},
		`2026-11-22T00:00:00Z {"level":"warn","ts":"2026-11-21T14:01:11Z","msg":"m"}`: {At: at, Level: "warn", Message: "m", Known: true, HasMessage: true},
		"2026-11-21T14:01:11Z":                                                        {Message: "2026-11-21T14:01:11Z"},
		"panic: boom":                                                                 {Message: "panic: boom"},
		"":                                                                            {},
		"{":                                                                           {Message: "{"},
		"{}":                                                                          {Message: "{}", Known: true},
	} {
		if diff := cmp.Diff(want, Parse(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestSeverity(t *testing.T) {
	t.Parallel()
	for i, level := range Levels() {
		if Severity(level) != i || Severity(strings.ToUpper(level)) != i {
			t.Errorf("%s is at %d, want %d", level, Severity(level), i)
		}
	}
	if Severity("") != 1 || Severity("loud") != 1 || Severity("dpanic") != 4 {
		t.Errorf("unknown levels are at %d and %d", Severity(""), Severity("loud"))
	}
}

// FuzzParse: whatever a log holds, including control and bidirectional characters, no text
// is lost, levels are ours, and an object with a single message yields that message.
func FuzzParse(f *testing.F) {
	f.Add(`{"level":"info","ts":"2026-11-21T14:01:11.000Z","msg":"x","pod":"a/b","k":[1,{"z":null}]}`)
	f.Add("2026-11-21T14:01:11Z 2026-11-21T14:01:11Z goroutine 1 [running]:")
	f.Add(`{"level":"warn","level":"x","msg":null,"ts":1}`)
	f.Add("\x1b[2J{\u202e}\u0085\u009b31m")
	f.Add("{\"msg\":\"\\u009b31m\u202e\u2066\",\"level\":3,\"ts\":\"9999999-01-01\"}")
	f.Add("{\"\u202e\":\"\x9b\"}")
	f.Fuzz(func(t *testing.T, text string) {
		l := Parse(text)
		switch {
		case l.Level != "" && !slices.Contains(levels, l.Level):
			t.Fatalf("%q has level %q", text, l.Level)
		case !l.HasMessage && !strings.HasSuffix(text, l.Message):
			t.Fatalf("%q has lost its text: %q", text, l.Message)
		case !l.Known && (l.HasMessage || l.Members != nil || l.Level != "" && !strings.Contains(text, "{")):
			t.Fatalf("%q is no object and has members: %+v", text, l)
		}
		var whole map[string]any
		if json.Unmarshal([]byte(text), &whole) != nil || whole == nil {
			return
		}
		var m struct{ Msg *string }
		if !l.Known {
			t.Fatalf("%q is an object and was not read", text)
		}
		if s, ok := whole["msg"].(string); ok && strings.Count(text, `"msg"`) == 1 && json.Unmarshal([]byte(text), &m) == nil && l.Message != s {
			t.Fatalf("message of %q is %q, want %q", text, l.Message, s)
		}
	})
}
